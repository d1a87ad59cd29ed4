"""Batches on their way to the engine: several at once where it takes that, booked in order."""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

from shinglefold.errors import EngineError
from shinglefold.ingest.writing.batch import Batch
from shinglefold.ingest.writing.bulk import Backoff, Sent, send
from shinglefold.ingest.writing.ledger import Ledger


class _Travelling(NamedTuple):
    batch: Batch
    sent: "Future[Sent | EngineError]"


class Outbox:
    """Send batches, and book what became of them.

    While a request waits for the engine, the next block is read and fingerprinted, and the next request may
    be on its way. Two versions of one document never are at the same time, so the later one wins.

    Args:
        ledger: the books, and the engine.
        backoff: for what the engine is too busy for.
    """

    def __init__(self, ledger: Ledger, backoff: Backoff) -> None:
        self._ledger = ledger
        self._backoff = backoff
        self._most = ledger.engine.can.bulks_at_once
        self._pool = ThreadPoolExecutor(self._most) if self._most > 1 else None
        self._travelling: deque[_Travelling] = deque()
        self._ending = False

    @property
    def empty(self) -> bool:
        """Tell whether every batch is booked."""
        return not self._travelling

    @property
    def answered(self) -> bool:
        """Tell whether the oldest batch can be booked without waiting."""
        return bool(self._travelling) and self._travelling[0].sent.done()

    def takes(self, batch: Batch) -> bool:
        """Tell whether a batch can be sent now, or another must be booked before."""
        return len(self._travelling) < self._most and all(
            batch.ids.isdisjoint(other.batch.ids) for other in self._travelling
        )

    def put(self, batch: Batch) -> None:
        """Send a batch: in a thread where the engine takes several at once, else before this returns."""
        # What the engine wrote must be counted, even at a Ctrl-C.
        with self._ledger.interrupts.held():
            self._travelling.append(_Travelling(batch, self._start(batch)))

    def book(self) -> Batch:
        """Wait for the oldest batch, account for it and return it.

        Raises:
            EngineError: the engine can't go on; the batch is accounted for all the same.
        """
        with self._ledger.interrupts.held():
            return self._book()

    def finish(self) -> None:
        """Account for all that is still on its way, at the early end of a run: nothing is tried again.

        To be called with Ctrl-C held back.
        """
        self._ending = True
        while self._travelling:
            with suppress(EngineError):
                self._book()

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _start(self, batch: Batch) -> "Future[Sent | EngineError]":
        if self._pool is not None and batch.actions:
            return self._pool.submit(self._send, batch)
        done: Future[Sent | EngineError] = Future()
        with self._ledger.meter.stage("index"):
            done.set_result(self._send(batch))
        return done

    def _send(self, batch: Batch) -> Sent | EngineError:
        try:
            return send(self._ledger.engine, batch.actions, self._backoff, self._stop)
        except EngineError as error:
            return error

    def _stop(self) -> bool:
        return self._ending or self._ledger.interrupts.pending

    def _book(self) -> Batch:
        batch, sent = self._travelling[0]
        with self._ledger.meter.stage("index"):
            result = sent.result()
        self._travelling.popleft()
        self._ledger.book(batch, result)
        return batch
