"""The indices that requests name: their recipes, and the pipelines that sign their documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from time import monotonic
from typing import Any, Generic, TypeVar, get_args

from shinglefold.api.index_options import IndexOptions
from shinglefold.api.index_recipe import common_recipe
from shinglefold.contracts.engine import JSON, Document, VersionedDocument
from shinglefold.engines.http.responses import objects_in, read_answer
from shinglefold.errors import ConfigError, EngineError, IndexMissing, PermissionDenied
from shinglefold.gateway.access import credentials
from shinglefold.gateway.rest import ENGINE, Steps, ask, log, path_of, warn
from shinglefold.ingest import Pipeline
from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.ingest.pipeline.steps import METADATA, source_fields
from shinglefold.ingest.writing.worker_pool import process_block
from shinglefold.maintenance.reconcile import as_stored, new_fingerprint, stored_fingerprint, update_action
from shinglefold.model.recipe import GateNote, Recipe, has_recipe, missing_recipe, stored_recipe
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import is_placeholder, overwrite_refusal, without_fingerprint
from shinglefold.registry import check_versions
from shinglefold.rerank.engine_calls import Call
from shinglefold.rerank.index_fields import index_names, is_valid
from shinglefold.runtime.recent import RecentlyUsed
from shinglefold.settings import Settings

Mappings = Mapping[str, JSON]
Value = TypeVar("Value")
_READ_MAPPINGS = (
    "Let the user read mappings (OpenSearch: indices:admin/mappings/get, Elasticsearch: view_index_metadata)"
)


@dataclass(eq=False)
class SignedIndex:
    """An index whose documents get fingerprints by its recipe; threads may share it.

    ``stored_in``: the name to read documents by, as several indices have none; "" if the caller may not know
    it. ``routing``: what the alias ``name`` gives to documents without one, which ``stored_in`` does not.
    """

    name: str
    recipe: Recipe
    seal: Seal | None
    stored_in: str
    routing: str | None = None
    _lock: Lock = field(default_factory=Lock)
    _made: Pipeline | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline of the recipe; refused if a language is missing, or has another version."""
        if self._made is None:
            check_versions(self.recipe.scheme.languages)
            self._made = Pipeline.from_json(self.recipe.pipeline, self.recipe.scheme, seal=self.seal)
        return self._made

    def read(
        self, ids: Sequence[str], routings: Sequence[str | None], fields: Sequence[str] = ()
    ) -> Steps[list[VersionedDocument | None]]:
        """Return documents with their versions, None for missing ones, also where the index is missing."""
        if not self.stored_in:
            raise PermissionDenied(f"the alias {self.name!r} may not be read")
        routed = [self.routing if one is None else one for one in routings]
        try:
            return list((yield Call("read", (self.stored_in, ids, fields, routed))))
        except IndexMissing:
            # A template may make it when a document is inserted.
            return [None] * len(ids)

    def bare(self, document: Any) -> Any:  # noqa: ANN401 - JSON
        """Return a document without the fingerprint that its client sent."""
        return without_fingerprint(document, self.recipe.field)

    def sign(self, documents: Sequence[tuple[str | None, Any]]) -> list[Outcome | str]:
        """Return the documents after the pipeline, each with its id, or the reason why it can't be signed."""
        reasons = [self._refusal(document) for _, document in documents]
        block: list[Document] = [
            {**({} if id_ is None else {"_id": id_}), **self.bare(document)}
            for (id_, document), reason in zip(documents, reasons, strict=True)
            if not reason
        ]
        with self._lock:
            outcomes = iter(process_block(self.pipeline, block).outcomes)
        made: list[Outcome | str] = []
        for reason in reasons:
            outcome = reason or next(outcomes)
            failed = not isinstance(outcome, str) and outcome.status == "failed"
            made.append(str(outcome.failure) if failed and not isinstance(outcome, str) else outcome)
        return made

    def renew(self, hits: Sequence[JSON]) -> list[JSON | str | None]:
        """Return the action that renews the fingerprint of each stored document.

        None for one whose fingerprint is that of its text; why, for one that can't be signed.
        """
        field = self.recipe.field
        made = self.sign([(hit["_id"], hit["_source"]) for hit in hits])
        renewed: list[JSON | str | None] = [one if isinstance(one, str) else None for one in made]
        for place, (hit, outcome) in enumerate(zip(hits, made, strict=True)):
            if isinstance(outcome, str) or outcome.document is None or is_placeholder(hit["_source"], field):
                continue
            with self._lock:
                (settled,) = as_stored(self.pipeline, [hit], [outcome], field)
            new = new_fingerprint(settled, field) or {}
            if new != stored_fingerprint(hit["_source"], field):
                renewed[place] = update_action(hit, field, new)
        return renewed

    @property
    def gated(self) -> bool:
        """Whether a gate decides about new documents."""
        return self.recipe.gate == "refuse"

    @property
    def unchecked(self) -> str:
        """The end of a warning about a write that bypasses the gate; "" for an index without a gate."""
        return f", and the gate of {self.name!r} does not decide about it" if self.gated else ""

    def touches(self, document: Mapping[str, Any]) -> bool:
        """Return whether a partial document has a field that the pipeline reads."""
        with self._lock:
            steps = self.pipeline.steps
        read = source_fields(steps)
        if read is None or any(step.condition is not None for step in steps):
            return True
        tops = {name.removeprefix("_source.").partition(".")[0] for name in read}
        return any(str(name).partition(".")[0] in tops for name in document)

    def _refusal(self, document: Any) -> str:  # noqa: ANN401 - JSON
        if not isinstance(document, Mapping):
            return "the document is not an object"
        for name in METADATA:
            if name in document:
                return f"Field [{name}] is a metadata field and cannot be added inside a document."
        return overwrite_refusal(document, self.recipe.field)


class _ByCaller(Generic[Value]):
    """A cache of facts about names for some seconds: of an index for all callers, else for each.

    Two callers may see different indices behind a pattern, a list, an alias or a data stream.
    """

    def __init__(self) -> None:
        self._known: RecentlyUsed[object, tuple[float, Value]] = RecentlyUsed(1024)

    def get(self, name: str, headers: Mapping[str, str]) -> tuple[Value] | None:
        """Return the cached value of a name in a tuple; None if it must be read."""
        for key in (name, (name, credentials(headers))):
            found = self._known.get(key)
            if found is not None and is_valid(found[0]):
                return found[1:]
        return None

    def drop(self, name: str, headers: Mapping[str, str]) -> None:
        """Forget what a caller sees behind a name."""
        self._known.drop(name)
        self._known.drop((name, credentials(headers)))

    def put(
        self, name: str, headers: Mapping[str, str], mappings: Mappings, when: float, value: Value
    ) -> None:
        """Cache the value of a name, given the indices that a caller sees behind it and the time."""
        own = mappings.keys() == {name}
        self._known.put(name if own else (name, credentials(headers)), (when, value))


@dataclass(frozen=True)
class _NamedMappings:
    """The mappings of the indices that a search names, with values computed from them once."""

    mappings: Mappings

    @cached_property
    def recipe(self) -> Recipe | None:
        """The first recipe; see ``KnownIndices.recipe``."""
        named = self.mappings.items()
        return next((Recipe.of(found, name) for name, found in named if has_recipe(found)), None)

    @cached_property
    def folds(self) -> bool:
        """Whether all indices with a recipe were set up to fold every search."""
        noted = [one for found in self.mappings.values() if (one := stored_recipe(found)) is not None]
        return bool(noted) and all(one.get("fold") is True for one in noted)


class KnownIndices:
    """A cache of the mappings behind names, and of the indices that documents are signed for."""

    def __init__(self, options: IndexOptions, settings: Settings) -> None:
        self._options, self._settings = options, settings
        self._by_name: _ByCaller[_NamedMappings] = _ByCaller()
        #: When a caller last saw no mappings behind a name, and whether it may not read them.
        self._unread: RecentlyUsed[object, tuple[float, bool]] = RecentlyUsed(1024)
        self._signed: RecentlyUsed[str, SignedIndex] = RecentlyUsed(64)
        self._targets: _ByCaller[SignedIndex | None] = _ByCaller()

    def recipe(self, index: str, headers: Mapping[str, str]) -> Steps[Recipe | None]:
        """Return the recipe of the indices that a search names, None if none of them has one.

        Of several recipes, the first; the search reports indices that do not fit it.
        """
        return (yield from self._mappings_of_name(index, headers)).recipe

    def is_index(self, name: str | None, headers: Mapping[str, str]) -> Steps[bool]:
        """Return whether a name is known to be that of an index, which is the same for all callers."""
        if name is None:
            return False
        return (yield from self._mappings_of_name(name, headers)).mappings.keys() == {name}

    def any_has_recipe(self, index: str, headers: Mapping[str, str]) -> Steps[bool]:
        """Return whether one of the indices that a search names is known to have a recipe."""
        return any(map(has_recipe, (yield from self._readable(index, headers)).mappings.values()))

    def folds(self, index: str, headers: Mapping[str, str]) -> Steps[bool]:
        """Return whether all indices with a recipe were set up to fold every search."""
        return (yield from self._readable(index, headers)).folds

    def _readable(self, index: str, headers: Mapping[str, str]) -> Steps[_NamedMappings]:
        """Return the mappings of a name; none, for some seconds, if they can't be read."""
        if known := self._by_name.get(index, headers):
            return known[0]
        if is_valid((self._unread.get((index, credentials(headers))) or (0.0,))[0]):
            # Else each search of a user who may not read them would take two requests.
            return _NamedMappings({})
        try:
            return (yield from self._mappings_of_name(index, headers))
        except EngineError as error:
            # The engine answers the search, or says itself what is wrong.
            log.warning("the mappings of %r can't be read, so a search is not folded: %s", index, error)
            return _NamedMappings({})

    def _mappings_of_name(self, index: str, headers: Mapping[str, str]) -> Steps[_NamedMappings]:
        """Return the mappings behind a name, none if the caller may not read them, which is logged once."""
        if known := self._by_name.get(index, headers):
            return known[0]
        when = monotonic()
        found = yield from self._read(index)
        made = _NamedMappings(found or {})
        # One caller may not be allowed to read them, and another one may.
        if found:
            self._by_name.put(index, headers, found, when, made)
            return made
        caller, denied = (index, credentials(headers)), found is None
        if denied and not (self._unread.get(caller) or (when, False))[1]:
            log.warning(
                "a user may not read the mappings of %r, so searches are not folded by its recipe, if it has "
                "one. %s",
                index,
                _READ_MAPPINGS,
            )
        self._unread.put(caller, (when, denied))
        return made

    def target(self, name: str, headers: Mapping[str, str]) -> Steps[SignedIndex | None]:
        """Return the index that a write to a name goes to; None if it has no recipe.

        Raises:
            SchemeMismatch, ConfigError: its recipe can't be read, the key of its seal is missing, or the name
                means several indices of different recipes.
        """
        if known := self._targets.get(name, headers):
            return known[0]
        when = monotonic()
        found = yield from self._read(name)
        written = yield from self._written_mappings(name, found, headers)
        return self._new_target(name, headers, found, written, when)

    def other_target(
        self, index: SignedIndex, stored_in: str, headers: Mapping[str, str]
    ) -> Steps[SignedIndex | None]:
        """Return the index that stored a document, if it was signed for another one; else None.

        An alias may have been switched since its mappings were read, so they are read again.

        Args:
            index: signed the document, by a name that may be an alias.
            stored_in: the name in the answer of the engine.
        """
        if stored_in in (index.name, index.stored_in):
            return None
        if known := self._targets.get(stored_in, headers):
            stored = known[0]
        else:
            when = monotonic()
            found = yield from self._read(stored_in)
            if not found:
                # A role may know the alias only.
                mappings = (yield from self._read(index.name)) or {}
                found = {stored_in: mappings[stored_in]} if stored_in in mappings else None
            if not found:
                warn(
                    f"{index.name!r} stores documents in {stored_in!r}, whose mappings may not be read: they "
                    f"may not fit its recipe. {_READ_MAPPINGS}, or run `shinglefold backfill {stored_in}`"
                )
                return None
            stored = self._new_target(stored_in, headers, found, (found, stored_in, None), when)
        # The fingerprint fits, unless the recipe was read from another index.
        if stored is not None and stored.recipe == index.recipe and index.stored_in in (index.name, ""):
            return None
        self._targets.drop(index.name, headers)
        self._by_name.drop(index.name, headers)
        if stored is None:
            warn(
                f"{index.name!r} was switched to {stored_in!r}, which has no recipe: documents written in "
                "between have fingerprints that nothing reads"
            )
        return stored

    def target_again(self, index: SignedIndex, headers: Mapping[str, str]) -> Steps[SignedIndex]:
        """Return the index of a write that met a conflict, as its alias may write to another one now."""
        if index.stored_in == index.name:
            return index
        return (yield from self.target_now(index.name, headers)) or index

    def target_now(self, name: str, headers: Mapping[str, str]) -> Steps[SignedIndex | None]:
        """Return what ``target`` does, by mappings that are read again."""
        self._targets.drop(name, headers)
        return (yield from self.target(name, headers))

    def _new_target(
        self,
        name: str,
        headers: Mapping[str, str],
        found: Mappings | None,
        written: tuple[Mappings, str, str | None],
        when: float,
    ) -> SignedIndex | None:
        """Return the index with these mappings, and cache it if it exists."""
        own, stored_in, routing = written
        recipe = self._common_recipe(name, own)
        made = None if recipe is None else self._signed_index(name, recipe, stored_in, routing)
        if found:
            # A missing index may be set up by the time of the next request.
            self._targets.put(name, headers, found, when, made)
        return made

    def _signed_index(self, name: str, recipe: Recipe, stored_in: str, routing: str | None) -> SignedIndex:
        made = self._signed.get(name)
        if recipe.gate not in (None, *get_args(GateNote)):
            raise ConfigError(
                f"{name!r} notes the gate {recipe.gate!r}, which only a later version of shinglefold has: "
                "upgrade to it"
            )
        if made is None or (made.recipe, made.stored_in, made.routing) != (recipe, stored_in, routing):
            seal = self._options.seal(recipe, self._settings, name)
            made = SignedIndex(name, recipe, seal, stored_in, routing)
            self._signed.put(name, made)
            if recipe.groups and not made.gated:
                warn(
                    f"{name!r} numbers groups, and documents of a folded client get no number: run "
                    f"`shinglefold regroup {name}`, or write them with shinglefold.open(…).index"
                )
        return made

    def _written_mappings(
        self, name: str, found: Mappings | None, headers: Mapping[str, str]
    ) -> Steps[tuple[Mappings, str, str | None]]:
        """Return the mappings of the indices that a write may go to, ``stored_in`` and ``routing``."""
        if found is None:
            warn(
                f"the mappings of {name!r} may not be read: if the index has a recipe, documents are stored "
                f"without fingerprints. {_READ_MAPPINGS}, or run `shinglefold backfill` later"
            )
            return {}, name, None
        if not found:
            found = yield from self._template(name, headers)
        if len(found) > 1 and any(map(has_recipe, found.values())):
            return (yield from self._write_index(name, found, headers))
        return found, next(iter(found)) if len(found) == 1 and name.startswith("<") else name, None

    def _common_recipe(self, name: str, found: Mappings) -> Recipe | None:
        if not any(map(has_recipe, found.values())):
            return None
        return common_recipe(
            found,
            lambda index: missing_recipe(found[index], index),
            lambda first, other: (
                f"the indices {first[0]!r} and {other[0]!r} behind {name!r} have different recipes: write to "
                "one by its own name, or set both up alike"
            ),
        )

    def _read(self, index: str) -> Steps[Mappings | None]:
        """Return the mappings of each index behind a name; None if the caller may not read them."""
        found: dict[str, JSON] = {}
        for name in index_names(index):
            try:
                found |= yield Call("all_mappings", (name,))
            except IndexMissing:
                continue
            except PermissionDenied:
                return None
        return found

    def _template(self, name: str, headers: Mapping[str, str]) -> Steps[Mappings]:
        """Return the mappings that a missing index would get from its template."""
        answer = yield from ask("POST", path_of("_index_template", "_simulate_index", name), headers)
        if name.startswith("<") or (answer.failed and answer.status != 400):
            warn(
                f"{name!r} is made by this write, and its template can't be looked at: if that has a recipe, "
                "the first documents are stored without fingerprints. Then run `shinglefold backfill`"
            )
        template = None if answer.failed else answer.body.get("template")
        return {name: (template.get("mappings") or {}) if isinstance(template, Mapping) else {}}

    def _write_index(
        self, name: str, found: Mappings, headers: Mapping[str, str]
    ) -> Steps[tuple[Mappings, str, str | None]]:
        """Return the one of several indices that documents are written to, its name, its routing."""
        if streams := [index for index in found if index.startswith(".ds-")]:
            # Older ones may have been shrunk, or moved into snapshots, under names of their own.
            newest = max(streams, key=lambda index: index.rpartition("-")[2])
            return {newest: found[newest]}, newest, None
        options = yield from alias_options(name, headers)
        for index, own in (options or {}).items():
            if own.get("is_write_index") and index in found:
                return {index: found[index]}, index, own.get("index_routing")
        return found, "" if options is None else name, None


def alias_options(alias: str, headers: Mapping[str, str]) -> Steps[Mapping[str, JSON] | None]:
    """Return the options of an alias by index, {} of another name; None if the user may not read it."""
    answer = yield from ask("GET", path_of("_alias", alias), headers)
    if answer.status in (401, 403):
        warn(
            f"the user may not read the alias {alias!r} (its write index, routing), so updates leave stale "
            f"fingerprints. Let the user read aliases, or run `shinglefold backfill {alias}` afterwards"
        )
        return None

    def read(found: JSON) -> dict[str, JSON]:
        return {index: dict(own.get(alias, ())) for index, own in objects_in("aliases", found).items()}

    return {} if answer.status == 404 else read_answer(answer.body, ENGINE, "the aliases of each index", read)
