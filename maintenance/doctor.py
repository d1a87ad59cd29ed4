"""Diagnose an index: compare each stored fingerprint with that of the current text."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter
from typing import Any, Literal

from shinglefold.contracts.engine import JSON, Document, Engine
from shinglefold.documents import MISSING, get, without_path
from shinglefold.errors import InputError, PermissionDenied, nearest
from shinglefold.ingest.field_statistics import FieldWatch, has_titles_alone, likely_texts
from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline
from shinglefold.ingest.pipeline.steps import raw_fields, source_fields, stripped_fields
from shinglefold.ingest.processors.texts import NeverDiffer
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
from shinglefold.model.recipe import FIELD, META_KEY, PASSAGES, never_differ, stored_recipe
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.stored_fingerprint import is_placeholder
from shinglefold.model.values import Fingerprint, text_digest
from shinglefold.options.validation import check_engine, check_number, check_str, check_type, check_workers
from shinglefold.rerank.index_fields import mapped_at, paths

#: Findings that hidden texts may cause.
SUSPECT = ("stale", "textless")
Finding = Literal[
    "sound",
    "without_fingerprint",
    "other_scheme",
    "stale",
    "other_facts",
    "damaged",
    "foreign",
    "textless",
    "unreadable",
    "dropped",
    "unsealed",
    "hidden",
    "placeholder",
]
#: Findings that need no repair: a document that the pipeline would drop was stored by another client, and a
#: gate's placeholder is not a document yet.
_HEALTHY = ("sound", "dropped", "placeholder")
_LISTED = 20
#: Findings that text in other fields may cause, and the number of such documents in the sample.
_OTHER_TEXT, _SAMPLE = ("textless", "stale"), 200
Hit = Mapping[str, Any]
#: The parts of a fingerprint that have several values.
_LISTS = ("supershingles", PASSAGES)


@dataclass(slots=True)
class FieldVisibility:
    """Finds out whether fingerprints were made from more text than the client may read.

    ``fields``: fields that the pipeline reads and the mappings lack.
    """

    fields: tuple[str, ...]
    _found: Counter[str] = field(default_factory=Counter)
    _changed_otherwise: bool = False

    def note(
        self, hit: Mapping[str, Any], finding: str, stored: Mapping[str, Any], new: Mapping[str, Any]
    ) -> None:
        """Add a document: its finding, and its fingerprint as stored and as computed now."""
        if not self.fields:
            return
        lacks = any(get(hit["_source"], name) is MISSING for name in self.fields)
        if finding in SUSPECT and not (lacks and _length(stored) > _length(new)):
            # The text itself was changed: hiding a part of it would make it shorter.
            self._changed_otherwise = True
        elif lacks:
            self._found[finding] += 1

    @property
    def hides_text(self) -> bool:
        """Whether texts are hidden: most fingerprints belong to longer texts than those read."""
        suspected = sum(self._found[name] for name in SUSPECT)
        return not self._changed_otherwise and suspected > self._found["sound"]


def _length(fingerprint: Mapping[str, Any]) -> int:
    count = fingerprint.get("shingles")
    return count if isinstance(count, int) else 0


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """Options of a diagnosis; see ``BackfillOptions`` for their meaning."""

    field: str = FIELD
    part: Slice = WHOLE
    requests_per_second: float = 0.0
    workers: int = 0

    def __post_init__(self) -> None:
        check_str("field", self.field)
        check_type("part", self.part, Slice, "Slice(number, of)")
        check_number("requests_per_second (0 for no limit)", self.requests_per_second)
        check_workers("workers", self.workers)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of a diagnosis; ``documents`` is the sum of ``findings``, which has these keys:

    - ``sound``: the fingerprint is right.
    - ``without_fingerprint``, ``other_scheme``: it has none, or one of another scheme (``schemes`` counts).
    - ``stale``: the text changed without it, as if another client updates a part of a document.
    - ``other_facts``: it is of this text, but its facts were made by the rules of another version, or of
      earlier values of fields.
    - ``damaged``: parts are missing, or belong to another text.
    - ``foreign``: the field holds something else.
    - ``textless``: it has one, but no text in the fields that the pipeline reads.
    - ``unreadable``: the pipeline fails on the document.
    - ``dropped``: the pipeline drops the document.
    - ``unsealed``: the index is sealed, and the fingerprint was altered or made without the key.
    - ``hidden``: it belongs to more text than the client may read; ``unseen`` names the fields,
      ``resembling`` similar names in the mappings, because the names may be mistyped.
    - ``placeholder``: a gate reserves its id, so it is no document yet.

    ``listed``: some ids of each finding that needs repair. ``mapping``: errors of the mappings. ``remarks``:
    what may be intended. ``text_in``: fields with text of documents without the right fingerprint.
    ``obstacles``: why nothing can be repaired in place. ``empty``: documents without text in the fields that
    the pipeline reads. ``ungrouped``: documents without a group number, in an index with group numbers.
    ``lacking``: fields of the pipeline that most documents lack. ``titles_alone``: documents of which nothing
    but titles is read, if others are lacking.
    ``unread``: fields with a large part of the text that the pipeline does not read. ``markup``: fields with
    HTML that documents do not announce, and in how many of a sample. ``cards``: whether the texts are short
    and full of numbers, and numbers do not count.
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
    resembling: Mapping[str, str] = field(default_factory=dict)
    ungrouped: int = 0
    lacking: tuple[str, ...] = ()
    titles_alone: int = 0
    unread: tuple[str, ...] = ()
    markup: Mapping[str, int] = field(default_factory=dict)
    cards: bool = False

    @property
    def misread(self) -> bool:
        """Whether no document has text in the fields of the pipeline, or most have only a title in them."""
        return self.textless or bool(self.unread and 2 * self.titles_alone > self.documents)

    @property
    def textless(self) -> bool:
        """Whether no document has text in the fields of the pipeline, although the client may read them."""
        return 0 < self.empty == self.documents and not self.unseen

    @property
    def healthy(self) -> bool:
        """Whether nothing needs repair."""
        if self.mapping or self.obstacles or self.misread or self.ungrouped:
            return False
        return all(name in _HEALTHY or not n for name, n in self.findings.items())

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
        pipeline: the pipeline with which the documents were indexed.

    Raises:
        IndexMissing: there is no such index.
        InputError: the index does not store its documents.
        EngineError: the engine fails.
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
    mapping, remarks = _check_mappings(engine, index, pipeline, options.field)
    obstacle_messages = tuple(_messages(obstacles(engine, index, options.field, writes=False)))
    remarks += tuple(_messages(write_blocks(engine, index)))
    found: Counter[str] = Counter()
    listed: dict[str, list[str]] = {}
    schemes: Counter[str] = Counter()
    sample: list[Document] = []
    empty_count = ungrouped = 0
    read = raw_fields(pipeline.steps, options.field)
    facts = NeverDiffer.parse(never_differ(pipeline.definition, options.field))
    watch = FieldWatch(
        read,
        sources=source_fields(pipeline.steps),
        stripped=stripped_fields(pipeline.steps),
        facts=facts.fields,
    )
    titles_alone = 0
    mappings = engine.mappings(index)
    numbered = _has_group_numbers(mappings)
    visibility = FieldVisibility(tuple(name for name in read if mapped_at(mappings, name) is None))
    for hit, finding, empty in _documents(
        engine, index, pipeline, options, visibility=visibility, progress=progress
    ):
        found[finding] += 1
        if finding == "other_scheme":
            schemes[str(stored_fingerprint(hit["_source"], options.field)["scheme"])] += 1
        if finding not in _HEALTHY and len(listed.setdefault(finding, [])) < _LISTED:
            listed[finding].append(hit["_id"])
        empty_count += empty and finding != "placeholder"
        document = without_path(hit["_source"], options.field)
        if finding != "placeholder":
            watch.add(document)
            titles_alone += has_titles_alone(document, read)
        ungrouped += (
            numbered
            and finding not in ("foreign", "placeholder")
            and not has_group(hit["_source"], options.field)
        )
        if (finding in _OTHER_TEXT or empty) and finding != "placeholder" and len(sample) < _SAMPLE:
            sample.append(document)
    if visibility.hides_text:
        found["hidden"] = sum(found.pop(name, 0) for name in SUSPECT)
        listed["hidden"] = [id_ for name in SUSPECT for id_ in listed.pop(name, ())][:_LISTED]
        sample.clear()
    remarks += watch.missing_facts
    coverage = watch.coverage()
    # A field that the mappings lack may be mistyped.
    known = list(paths(mappings)) if visibility.hides_text else []
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
        tuple(likely_texts(sample)),
        obstacles=obstacle_messages,
        empty=empty_count,
        unseen=visibility.fields if visibility.hides_text else (),
        resembling={name: near for name in visibility.fields if (near := nearest(name, known))},
        ungrouped=ungrouped,
        lacking=coverage.lacking,
        titles_alone=titles_alone if coverage.lacking else 0,
        unread=() if visibility.hides_text else coverage.unread,
        markup=coverage.markup,
        cards=coverage.cards and not facts,
    )


def _check_mappings(
    engine: Engine, index: str, pipeline: Pipeline, name: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return errors of the mappings, and remarks."""
    scheme = pipeline.scheme
    found = engine.mappings(index)
    own = compare_mappings(found, replace(pipeline.recipe(name), groups=_has_group_numbers(found)))
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


def _has_group_numbers(mappings: Mapping[str, Any]) -> bool:
    return (stored_recipe(mappings) or {}).get("groups") is True


def _messages(by_index: Mapping[str, Sequence[str]]) -> Iterator[str]:
    return (f"{name}: {one}" for name, several in by_index.items() for one in several)


def _remarks(engine: Engine, request: SetupRequest) -> Iterator[str]:
    templates = engine.templates
    try:
        no_component = templates is not None and templates.component_template(request.component) is None
    except PermissionDenied:
        yield "your role may not read templates: whether new indices get the fields automatically is unknown"
        return
    if no_component:
        yield f"no component template {request.component!r}: new indices do not get the fields automatically"
    if templates is not None:
        for name in request.indices:
            yield from _messages(incomplete_streams(templates, name, request.component))


def _documents(
    engine: Engine,
    index: str,
    pipeline: Pipeline,
    options: DoctorOptions,
    *,
    visibility: FieldVisibility,
    progress: Callable[[Progress], None] | None,
) -> Iterator[tuple[Hit, Finding, bool]]:
    """Yield each document, its finding, and whether it has no text in the fields of the pipeline."""
    throttle = Throttle(options.requests_per_second)
    scan = Scan(engine, index, part=options.part, keep_alive=throttle.keep_alive)
    position = scan.start()
    total = scan.total(position)
    done = 0
    pages = scan_with_pipeline(scan, position, pipeline, options.field, workers=options.workers)
    with closing(pages):
        for page, outcomes in pages:
            for hit, outcome in zip(page.hits, outcomes, strict=True):
                stored = stored_fingerprint(hit["_source"], options.field)
                new = new_fingerprint(outcome, options.field)
                empty = new is not None and is_empty(new)
                if is_placeholder(hit["_source"], options.field):
                    yield hit, "placeholder", empty
                elif unrecognized_content(hit["_source"], options.field):
                    yield hit, "foreign", empty
                else:
                    finding = classify(stored, outcome, pipeline.scheme, options.field, pipeline.tools.seal)
                    visibility.note(hit, finding, stored, new or {})
                    yield hit, finding, empty
            position = page.place
            done += len(page.hits)
            if progress is not None:
                progress(Progress(done, done, 0, 0, done / total if total else 0.0))
            throttle.wait(len(page.hits))
    scan.close(position)


def classify(
    stored: Mapping[str, Any], outcome: Outcome, scheme: Scheme, name: str, seal: Seal | None = None
) -> Finding:
    """Return the finding for a stored fingerprint, given the pipeline's outcome for its document."""
    if outcome.status == "dropped":
        return "dropped"
    new = new_fingerprint(outcome, name)
    if new is None:
        # The pipeline makes no fingerprint of the document, so no backfill can repair it.
        return "unreadable"
    if any(isinstance(value, list) for name, value in stored.items() if name not in _LISTS):
        # Two values: another client added a second fingerprint.
        return "damaged"
    if stored.get("scheme") != scheme.id:
        return "other_scheme" if "scheme" in stored else "without_fingerprint"
    return "sound" if stored == new else _classify_difference(stored, new, seal)


def _classify_difference(stored: Mapping[str, Any], new: Mapping[str, Any], seal: Seal | None) -> Finding:
    """Return the finding for a fingerprint that differs from the one of its document now."""
    if is_empty(new) and not is_empty(stored):
        return "textless"
    if seal is not None and not _is_sealed(stored, seal):
        return "unsealed"
    damaged = not _is_consistent(stored, keywords="supershingles" in new) or stored.get("digest") == new.get(
        "digest"
    )
    if damaged:
        return "damaged"
    return "other_facts" if _without_facts(stored) == _without_facts(new) else "stale"


def _without_facts(stored: Mapping[str, Any]) -> Fingerprint:
    parsed = Fingerprint.from_field(stored)
    return replace(parsed, digest=text_digest(parsed.digest), seal="")


def _is_sealed(stored: Mapping[str, Any], seal: Seal) -> bool:
    try:
        return seal.fits(Fingerprint.from_field(stored))
    except InputError:
        return False


def _is_consistent(stored: Mapping[str, Any], *, keywords: bool) -> bool:
    try:
        parsed = Fingerprint.from_field(stored)
    except InputError:
        return False
    return not keywords or bool(parsed.signature) == bool(parsed.supershingles)
