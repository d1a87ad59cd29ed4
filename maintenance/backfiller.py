"""Add fingerprints to a live index: read every document, and update those whose fingerprint differs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from shinglefold.contracts.engine import Engine
from shinglefold.errors import ConfigError, EngineError, IndexMissing, PitExpired, suggest
from shinglefold.ingest.index_mapping import check_index
from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline
from shinglefold.ingest.writing.accounting import Progress
from shinglefold.ingest.writing.target_index import IndexChanged, IndexWatch, released_after
from shinglefold.maintenance.checkpoint import Checkpoint
from shinglefold.maintenance.guarded_updates import BackfillCounts, Updater
from shinglefold.maintenance.preconditions import check_updatable
from shinglefold.maintenance.reconcile import (
    is_empty,
    is_poorer,
    missing_query,
    new_fingerprint,
    scan_with_pipeline,
    stored_fingerprint,
)
from shinglefold.maintenance.scan import (
    EVERYTHING,
    RESTARTS,
    WHOLE,
    Scan,
    ScanPosition,
    Slice,
    Throttle,
    whole_source,
)
from shinglefold.model.recipe import FIELD, has_recipe, missing_recipe
from shinglefold.options.validation import (
    check_bool,
    check_engine,
    check_number,
    check_path,
    check_str,
    check_type,
    check_workers,
)
from shinglefold.runtime.backoff import DEFAULT_BACKOFF, Backoff, retry_unavailable
from shinglefold.runtime.signals import Interrupts

#: The most extra scans for documents that were written without a fingerprint during the backfill.
_SWEEPS = 10


@dataclass(frozen=True, slots=True)
class BackfillOptions:
    """Options of a backfill.

    ``field``: the fingerprint field. ``part``: the part of the index. ``only_missing``: read only documents
    without a fingerprint of the scheme. ``requests_per_second``: documents per second, 0 for no limit.
    ``checkpoint``: a file from which a later run resumes. ``workers``: processes, 0 for one per core.
    ``allow_poorer``: continue if most fingerprints would be replaced by ones of far less text.
    """

    field: str = FIELD
    part: Slice = WHOLE
    only_missing: bool = False
    requests_per_second: float = 0.0
    checkpoint: str | Path | None = None
    workers: int = 0
    backoff: Backoff = DEFAULT_BACKOFF
    allow_poorer: bool = False

    def __post_init__(self) -> None:
        check_str("field", self.field)
        check_type("part", self.part, Slice, "Slice(number, of)")
        check_bool("only_missing", self.only_missing)
        check_number("requests_per_second (0 for no limit)", self.requests_per_second)
        if self.checkpoint is not None:
            check_path("checkpoint", self.checkpoint)
        check_workers("workers", self.workers)
        check_bool("allow_poorer", self.allow_poorer)


class _PoorerFingerprints(ConfigError):
    """Most fingerprints would be replaced by ones of far less text."""


@dataclass(frozen=True, slots=True)
class BackfillSummary:
    """The result of a run; ``counts`` include earlier runs with the same checkpoint.

    ``resumed``: the run continued an earlier one. ``remaining``: documents of the part that still lack a
    fingerprint of the scheme, −1 if the engine can't count them. ``stopped``: why the run ended early, else
    empty. ``anew``: the index was deleted or replaced, so that the next run starts from the beginning.
    ``poorer``: fingerprints that were not replaced, because the new ones are of far less text; if there are
    any, ``stopped`` has the options.
    """

    index: str
    scheme: str
    counts: BackfillCounts
    remaining: int
    seconds: float
    resumed: bool = False
    stopped: str = ""
    anew: bool = False
    poorer: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON, one flat object."""
        data = asdict(self)
        counts = data.pop("counts")
        return {**data, "seconds": round(self.seconds, 3), **counts}


def backfill(
    engine: Engine,
    index: str,
    pipeline: Pipeline,
    options: BackfillOptions = BackfillOptions(),
    progress: Callable[[Progress], None] | None = None,
) -> BackfillSummary:
    """Update every document of an index with the fingerprint that the pipeline computes.

    Other clients may write meanwhile: the engine refuses updates of outdated versions, which are then
    repeated with the newest one. Only the fingerprint is updated, even if the pipeline changes other fields.

    Args:
        pipeline: its scheme must be that of the index.

    Raises:
        SchemeMismatch: the mappings name another scheme.
        RecipeMismatch: they name another pipeline, or another field.
        ConfigError: the index is not set up for fingerprints, an update would lose data, or the checkpoint is
            of another backfill.
        InputError: the checkpoint can't be read or written, or the index does not store its documents.
        EngineError: the engine can't be reached at all.
    """
    check_engine(engine)
    check_type("pipeline", pipeline, Pipeline, "Pipeline.from_json(…)")
    check_type("options", options, BackfillOptions, "BackfillOptions(…)")
    _check_recipe(engine, index, pipeline, options.field)
    check_updatable(engine, index, options.field)
    with Interrupts() as interrupts, released_after(engine, index):
        return _Backfill(engine, index, pipeline, options, interrupts, progress).run()


def _check_recipe(engine: Engine, index: str, pipeline: Pipeline, name: str) -> None:
    remedy = "Change it first (setup), or use the pipeline and the settings it was made with."
    found = engine.mappings(index)
    if not has_recipe(found):
        raise ConfigError(missing_recipe(found, index, field=name))
    check_index(found, index, pipeline.recipe(name), remedy)


@dataclass(slots=True)
class _Backfill:
    """One run of a backfill."""

    engine: Engine
    index: str
    pipeline: Pipeline
    options: BackfillOptions
    interrupts: Interrupts
    progress: Callable[[Progress], None] | None
    counts: BackfillCounts = field(default_factory=BackfillCounts)
    checkpoint: Checkpoint = field(init=False)
    throttle: Throttle = field(init=False)
    updater: Updater = field(init=False)
    watch: IndexWatch = field(init=False)
    total: int = 0
    resumed: bool = False
    anew: bool = False
    #: Counts of documents read: with the right fingerprint, with a richer one, with any fingerprint.
    right: int = 0
    poorer: int = 0
    signed: int = 0
    #: Whether an earlier run counted documents that it skipped. A checkpoint does not list them, so sweeps
    #: that read them again do not count what they skip.
    skipped_before: bool = False

    def __post_init__(self) -> None:
        options = self.options
        seal = self.pipeline.tools.seal
        job = {
            "index": self.index,
            "scheme": self.pipeline.scheme.id,
            "field": options.field,
            "part": str(options.part),
            "only_missing": options.only_missing,
            "sealed": "" if seal is None else seal.id,
        }
        path = None if options.checkpoint is None else Path(options.checkpoint)
        self.checkpoint = Checkpoint(path, "backfill", job)
        self.throttle = Throttle(options.requests_per_second)
        self.watch = IndexWatch(
            self.engine, self.index, self.pipeline.recipe(options.field), suggest("backfill", self.index)
        )
        self.updater = Updater(
            self.engine,
            self.pipeline,
            options.field,
            options.backoff,
            lambda: self.interrupts.pending,
        )

    def run(self) -> BackfillSummary:
        """Scan the index, then documents that were written without a fingerprint meanwhile."""
        start = perf_counter()
        self.watch.begin()
        position = self._resume()
        stopped = ""
        try:
            self._scan_everything(position)
            self.watch.check()
        except KeyboardInterrupt as error:
            stopped = str(error) or "interrupted"
        except (EngineError, _PoorerFingerprints) as error:
            self.anew = isinstance(error, IndexMissing | IndexChanged)
            stopped = str(error)
        if not stopped or self.anew:
            self.checkpoint.remove()
        remaining = self._count_remaining()
        return BackfillSummary(
            self.index,
            self.pipeline.scheme.id,
            self.counts,
            remaining,
            perf_counter() - start,
            self.resumed,
            stopped,
            self.anew,
            self.poorer if stopped and self._is_poorer else 0,
        )

    def _resume(self) -> ScanPosition | None:
        """Return the position of an earlier run, None if there is none or it is no longer valid."""
        found = self.checkpoint.load(_parse_state)
        if found is None:
            return None
        position, self.counts = found
        self.resumed = True
        try:
            # Any problem with the point in time is solved by a new one.
            self._scan(self._query).total(position)
        except EngineError:
            self.counts.restart()
            return None
        self.skipped_before = self.counts.skipped > 0
        return position

    @property
    def _is_poorer(self) -> bool:
        """Whether more fingerprints would become poorer than are right: texts that were cut are fewer."""
        return self.poorer > self.right and 4 * self.poorer > self.signed and not self.options.allow_poorer

    def _check_new(self, hits: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome]) -> None:
        """Compare the fingerprints that would be written with those that are stored.

        Raises:
            _PoorerFingerprints: most would be of far less text.
        """
        for hit, outcome in zip(hits, outcomes, strict=True):
            stored = stored_fingerprint(hit["_source"], self.options.field)
            new = new_fingerprint(outcome, self.options.field)
            if new is None or is_empty(stored) or is_empty(new):
                continue
            self.signed += 1
            self.right += stored == new
            self.poorer += is_poorer(stored, new)
        if self._is_poorer:
            anyway = suggest("backfill", self.index, allow_poorer=True)
            raise _PoorerFingerprints(
                f"{self.poorer:,} of {self.signed:,} fingerprints would be replaced by ones of far less "
                f"text, and {self.right:,} are right: they seem to be of other fields than "
                f"{', '.join(self.pipeline.recipe(self.options.field).fields)}. These were not written. "
                f"See what is wrong: {suggest('doctor', self.index)}; to write them anyway: {anyway}"
            )

    def _scan_everything(self, position: ScanPosition | None) -> None:
        self._scan_with_restarts(self._scan(self._query), position)
        for _ in range(_SWEEPS):
            before = self.counts.updated
            self._refresh()
            scan = self._scan(self._missing)
            position = scan.start()
            if scan.total(position) <= len(self.updater.skipped):
                scan.close(position)
                return
            self._scan_with_restarts(scan, position, is_sweep=True)
            if self.counts.updated == before:
                return

    def _scan_with_restarts(self, scan: Scan, position: ScanPosition | None, is_sweep: bool = False) -> None:
        """Scan to the end; restart if the point in time is lost, as after a restart of the server."""
        for _ in range(RESTARTS):
            try:
                self._scan_once(scan, position, is_sweep)
            except (PitExpired, IndexMissing) as error:
                if self.engine.index_exists(self.index):
                    # Perhaps another index has its name.
                    self.watch.check()
                if isinstance(error, IndexMissing):
                    raise
                position = None
                if not is_sweep:
                    self.counts.restart()
                    self.skipped_before = False
            else:
                return
        raise PitExpired(
            f"the point in time was lost {RESTARTS} times; check that the server is stable, then continue"
        )

    def _scan_once(self, scan: Scan, position: ScanPosition | None, is_sweep: bool) -> None:
        if position is None:
            # Refresh, so that searches see recent writes: those of others, and our own if the scan restarts.
            self._refresh()
            position = scan.start()
        self.total = scan.total(position) + (self.counts.read if is_sweep else 0)
        options = self.options
        pages = scan_with_pipeline(
            scan,
            position,
            self.pipeline,
            options.field,
            workers=options.workers,
            without=self.updater.skipped,
        )
        with closing(pages):
            for page, outcomes in pages:
                # Updates must be counted, even after Ctrl-C.
                self._check_new(page.hits, outcomes)
                with self.interrupts.hold():
                    written = self.updater.write(page.hits, outcomes)
                    if is_sweep and self.skipped_before:
                        written.forget_skipped()
                    self.counts.add(written)
                    names = Counter(hit["_index"] for hit in page.hits if hit["_index"] != self.index)
                    self.watch.wrote(names, len(page.hits))
                    position = page.place
                    if not is_sweep:
                        self.checkpoint.save({"place": asdict(position), "counts": asdict(self.counts)})
                self._report()
                self.watch.check_if_due()
                with self.interrupts.breakable():
                    self.throttle.wait(len(page.hits))
        scan.close(position)

    def _scan(self, query: Mapping[str, Any]) -> Scan:
        return Scan(
            self.engine,
            self.index,
            query,
            part=self.options.part,
            backoff=self.options.backoff,
            keep_alive=self.throttle.keep_alive,
            fields=whole_source(self.engine, self.index),
        )

    @property
    def _missing(self) -> Mapping[str, Any]:
        return missing_query(self.options.field, self.pipeline.scheme.id)

    @property
    def _query(self) -> Mapping[str, Any]:
        return self._missing if self.options.only_missing else EVERYTHING

    def _refresh(self) -> None:
        retry_unavailable(lambda: self.engine.refresh(self.index), self.options.backoff)

    def _count_remaining(self) -> int:
        """Return the number of documents without a fingerprint of the scheme, −1 if the engine fails."""
        try:
            self._refresh()
            scan = self._scan(self._missing)
            position = scan.start()
            found = scan.total(position)
        except EngineError:
            return -1
        with suppress(EngineError):
            # A point in time also expires by itself.
            scan.close(position)
        return found

    def _report(self) -> None:
        if self.progress is not None:
            counts = self.counts
            fraction = min(1.0, counts.read / self.total) if self.total else 0.0
            indexed = counts.updated + counts.unchanged
            self.progress(Progress(counts.read, indexed, counts.dropped, counts.failed, fraction))


def _parse_state(saved: Mapping[str, Any]) -> tuple[ScanPosition, BackfillCounts]:
    """Return the position after the last page written, and the counts so far."""
    return ScanPosition(**saved["place"]), BackfillCounts(**saved["counts"])
