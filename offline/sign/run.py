"""Sign documents from file to file: workers make parts, the parent puts them together in order."""

import os
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from pathlib import Path
from time import perf_counter
from typing import IO, Any

from shinglefold.errors import InputError, OutputError, is_full, reason_of
from shinglefold.ingest.writing.dead_letters import DeadLetters
from shinglefold.ingest.writing.worker_pool import (
    WorkerProcess,
    answers_in_order,
    collect_lexicons,
    cores,
    forks,
    infrequent_gc,
    save_lexicon,
)
from shinglefold.offline.sign.accounting import Books, Signed, SignPace
from shinglefold.offline.sign.part_writer import OutputPosition, PartWriter, Question, line_by_line
from shinglefold.offline.sign.run_identity import AsFound
from shinglefold.offline.sign.run_journal import RunJournal
from shinglefold.offline.sign.signer import Signer, SignTally
from shinglefold.offline.sign.sinks import FileSink, Sink, StreamSink
from shinglefold.offline.sign.tasks import is_parquet, tasks
from shinglefold.runtime.signals import Interrupts

#: Bytes of sources from which on compiled code saves more than it takes to load, once for all workers; and
#: the tasks before that.
_LONG, _FIRST = 1 << 26, 4
_REMEDY = "look after the disk and its limits (ulimit -f)"


@dataclass(frozen=True, slots=True)
class SignJob:
    """What is to be signed, by whom, and into what.

    ``prefixes``: what the ids of pages begin with, by the place of their source. ``identity``: all that
    decides what is written, for the journal. ``target``: the file made, or an open stream. ``restart``: begin
    anew where a run was broken off.
    """

    sources: tuple[str, ...]
    signer: Signer
    target: Path | IO[bytes]
    identity: Mapping[str, Any] = field(default_factory=dict)
    prefixes: Mapping[int, str] = field(default_factory=dict)
    parquet: bool = False
    restart: bool = False
    workers: int = 0
    dead_letters: str | None = None


def sign(job: SignJob, progress: Callable[[SignPace], None] | None = None) -> Signed:
    """Sign all documents; Ctrl-C and SIGTERM end the run with a summary, and the next one goes on from there.

    Raises:
        InputError: a source can't be read, or changed meanwhile, or what is written can't be.
        ConfigError: what an earlier run left is of other sources or options, or tables do not make one.
    """
    start, found = perf_counter(), AsFound(job.sources)
    if any(map(is_parquet, job.sources)):
        from shinglefold.offline.sign.parquet import check_tables

        check_tables(job.sources, job.signer.options, as_parquet=job.parquet)
    with ExitStack() as stack:
        letters = stack.enter_context(closing(DeadLetters(job.dead_letters)))
        letters.check()
        books, interrupts = Books(letters), Interrupts()
        sink, journal, folder = _opened(job, interrupts, stack)
        if journal is not None and (state := journal.open(job.restart)) is not None:
            books.take_over(state)
            sink.resume(state)
        else:
            sink.resume(None)
        stack.enter_context(interrupts)
        run = _Signing(job, found, books, sink, journal, folder, interrupts, progress)
        stopped = run.all_tasks()
        if not stopped and books.signed:
            stopped = run.finish()
        elif not stopped:
            sink.discard()
    target = job.target if isinstance(job.target, Path) else None
    return books.summary(target, job.signer.tools.scheme.id, stopped, perf_counter() - start)


def _opened(job: SignJob, interrupts: Interrupts, stack: ExitStack) -> tuple[Sink, RunJournal | None, Path]:
    if not isinstance(job.target, Path):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shinglefold-")))
        return StreamSink(job.target, interrupts), None, folder
    journal = stack.enter_context(closing(RunJournal(job.target, job.identity)))
    if job.parquet:
        from shinglefold.offline.sign.parquet import ParquetSink

        return ParquetSink(journal), journal, journal.folder
    return FileSink(journal), journal, journal.folder


@dataclass(frozen=True, slots=True)
class _Signing:
    job: SignJob
    found: AsFound
    books: Books
    sink: Sink
    journal: RunJournal | None
    folder: Path
    interrupts: Interrupts
    progress: Callable[[SignPace], None] | None

    def all_tasks(self) -> str:
        """Take all tasks through the workers; return what ended that early, or nothing."""
        stopped = ""
        try:
            with closing(self._answers()) as answers:
                self._take_all(answers)
        except KeyboardInterrupt as error:
            stopped = str(error) or "interrupted"
        except OutputError as error:
            stopped = str(error)
        try:
            # What was half taken is cut off first, which makes room for a note where there was none.
            self._note()
        except OutputError as error:
            return stopped or str(error)
        return stopped

    def _take_all(self, answers: Iterator[tuple[Question, SignTally]]) -> None:
        start, already, since = perf_counter(), self.books.resumed, None
        for question, tally in answers:
            self.interrupts.check()
            if tally.unwritten:
                raise self._unwritten(OSError(tally.unwritten, os.strerror(tally.unwritten)))
            if tally.problem:
                raise InputError(tally.problem)
            since = question.task.fraction if since is None else since
            with self.books.letters.all_or_none():
                self.books.keep(question.task, tally)
                with self._written():
                    self.sink.take(Path(question.path), tally)
            self.books.book(question.task, tally)
            if self.journal is not None and self.journal.due:
                self.found.check_files()
                self._note()
            if self.progress is not None:
                self.progress(self.books.pace(question.task, since, already, perf_counter() - start))
        self.interrupts.check()
        self.found.check()

    def finish(self) -> str:
        """Let the whole be seen; return why it can't be, as without room for it beside its parts."""
        try:
            with self._written():
                self.sink.finish()
        except OutputError as error:
            return str(error)
        return ""

    def _note(self) -> None:
        if self.journal is not None:
            with self._written():
                self.journal.note(self.books.state(self.sink.sync()))

    def _unwritten(self, error: OSError) -> OutputError:
        """Return the error of a part that could not be written."""
        if self.journal is not None:
            return OutputError.of(self._target, error, _REMEDY)
        cause = "the disk is full; make room" if is_full(error) else f"{reason_of(error)}; {_REMEDY}"
        return OutputError(
            f"cannot write temporary files to {self.folder.parent}: {cause}, or set TMPDIR to a folder on "
            "another disk"
        )

    @property
    def _target(self) -> str:
        return str(self.job.target) if isinstance(self.job.target, Path) else "standard output"

    @contextmanager
    def _written(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            remedy = "check the path" if isinstance(self.job.target, Path) else "name a file with -o"
            raise OutputError.of(self._target, error, remedy) from error

    def _questions(self) -> Iterator[Question]:
        found = tasks(self.job.sources, self.job.signer.options.reading, dict(self.job.prefixes))
        done = self.books.tasks
        left = islice(found, done, None)
        for number in count(done):
            with self.interrupts.breakable():
                task = next(left, None)
            if task is None:
                return
            yield Question(
                task,
                str(self.folder / f"part-{number:08}{self.sink.suffix}"),
                hold=self.sink.place is not None,
                sample=number == done,
            )

    def _answers(self) -> Generator[tuple[Question, SignTally], None, None]:
        asked: deque[Question] = deque()
        for tally in self._tallies(_noting(self._questions(), asked)):
            yield asked.popleft(), tally

    def _tallies(self, questions: Iterator[Question]) -> Generator[SignTally, None, None]:
        make = PartWriter(self.job.signer, self.job.parquet)
        processes, tools = self.job.workers or cores(), self.job.signer.tools
        if processes == 1 or not forks():
            answers = partial(self._by_itself, make)
        else:
            tools.warm()
            answers = partial(self._by_workers, make, processes)
        if _known_size(self.job.sources) > _LONG:
            # The first documents are out before code is loaded, which the workers after them share.
            yield from answers(islice(questions, _FIRST))
            tools.fingerprinter.compile()
            if quick := self.job.signer.quick():
                quick.warm()
        yield from answers(questions)

    def _by_itself(self, make: PartWriter, questions: Iterator[Question]) -> Generator[SignTally, None, None]:
        """Yield the answers of this process."""
        with infrequent_gc():
            for question in questions:
                tally = make(question)
                yield make(self._place) if tally.held else tally

    def _by_workers(
        self, make: PartWriter, processes: int, questions: Iterator[Question]
    ) -> Generator[SignTally, None, None]:
        """Yield the answers of workers that are forked for them, and learn what they learned."""
        alone = partial(line_by_line, self.job.signer.options, self.job.parquet)
        workers = [WorkerProcess(partial(_work, make), self.interrupts.check) for _ in range(processes)]
        try:
            yield from answers_in_order(workers, questions, alone, self._answer)
            collect_lexicons(self.job.signer.tools.canonicalizer.lexicon, workers)
        finally:
            for worker in workers:
                worker.close()

    def _answer(self, worker: WorkerProcess) -> SignTally | None:
        """Return a worker's answer once its part is written; None where it died before."""
        tally: SignTally | None = worker.answer()
        if tally is None or not tally.held:
            return tally
        # All parts before this one are taken: the output ends where it begins.
        worker.ask(self._place)
        placed: SignTally | None = worker.answer()
        return placed

    @property
    def _place(self) -> OutputPosition:
        place = self.sink.place
        assert place is not None
        return place


def _noting(questions: Iterator[Question], asked: deque[Question]) -> Iterator[Question]:
    """Yield questions and note which; what was asked need not come back with its answer."""
    for question in questions:
        asked.append(question)
        yield question


def _known_size(sources: Sequence[str]) -> int:
    """Return the bytes of the sources that are files."""
    return sum(Path(source).stat().st_size for source in sources if Path(source).is_file())


def _work(make: PartWriter, asked: Question | OutputPosition | Path) -> SignTally | bool:
    """Answer a question, or save the lexicon to a file."""
    if isinstance(asked, Path):
        return save_lexicon(make.signer.tools.canonicalizer.lexicon, asked)
    return make(asked)
