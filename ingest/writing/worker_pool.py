"""Run blocks of documents through a pipeline in worker processes.

Results come in order, memory stays flat, and a crash of a worker costs one document. Each worker has a pipe
of its own and one request at a time, so that the parent knows which request a dead worker had.

The way of a document:

1. The parent sends a block of documents.
2. The worker runs the pipeline. ``prepare_documents`` lets the embedded engine prepare each document for its
   index writer.
3. The worker replaces unchanged texts by ``UnchangedText`` and sends the outcomes back.
4. The parent, which still has the documents, restores those texts.
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

from shinglefold.canon.lexicon import Lexicon
from shinglefold.contracts.engine import Document
from shinglefold.contracts.exclusive_writes import PrepareDocuments
from shinglefold.errors import InputError
from shinglefold.ingest.fingerprinter import Meter
from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline, encode_document
from shinglefold.ingest.pipeline.steps import Failure
from shinglefold.ingest.readers.record import without_surrogates
from shinglefold.options.validation import check_workers
from shinglefold.runtime.signals import defer_interrupts

_Q = TypeVar("_Q")
_A = TypeVar("_A")
#: The number of SIGKILL, a signal that Windows lacks.
_SIGKILL = 9
#: Seconds between checks for interrupts.
_TICK = 0.2
#: Container objects allocated between two garbage collections.
_GC_THRESHOLD = 10_000
#: How many workers the requests of one call may kill before the others are given up.
MOST_DEATHS = 3
#: Objects that Python itself freezes at start: some hundred in 3.12, none in 3.11.
_FROZEN_AT_START = 1_000
#: Texts of at least this many characters are elided; a placeholder takes as much space as a short text.
_ELIDED_LENGTH = 200
_Documents = list[Document]


class WorkerProcess:
    """A process that answers requests; it starts with the first request, and again after it died.

    Args:
        work: computes an answer, in the process.
        check: called while waiting for an answer; an exception ends the wait.
    """

    def __init__(self, work: Callable[[Any], Any], check: Callable[[], None] = lambda: None) -> None:
        #: How the last process died.
        self.exit_reason = ""
        self._work = work
        self._check = check
        self._process: BaseProcess | None = None
        self._channel: Connection | None = None

    @property
    def started(self) -> bool:
        """Whether the process was started."""
        return self._channel is not None

    def _start(self) -> Connection:
        # Forked, so that dictionaries and lexicon are shared and the work needs no pickling.
        # ARCHITECTURE.md explains why this is safe with threads.
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(self._work, theirs, ours), daemon=True)
        # A signal handler's exception during the fork would be lost, or leave an unknown process.
        with defer_interrupts():
            process.start()
            self._process, self._channel = process, ours
        # Only the child keeps its end of the pipe open, so that the pipe closes when the child dies.
        theirs.close()
        return ours

    def ask(self, question: object) -> None:
        """Send a request. Fetch its answer before you send the next one."""
        channel = self._channel or self._start()
        # If the worker is dead, ``answer`` reports it.
        with suppress(BrokenPipeError, ConnectionResetError):
            channel.send(question)

    def answer(self, uninterruptible: bool = False) -> Any:  # noqa: ANN401 - whatever the work returns
        """Wait for the answer; return None if the worker died, see ``exit_reason``.

        Args:
            uninterruptible: do not call ``check``.
        """
        assert self._channel is not None
        try:
            while not self._channel.poll(_TICK):
                if not uninterruptible:
                    self._check()
            return self._channel.recv()
        except (EOFError, ConnectionResetError):
            self._reap()
            return None

    def _reap(self) -> None:
        assert self._process is not None
        self._process.join()
        code = self._process.exitcode or 0
        out_of_memory = ", perhaps out of memory" if code == -_SIGKILL else ""
        self.exit_reason = f"signal {-code}{out_of_memory}" if code < 0 else f"exit code {code}"
        self.close()

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            # The process has nothing to clean up, and ignores SIGTERM.
            self._process.kill()
            self._process.join()
        self._channel = self._process = None


@contextmanager
def infrequent_gc() -> Iterator[None]:
    """Collect garbage rarely in the block, and only among objects created in it.

    Dictionaries and modules would otherwise be traversed every few thousand documents. If objects are frozen
    already, nothing is frozen or unfrozen here, as ``gc.unfreeze`` unfreezes all objects.
    """
    frozen, thresholds = gc.get_freeze_count() > _FROZEN_AT_START, gc.get_threshold()
    if not frozen:
        gc.freeze()
    _raise_gc_threshold()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        if not frozen:
            gc.unfreeze()


def _raise_gc_threshold() -> None:
    """Collect garbage once per few blocks of documents, because hardly any of it is in cycles."""
    # A threshold of 0 means that collection is switched off.
    if threshold := gc.get_threshold()[0]:
        gc.set_threshold(max(_GC_THRESHOLD, threshold))


def keep_loaded() -> None:
    """Collect garbage rarely, and only among new objects, in a process that only answers requests.

    Objects from before a fork stay alive, and traversing them would only copy their memory pages.
    """
    gc.freeze()
    _raise_gc_threshold()


def answers_one_by_one(worker: WorkerProcess, requests: Iterable[object]) -> Iterator[Any]:
    """Yield the answer to each request, None if the worker died of it.

    After ``MOST_DEATHS`` deaths no more requests are sent, and all answers are None.
    """
    deaths = 0
    for request in requests:
        answer = None
        if deaths < MOST_DEATHS:
            worker.ask(request)
            answer = worker.answer()
            deaths += answer is None
        yield answer


def answers_in_order(
    workers: Sequence[WorkerProcess],
    questions: Iterator[_Q],
    after_death: Callable[[WorkerProcess, _Q], _A],
    answer: Callable[[WorkerProcess], _A | None] = lambda worker: worker.answer(),
) -> Iterator[_A]:
    """Yield the answers in the order of the requests; each worker has one request at a time.

    Args:
        questions: the requests.
        after_death: answers a request whose worker died.
        answer: fetches an answer, None if the worker died; called after all earlier answers were consumed.
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
            # The worker gets its next request before this answer is consumed, so that it is never idle.
            if (following := next(questions, None)) is not None:
                worker.ask(following)
                waiting.append((worker, following))
            # Do not hold a long answer while the caller processes it.
            del question
            yield ready.pop()
        else:
            return


def _serve(work: Callable[[Any], Any], channel: Connection, others: Connection) -> None:
    others.close()
    keep_loaded()
    # Ctrl-C reaches the whole process group, and SIGTERM may; the parent handles both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            channel.send(work(channel.recv()))


class UnchangedText(NamedTuple):
    """A placeholder for a text that equals a field of the document that the parent sent."""

    field: str


def elide_texts(outcome: Outcome, document: Mapping[str, Any]) -> Outcome:
    """Return an outcome with placeholders for unchanged long texts.

    Args:
        document: the document that the parent sent; texts are compared by ``is``.
    """
    same = {
        name: UnchangedText(name)
        for name, value in (outcome.document or {}).items()
        if type(value) is str and len(value) >= _ELIDED_LENGTH and document.get(name) is value
    }
    return (
        _replace_fields(outcome, same, {document[name]: one for name, one in same.items()})
        if same
        else outcome
    )


def restore_texts(outcome: Outcome, document: Mapping[str, Any] | None) -> Outcome:
    """Return an outcome with the texts of the original document instead of placeholders."""
    same = {
        name: value.field for name, value in (outcome.document or {}).items() if type(value) is UnchangedText
    }
    if not same or document is None:
        return outcome
    texts = {name: document[field] for name, field in same.items()}
    return _replace_fields(outcome, texts, {UnchangedText(name): text for name, text in texts.items()})


def _replace_fields(outcome: Outcome, fields: Mapping[str, Any], texts: Mapping[Any, Any]) -> Outcome:
    """Return an outcome with new values in ``fields``, and with the prepared document adapted to them."""
    document, prepared = {**(outcome.document or {}), **fields}, outcome.prepared
    return outcome._replace(document=document, prepared=prepared and prepared.of(texts))


class BlockAnswer(NamedTuple):
    """The outcome of each document of a block, and the counters."""

    outcomes: list[Outcome]
    meter: Meter


def process_block(
    pipeline: Pipeline,
    documents: _Documents,
    as_json: bool = False,
    prepare_documents: PrepareDocuments | None = None,
) -> BlockAnswer:
    """Run the pipeline on a block; optionally encode the documents and prepare them for the engine."""
    meter = pipeline.meter
    with meter.stage("pipeline"):
        outcomes = pipeline.run_block(_without_surrogates(documents, meter))
    if prepare_documents is not None:
        with meter.stage("words"):
            outcomes = _with_prepared(outcomes, prepare_documents)
    if as_json:
        with meter.stage("json"):
            outcomes = list(map(encode_document, outcomes))
    return BlockAnswer(outcomes, meter.take())


def _without_surrogates(documents: Iterable[Document], meter: Meter) -> Iterator[Document]:
    for document in documents:
        value, replaced = without_surrogates(document)
        meter.counts["replaced"] += replaced
        yield value


def _with_prepared(outcomes: Sequence[Outcome], prepare_documents: PrepareDocuments) -> list[Outcome]:
    prepared = iter(prepare_documents([one.document for one in outcomes if one.document is not None]))
    return [one if one.document is None else one._replace(prepared=next(prepared)) for one in outcomes]


def process_blocks(
    pipeline: Pipeline,
    blocks: Iterable[_Documents],
    workers: int,
    as_json: bool = False,
    check: Callable[[], None] = lambda: None,
    *,
    prepare_documents: PrepareDocuments | None = None,
) -> Generator[BlockAnswer, None, None]:
    """Yield the answer to each block, in order.

    Args:
        workers: processes; 0 for one per core, 1 for the current process alone.
        as_json: encode documents as JSON in the workers.
        check: called while waiting for a worker; an exception ends the run.
        prepare_documents: prepares documents for the engine.

    Raises:
        ConfigError: ``workers`` is negative, or above 1024.
    """
    check_workers("workers (0 for one per core)", workers)
    count = workers or cores()
    if count == 1 or not forks():
        return _in_this_process(pipeline, blocks, as_json, prepare_documents)
    pipeline.tools.warm()
    return _in_processes(
        pipeline,
        iter(blocks),
        [WorkerProcess(partial(_work, pipeline, as_json, prepare_documents), check) for _ in range(count)],
    )


def _in_this_process(
    pipeline: Pipeline,
    blocks: Iterable[_Documents],
    as_json: bool,
    prepare_documents: PrepareDocuments | None,
) -> Generator[BlockAnswer, None, None]:
    with infrequent_gc():
        for block in blocks:
            yield process_block(pipeline, block, as_json, prepare_documents)


def forks() -> bool:
    """Return whether this platform can fork worker processes."""
    return "fork" in multiprocessing.get_all_start_methods()


def cores() -> int:
    """Return the number of cores that this process may use."""
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
    """Merge the word forms that the workers learned into the lexicon."""
    with tempfile.TemporaryDirectory() as folder:
        workers_by_path = {
            Path(folder) / str(number): one for number, one in enumerate(workers) if one.started
        }
        for path, worker in workers_by_path.items():
            worker.ask(path)
        for path, worker in workers_by_path.items():
            if worker.answer(uninterruptible=True):
                lexicon.load(path)


def _one_by_one(worker: WorkerProcess, block: _Documents) -> BlockAnswer:
    """Answer a block that killed a worker: documents that kill it again fail, the others are processed."""
    outcomes: list[Outcome] = []
    meter = Meter()
    crashes = 0
    for answer in answers_one_by_one(worker, ([document] for document in block)):
        if answer is None:
            crashes += 1
            outcomes.append(_crash_outcome(worker.exit_reason))
        else:
            outcomes += answer.outcomes
            meter.add(answer.meter)
    meter.counts["crashes"] += min(crashes, MOST_DEATHS)
    return BlockAnswer(outcomes, meter)


def _crash_outcome(exit_reason: str) -> Outcome:
    return Outcome("failed", None, Failure("worker", None, f"the worker process died: {exit_reason}"))


def _work(
    pipeline: Pipeline, as_json: bool, prepare_documents: PrepareDocuments | None, question: _Documents | Path
) -> BlockAnswer | bool:
    """Process a block, or save the lexicon to a file."""
    if isinstance(question, Path):
        return save_lexicon(pipeline.tools.canonicalizer.lexicon, question)
    if prepare_documents is None:
        return process_block(pipeline, question, as_json)
    originals: _Documents = list(map(dict, question))
    answer = process_block(pipeline, question, as_json, prepare_documents)
    return answer._replace(outcomes=list(map(elide_texts, answer.outcomes, originals)))


def save_lexicon(lexicon: Lexicon, path: Path) -> bool:
    """Save a lexicon to a file, and return whether that succeeded."""
    try:
        lexicon.save(path)
    except InputError:
        return False
    return True
