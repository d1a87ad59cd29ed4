"""A check-up of an index: whether each stored fingerprint is the one its text has now."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter
from typing import Any, Literal

from shinglefold.contracts.engine import JSON, Document, Engine
from shinglefold.errors import InputError, PermissionDenied
from shinglefold.ingest.field_paths import MISSING, get, split_path, without_path
from shinglefold.ingest.field_statistics import likely_texts
from shinglefold.ingest.pipeline.field_usage import raw_fields
from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline
from shinglefold.ingest.writing.accounting import Progress
from shinglefold.maintenance.preconditions import (
    compare_mappings,
    incomplete_streams,
    obstacles,
    write_blocks,
)
from shinglefold.maintenance.reconcile import (
    has_group,
    is_empty,
    new_fingerprint,
    scan_with_pipeline,
    stored_fingerprint,
    unrecognized_content,
)
from shinglefold.maintenance.scan import WHOLE, Scan, Slice, Throttle, restart_on_expiry
from shinglefold.maintenance.setup import SetupRequest
from shinglefold.model.recipe import META_KEY, PASSAGES, stored_recipe
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import is_placeholder
from shinglefold.model.values import Fingerprint
from shinglefold.options.validation import check_engine, check_int, check_number, check_str, check_type

#: Findings that may come of texts which are there and not shown.
SUSPECT = ("stale", "textless")
Finding = Literal[
    "sound",
    "unsigned",
    "other_scheme",
    "stale",
    "damaged",
    "foreign",
    "textless",
    "unreadable",
    "dropped",
    "unsealed",
    "hidden",
    "kept",
]
#: What is no illness: a document the pipeline would drop was stored by somebody else, and a place that a gate
#: keeps is no document yet.
_HEALTHY = ("sound", "dropped", "kept")
_LISTED = 20
#: Findings that may come of text in other fields than those read, and how many such documents are looked at.
_OTHER_TEXT, _SAMPLE = ("textless", "stale"), 200
Hit = Mapping[str, Any]
#: The parts that have several values.
_LISTS = ("supershingles", PASSAGES)


def unmapped(mappings: Mapping[str, Any], fields: Sequence[str]) -> tuple[str, ...]:
    """Return which fields mappings do not have."""
    return tuple(name for name in fields if not _is_mapped(mappings, name))


def _is_mapped(mappings: Mapping[str, Any], name: str) -> bool:
    node: Any = mappings
    for part in split_path(name):
        node = (node.get("properties") or {}).get(part)
        if not isinstance(node, Mapping):
            return False
    return True


@dataclass(slots=True)
class FieldVisibility:
    """Notes of documents whether their fingerprints are of more text than is shown.

    ``fields``: those the pipeline reads and the mappings lack.
    """

    fields: tuple[str, ...]
    _found: Counter[str] = field(default_factory=Counter)
    _elsewise: bool = False

    def note(
        self, hit: Mapping[str, Any], finding: str, stored: Mapping[str, Any], new: Mapping[str, Any]
    ) -> None:
        """Note a document, what was found of it, and its fingerprint as stored and as made now."""
        if not self.fields:
            return
        lacks = any(get(hit["_source"], name) is MISSING for name in self.fields)
        if finding in SUSPECT and not (lacks and _length(stored) > _length(new)):
            # Somebody changed this text: hiding a part of it makes every text shorter.
            self._elsewise = True
        elif lacks:
            self._found[finding] += 1

    @property
    def blind(self) -> bool:
        """Whether the texts are hidden: most fingerprints are of longer ones than those shown."""
        suspected = sum(self._found[name] for name in SUSPECT)
        return not self._elsewise and suspected > self._found["sound"]


def _length(fingerprint: Mapping[str, Any]) -> int:
    count = fingerprint.get("shingles")
    return count if isinstance(count, int) else 0


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """How an index is examined; see ``BackfillOptions`` for the fields of the same names."""

    field: str = "dedup"
    part: Slice = WHOLE
    requests_per_second: float = 0.0
    workers: int = 0

    def __post_init__(self) -> None:
        check_str("field", self.field)
        check_type("part", self.part, Slice, "Slice(number, of)")
        check_number("requests_per_second (0 for no limit)", self.requests_per_second)
        check_int("workers", self.workers)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found.

    ``documents == sound + unsigned + other_scheme + stale + damaged + foreign + textless + unreadable +
    dropped + unsealed + hidden + kept``, the keys of ``findings``. ``kept``: no document yet, but the place
    that a gate keeps for one. ``hidden``: the fingerprint is of more text than
    who examines it is shown; ``unseen`` names the fields. ``unsealed``: the index is sealed, and the
    fingerprint lacks its seal: it was altered, or made without the key. ``stale``: the text changed, the
    fingerprint did not, as when another client updates a part of a document.
    ``damaged``: parts of the fingerprint are missing or not those of the
    text. ``foreign``: something else is in its place. ``textless``: the document has a fingerprint, and no
    text in the fields the pipeline reads. ``unreadable``: the pipeline fails on the document. ``listed``:
    some ids of each finding that is an illness. ``schemes``: documents by other scheme. ``mapping``: what is
    wrong with the mappings; ``remarks``: what may be meant that way. ``text_in``: the fields with text of
    documents that have another fingerprint, or none of their own. ``obstacles``: why nothing can be mended in
    place. ``empty``: documents without text in the fields the pipeline reads. ``ungrouped``: documents that
    have no number of a group, in an index that numbers its groups.
    """

    index: str
    scheme: str
    documents: int
    findings: Mapping[str, int]
    listed: Mapping[str, Sequence[str]]
    schemes: Mapping[str, int]
    mapping: tuple[str, ...]
    remarks: tuple[str, ...]
    seconds: float = field(compare=False)
    text_in: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = ()
    empty: int = 0
    unseen: tuple[str, ...] = ()
    ungrouped: int = 0

    @property
    def misread(self) -> bool:
        """Whether no document has text where the pipeline reads it, and some have it elsewhere."""
        return bool(self.text_in) and 0 < self.empty == self.documents

    @property
    def healthy(self) -> bool:
        """Whether nothing has to be mended."""
        return not (self.mapping or self.obstacles or self.misread or self.ungrouped) and all(
            name in _HEALTHY or not n for name, n in self.findings.items()
        )

    def to_json(self) -> JSON:
        """Return the diagnosis as JSON."""
        return {**asdict(self), "healthy": self.healthy, "seconds": round(self.seconds, 3)}


def diagnose(
    engine: Engine,
    index: str,
    pipeline: Pipeline,
    options: DoctorOptions = DoctorOptions(),
    progress: Callable[[Progress], None] | None = None,
) -> Diagnosis:
    """Read every document of an index and compare its stored fingerprint with that of its text.

    Args:
        pipeline: the one the documents were indexed with.

    Raises:
        IndexMissing: there is no such index.
        InputError: the index does not store its documents.
        EngineError: the engine can't go on.
    """
    check_engine(engine)
    check_type("pipeline", pipeline, Pipeline, "Pipeline.from_json(…)")
    check_type("options", options, DoctorOptions, "DoctorOptions(…)")
    return restart_on_expiry(lambda: _diagnosis(engine, index, pipeline, options, progress))


def _diagnosis(
    engine: Engine,
    index: str,
    pipeline: Pipeline,
    options: DoctorOptions,
    progress: Callable[[Progress], None] | None,
) -> Diagnosis:
    start = perf_counter()
    engine.check(index)
    mapping, remarks = _around(engine, index, pipeline, options.field)
    against = tuple(_told(obstacles(engine, index, options.field, writes=False)))
    remarks += tuple(_told(write_blocks(engine, index)))
    found: Counter[str] = Counter()
    listed: dict[str, list[str]] = {}
    schemes: Counter[str] = Counter()
    odd: list[Document] = []
    without = ungrouped = 0
    read = raw_fields(pipeline.steps, options.field)
    mappings = engine.mappings(index)
    numbered = _numbered(mappings)
    sight = FieldVisibility(unmapped(mappings, read))
    for hit, finding, empty in _documents(engine, index, pipeline, options, sight=sight, progress=progress):
        found[finding] += 1
        if finding == "other_scheme":
            schemes[str(stored_fingerprint(hit["_source"], options.field)["scheme"])] += 1
        if finding not in _HEALTHY and len(listed.setdefault(finding, [])) < _LISTED:
            listed[finding].append(hit["_id"])
        without += empty and finding != "kept"
        ungrouped += (
            numbered and finding not in ("foreign", "kept") and not has_group(hit["_source"], options.field)
        )
        if (finding in _OTHER_TEXT or empty) and finding != "kept" and len(odd) < _SAMPLE:
            odd.append(without_path(hit["_source"], options.field))
    if sight.blind:
        found["hidden"] = sum(found.pop(name, 0) for name in SUSPECT)
        listed["hidden"] = [id_ for name in SUSPECT for id_ in listed.pop(name, ())][:_LISTED]
        odd.clear()
    return Diagnosis(
        index,
        pipeline.scheme.id,
        found.total(),
        dict(found),
        listed,
        dict(schemes),
        mapping,
        remarks,
        perf_counter() - start,
        tuple(likely_texts(odd)),
        obstacles=against,
        empty=without,
        unseen=sight.fields if sight.blind else (),
        ungrouped=ungrouped,
    )


def _around(
    engine: Engine, index: str, pipeline: Pipeline, name: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is wrong with the mappings, and what is worth a remark."""
    scheme = pipeline.scheme
    found = engine.mappings(index)
    own = compare_mappings(found, replace(pipeline.recipe(name), groups=_numbered(found)))
    wrong = [*own.wrong, *(f"{field} is not mapped" for field in own.missing)]
    if own.stored is None:
        wrong.append(f"the mappings name no scheme (_meta.{META_KEY})")
    elif own.stored.get("id") != scheme.id:
        wrong.append(f"the mappings name the scheme {own.stored.get('id')}, the settings make {scheme.id}")
    noted, sealed = (own.stored or {}).get("sealed", ""), pipeline.recipe(name).sealed
    if noted != sealed:
        ours, theirs = noted or "none", sealed or "none"
        wrong.append(f"the mappings name the seal of key {ours}, the pipeline has that of {theirs}")
    return tuple(wrong), tuple(_remarks(engine, SetupRequest(pipeline.recipe(name), (index,))))


def _numbered(mappings: Mapping[str, Any]) -> bool:
    return (stored_recipe(mappings) or {}).get("groups") is True


def _told(by_index: Mapping[str, Sequence[str]]) -> Iterator[str]:
    return (f"{name}: {one}" for name, several in by_index.items() for one in several)


def _remarks(engine: Engine, request: SetupRequest) -> Iterator[str]:
    templates = engine.templates
    try:
        no_component = templates is not None and templates.component_template(request.component) is None
    except PermissionDenied:
        yield "your role may not read templates: whether new indices get the fields by themselves is unknown"
        return
    if no_component:
        yield f"no component template {request.component!r}: new indices do not get the fields by themselves"
    if templates is not None:
        for name in request.indices:
            yield from _told(incomplete_streams(templates, name, request.component))


def _documents(
    engine: Engine,
    index: str,
    pipeline: Pipeline,
    options: DoctorOptions,
    *,
    sight: FieldVisibility,
    progress: Callable[[Progress], None] | None,
) -> Iterator[tuple[Hit, Finding, bool]]:
    """Yield each document, its finding, and whether it has no text where the pipeline reads it."""
    scan = Scan(engine, index, part=options.part)
    pace = Throttle(options.requests_per_second)
    place = scan.start()
    total = scan.total(place)
    done = 0
    pages = scan_with_pipeline(scan, place, pipeline, options.field, workers=options.workers)
    with closing(pages):
        for page, outcomes in pages:
            for hit, outcome in zip(page.hits, outcomes, strict=True):
                stored = stored_fingerprint(hit["_source"], options.field)
                new = new_fingerprint(outcome, options.field)
                empty = new is not None and is_empty(new)
                if is_placeholder(hit["_source"], options.field):
                    yield hit, "kept", empty
                elif unrecognized_content(hit["_source"], options.field):
                    yield hit, "foreign", empty
                else:
                    finding = examine(stored, outcome, pipeline.scheme, options.field, pipeline.tools.seal)
                    sight.note(hit, finding, stored, new or {})
                    yield hit, finding, empty
            place = page.place
            done += len(page.hits)
            if progress is not None:
                progress(Progress(done, done, 0, 0, done / total if total else 0.0))
            pace.wait(len(page.hits))
    scan.close(place)


def examine(
    stored: Mapping[str, Any], outcome: Outcome, scheme: Scheme, name: str, seal: Seal | None = None
) -> Finding:
    """Return what is the matter with a stored fingerprint, given what the pipeline makes of its document."""
    if outcome.status == "dropped":
        return "dropped"
    new = new_fingerprint(outcome, name)
    if new is None:
        # Whatever is stored, no backfill can mend it.
        return "unreadable"
    if any(isinstance(value, list) for name, value in stored.items() if name not in _LISTS):
        # Two values: somebody gave the document a second fingerprint.
        return "damaged"
    if stored.get("scheme") != scheme.id:
        return "other_scheme" if "scheme" in stored else "unsigned"
    return "sound" if stored == new else _difference(stored, new, seal)


def _difference(stored: Mapping[str, Any], new: Mapping[str, Any], seal: Seal | None) -> Finding:
    """Return what is the matter with a fingerprint that is not the one its document has now."""
    if is_empty(new) and not is_empty(stored):
        return "textless"
    if seal is not None and not _sealed(stored, seal):
        return "unsealed"
    damaged = not _readable(stored, keywords="supershingles" in new) or stored.get("digest") == new.get(
        "digest"
    )
    return "damaged" if damaged else "stale"


def _sealed(stored: Mapping[str, Any], seal: Seal) -> bool:
    try:
        return seal.fits(Fingerprint.from_field(stored))
    except InputError:
        return False


def _readable(stored: Mapping[str, Any], *, keywords: bool) -> bool:
    try:
        parsed = Fingerprint.from_field(stored)
    except InputError:
        return False
    return not keywords or bool(parsed.signature) == bool(parsed.supershingles)
