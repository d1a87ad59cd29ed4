"""Count each record of a run exactly once, as indexed, dropped or failed, and summarize the run.

Bulk requests are in flight concurrently if the engine allows it, and accounted for in order.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import xxhash

from shinglefold.contracts.engine import BulkFailure, Engine
from shinglefold.errors import EngineError, EngineUnavailable, IndexReadOnly, InputError, counted
from shinglefold.ingest.fingerprinter import Meter
from shinglefold.ingest.readers.record import Record
from shinglefold.ingest.writing.batch import Batch, ReadBack, Sent, name_of, send
from shinglefold.ingest.writing.dead_letters import DeadLetters, DeadLettersLost
from shinglefold.ingest.writing.target_index import IndexWatch
from shinglefold.model.values import Uint64s
from shinglefold.runtime.backoff import Backoff
from shinglefold.runtime.signals import Interrupted, Interrupts

#: The most failures listed in a summary.
_FAILURES = 20
#: Refusals that concern all documents, and the status of those that may be temporary.
_FOR_ALL = ("cluster_block_exception", "index_closed_exception")
_BUSY = 503
#: Seconds between checks for interrupts.
_TICK = 0.2
_Result = Sent | EngineError


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run; ``fraction``: share of the source read so far, 0 if unknown."""

    read: int
    indexed: int
    dropped: int
    failed: int
    fraction: float


@dataclass(frozen=True, slots=True)
class Failed:
    """The first document that failed for a reason."""

    reason: str
    source: str
    line: int
    stage: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a run: ``read == indexed + dropped + failed``.

    ``seconds`` by stage. Wall time: ``read`` (input to documents), ``wait`` (for fingerprints), ``index``
    (waiting for the engine with nothing else to do), ``commit`` and ``total``. Summed over workers:
    ``pipeline`` with its parts ``strip``, ``canon``, ``sketch``, and ``json``.
    ``languages``: documents by language.
    ``counts``, among others:

    - ``repairs``: homoglyphs and invisible characters.
    - ``replaced``: undecodable sequences.
    - ``without_signature``, ``unknown_language``: documents.
    - ``fingerprints_left_out``: documents that already had a fingerprint.
    - ``dropped_by_server``, ``sent_elsewhere``: documents that a pipeline of the server dropped, or sent to
      another index.
    - ``fingerprints_lost``, ``texts_changed``: documents that a pipeline of the server stored without the
      fingerprint, or with another text than was signed.
    - ``not_read_back``: documents that were stored and could not be read to see whether a pipeline changed
      them.
    - ``written_over``: documents that replaced one with the same id.

    ``reasons``: failed documents by reason. ``failures``: the first document for each frequent reason.
    ``stopped``: why the run ended early, else empty; documents read ahead are not counted then.
    ``notes``: further remarks. ``made``: the run created the index.
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
    """The set of ids seen so far, as 64-bit hashes.

    Among 10 million different ids, two have the same hash in one of 300,000 runs.

    Cost: sorted arrays of hashes, merged when two have a similar size, so each hash is merged about 20 times.
    """

    def __init__(self) -> None:
        self._runs: list[Uint64s] = []

    def add(self, ids: Sequence[str]) -> list[int]:
        """Add ids, and return the positions of those seen before."""
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


@dataclass(slots=True)
class RunAccounting:
    """Counts every record of a run, and writes failed ones to the dead letters."""

    engine: Engine
    index: str
    letters: DeadLetters
    interrupts: Interrupts
    watch: IndexWatch
    read_back: ReadBack
    meter: Meter = field(default_factory=Meter)
    indexed: int = 0
    dropped: int = 0
    failed: int = 0
    #: Why the dead-letter file can't be written.
    write_error: str = ""
    ids: SeenIds = field(default_factory=SeenIds)
    #: The first document whose id was seen before.
    first_repeated: str = ""
    #: Documents that replaced one with the same id, of this run or an earlier one.
    written_over: int = 0
    #: Documents that a pipeline of the server sent to another index, by its name.
    redirected: Counter[str] = field(default_factory=Counter)
    _own_indices: set[str] = field(default_factory=set)

    def add_batch(self, batch: Batch, sent: Sent | EngineError) -> None:
        """Count every record of a batch, given the result of its actions.

        Raises:
            EngineError: ``sent`` is one; the batch is counted nevertheless.
            DeadLettersLost: failed documents can't be stored; they are counted nevertheless.
        """
        self._count(batch, sent)
        if isinstance(sent, Sent):
            self.read_back.compare(batch, sent.refused)
        if self.write_error:
            count = self.meter.counts["not_kept"]
            raise DeadLettersLost(f"{self.write_error} (failed documents not kept: {count:,})")

    def _count(self, batch: Batch, sent: Sent | EngineError) -> None:
        self.meter.add(batch.meter)
        self.dropped += batch.dropped
        for refused in batch.refused:
            self._fail(refused.stage, refused.reason, refused.record)
        if isinstance(sent, EngineError):
            # It is unknown what the engine stored; indexing documents with ids again does no harm.
            for record in batch.records:
                self._fail("index", str(sent), record)
            self.add_lost(sent)
            raise sent
        self.meter.counts["sent_again"] += sent.retried
        self.written_over += sent.written_over
        self._count_redirected(sent.renamed)
        self.indexed += len(batch.records) - len(sent.refused)
        self.watch.wrote(sent.renamed, len(batch.records) - len(sent.refused))
        for failure, record in zip(sent.refused, _records_of(sent.refused, batch), strict=True):
            if failure.dropped:
                self.dropped += 1
                self.meter.counts["dropped_by_server"] += 1
            else:
                self._fail("index", f"{failure.status}: {failure.reason}", record)
        if blocked := next((one for one in sent.refused if any(map(one.reason.count, _FOR_ALL))), None):
            error = EngineUnavailable if blocked.status == _BUSY else IndexReadOnly
            raise error(f"{self.index!r} takes no documents: {blocked.reason}")

    def _count_redirected(self, renamed: Mapping[str, int]) -> None:
        """Count documents that a pipeline of the server sent to another index."""
        if renamed.keys() - self._own_indices - self.redirected.keys():
            try:
                # Read again for each new name: the indices of an alias may change meanwhile.
                self._own_indices.update(info.name for info in self.engine.indices(self.index))
            except EngineError:
                # The user may not list indices: assume that these are indices of the alias.
                self._own_indices.update(renamed)
        self.redirected.update(
            {name: count for name, count in renamed.items() if name not in self._own_indices}
        )

    def note_ids(self, batch: Batch) -> None:
        """Add the ids of a batch, and count those seen before."""
        given = [
            (name_of(action), record)
            for action, record in zip(batch.actions, batch.records, strict=True)
            if "_id" in action
        ]
        again = self.ids.add([one for one, _ in given])
        if again and not self.first_repeated:
            id_, record = given[again[0]]
            self.first_repeated = f"{id_.partition(chr(0))[0]!r:.80} ({record.source}:{record.line})"
        self.meter.counts["equal_ids"] += len(again)

    def add_lost(self, error: EngineError) -> None:
        """Count documents as failed that were counted as indexed, but which the engine could not keep."""
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
            self.write_error = self.write_error or str(error)
            self.meter.counts["not_kept"] += 1

    def progress(self, fraction: float) -> Progress:
        """Return the progress of the run."""
        read = self.indexed + self.dropped + self.failed
        return Progress(read, self.indexed, self.dropped, self.failed, fraction)

    def summary(self, scheme: str, stopped: str, total: float) -> Summary:
        """Return the summary of the run."""
        # A document that occurred twice replaced itself.
        for name, count in self.read_back.to_json().items():
            self.meter.counts[name] = count
        self.meter.counts["sent_elsewhere"] = self.redirected.total()
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
            have = counted(count, "document has", "documents have")
            yield (
                f"{have} an id that came before in this run, and replaced the earlier one; "
                f"the first is {self.first_repeated}"
            )
        if count := self.meter.counts["dropped_by_server"]:
            were = counted(count, "document was", "documents were")
            yield (
                f"{were} dropped by an ingest pipeline of the server: see the index's default_pipeline and "
                "final_pipeline"
            )
        for name, count in self.redirected.most_common():
            yield (
                f"an ingest pipeline of the server sent {counted(count, 'document')} to the index "
                f"{name!r}: see the default_pipeline and final_pipeline of {self.index!r}"
            )
        yield from self.read_back.notes()
        if count := self.meter.counts["written_over"]:
            yield f"{counted(count, 'document')} replaced {'one' if count == 1 else 'those'} with the same id"


def _records_of(refused: Sequence[BulkFailure], batch: Batch) -> Iterator[Record]:
    """Yield the record of each refused action; the engine returns the action, or one with the same id."""
    if not refused:
        return
    by_identity = {id(action): record for action, record in zip(batch.actions, batch.records, strict=True)}
    by_id = {action.get("_id"): record for action, record in zip(batch.actions, batch.records, strict=True)}
    for failure in refused:
        found = by_identity.get(id(failure.action))
        yield (
            found or by_id.get(failure.action.get("_id")) or Record(None, "bulk", 0, raw=repr(failure.action))
        )


class _InFlight(NamedTuple):
    batch: Batch
    sent: "Future[_Result]"
    thread: Thread | None


class InFlightBatches:
    """Sends batches, and adds their results to the accounting.

    While a request waits for the engine, the next block is read and fingerprinted, and the next request may
    be sent. Two versions of one document are never in flight together, so that the later one wins.
    """

    def __init__(self, accounting: RunAccounting, backoff: Backoff) -> None:
        self._accounting = accounting
        self._backoff = backoff
        self._most = accounting.engine.can.bulks_at_once
        self._batches: deque[_InFlight] = deque()
        self._ending = False

    @property
    def is_empty(self) -> bool:
        """Whether every batch is accounted for."""
        return not self._batches

    @property
    def oldest_is_done(self) -> bool:
        """Whether the engine has answered the oldest batch."""
        return bool(self._batches) and self._batches[0].sent.done()

    def can_send(self, batch: Batch) -> bool:
        """Return whether a batch can be sent now; if not, finish the oldest one first."""
        return len(self._batches) < self._most and all(
            batch.ids.isdisjoint(other.batch.ids) for other in self._batches
        )

    def put(self, batch: Batch) -> None:
        """Send a batch: in a thread if the engine takes several requests at once, else before returning."""
        self._batches.append(self._start(batch))

    def finish_oldest(self) -> Batch:
        """Wait for the oldest batch, add it to the accounting and return it.

        Raises:
            EngineError: the engine failed; the batch is accounted for nevertheless.
            DeadLettersLost: failed documents can't be stored; they are accounted for nevertheless.
        """
        batch, result = self._wait_for_oldest()
        self._accounting.add_batch(batch, result)
        return batch

    def drain(self) -> None:
        """Finish all batches without retries, at the early end of a run."""
        self._ending = True
        while self._batches:
            with suppress(EngineError, DeadLettersLost):
                self.finish_oldest()

    def _start(self, batch: Batch) -> _InFlight:
        sent: Future[_Result] = Future()
        if self._most == 1 or not batch.actions:
            with self._accounting.meter.stage("index"):
                sent.set_result(self._send_here(batch))
            return _InFlight(batch, sent, None)
        # A daemon, so that an abandoned request does not keep the process alive.
        thread = Thread(target=self._send_into, args=(batch, sent), daemon=True)
        thread.start()
        return _InFlight(batch, sent, thread)

    def _send_here(self, batch: Batch) -> _Result:
        try:
            with self._accounting.interrupts.breakable(at_once=False):
                return self._send(batch)
        except Interrupted:
            return _abandoned_error()

    def _send_into(self, batch: Batch, sent: "Future[_Result]") -> None:
        try:
            sent.set_result(self._send(batch))
        except BaseException as error:
            sent.set_exception(error)

    def _send(self, batch: Batch) -> _Result:
        try:
            return send(self._accounting.engine, batch.actions, self._backoff, self._stop, batch.made_ids)
        except EngineError as error:
            return error

    def _stop(self) -> bool:
        return self._ending or self._accounting.interrupts.pending

    def _wait_for_oldest(self) -> tuple[Batch, _Result]:
        """Wait for the oldest batch, remove it, and return it with its result."""
        batch, sent, thread = self._batches.popleft()
        with self._accounting.meter.stage("index"):
            while not wait((sent,), _TICK).done:
                if self._accounting.interrupts.insistent:
                    return batch, _abandoned_error()
        if thread is not None:
            thread.join()
        return batch, sent.result()


def _abandoned_error() -> EngineError:
    return EngineUnavailable(
        "interrupted again before the engine answered; it may have stored some of these: index them again"
    )
