"""Group commit: documents of callers that arrive together are decided in one job, by one set of requests.

All of it runs in one event loop. A blocking gate has an event loop in a separate thread.
"""

import asyncio
import logging
import os
import random
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, TypeVar

from shinglefold.contracts.engine import Document
from shinglefold.errors import EngineError
from shinglefold.grouping.gate.exclusive_store import ExclusiveStore
from shinglefold.grouping.gate.protocol.decide import DecisionContext
from shinglefold.grouping.gate.protocol.pending_document import (
    Pause,
    PendingDocument,
    ReadDocuments,
    Request,
    Steps,
    Verdict,
    id_and_routing,
)
from shinglefold.grouping.gate.protocol.protocol import decide
from shinglefold.grouping.gate.server_store import ServerStore
from shinglefold.ingest.writing.batch import ReadBack
from shinglefold.runtime.sans_io import run_async

_log = logging.getLogger("shinglefold.grouping.gate")
#: Seconds to wait for the callers of the last job, which are likely to come back at once.
_GATHER = 0.002


@dataclass(slots=True)
class WaitingCaller:
    """A caller, its documents and their verdicts.

    Attributes:
        decided: set once ``done``.
        given_up: whether the caller was interrupted and has stopped waiting.
    """

    documents: Sequence[Document]
    verdicts: list[Verdict | None] = field(init=False)
    error: BaseException | None = None
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    given_up: bool = False

    def __post_init__(self) -> None:
        self.verdicts = [None] * len(self.documents)

    @property
    def done(self) -> bool:
        """Whether there is a verdict on each document, or an error."""
        return self.error is not None or None not in self.verdicts

    def result(self) -> list[Verdict]:
        """Return the verdicts, or raise the error."""
        if self.error is not None:
            raise self.error
        return [verdict for verdict in self.verdicts if verdict is not None]


class DecisionJob:
    """Decides about the documents of several callers; pauses while it waits for other writers.

    While a job pauses, another may run, so that a caller that waits for another writer delays nobody else.

    Args:
        batches: splits documents into batches that are decided one after the other.
        pending_document: returns a document as a pending one, or the verdict if it does not fit at all.
        describe: returns a verdict with its reason in words.
        shared: whether other gates may write to the same index; else pauses are skipped.
        read_back: compares what is stored with what was sent.
    """

    def __init__(
        self,
        callers: Sequence[WaitingCaller],
        context: DecisionContext,
        *,
        batches: Callable[[Sequence[Document]], list[list[Document]]],
        pending_document: Callable[[Document], PendingDocument | Verdict],
        describe: Callable[[Verdict], Verdict],
        shared: bool,
        read_back: ReadBack,
    ) -> None:
        self._read_back = read_back
        self.callers, self._context, self._shared = callers, context, shared
        self._batches, self._pending_document, self._describe = batches, pending_document, describe
        self._undecided: list[tuple[PendingDocument, WaitingCaller, int]] = []
        self._steps = self._decide_all()

    @property
    def given_up(self) -> bool:
        """Whether all callers have stopped waiting for the job."""
        return all(caller.given_up or caller.done for caller in self.callers)

    def until_pause(self, error: BaseException | None = None) -> Steps[int | None]:
        """Run the job to its next pause and return how long it lasts in ms; None at the end of the job.

        Args:
            error: is raised in the job, which then releases its placeholders and ends.
        """
        go: Callable[[], Request] = partial(self._steps.send, None)
        if error is not None:
            go = partial(self._steps.throw, error)
        while True:
            try:
                request = go()
            except StopIteration:
                return None
            # Between two batches other jobs may always run.
            if isinstance(request, Pause) and (
                not request.milliseconds or (self._shared and not request.alone)
            ):
                return request.milliseconds
            try:
                answer: Any = yield request
            except BaseException as failure:
                go = partial(self._steps.throw, failure)
            else:
                go = partial(self._steps.send, answer)

    def deliver(self) -> None:
        """Give callers the verdicts that are final and durable."""
        waiting: list[tuple[PendingDocument, WaitingCaller, int]] = []
        for item, caller, place in self._undecided:
            if item.verdict is None:
                waiting.append((item, caller, place))
            else:
                caller.verdicts[place] = self._describe(item.verdict)
        self._undecided = waiting

    def fail(self, error: BaseException) -> None:
        """Raise the error in callers that are not done.

        A server has stored the documents of its answers. The embedded engine may have failed to make them
        durable, so that their verdicts are not delivered.
        """
        if self._shared:
            self.deliver()
        for caller in self.callers:
            if not caller.done:
                caller.error = error

    def _decide_all(self) -> Steps[None]:
        documents = [document for caller in self.callers for document in caller.documents]
        places = ((caller, at) for caller in self.callers for at in range(len(caller.documents)))
        for number, batch in enumerate(self._batches(documents)):
            if number:
                yield Pause(0)
            if items := self._pending_documents(batch, places):
                yield from decide(items, self._context)
                yield from self._compare_stored(items)

    def _compare_stored(self, items: Sequence[PendingDocument]) -> Steps[None]:
        """Compare what is stored with what was sent, if a pipeline of the server may have changed it."""
        sent = [item for item in items if item.stored is not None]
        read_back = self._read_back
        if not (sent and read_back.pipelines):
            return
        before = read_back.notes()
        try:
            found = yield ReadDocuments(tuple(item.id for item in sent), whole=True)
        except EngineError as error:
            # The documents are stored and have their verdicts, so that no caller gets this error.
            read_back.miss(len(sent), error)
            found = []
        for item, held in zip(sent, found, strict=False):
            # Another writer may have changed it since.
            if held is not None and held.guard == item.stored:
                read_back.add(id_and_routing(item.id)[0], item.document, held.source)
        if len(notes := read_back.notes()) > len(before):
            _log.warning("%s", "; ".join(notes))

    def _pending_documents(
        self, batch: Sequence[Document], places: Iterator[tuple[WaitingCaller, int]]
    ) -> list[PendingDocument]:
        items: list[PendingDocument] = []
        for document in batch:
            caller, place = next(places)
            item = self._pending_document(document)
            if isinstance(item, PendingDocument):
                items.append(item)
                self._undecided.append((item, caller, place))
            else:
                caller.verdicts[place] = self._describe(item)
        return items


class GroupCommit:
    """Collects callers while a job runs, and decides about their documents in the next job.

    One job at a time sends requests to the store.

    Args:
        index: the name of the index, for error messages.
        new_job: returns a job for the waiting callers.
    """

    def __init__(
        self,
        index: str,
        new_job: Callable[[Sequence[WaitingCaller]], DecisionJob],
        store: ServerStore | ExclusiveStore,
    ) -> None:
        self._index, self._new_job, self._store = index, new_job, store
        self._waiting: list[WaitingCaller] = []
        self._arrival = asyncio.Event()
        #: How many callers there were when the last turn ended.
        self._expected = 0
        self._turn = asyncio.Lock()
        self._jobs: set[asyncio.Task[None]] = set()
        self._next_job: asyncio.Task[None] | None = None
        #: Whether ``close`` was called, and whether it is done.
        self._closing = self._closed = False

    async def admit(self, documents: Sequence[Document]) -> list[Verdict]:
        """Decide about documents with fingerprints.

        A caller that is cancelled stops waiting. If others of its job still wait, its documents are
        still decided; else their placeholders are released at the next pause.
        """
        if not documents:
            return []
        if self._closing:
            raise EngineError(f"this gate of {self._index!r} is closed: open another")
        own = WaitingCaller(documents)
        self._waiting.append(own)
        self._arrival.set()
        if self._next_job is None or self._next_job.done():
            self._next_job = asyncio.create_task(self._run_job())
            self._jobs.add(self._next_job)
            self._next_job.add_done_callback(self._jobs.discard)
        try:
            await own.decided.wait()
        except asyncio.CancelledError:
            own.given_up = True
            if own in self._waiting:
                self._waiting.remove(own)
            raise
        return own.result()

    async def refresh(self) -> None:
        """Make accepted documents visible to searches."""
        async with self._turn:
            await self._store.publish()

    async def close(self) -> None:
        """Wait for running jobs, make accepted documents visible, and delete the gate's intents.

        The gate accepts no further documents. After a failure, it can be called again.
        """
        self._closing = True
        while self._jobs:
            await asyncio.gather(*self._jobs, return_exceptions=True)
        async with self._turn:
            if not self._closed:
                await self._store.publish()
                await self._store.depart()
                self._closed = True
                await self._store.close()

    async def _run_job(self) -> None:
        async with self._turn:
            await self._gather()
            job = self._new_job(self._waiting)
            self._waiting, self._next_job = [], None
            pause = await self._advance(job)
        while pause is not None:
            await asyncio.sleep(pause * random.uniform(0.5, 1.5) / 1000)
            async with self._turn:
                pause = await self._advance(job)

    async def _gather(self) -> None:
        """Wait a moment for as many callers as before, so that they are decided together again."""
        if len(self._waiting) >= self._expected:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_GATHER):
                while len(self._waiting) < self._expected:
                    self._arrival.clear()
                    await self._arrival.wait()

    async def _advance(self, job: DecisionJob) -> int | None:
        """Run a job to its next pause, and return that in milliseconds; None at its end."""
        try:
            error = (
                EngineError("all callers that waited for these documents were interrupted")
                if job.given_up
                else None
            )
            async with self._store.turn(lambda: job.given_up):
                await self._store.run_due()
                return await run_async(job.until_pause(error), self._store.answer)
        except BaseException as failure:
            job.fail(await self._store.cause_of(failure))
            if isinstance(failure, asyncio.CancelledError):
                raise
            return None
        finally:
            job.deliver()
            self._expected = len(job.callers) + len(self._waiting)
            for caller in job.callers:
                if caller.done:
                    caller.decided.set()


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
#: Seconds between two checks that the thread is alive.
_ALIVE_CHECK = 1.0


class LoopThread:
    """Runs an event loop in a daemon thread, until ``stop`` or until this object is collected."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # A blocking engine blocks the loop on purpose; debug mode would report that.
        self._loop.slow_callback_duration = float("inf")
        self._process = os.getpid()
        self._stopping = False
        self._submitting = threading.Lock()
        self._thread = threading.Thread(
            target=_serve, args=(self._loop,), name="shinglefold-gate", daemon=True
        )
        self._thread.start()
        # Stop the thread before the interpreter ends: if it wakes during the shutdown, the process may crash.
        self._stop = weakref.finalize(self, _stop, self._loop, self._thread, self._process)

    @property
    def stopped(self) -> bool:
        """Whether the thread was stopped, or takes no more work because it is being stopped."""
        return self._stopping or not self._stop.alive

    @property
    def forked(self) -> bool:
        """Whether this process was forked after the thread was started, and so lacks the thread."""
        return os.getpid() != self._process

    def submit(
        self,
        work: Callable[Arguments, Coroutine[Any, Any, Result]],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Future[Result]:
        """Start a coroutine and return its future.

        Raises:
            EngineError: the thread was stopped, or this process is a fork, which lacks it.
        """
        if self.forked:
            raise EngineError("gates don't survive fork(): open one in the child")
        # A coroutine that reaches the loop after its end would never run, and its caller would wait forever.
        with self._submitting:
            if self.stopped:
                raise _closed_error()
            return asyncio.run_coroutine_threadsafe(work(*args, **options), self._loop)

    def run(
        self,
        work: Callable[Arguments, Coroutine[Any, Any, Result]],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """Return the result of ``submit``; cancel the coroutine if the caller is interrupted."""
        return self._result(self.submit(work, *args, **options))

    def _result(self, future: Future[Result]) -> Result:
        try:
            while True:
                with suppress(TimeoutError):
                    return future.result(_ALIVE_CHECK)
                if future.done():
                    return future.result()
                if not self._thread.is_alive():
                    raise _closed_error()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """Stop the thread once all that was submitted has ended; a second call does nothing."""
        with self._submitting:
            if self.stopped:
                return
            self._stopping = True
            last = asyncio.run_coroutine_threadsafe(_finish_tasks(), self._loop)
        try:
            self._result(last)
        finally:
            self._stop()


async def _finish_tasks() -> None:
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread, process: int) -> None:
    if os.getpid() == process and thread.is_alive():
        loop.call_soon_threadsafe(loop.stop)
        # The garbage collector may run this in the thread itself, which can't join itself.
        if thread is not threading.current_thread():
            thread.join()


def _closed_error() -> EngineError:
    return EngineError("this gate is closed: open another")
