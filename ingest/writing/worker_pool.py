"""Run blocks through a pipeline in worker processes: order kept, memory flat, a crash costs one document.

A worker does not send unchanged texts back: the process that sent the document still has them.
"""

import gc
import multiprocessing
import os
import signal
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from shinglefold.canon import Lexicon
from shinglefold.contracts.engine import Document
from shinglefold.contracts.exclusive_writes import PrepareDocuments
from shinglefold.errors import InputError
from shinglefold.ingest.fingerprinter import Meter
from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline, encode_document
from shinglefold.ingest.pipeline.steps import Failure
from shinglefold.ingest.readers.streams import without_surrogates
from shinglefold.options.validation import check_int
from shinglefold.runtime.signals import deferred

_Q = TypeVar("_Q")
_A = TypeVar("_A")
#: Seconds between looks at what asks the run to end.
_TICK = 0.2
#: Objects that hold others made since garbage was looked for last.
_SELDOM = 10_000
#: Objects that Python itself sets aside when it starts: 3.12 some hundred, 3.11 none.
_PYTHONS = 1_000


def no_check() -> None:
    """Ask nobody."""


class WorkerProcess:
    """A process that answers what it is asked; started when it is first asked, and again after it died.

    Args:
        work: what makes an answer; runs in the process.
        check: called while an answer is waited for; what it raises ends the wait.
    """

    def __init__(self, work: Callable[[Any], Any], check: Callable[[], None] = no_check) -> None:
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
def infrequent_gc() -> Iterator[None]:
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


def answers_in_order(
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


#: Characters from which on a text is spared; what stands for it is as heavy as a short one.
_WORTH = 200
_Documents = list[Document]
#: Crashes in one block after which its other documents are given up instead of tried one by one.
_PATIENCE = 3


class UnchangedText(NamedTuple):
    """Stands for the text of a field of the document that was asked about."""

    field: str


def elide_texts(outcome: Outcome, asked: Mapping[str, Any]) -> Outcome:
    """Return an outcome without the texts that its document was given.

    Args:
        asked: the document as it came; a text is the same where it is the very object.
    """
    same = {
        name: UnchangedText(name)
        for name, value in (outcome.document or {}).items()
        if type(value) is str and len(value) >= _WORTH and asked.get(name) is value
    }
    return _replaced(outcome, same, {asked[name]: one for name, one in same.items()}) if same else outcome


def restore_texts(outcome: Outcome, given: Mapping[str, Any] | None) -> Outcome:
    """Return an outcome with the texts of the document it was given."""
    same = {
        name: value.field for name, value in (outcome.document or {}).items() if type(value) is UnchangedText
    }
    if not same or given is None:
        return outcome
    texts = {name: given[field] for name, field in same.items()}
    return _replaced(outcome, texts, {UnchangedText(name): text for name, text in texts.items()})


def _replaced(outcome: Outcome, fields: Mapping[str, Any], texts: Mapping[Any, Any]) -> Outcome:
    """Return an outcome with other values in some fields, and other texts that its words are told by."""
    document, ready = {**(outcome.document or {}), **fields}, outcome.ready
    return outcome._replace(document=document, ready=ready and ready.of(texts))


class BlockAnswer(NamedTuple):
    """What became of each document of a block, and what it took."""

    outcomes: list[Outcome]
    meter: Meter


def process_block(
    pipeline: Pipeline,
    documents: _Documents,
    as_json: bool = False,
    make_ready: PrepareDocuments | None = None,
) -> BlockAnswer:
    """Return what the pipeline makes of a block, encoded or made ready for the engine where asked for."""
    meter = pipeline.meter
    with meter.stage("pipeline"):
        outcomes = pipeline.run_block(_clean(documents, meter))
    if make_ready is not None:
        with meter.stage("words"):
            outcomes = _made_ready(outcomes, make_ready)
    if as_json:
        with meter.stage("json"):
            outcomes = list(map(encode_document, outcomes))
    return BlockAnswer(outcomes, meter.take())


def _clean(documents: Iterable[Document], meter: Meter) -> Iterator[Document]:
    for document in documents:
        value, replaced = without_surrogates(document)
        meter.counts["replaced"] += replaced
        yield value


def _made_ready(outcomes: Sequence[Outcome], make_ready: PrepareDocuments) -> list[Outcome]:
    made = iter(make_ready([one.document for one in outcomes if one.document is not None]))
    return [one if one.document is None else one._replace(ready=next(made)) for one in outcomes]


def process_blocks(
    pipeline: Pipeline,
    blocks: Iterable[_Documents],
    workers: int,
    as_json: bool = False,
    check: Callable[[], None] = no_check,
    *,
    make_ready: PrepareDocuments | None = None,
) -> Generator[BlockAnswer, None, None]:
    """Yield the answer to each block, in order.

    Args:
        workers: processes; 0 means one per core, 1 means none but this one.
        as_json: have the documents encoded by the workers.
        check: called while a worker is waited for; what it raises ends the run.
        make_ready: makes of the documents what an engine wants of them.

    Raises:
        ConfigError: ``workers`` is negative.
    """
    check_int("workers (0 for one per core)", workers)
    count = workers or cores()
    if count == 1 or not forks():
        return _here(pipeline, blocks, as_json, make_ready)
    pipeline.tools.warm()
    return _in_processes(
        pipeline,
        iter(blocks),
        [WorkerProcess(partial(_work, pipeline, as_json, make_ready), check) for _ in range(count)],
    )


def _here(
    pipeline: Pipeline, blocks: Iterable[_Documents], as_json: bool, make_ready: PrepareDocuments | None
) -> Generator[BlockAnswer, None, None]:
    with infrequent_gc():
        for block in blocks:
            yield process_block(pipeline, block, as_json, make_ready)


def forks() -> bool:
    """Tell whether worker processes can be had here."""
    return "fork" in multiprocessing.get_all_start_methods()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_processes(
    pipeline: Pipeline, blocks: Iterator[_Documents], workers: Sequence[WorkerProcess]
) -> Generator[BlockAnswer, None, None]:
    try:
        with infrequent_gc():
            yield from answers_in_order(workers, blocks, _one_by_one)
        collect_lexicons(pipeline.tools.canonicalizer.lexicon, workers)
    finally:
        for worker in workers:
            worker.close()


def collect_lexicons(lexicon: Lexicon, workers: Sequence[WorkerProcess]) -> None:
    """Take over the word forms the workers learned, so that they can be kept for the next run."""
    with tempfile.TemporaryDirectory() as folder:
        asked = {Path(folder) / str(number): one for number, one in enumerate(workers) if one.started}
        for path, worker in asked.items():
            worker.ask(path)
        for path, worker in asked.items():
            if worker.answer(patient=True):
                lexicon.load(path)


def _one_by_one(worker: WorkerProcess, block: _Documents) -> BlockAnswer:
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
    return BlockAnswer(outcomes, meter)


def _crashed(fate: str) -> Outcome:
    return Outcome("failed", None, Failure("worker", None, f"the worker process died: {fate}"))


def _work(
    pipeline: Pipeline, as_json: bool, make_ready: PrepareDocuments | None, asked: _Documents | Path
) -> BlockAnswer | bool:
    """Answer a block, or save the lexicon to a file."""
    if isinstance(asked, Path):
        return save_lexicon(pipeline.tools.canonicalizer.lexicon, asked)
    if make_ready is None:
        return process_block(pipeline, asked, as_json)
    given: _Documents = list(map(dict, asked))
    answer = process_block(pipeline, asked, as_json, make_ready)
    return answer._replace(outcomes=list(map(elide_texts, answer.outcomes, given)))


def save_lexicon(lexicon: Lexicon, path: Path) -> bool:
    """Save a lexicon to a file, and tell whether that went well."""
    try:
        lexicon.save(path)
    except InputError:
        return False
    return True
