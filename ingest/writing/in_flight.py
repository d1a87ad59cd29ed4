"""Bulk requests in flight: sent concurrently if the engine allows it, accounted for in order."""

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

#: Seconds between checks for interrupts.
_TICK = 0.2
_Result = Sent | EngineError


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
            return _abandoned()

    def _send_into(self, batch: Batch, sent: "Future[_Result]") -> None:
        try:
            sent.set_result(self._send(batch))
        except BaseException as error:
            sent.set_exception(error)

    def _send(self, batch: Batch) -> _Result:
        try:
            return send(self._accounting.engine, batch.actions, self._backoff, self._stop)
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
                    return batch, _abandoned()
        if thread is not None:
            thread.join()
        return batch, sent.result()


def _abandoned() -> EngineError:
    return EngineUnavailable(
        "interrupted again before the engine answered; it may have stored some of these: index them again"
    )
