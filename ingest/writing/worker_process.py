"""A worker process: a pipe of its own and one question at a time.

So it is always known what a worker that died was asked, and no more questions are alive than there are
workers.
"""

import gc
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from shinglefold.runtime.signals import deferred

_Q = TypeVar("_Q")
_A = TypeVar("_A")
#: Seconds between looks at what asks the run to end.
_TICK = 0.2
#: Objects that hold others made since garbage was looked for last.
_SELDOM = 10_000
#: Objects that Python itself sets aside when it starts: 3.12 some hundred, 3.11 none.
_PYTHONS = 1_000


def go_on() -> None:
    """Ask nobody."""


class WorkerProcess:
    """A process that answers what it is asked; started when it is first asked, and again after it died.

    Args:
        work: what makes an answer; runs in the process.
        check: called while an answer is waited for; what it raises ends the wait.
    """

    def __init__(self, work: Callable[[Any], Any], check: Callable[[], None] = go_on) -> None:
        #: How the process ended that died last.
        self.fate = ""
        self._work = work
        self._check = check
        self._process: BaseProcess | None = None
        self._channel: Connection | None = None

    @property
    def started(self) -> bool:
        """Whether there is a process."""
        return self._channel is not None

    def _start(self) -> Connection:
        # Forked, so that dictionaries and lexicon are shared and the work needs no pickling. Why it may be,
        # beside other threads of this process, stands in ARCHITECTURE.md.
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(self._work, theirs, ours), daemon=True)
        # An exception in the middle of a fork would be lost, or leave a process that nobody knows.
        with deferred():
            process.start()
            self._process, self._channel = process, ours
        # Ours alone keep their end open: it closes with the process.
        theirs.close()
        return ours

    def ask(self, question: object) -> None:
        """Send a question; its answer must be fetched before the next."""
        channel = self._channel or self._start()
        # A worker that died meanwhile shows in its missing answer.
        with suppress(BrokenPipeError, ConnectionResetError):
            channel.send(question)

    def answer(self, patient: bool = False) -> Any:  # noqa: ANN401 - whatever the work returns
        """Wait for the answer; None when the worker died, ``fate`` says how.

        Args:
            patient: nothing ends the wait.
        """
        assert self._channel is not None
        try:
            while not self._channel.poll(_TICK):
                if not patient:
                    self._check()
            return self._channel.recv()
        except (EOFError, ConnectionResetError):
            self._bury()
            return None

    def _bury(self) -> None:
        assert self._process is not None
        self._process.join()
        code = self._process.exitcode or 0
        out_of_memory = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
        self.fate = f"signal {-code}{out_of_memory}" if code < 0 else f"exit code {code}"
        self.close()

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            # It has nothing to tidy up, and pays no heed to a milder signal.
            self._process.kill()
            self._process.join()
        self._channel = self._process = None


@contextmanager
def settled() -> Iterator[None]:
    """Until the end of the block, look for garbage seldom, and only among what is made in it.

    What was there before, dictionaries and modules, would be looked through for each few thousand documents.
    Whoever has set things aside already goes on as before: what is frozen can only be let go of all together.
    """
    frozen, often = gc.get_freeze_count() > _PYTHONS, gc.get_threshold()
    if not frozen:
        gc.freeze()
    _look_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*often)
        if not frozen:
            gc.unfreeze()


def _look_seldom() -> None:
    """Look for garbage once in as many objects as a few blocks are made of: hardly any is in cycles."""
    # Who has it looked for never means that.
    if often := gc.get_threshold()[0]:
        gc.set_threshold(max(_SELDOM, often))


def in_order(
    workers: Sequence[WorkerProcess],
    questions: Iterator[_Q],
    after_death: Callable[[WorkerProcess, _Q], _A],
    answer: Callable[[WorkerProcess], _A | None] = lambda worker: worker.answer(),
) -> Iterator[_A]:
    """Yield the answer to each question, in the order of the questions, each worker at one at a time.

    Args:
        after_death: answers a question that a worker died of.
        answer: fetches an answer; None when the worker died. All answers before are used by then.
    """
    waiting: deque[tuple[WorkerProcess, _Q]] = deque()
    free = deque(workers)
    while True:
        if free and (question := next(questions, None)) is not None:
            worker = free.popleft()
            worker.ask(question)
            waiting.append((worker, question))
        elif waiting:
            worker, question = waiting.popleft()
            ready: list[_A] = [answer(worker) or after_death(worker, question)]
            # The worker gets its next question before this answer is used: it works meanwhile.
            if (following := next(questions, None)) is not None:
                worker.ask(following)
                waiting.append((worker, following))
            # A long answer must not be kept here while it is used.
            del question
            yield ready.pop()
        else:
            return


def _serve(work: Callable[[Any], Any], channel: Connection, others: Connection) -> None:
    others.close()
    # What was there before the fork stays: looking it through for garbage would only copy its pages.
    gc.freeze()
    _look_seldom()
    # Ctrl-C reaches the whole process group, and so may SIGTERM; the parent decides what they mean.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            channel.send(work(channel.recv()))
