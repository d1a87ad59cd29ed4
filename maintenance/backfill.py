"""Fingerprints for a live index: every document read, and updated where its fingerprint is another."""

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from shinglefold.contracts.engine import Engine
from shinglefold.errors import ConfigError, EngineError, IndexMissing, PitExpired, suggest
from shinglefold.ingest.index_mapping import check_index
from shinglefold.ingest.pipeline.pipeline import Pipeline
from shinglefold.ingest.writing.accounting import Progress
from shinglefold.maintenance.checkpoint import Checkpoint
from shinglefold.maintenance.guarded_updates import BackfillCounts, Updater
from shinglefold.maintenance.preconditions import check_updatable
from shinglefold.maintenance.reconcile import missing, scan_with_pipeline
from shinglefold.maintenance.scan import (
    EVERYTHING,
    PATIENCE,
    RESTARTS,
    WHOLE,
    Scan,
    ScanPosition,
    Slice,
    Throttle,
)
from shinglefold.model.recipe import has_recipe
from shinglefold.options.validation import (
    check_bool,
    check_engine,
    check_int,
    check_number,
    check_path,
    check_str,
    check_type,
)
from shinglefold.runtime.backoff import Backoff, retry_unavailable
from shinglefold.runtime.signals import Interrupts

#: Scans of what was written without a fingerprint meanwhile, and scans begun anew without getting anywhere.
_SWEEPS = 10


@dataclass(frozen=True, slots=True)
class BackfillOptions:
    """How a backfill goes.

    ``field``: where fingerprints are. ``part``: the share of the index. ``only_missing``: read only documents
    without a fingerprint of the scheme. ``requests_per_second``: documents read a second, 0 for no limit.
    ``checkpoint``: the file that lets a later run go on. ``workers``: processes; 0 means one per core.
    """

    field: str = "dedup"
    part: Slice = WHOLE
    only_missing: bool = False
    requests_per_second: float = 0.0
    checkpoint: str | Path | None = None
    workers: int = 0
    backoff: Backoff = PATIENCE

    def __post_init__(self) -> None:
        check_str("field", self.field)
        check_type("part", self.part, Slice, "Slice(number, of)")
        check_bool("only_missing", self.only_missing)
        check_number("requests_per_second (0 for no limit)", self.requests_per_second)
        if self.checkpoint is not None:
            check_path("checkpoint", self.checkpoint)
        check_int("workers", self.workers)


@dataclass(frozen=True, slots=True)
class BackfillSummary:
    """The end of a run; ``counts`` are of all runs of one checkpoint.

    ``resumed``: an earlier run was gone on with. ``remaining``: documents of the part without a fingerprint
    of the scheme now, −1 where the engine does not say. ``stopped``: why the run ended early, empty where it
    did not. ``anew``: the index was deleted, or another has its place, so that the next run has nothing to go
    on from.
    """

    index: str
    scheme: str
    counts: BackfillCounts
    remaining: int
    seconds: float
    resumed: bool = False
    stopped: str = ""
    anew: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON, one flat object."""
        rest = {name: value for name, value in asdict(self).items() if name != "counts"}
        return {**rest, "seconds": round(self.seconds, 3), **self.counts.to_json()}


def backfill(
    engine: Engine,
    index: str,
    pipeline: Pipeline,
    options: BackfillOptions = BackfillOptions(),
    progress: Callable[[Progress], None] | None = None,
) -> BackfillSummary:
    """Give every document of an index the fingerprint the pipeline makes, by partial updates.

    Documents may be written meanwhile: an update of a version that is no longer the newest is refused by the
    engine and made again from the newest. Only the fingerprint is updated, whatever else the pipeline does.

    Args:
        pipeline: its scheme must be the one in the mappings of the index.

    Raises:
        SchemeMismatch: the mappings name another scheme.
        RecipeMismatch: they name another pipeline, or another field.
        ConfigError: the index is not set up for fingerprints, an update would lose something of it, or the
            checkpoint is of another backfill.
        InputError: the checkpoint can't be read or written, or the index does not store its documents.
        EngineError: the engine can't be reached at all.
    """
    check_engine(engine)
    check_type("pipeline", pipeline, Pipeline, "Pipeline.from_json(…)")
    check_type("options", options, BackfillOptions, "BackfillOptions(…)")
    _check_recipe(engine, index, pipeline, options.field)
    check_updatable(engine, index, options.field)
    with Interrupts() as interrupts:
        return _Backfill(engine, index, pipeline, options, interrupts, progress).run()


def _check_recipe(engine: Engine, index: str, pipeline: Pipeline, name: str) -> None:
    remedy = "Change it first (setup), or take the pipeline and the settings it was made with."
    found = engine.mappings(index)
    if not has_recipe(found):
        raise ConfigError(
            f"index {index!r} is not set up for fingerprints in [{name}]; set it up first: "
            f"{suggest('setup', index, dedup_field=name)}"
        )
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
    pace: Throttle = field(init=False)
    updater: Updater = field(init=False)
    total: int = 0
    resumed: bool = False
    anew: bool = False

    def __post_init__(self) -> None:
        given = self.options
        seal = self.pipeline.tools.seal
        job = {
            "index": self.index,
            "scheme": self.pipeline.scheme.id,
            "field": given.field,
            "part": str(given.part),
            "only_missing": given.only_missing,
            "sealed": "" if seal is None else seal.id,
        }
        path = None if given.checkpoint is None else Path(given.checkpoint)
        self.checkpoint = Checkpoint(path, "backfill", job)
        self.pace = Throttle(given.requests_per_second)
        self.updater = Updater(
            self.engine,
            self.pipeline,
            given.field,
            given.backoff,
            lambda: self.interrupts.pending,
        )

    def run(self) -> BackfillSummary:
        """Scan the index, then whatever was written without a fingerprint meanwhile."""
        start = perf_counter()
        place = self._resume()
        stopped = self._stopped_by(lambda: self._all(place))
        if not stopped or self.anew:
            self.checkpoint.remove()
        remaining = self._remaining()
        return BackfillSummary(
            self.index,
            self.pipeline.scheme.id,
            self.counts,
            remaining,
            perf_counter() - start,
            self.resumed,
            stopped,
            self.anew,
        )

    def _resume(self) -> ScanPosition | None:
        """Return the place an earlier run came to, where it still is one."""
        found = self.checkpoint.load(_state)
        if found is None:
            return None
        place, self.counts = found
        self.resumed = True
        try:
            # Whatever is wrong with the point in time, a new one helps.
            self._scan(self._query).total(place)
        except EngineError:
            self.counts.restart()
            return None
        return place

    def _stopped_by(self, work: Callable[[], None]) -> str:
        try:
            work()
        except KeyboardInterrupt as error:
            return str(error) or "interrupted"
        except EngineError as error:
            self.anew = isinstance(error, IndexMissing)
            return str(error)
        return ""

    def _all(self, place: ScanPosition | None) -> None:
        self._persistently(self._scan(self._query), place)
        for _ in range(_SWEEPS):
            before = self.counts.updated
            self._refresh()
            scan = self._scan(self._missing)
            place = scan.start()
            if scan.total(place) <= len(self.updater.given_up):
                scan.close(place)
                return
            self._persistently(scan, place, sweeping=True)
            if self.counts.updated == before:
                return

    def _persistently(self, scan: Scan, place: ScanPosition | None, sweeping: bool = False) -> None:
        """Scan to the end; begin anew where the point in time is lost, as by a server's restart."""
        for _ in range(RESTARTS):
            try:
                self._pass(scan, place, sweeping)
            except PitExpired:
                place = None
                if not sweeping:
                    self.counts.restart()
            else:
                return
        raise PitExpired(
            f"the point in time was lost {RESTARTS} times; see that the server runs steadily, then go on"
        )

    def _pass(self, scan: Scan, place: ScanPosition | None, sweeping: bool) -> None:
        if place is None:
            # What was written last, by others or before the scan began anew, must be seen.
            self._refresh()
            place = scan.start()
        self.total = scan.total(place) + (self.counts.read if sweeping else 0)
        given = self.options
        pages = scan_with_pipeline(
            scan, place, self.pipeline, given.field, workers=given.workers, without=self.updater.given_up
        )
        with closing(pages):
            for page, outcomes in pages:
                # What was written must be accounted for, even at a Ctrl-C.
                with self.interrupts.held():
                    self.counts.add(self.updater.write(page.hits, outcomes))
                    place = page.place
                    if not sweeping:
                        self.checkpoint.save({"place": asdict(place), "counts": self.counts.to_json()})
                self._report()
                with self.interrupts.breakable():
                    self.pace.wait(len(page.hits))
        scan.close(place)

    def _scan(self, query: Mapping[str, Any]) -> Scan:
        return Scan(self.engine, self.index, query, part=self.options.part, patience=self.options.backoff)

    @property
    def _missing(self) -> Mapping[str, Any]:
        return missing(self.options.field, self.pipeline.scheme.id)

    @property
    def _query(self) -> Mapping[str, Any]:
        return self._missing if self.options.only_missing else EVERYTHING

    def _refresh(self) -> None:
        retry_unavailable(lambda: self.engine.refresh(self.index), self.options.backoff)

    def _remaining(self) -> int:
        """Return how many documents lack a fingerprint of the scheme, −1 where the engine does not say."""
        try:
            self._refresh()
            scan = self._scan(self._missing)
            place = scan.start()
            found = scan.total(place)
        except EngineError:
            return -1
        with suppress(EngineError):
            # It ends by itself, too; the count is made.
            scan.close(place)
        return found

    def _report(self) -> None:
        if self.progress is not None:
            done, told = self.counts, self.counts.updated + self.counts.unchanged
            fraction = min(1.0, done.read / self.total) if self.total else 0.0
            self.progress(Progress(done.read, told, done.dropped, done.failed, fraction))


def _state(saved: Mapping[str, Any]) -> tuple[ScanPosition, BackfillCounts]:
    """Return the place behind the last page written, and the counts until there."""
    place = dict(saved["place"])
    after = place.pop("after")
    counts = BackfillCounts.from_json(saved["counts"])
    return ScanPosition(**place, after=None if after is None else tuple(after)), counts
