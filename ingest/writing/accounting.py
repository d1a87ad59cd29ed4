"""Count each record of a run once: as indexed, dropped or failed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import xxhash

from shinglefold.contracts.engine import BulkFailure, Engine
from shinglefold.errors import EngineError, EngineUnavailable, IndexReadOnly, InputError
from shinglefold.ingest.fingerprinter import Meter
from shinglefold.ingest.readers.record import Record
from shinglefold.ingest.writing.batch import Batch, Sent
from shinglefold.ingest.writing.dead_letters import DeadLetters
from shinglefold.model.values import Uint64s
from shinglefold.runtime.signals import Interrupts

#: Reasons a summary tells the first place of.
_FAILURES = 20
#: Refusals of one document that all others would meet, too, and the status of what may end by itself.
_FOR_ALL = ("cluster_block_exception", "index_closed_exception")
_BUSY = 503


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; ``fraction`` of the source read, 0 where unknown."""

    read: int
    indexed: int
    dropped: int
    failed: int
    fraction: float


@dataclass(frozen=True, slots=True)
class Failed:
    """Where documents failed for a reason first."""

    reason: str
    source: str
    line: int
    stage: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The end of a run: ``read == indexed + dropped + failed``.

    ``seconds`` by stage: ``read`` (input to documents), ``wait`` (for fingerprints), ``index`` (waiting for
    the engine while nothing else could be done), ``commit`` and ``total`` are of the clock; ``pipeline`` and
    its parts ``strip``, ``canon``, ``sketch``, and ``json``, are added up over the workers. ``languages``:
    documents by language. ``counts``: ``repairs`` (look-alike letters and invisible characters),
    ``replaced`` (undecodable places), ``without_signature``, ``unknown_language``, ``fingerprints_left_out``
    (that came with documents), ``dropped_by_server`` (by the index's own pipeline, of those dropped),
    ``sent_elsewhere`` (by that pipeline into another index, of those indexed),
    ``written_over`` (documents that took the place of one the index had) …
    ``reasons``: failed documents by reason. ``stopped``: why the run ended early, empty where it did not;
    ``failures``: where each of the commonest reasons was met first; ``notes``: what else there is to know,
    in words; what was read ahead by then is not counted. ``made``: the run made the index.
    """

    index: str
    scheme: str
    read: int
    indexed: int
    dropped: int
    failed: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    dead_letters: str = ""
    stopped: str = ""
    failures: tuple[Failed, ...] = ()
    notes: tuple[str, ...] = ()
    made: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON, seconds to the millisecond."""
        seconds = {stage: round(value, 3) for stage, value in self.seconds.items()}
        return {**asdict(self), "seconds": seconds}


class SeenIds:
    """Tells ids that came before.

    Of 10 million ids two different ones are taken for equal in one of 300,000 runs.

    Cost: sorted runs of hashes, merged when two are of one size, so each hash is merged some 20 times.
    """

    def __init__(self) -> None:
        self._runs: list[Uint64s] = []

    def add(self, ids: Sequence[str]) -> list[int]:
        """Note ids, and return the places of those that came before."""
        if not ids:
            return []
        hashes = np.array(
            [xxhash.xxh3_64_intdigest(one.encode("utf-8", "replace")) for one in ids], np.uint64
        )
        again = np.zeros(len(hashes), np.bool_)
        for run in self._runs:
            again |= run[np.searchsorted(run, hashes).clip(max=len(run) - 1)] == hashes
        fresh, first = np.unique(hashes, return_index=True)
        repeated = np.ones(len(hashes), np.bool_)
        repeated[first] = False
        self._note(fresh)
        return np.flatnonzero(again | repeated).tolist()

    def _note(self, run: Uint64s) -> None:
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.union1d(self._runs.pop(), run)
        self._runs.append(run)


class DeadLettersLost(Exception):
    """The dead-letter file can't be written any more: what fails from here on would be lost."""


@dataclass(slots=True)
class RunAccounting:
    """Accounts for every record of the batches."""

    engine: Engine
    index: str
    letters: DeadLetters
    interrupts: Interrupts
    meter: Meter = field(default_factory=Meter)
    indexed: int = 0
    dropped: int = 0
    failed: int = 0
    #: Why the dead-letter file can't be written.
    unkept: str = ""
    ids: SeenIds = field(default_factory=SeenIds)
    #: The first document whose id came before.
    equal: str = ""
    #: Documents that took the place of one with their id, be it of this run or of before.
    written_over: int = 0
    #: Documents that are in an index which the name does not mean, and the indices that it does mean.
    elsewhere: Counter[str] = field(default_factory=Counter)
    _meant: set[str] = field(default_factory=set)

    def book(self, batch: Batch, sent: Sent | EngineError) -> None:
        """Account for every record of a batch, given what became of its actions.

        Raises:
            EngineError: the one given; the batch is accounted for all the same.
            Unkept: failed documents can't be kept; they are accounted for all the same.
        """
        self._count(batch, sent)
        if self.unkept:
            count = self.meter.counts["not_kept"]
            raise DeadLettersLost(f"{self.unkept} (failed documents not kept: {count:,})")

    def _count(self, batch: Batch, sent: Sent | EngineError) -> None:
        self.meter.add(batch.meter)
        self.dropped += batch.dropped
        for refused in batch.refused:
            self._fail(refused.stage, refused.reason, refused.record)
        if isinstance(sent, EngineError):
            # How much the engine took is unknown; indexing again does no harm where ids are given.
            for record in batch.records:
                self._fail("index", str(sent), record)
            self.lose(sent)
            raise sent
        self.meter.counts["sent_again"] += sent.again
        self.written_over += sent.written_over
        self._look_elsewhere(sent.renamed)
        self.indexed += len(batch.records) - len(sent.refused)
        for failure, record in zip(sent.refused, _records_of(sent.refused, batch), strict=True):
            if failure.dropped:
                self.dropped += 1
                self.meter.counts["dropped_by_server"] += 1
            else:
                self._fail("index", f"{failure.status}: {failure.reason}", record)
        if blocked := next((one for one in sent.refused if any(map(one.reason.count, _FOR_ALL))), None):
            error = EngineUnavailable if blocked.status == _BUSY else IndexReadOnly
            raise error(f"{self.index!r} takes no documents: {blocked.reason}")

    def _look_elsewhere(self, renamed: Mapping[str, int]) -> None:
        """Count documents that a pipeline of the server has sent to an index of its own choice."""
        if renamed.keys() - self._meant - self.elsewhere.keys():
            try:
                # Asked for again with each name that is new: what is behind one may change meanwhile.
                self._meant.update(info.name for info in self.engine.indices(self.index))
            except EngineError:
                # Who may not look can't tell them from those behind an alias.
                self._meant.update(renamed)
        self.elsewhere.update({name: count for name, count in renamed.items() if name not in self._meant})

    def see(self, batch: Batch) -> None:
        """Note the ids of a batch, and count those that came before."""
        given = [
            (str(action["_id"]), record)
            for action, record in zip(batch.actions, batch.records, strict=True)
            if "_id" in action
        ]
        again = self.ids.add([one for one, _ in given])
        if again and not self.equal:
            id_, record = given[again[0]]
            self.equal = f"{id_!r:.80} ({record.source}:{record.line})"
        self.meter.counts["equal_ids"] += len(again)

    def lose(self, error: EngineError) -> None:
        """Account for documents booked as indexed that the engine could not keep after all."""
        lost = min(error.lost, self.indexed)
        if lost:
            self.indexed -= lost
            self.failed += lost
            self.letters.reasons[str(error)] += lost
            self.meter.counts["not_kept"] += lost

    def _fail(self, stage: str, reason: str, record: Record) -> None:
        self.failed += 1
        try:
            self.letters.write(stage, reason, record)
        except InputError as error:
            self.unkept = self.unkept or str(error)
            self.meter.counts["not_kept"] += 1

    def progress(self, fraction: float) -> Progress:
        """Return how far the run is."""
        read = self.indexed + self.dropped + self.failed
        return Progress(read, self.indexed, self.dropped, self.failed, fraction)

    def summary(self, scheme: str, stopped: str, total: float) -> Summary:
        """Return the end of the books."""
        # A document that came twice has written over itself.
        self.meter.counts["sent_elsewhere"] = self.elsewhere.total()
        self.meter.counts["written_over"] = max(0, self.written_over - self.meter.counts["equal_ids"])
        return Summary(
            index=self.index,
            scheme=scheme,
            read=self.indexed + self.dropped + self.failed,
            indexed=self.indexed,
            dropped=self.dropped,
            failed=self.failed,
            seconds={**self.meter.seconds, "total": total},
            languages=dict(self.meter.languages.most_common()),
            counts={name: count for name, count in sorted(self.meter.counts.items()) if count},
            reasons=dict(self.letters.reasons.most_common()),
            dead_letters=str(self.letters.path) if self.letters.kept else "",
            stopped=stopped,
            failures=tuple(
                Failed(reason, *self.letters.first[reason])
                for reason, _ in self.letters.reasons.most_common(_FAILURES)
                if reason in self.letters.first
            ),
            notes=tuple(self._notes()),
        )

    def _notes(self) -> Iterator[str]:
        if count := self.meter.counts["equal_ids"]:
            have = "1 document has" if count == 1 else f"{count:,} documents have"
            yield (
                f"{have} an id that came before in this run, and replaced the earlier one; "
                f"the first is {self.equal}"
            )
        if count := self.meter.counts["dropped_by_server"]:
            were = "1 document was" if count == 1 else f"{count:,} documents were"
            yield (
                f"{were} dropped by an ingest pipeline of the server: see the index's default_pipeline and "
                "final_pipeline"
            )
        for name, count in self.elsewhere.most_common():
            are = "1 document is" if count == 1 else f"{count:,} documents are"
            yield (
                f"{are} in the index {name!r}, where an ingest pipeline of the server has sent them: see the "
                f"default_pipeline and final_pipeline of {self.index!r}"
            )
        if count := self.meter.counts["written_over"]:
            many = "1 document" if count == 1 else f"{count:,} documents"
            yield f"{many} took the place of {'one' if count == 1 else 'those'} with the same id"


def _records_of(refused: Sequence[BulkFailure], batch: Batch) -> Iterator[Record]:
    """Yield the record of each refused action: the engine gives the action back, or one with the same id."""
    if not refused:
        return
    by_identity = {id(action): record for action, record in zip(batch.actions, batch.records, strict=True)}
    by_id = {action.get("_id"): record for action, record in zip(batch.actions, batch.records, strict=True)}
    for failure in refused:
        found = by_identity.get(id(failure.action))
        yield (
            found or by_id.get(failure.action.get("_id")) or Record(None, "bulk", 0, raw=repr(failure.action))
        )
