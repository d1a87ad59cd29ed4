"""Plan and carry out the deletion of an index, of documents, or of what shinglefold stored."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from shinglefold.contracts.engine import JSON, BulkFailure, BulkResult, Engine, IndexInfo
from shinglefold.errors import ConfigError, EngineError, IndexMissing, WindowTooLarge
from shinglefold.ingest.writing.accounting import Progress
from shinglefold.ingest.writing.batch import send
from shinglefold.ingest.writing.target_index import released_after
from shinglefold.maintenance.guarded_updates import ROUNDS, Hit, conflict_outcome, reread
from shinglefold.maintenance.preconditions import (
    patterns_overlap,
    settings_of,
    source_obstacles,
    write_obstacles,
)
from shinglefold.maintenance.reconcile import DocumentKey, guarded_action, key_of_action, unrecognized_content
from shinglefold.maintenance.scan import Scan, Throttle, restart_on_expiry, whole_source
from shinglefold.maintenance.setup import is_ours
from shinglefold.model.recipe import META_KEY, stored_recipe
from shinglefold.model.stored_fingerprint import is_placeholder, without_fingerprint
from shinglefold.options.validation import check_engine, check_str, check_strings, check_type
from shinglefold.rerank.hits import check_complete
from shinglefold.rerank.index_fields import mapped_at
from shinglefold.runtime.backoff import DEFAULT_BACKOFF
from shinglefold.runtime.signals import Interrupts

#: The number of ids per search, and the most ids shown in a plan.
_PAGE = 1000
_SHOWN = 10
_MOST_IDS = 1_000_000
_MOST_NAMES = 100
#: The most documents listed that keep their fingerprint.
_LISTED = 100


@dataclass(frozen=True, slots=True)
class Deletion:
    """The plan of a deletion.

    Attributes:
        index: the name of the index itself, even if an alias was given.
        aliases: its aliases, which are deleted with it.
        query: the query for the documents to delete; None for the whole index.
        documents: number of documents to delete; None if the index can't be read.
        size: bytes of the index, if known and the whole index is deleted.
        ids: some of the documents to delete.
        missing: given ids that do not exist.
        unread: why the index can't be read, else empty.
    """

    index: str
    aliases: tuple[str, ...]
    query: Mapping[str, Any] | None
    documents: int | None
    size: int | None = None
    ids: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unread: str = ""

    def to_json(self) -> JSON:
        """Return the plan as JSON."""
        return {
            "index": self.index,
            "aliases": list(self.aliases),
            "whole_index": self.query is None,
            "documents": self.documents,
            "bytes": self.size,
            "ids": list(self.ids),
            "missing": list(self.missing),
        } | ({"unread": self.unread} if self.unread else {})


def plan_deletion(
    engine: Engine, index: str, ids: Sequence[str] | None = None, query: Mapping[str, Any] | None = None
) -> Deletion:
    """Return what a deletion would delete, without deleting it.

    Args:
        index: an index, or an alias of one.
        ids: ids of documents to delete; without ids and query, the whole index is deleted.
        query: a query for the documents to delete.

    Raises:
        ConfigError: the name is a pattern, or an alias of several indices; or both ids and a query are given;
            or the list of ids is empty.
        IndexMissing: there is no such index.
    """
    check_engine(engine)
    check_str("index", index)
    if ids is not None and not check_strings("ids", ids, _MOST_IDS):
        raise ConfigError("ids: the list is empty; leave ids out to delete the whole index")
    if ids and query is not None:
        raise ConfigError("both ids and a query are given: give one of the two")
    info = _one_index(engine, index)
    own, aliases, size = info.name, info.aliases, info.size
    if ids:
        return _by_ids(engine, own, aliases, tuple(dict.fromkeys(ids)))
    if query is None:
        counted, unread = _count_documents(engine, info)
        return Deletion(own, aliases, None, counted, size, unread=unread)
    count, first = _find_documents(engine, own, query, _SHOWN)
    return Deletion(own, aliases, query, count, ids=first)


def delete(engine: Engine, plan: Deletion) -> BulkResult:
    """Carry out a deletion and refresh the index.

    Returns:
        The number of deleted documents, and those that the engine did not delete.
    """
    check_engine(engine)
    check_type("plan", plan, Deletion, "what plan_deletion returns")
    if plan.query is not None:
        with released_after(engine, plan.index):
            return engine.delete_by_query(plan.index, plan.query)
    engine.delete_index(plan.index)
    return BulkResult(plan.documents or 0)


def _one_index(engine: Engine, index: str) -> IndexInfo:
    if "*" in index or "," in index:
        raise ConfigError(f"{index!r} may mean several indices; name the one to delete")
    found = engine.indices(index)
    if not found:
        raise IndexMissing(f"no index {index!r}; check the name")
    if len(found) > 1:
        raise ConfigError(
            f"{index!r} is an alias of {', '.join(one.name for one in found)}; name the one to delete"
        )
    (info,) = found
    return info


def _by_ids(engine: Engine, index: str, aliases: tuple[str, ...], ids: tuple[str, ...]) -> Deletion:
    there, begin, page = set[str](), 0, _PAGE
    while begin < len(ids):
        query = {"ids": {"values": list(ids[begin : begin + page])}}
        try:
            there.update(_find_documents(engine, index, query, page)[1])
        except WindowTooLarge:
            # The index has a smaller index.max_result_window.
            if page == 1:
                raise
            page //= 2
        else:
            begin += page
    present = tuple(one for one in ids if one in there)
    missing = tuple(one for one in ids if one not in there)
    query = {"ids": {"values": list(present)}}
    return Deletion(index, aliases, query, len(present), ids=present[:_SHOWN], missing=missing)


def _count_documents(engine: Engine, info: IndexInfo) -> tuple[int | None, str]:
    """Return the number of documents of an index, or None and the reason if it can't be read."""
    try:
        counted, _ = _find_documents(engine, info.name, None, 0)
    except EngineError as error:
        # A damaged index can be deleted, too. Servers count documents even if the client may not read them.
        return None, str(error)
    return (None if info.documents is None else counted), ""


def _find_documents(
    engine: Engine, index: str, query: Mapping[str, Any] | None, size: int
) -> tuple[int, tuple[str, ...]]:
    """Return the number of documents that a query finds, and the ids of the first ones."""
    body: JSON = {"size": size, "track_total_hits": True, "_source": False, **engine.can.unaltered}
    if query is not None:
        body["query"] = query
    hits = check_complete(engine.search(index, body, engine.can.newest))["hits"]
    return int(hits["total"]["value"]), tuple(str(hit["_id"]) for hit in hits["hits"])


@dataclass(frozen=True, slots=True)
class Removal:
    """What a removal takes away.

    Attributes:
        fields: the fingerprint field of each index with a recipe.
        documents: the number of documents with that field, by index without problems.
        index_templates: names of our index templates for these indices alone.
        shared_templates: those that stay, as they serve other indices, too; one of these by template.
        component_templates: names of our component templates that no other template needs.
        helpers: indices that gates keep for these indices.
        mapped: the fields that stay in the mappings, by index: no server removes a mapped field.
        problems: why something can't be removed, by index or template.
    """

    fields: Mapping[str, str]
    documents: Mapping[str, int] = field(default_factory=dict)
    index_templates: tuple[str, ...] = ()
    shared_templates: Mapping[str, str] = field(default_factory=dict)
    component_templates: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()
    mapped: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_json(self) -> JSON:
        """Return the plan as JSON."""
        return asdict(self)


@dataclass(slots=True)
class RemovalCounts:
    """The documents of a removal. ``left``: those that still have their fingerprint, with the reasons."""

    read: int = 0
    removed: int = 0
    left: int = 0
    reasons: dict[str, str] = field(default_factory=dict)

    def leave(self, id: str, reason: str) -> None:  # noqa: A002 - the engines' own word
        """Count a document that keeps its fingerprint."""
        self.left += 1
        if len(self.reasons) < _LISTED:
            self.reasons[id] = reason


def plan_removal(engine: Engine, index: str, helpers: Sequence[str] = ()) -> Removal:
    """Return what a removal would delete, without changing anything.

    Args:
        index: an index, an alias or a pattern.
        helpers: indices that gates may keep for it.

    Raises:
        IndexMissing: there is no such index.
        ConfigError: none of the indices is set up for fingerprints.
    """
    check_engine(engine)
    check_str("index", index)
    check_strings("helpers", helpers, _MOST_NAMES)
    found = engine.all_mappings(index)
    if not found:
        raise IndexMissing(f"no index fits {index!r}; check the name")
    fields = {
        name: path
        for name, mappings in found.items()
        if (path := str((stored_recipe(mappings) or {}).get("field") or ""))
    }
    there = tuple(name for name in helpers if engine.index_exists(name))
    templates, shared, components, problems = _templates(engine, list(found))
    if not (fields or there or templates):
        raise ConfigError(f"index {index!r} has no recipe of shinglefold in its mappings: nothing to remove")
    for name in fields:
        settings = settings_of(engine, name).get(name, {})
        reasons = (*source_obstacles(found[name], settings), *write_obstacles(name, settings))
        if reasons:
            problems[name] = reasons
    mapped = {name: path for name, path in fields.items() if mapped_at(found[name], path) is not None}
    # A closed index can't be counted.
    documents = {name: _count(engine, name, path) for name, path in mapped.items() if name not in problems}
    return Removal(fields, documents, templates, shared, components, there, mapped, problems)


def carry_out_removal(
    engine: Engine,
    plan: Removal,
    progress: Callable[[Progress], None] | None = None,
    *,
    requests_per_second: float = 0.0,
) -> RemovalCounts:
    """Carry out a removal: documents first, then recipes, templates and helpers.

    Other clients may write meanwhile: a document that changed is read again. An index keeps its recipe while
    one of its documents keeps its fingerprint, so the same call continues with the rest.

    Args:
        requests_per_second: documents read, and written, a second; 0 sets no limit.

    Raises:
        ConfigError: the plan has problems; nothing was changed.
        EngineError: the engine failed; a new plan has the rest.
    """
    check_engine(engine)
    check_type("plan", plan, Removal, "what plan_removal returns")
    throttle = Throttle(requests_per_second)
    for name, reasons in plan.problems.items():
        raise ConfigError(f"{name} was not changed: {'; '.join(reasons)}")
    # Templates first: an index that is made meanwhile must not get the fields again.
    if engine.templates is not None:
        for name in plan.index_templates:
            engine.templates.delete_index_template(name)
        for name in plan.component_templates:
            engine.templates.delete_component_template(name)
    for name in plan.helpers:
        engine.delete_index(name)
    stripper = _Stripper(engine, sum(plan.documents.values()), progress, throttle)
    for index, path in plan.fields.items():
        with released_after(engine, index):
            left = stripper.counts.left
            if index in plan.documents:
                stripper.strip_index(index, path)
            if stripper.counts.left == left:
                meta = dict(engine.mappings(index).get("_meta") or {})
                meta.pop(META_KEY, None)
                engine.put_mappings(index, {"_meta": meta})
    return stripper.counts


def _templates(
    engine: Engine, indices: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, str], tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return our index templates for some indices alone, those for others, too, components, and problems."""
    if engine.templates is None:
        return (), {}, (), {}
    bodies = engine.templates.index_templates()
    fitting = {
        name: body
        for name, body in bodies.items()
        if any(patterns_overlap(index, one) for index in indices for one in body.get("index_patterns", ()))
    }
    served = {
        name: _indices_of_template(engine, body, indices) for name, body in fitting.items() if is_ours(body)
    }
    ours = tuple(name for name, others in served.items() if not others)
    shared = {name: others[0] for name, others in served.items() if others}
    components: list[str] = []
    problems: dict[str, tuple[str, ...]] = {}
    for component in dict.fromkeys(part for body in fitting.values() for part in body.get("composed_of", ())):
        stored = engine.templates.component_template(component)
        if stored is None or not is_ours(stored):
            continue
        users = [name for name, body in bodies.items() if component in body.get("composed_of", ())]
        if others := [name for name in users if name in fitting and name not in served]:
            problems |= {
                f"index template {name}": (
                    f"it uses the component template {component!r} of shinglefold: take that out of its "
                    "composed_of first",
                )
                for name in others
            }
        elif set(users) <= set(ours):
            components.append(component)
    return ours, shared, tuple(components), problems


def _indices_of_template(engine: Engine, template: Mapping[str, Any], without: Sequence[str]) -> list[str]:
    """Return the indices with a recipe that a template fits, without some."""
    found: dict[str, JSON] = {}
    for pattern in template.get("index_patterns", ()):
        # A pattern may be the whole name of an index to come.
        with suppress(IndexMissing):
            found |= engine.all_mappings(pattern)
    return [
        name
        for name, mappings in found.items()
        if name not in without and stored_recipe(mappings) is not None
    ]


def _query(path: str) -> JSON:
    # Not every part has values in every document: a short text has no signature, a placeholder no digest.
    parts = (path, *(f"{path}.{part}" for part in ("scheme", "digest", "group", "leader", "pending")))
    return {"bool": {"should": [{"exists": {"field": one}} for one in parts], "minimum_should_match": 1}}


def _count(engine: Engine, index: str, path: str) -> int:
    engine.refresh(index)
    body = {"query": _query(path), "size": 0, "track_total_hits": True, **engine.can.unaltered}
    return int(check_complete(engine.search(index, body, engine.can.newest))["hits"]["total"]["value"])


@dataclass(slots=True)
class _Stripper:
    """Takes the fingerprints out of the documents of indices."""

    engine: Engine
    total: int
    progress: Callable[[Progress], None] | None
    throttle: Throttle
    counts: RemovalCounts = field(default_factory=RemovalCounts)

    def strip_index(self, index: str, path: str) -> None:
        """Rewrite each document of an index that has the field."""
        with Interrupts() as interrupts:
            restart_on_expiry(lambda: self._scan(index, path, interrupts))

    def _scan(self, index: str, path: str, interrupts: Interrupts) -> None:
        self.engine.refresh(index)
        fields = whole_source(self.engine, index)
        scan = Scan(self.engine, index, _query(path), keep_alive=self.throttle.keep_alive, fields=fields)
        position = scan.start()
        for page in scan.pages(position):
            with interrupts.hold():
                self._strip_page(page.hits, path, lambda: interrupts.pending)
            self._report()
            position = page.place
            self.throttle.wait(len(page.hits))
        scan.close(position)
        self.engine.refresh(index)

    def _strip_page(self, hits: Sequence[Hit], path: str, stop: Callable[[], bool]) -> None:
        """Write documents without their fingerprint; read those again that other writers changed."""
        self.counts.read += len(hits)
        conflicts: list[DocumentKey] = []
        for _ in range(ROUNDS):
            actions = [_action(hit, path) for hit in hits if self._is_ours(hit, path)]
            refused = send(self.engine, actions, DEFAULT_BACKOFF, stop).refused if actions else []
            self.counts.removed += len(actions) - len(refused)
            conflicts = [key_of_action(one.action) for one in refused if not self._is_settled(one)]
            if not conflicts:
                return
            hits = list(reread(self.engine, conflicts, DEFAULT_BACKOFF))
        for key in conflicts:
            self.counts.leave(key.id, "other writers change it faster than it can be updated; run it again")

    def _is_ours(self, hit: Hit, path: str) -> bool:
        """Return whether a document has a fingerprint to remove; count one whose field holds other data."""
        source = hit["_source"]
        if is_placeholder(source, path):
            return True
        if content := unrecognized_content(source, path):
            self.counts.leave(hit["_id"], f"{content}; the document was not changed")
            return False
        return without_fingerprint(source, path) is not source

    def _is_settled(self, failure: BulkFailure) -> bool:
        """Return whether a failed write is not to be tried again; count a refused one."""
        outcome = conflict_outcome(failure)
        if outcome == "refused":
            self.counts.leave(str(failure.action["_id"]), f"{failure.status}: {failure.reason}")
        return outcome != "conflict"

    def _report(self) -> None:
        if self.progress is not None:
            counts = self.counts
            share = min(1.0, counts.read / self.total) if self.total else 1.0
            self.progress(Progress(counts.read, counts.removed, 0, counts.left, share))


def _action(hit: Hit, path: str) -> dict[str, Any]:
    """Return the write that takes the fingerprint out of a document, or a placeholder out of the index."""
    if is_placeholder(hit["_source"], path):
        return guarded_action({"_op_type": "delete"}, hit)
    return guarded_action({"_op_type": "index", "_source": without_fingerprint(hit["_source"], path)}, hit)
