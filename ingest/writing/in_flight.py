"""Batches on their way to the engine: several at once where it takes that, booked in order."""

from collections import deque
from concurrent.futures import Future, wait
from contextlib import suppress
from threading import Thread
from typing import NamedTuple

from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.ingest.writing.accounting import DeadLettersLost, RunAccounting
from shinglefold.ingest.writing.batch import Batch, Sent, send
from shinglefold.runtime.backoff import Backoff
from shinglefold.runtime.signals import Interrupted

#: Seconds between looks at what asks the run to end.
_TICK = 0.2
_Result = Sent | EngineError


class _Travelling(NamedTuple):
    batch: Batch
    sent: "Future[_Result]"
    thread: Thread | None


class InFlightBatches:
    """Send batches, and book what became of them.

    While a request waits for the engine, the next block is read and fingerprinted, and the next request may
    be on its way. Two versions of one document never are at the same time, so the later one wins.

    Args:
        ledger: the books, and the engine.
        backoff: for what the engine is too busy for.
    """

    def __init__(self, ledger: RunAccounting, backoff: Backoff) -> None:
        self._ledger = ledger
        self._backoff = backoff
        self._most = ledger.engine.can.bulks_at_once
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
        self._travelling.append(self._start(batch))

    def book(self) -> Batch:
        """Wait for the oldest batch, account for it and return it.

        Raises:
            EngineError: the engine can't go on; the batch is accounted for all the same.
            Unkept: failed documents can't be kept; they are accounted for all the same.
        """
        batch, result = self._oldest()
        self._ledger.book(batch, result)
        return batch

    def finish(self) -> None:
        """Account for all that is still on its way, at the early end of a run: nothing is tried again."""
        self._ending = True
        while self._travelling:
            with suppress(EngineError, DeadLettersLost):
                self.book()

    def _start(self, batch: Batch) -> _Travelling:
        sent: Future[_Result] = Future()
        if self._most == 1 or not batch.actions:
            with self._ledger.meter.stage("index"):
                sent.set_result(self._send_here(batch))
            return _Travelling(batch, sent, None)
        # A daemon: one that is given up must not keep the process alive until the server answers.
        thread = Thread(target=self._send_into, args=(batch, sent), daemon=True)
        thread.start()
        return _Travelling(batch, sent, thread)

    def _send_here(self, batch: Batch) -> _Result:
        try:
            with self._ledger.interrupts.breakable(at_once=False):
                return self._send(batch)
        except Interrupted:
            return _given_up()

    def _send_into(self, batch: Batch, sent: "Future[_Result]") -> None:
        try:
            sent.set_result(self._send(batch))
        except BaseException as error:
            sent.set_exception(error)

    def _send(self, batch: Batch) -> _Result:
        try:
            return send(self._ledger.engine, batch.actions, self._backoff, self._stop)
        except EngineError as error:
            return error

    def _stop(self) -> bool:
        return self._ending or self._ledger.interrupts.pending

    def _oldest(self) -> tuple[Batch, _Result]:
        """Wait for the oldest batch, which no longer is on its way then, and what became of it."""
        batch, sent, thread = self._travelling.popleft()
        with self._ledger.meter.stage("index"):
            while not wait((sent,), _TICK).done:
                if self._ledger.interrupts.insistent:
                    return batch, _given_up()
        if thread is not None:
            thread.join()
        return batch, sent.result()


def _given_up() -> EngineError:
    return EngineUnavailable(
        "interrupted again before the engine had answered; it may have taken some of these: index them again"
    )
