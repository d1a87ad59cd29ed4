"""Blocks through a pipeline in worker processes: order kept, memory flat, a crash costs one document.

Each worker has a pipe of its own and one block at a time. So it is always known which block a worker that
died had, and no more blocks are alive than there are workers.
"""

import gc
import multiprocessing
import os
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

from shinglefold.contracts import Document
from shinglefold.errors import ConfigError, InputError
from shinglefold.ingest.meter import Meter
from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline, encoded
from shinglefold.ingest.pipeline.step import Failure
from shinglefold.ingest.readers.decode import without_surrogates
from shinglefold.ingest.writing.interrupts import deferred

_Documents = list[Document]
#: Crashes in one block after which its other documents are given up instead of tried one by one.
_PATIENCE = 3
#: Seconds between looks at what asks the run to end.
_TICK = 0.2


def _go_on() -> None:
    """Ask nobody."""


class Answer(NamedTuple):
    """What became of each document of a block, and what it took."""

    outcomes: list[Outcome]
    meter: Meter


def process(pipeline: Pipeline, documents: Sequence[Document], as_json: bool = False) -> Answer:
    """Return what the pipeline makes of a block, the documents encoded where asked for."""
    meter = pipeline.meter
    clean = []
    for document in documents:
        value, replaced = without_surrogates(document)
        meter.counts["replaced"] += replaced
        clean.append(value)
    with meter.stage("pipeline"):
        outcomes = pipeline.run_block(clean)
    if as_json:
        with meter.stage("json"):
            outcomes = list(map(encoded, outcomes))
    return Answer(outcomes, meter.take())


def process_blocks(
    pipeline: Pipeline,
    blocks: Iterable[_Documents],
    workers: int,
    as_json: bool = False,
    check: Callable[[], None] = _go_on,
) -> Generator[Answer, None, None]:
    """Yield the answer to each block, in order.

    Args:
        workers: processes; 0 means one per core, 1 means none but this one.
        as_json: have the documents encoded by the workers.
        check: called while a worker is waited for; what it raises ends the run.

    Raises:
        ConfigError: ``workers`` is negative.
    """
    if workers < 0:
        raise ConfigError(f"workers {workers} must be 0 (one per core) or more")
    count = workers or _cores()
    if count == 1 or "fork" not in multiprocessing.get_all_start_methods():
        return (process(pipeline, block, as_json) for block in blocks)
    pipeline.tools.warm()
    return _in_processes(pipeline, iter(blocks), [_Worker(pipeline, as_json, check) for _ in range(count)])


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_processes(
    pipeline: Pipeline, blocks: Iterator[_Documents], workers: Sequence["_Worker"]
) -> Generator[Answer, None, None]:
    waiting: deque[tuple[_Worker, _Documents]] = deque()
    free = deque(workers)
    try:
        while True:
            if free and (block := next(blocks, None)) is not None:
                worker = free.popleft()
                worker.ask(block)
                waiting.append((worker, block))
            elif waiting:
                worker, block = waiting.popleft()
                answer = worker.answer() or _one_by_one(worker, block)
                # The worker gets its next block before this answer is used: it works meanwhile.
                if (following := next(blocks, None)) is not None:
                    worker.ask(following)
                    waiting.append((worker, following))
                yield answer
            else:
                _learn(pipeline, workers)
                return
    finally:
        for worker in workers:
            worker.close()


def _learn(pipeline: Pipeline, workers: Sequence["_Worker"]) -> None:
    """Take over the word forms the workers learned, so that they can be kept for the next run."""
    with tempfile.TemporaryDirectory() as folder:
        for number, worker in enumerate(workers):
            path = Path(folder) / str(number)
            if worker.save_lexicon(path):
                pipeline.tools.canonicalizer.lexicon.load(path)


def _one_by_one(worker: "_Worker", block: _Documents) -> Answer:
    """Return the answer to a block a worker died of: the guilty documents failed, the others as usual."""
    outcomes: list[Outcome] = []
    meter = Meter()
    crashes = 0
    for document in block:
        if crashes >= _PATIENCE:
            outcomes.append(_crashed(worker.fate))
            continue
        worker.ask([document])
        if (answer := worker.answer()) is None:
            crashes += 1
            outcomes.append(_crashed(worker.fate))
        else:
            outcomes += answer.outcomes
            meter.add(answer.meter)
    meter.counts["crashes"] += crashes
    return Answer(outcomes, meter)


def _crashed(fate: str) -> Outcome:
    return Outcome("failed", None, Failure("worker", None, f"the worker process died: {fate}"))


class _Worker:
    """A process that answers blocks; started when it is first asked, and again after it died."""

    def __init__(self, pipeline: Pipeline, as_json: bool, check: Callable[[], None]) -> None:
        self.fate = ""
        self._check = check
        self._as_json = as_json
        self._pipeline = pipeline
        self._process: BaseProcess | None = None
        self._channel: Connection | None = None

    def _start(self) -> Connection:
        # Forked, so that dictionaries and lexicon are shared and the pipeline needs no pickling.
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_serve, args=(self._pipeline, self._as_json, theirs, ours), daemon=True
        )
        # An exception in the middle of a fork would be lost, or leave a process that nobody knows.
        with deferred():
            process.start()
            self._process, self._channel = process, ours
        # Ours alone keep their end open: it closes with the process.
        theirs.close()
        return ours

    def ask(self, block: _Documents) -> None:
        """Send a block; its answer must be fetched before the next."""
        channel = self._channel or self._start()
        # A worker that died meanwhile shows in its missing answer.
        with suppress(BrokenPipeError, ConnectionResetError):
            channel.send(block)

    def answer(self) -> Answer | None:
        """Wait for the answer; None when the worker died, ``fate`` says how."""
        assert self._channel is not None
        try:
            while not self._channel.poll(_TICK):
                self._check()
            answer: Answer = self._channel.recv()
        except (EOFError, ConnectionResetError):
            self._bury()
            return None
        return answer

    def save_lexicon(self, path: Path) -> bool:
        """Have the process write its lexicon to a file; False when there is no process to ask."""
        if self._channel is None:
            return False
        with suppress(EOFError, BrokenPipeError, ConnectionResetError):
            self._channel.send(path)
            return bool(self._channel.recv())
        return False

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


def _serve(pipeline: Pipeline, as_json: bool, channel: Connection, others: Connection) -> None:
    others.close()
    # What was there before the fork stays: looking it through for garbage would only copy its pages.
    gc.freeze()
    # Ctrl-C reaches the whole process group, and so may SIGTERM; the parent decides what they mean.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            asked = channel.recv()
            if isinstance(asked, Path):
                channel.send(_saved(pipeline, asked))
            else:
                channel.send(process(pipeline, asked, as_json))


def _saved(pipeline: Pipeline, path: Path) -> bool:
    try:
        pipeline.tools.canonicalizer.lexicon.save(path)
    except InputError:
        return False
    return True
