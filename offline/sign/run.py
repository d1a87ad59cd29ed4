"""Sign documents from file to file: workers write parts, the parent joins them in order."""

import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import count, islice, tee
from pathlib import Path
from time import perf_counter
from typing import IO, Any

from shinglefold.errors import InputError, OutputError, is_full, reason_of
from shinglefold.ingest.fingerprinter import Meter
from shinglefold.ingest.writing.accounting import Failed
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
from shinglefold.offline.sign.part_writer import (
    FileSink,
    OutputPosition,
    ParquetSink,
    PartTask,
    PartWriter,
    Sink,
    StreamSink,
    line_by_line,
)
from shinglefold.offline.sign.run_journal import RunJournal, SourceStates, State
from shinglefold.offline.sign.signer import Signer, SignTally
from shinglefold.offline.sign.tasks import Task, is_parquet, known_size, tasks
from shinglefold.runtime.signals import Interrupts

_REASONS = 20


@dataclass(frozen=True, slots=True)
class Signed:
    """The summary of a run: ``read == signed + failed``.

    ``resumed``: documents read by earlier runs. ``seconds``: ``total`` is wall time; stages are summed over
    the workers. ``failures``: the first document of each common reason. ``stopped``: why the run ended early.
    ``present``: fields that some document has; ``sample``: a few documents.
    """

    target: str
    scheme: str
    read: int
    signed: int
    failed: int
    resumed: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[Failed, ...] = ()
    dead_letters: str = ""
    stopped: str = ""
    present: frozenset[str] = frozenset()
    sample: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON, seconds to the millisecond."""
        told = {name: value for name, value in asdict(self).items() if name not in ("present", "sample")}
        return {**told, "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()}}


@dataclass(slots=True)
class RunStats:
    """Counts of all documents, over all runs of one output.

    ``fraction``: the share of the sources that was read. ``resumed``: documents read by earlier runs.
    """

    letters: DeadLetters
    signed: int = 0
    failed: int = 0
    tasks: int = 0
    fraction: float = 0.0
    #: The current source, and its lines so far.
    source: str = ""
    lines: int = 0
    resumed: int = 0
    meter: Meter = field(default_factory=Meter)
    present: set[str] = field(default_factory=set)
    sample: tuple[Mapping[str, Any], ...] = ()

    def take_over(self, state: State) -> None:
        """Take over the counts of an earlier run from its last journal entry."""
        self.signed, self.failed, self.tasks = state["signed"], state["failed"], state["tasks"]
        self.source, self.lines = state["source"], state["lines"]
        self.meter.counts.update(state["counts"])
        self.meter.languages.update(state["languages"])
        self.present.update(state["present"])
        self.letters.reasons.update(state["reasons"])
        self.resumed = self.signed + self.failed

    def state(self, size: int) -> State:
        """Return the counts as an entry of the journal."""
        return {
            "tasks": self.tasks,
            "bytes": size,
            "signed": self.signed,
            "failed": self.failed,
            "source": self.source,
            "lines": self.lines,
            "counts": dict(self.meter.counts),
            "languages": dict(self.meter.languages),
            "present": sorted(self.present),
            "reasons": dict(self.letters.reasons.most_common(_REASONS)),
        }

    def keep(self, task: Task, tally: SignTally) -> None:
        """Write the failed documents of a task to the dead letters."""
        before = self.lines if task.source == self.source else 0
        for stage, reason, record in tally.refused:
            self.letters.write(stage, reason, replace(record, line=record.line + before))

    def count(self, task: Task, tally: SignTally) -> None:
        """Count the documents of a task."""
        if task.source != self.source:
            self.source, self.lines = task.source, 0
        self.lines += tally.lines
        self.signed += tally.signed
        self.failed += len(tally.refused)
        self.tasks += 1
        self.fraction = task.fraction
        self.meter.add(tally.meter)
        self.present |= tally.present
        self.sample = self.sample or tuple(tally.sample)

    def summary(self, target: Path | None, scheme: str, stopped: str, total: float) -> Signed:
        """Return the summary of the run."""
        letters = self.letters
        return Signed(
            target=str(target) if target is not None else "-",
            scheme=scheme,
            read=self.signed + self.failed,
            signed=self.signed,
            failed=self.failed,
            resumed=self.resumed,
            seconds={**self.meter.seconds, "total": total},
            languages=dict(self.meter.languages.most_common()),
            counts={name: count for name, count in sorted(self.meter.counts.items()) if count},
            reasons=dict(letters.reasons.most_common()),
            failures=tuple(
                Failed(reason, *letters.first[reason])
                for reason, _ in letters.reasons.most_common(_REASONS)
                if reason in letters.first
            ),
            dead_letters=str(letters.path) if letters.kept else "",
            stopped=stopped,
            present=frozenset(self.present),
            sample=self.sample,
        )


#: For sources of more bytes, compiled code saves more time than it takes to load. It is loaded after this
#: many tasks, so that the first documents are written at once.
_LONG, _FIRST = 1 << 26, 4
_REMEDY = "look after the disk and its limits (ulimit -f)"


@dataclass(frozen=True, slots=True)
class SignJob:
    """Sources, signer and target of a run.

    ``target``: a file, or an open stream. ``identity``: see ``run_journal.identity``. ``prefixes``: prefixes
    of the ids of pages, by the number of their source. ``restart``: discard the output of an earlier run.
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


def sign(job: SignJob, progress: Callable[[RunStats], None] | None = None) -> Signed:
    """Sign all documents; Ctrl-C and SIGTERM end the run with a summary, and the next run resumes it.

    Raises:
        InputError: a source can't be read, or changed during the run.
        ConfigError: the journal is of other sources or options, or tables of different columns are joined.
    """
    start, found = perf_counter(), SourceStates(job.sources)
    if any(map(is_parquet, job.sources)):
        from shinglefold.offline.sign.parquet import check_tables

        check_tables(job.sources, job.signer.options, as_parquet=job.parquet)
    with ExitStack() as stack:
        letters = stack.enter_context(closing(DeadLetters(job.dead_letters)))
        letters.check()
        stats, interrupts = RunStats(letters), Interrupts()
        sink, journal, folder = _open_sink(job, interrupts, stack)
        state = journal.open(job.restart) if journal is not None else None
        if state is not None:
            stats.take_over(state)
        sink.resume(state)
        stack.enter_context(interrupts)
        run = _Signing(job, found, stats, sink, journal, folder, interrupts, progress)
        stopped = run.all_tasks()
        if not stopped and stats.signed:
            stopped = run.finish()
        elif not stopped:
            sink.discard()
    target = job.target if isinstance(job.target, Path) else None
    return stats.summary(target, job.signer.tools.scheme.id, stopped, perf_counter() - start)


def _open_sink(
    job: SignJob, interrupts: Interrupts, stack: ExitStack
) -> tuple[Sink, RunJournal | None, Path]:
    if not isinstance(job.target, Path):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shinglefold-")))
        return StreamSink(job.target, interrupts), None, folder
    journal = stack.enter_context(closing(RunJournal(job.target, job.identity)))
    if job.parquet:
        return ParquetSink(journal), journal, journal.folder
    return FileSink(journal), journal, journal.folder


@dataclass(frozen=True, slots=True)
class _Signing:
    job: SignJob
    found: SourceStates
    stats: RunStats
    sink: Sink
    journal: RunJournal | None
    folder: Path
    interrupts: Interrupts
    progress: Callable[[RunStats], None] | None

    def all_tasks(self) -> str:
        """Sign all tasks; return why the run was stopped early, else an empty string."""
        stopped = ""
        try:
            with closing(self._tallies_by_task()) as answers:
                self._take_all(answers)
        except KeyboardInterrupt as error:
            stopped = str(error) or "interrupted"
        except OutputError as error:
            stopped = str(error)
        try:
            # Syncing first cuts off an incomplete part, which may make room for the entry on a full disk.
            self._note()
        except OutputError as error:
            return stopped or str(error)
        return stopped

    def _take_all(self, answers: Iterator[tuple[PartTask, SignTally]]) -> None:
        for request, tally in answers:
            self.interrupts.check()
            if tally.unwritten:
                raise self._unwritten(OSError(tally.unwritten, os.strerror(tally.unwritten)))
            if tally.problem:
                raise InputError(tally.problem)
            with self.stats.letters.all_or_none():
                self.stats.keep(request.task, tally)
                with self._translate_write_errors():
                    self.sink.take(Path(request.path), tally)
            self.stats.count(request.task, tally)
            if self.journal is not None and self.journal.due:
                self.found.check(folders=False)
                self._note()
            if self.progress is not None:
                self.progress(self.stats)
        self.interrupts.check()
        self.found.check()

    def finish(self) -> str:
        """Publish the output; return why that failed, else an empty string."""
        try:
            with self._translate_write_errors():
                self.sink.finish()
        except OutputError as error:
            return str(error)
        return ""

    def _note(self) -> None:
        if self.journal is not None:
            with self._translate_write_errors():
                self.journal.note(self.stats.state(self.sink.sync()))

    def _unwritten(self, error: OSError) -> OutputError:
        """Return the error for a part that could not be written."""
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
    def _translate_write_errors(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            remedy = "check the path" if isinstance(self.job.target, Path) else "name a file with -o"
            raise OutputError.of(self._target, error, remedy) from error

    def _requests(self) -> Iterator[PartTask]:
        found = tasks(self.job.sources, self.job.signer.options.reading, dict(self.job.prefixes))
        done = self.stats.tasks
        left = islice(found, done, None)
        for number in count(done):
            with self.interrupts.breakable():
                task = next(left, None)
            if task is None:
                return
            yield PartTask(
                task,
                str(self.folder / f"part-{number:08}{self.sink.suffix}"),
                hold=self.sink.place is not None,
                sample=number == done,
            )

    def _tallies_by_task(self) -> Generator[tuple[PartTask, SignTally], None, None]:
        # Workers return tallies without their tasks.
        requests, again = tee(self._requests())
        for tally in self._tallies(requests):
            yield next(again), tally

    def _tallies(self, requests: Iterator[PartTask]) -> Generator[SignTally, None, None]:
        make = PartWriter(self.job.signer, self.job.parquet)
        processes, tools = self.job.workers or cores(), self.job.signer.tools
        if processes == 1 or not forks():
            answers = partial(self._alone, make)
        else:
            tools.warm()
            answers = partial(self._by_workers, make, processes)
        if known_size(self.job.sources) > _LONG:
            # Code loaded in the parent is shared by the workers that are forked afterwards.
            yield from answers(islice(requests, _FIRST))
            tools.fingerprinter.compile()
            if fast := self.job.signer.fast_path():
                fast.warm()
        yield from answers(requests)

    def _alone(self, make: PartWriter, requests: Iterator[PartTask]) -> Generator[SignTally, None, None]:
        """Yield the tallies of parts made in this process."""
        with infrequent_gc():
            for request in requests:
                tally = make(request)
                yield make(self._place) if tally.held else tally

    def _by_workers(
        self, make: PartWriter, processes: int, requests: Iterator[PartTask]
    ) -> Generator[SignTally, None, None]:
        """Yield the tallies of forked workers, and add their words to the lexicon."""
        alone = partial(line_by_line, self.job.signer.options, self.job.parquet)
        workers = [WorkerProcess(partial(_work, make), self.interrupts.check) for _ in range(processes)]
        try:
            yield from answers_in_order(workers, requests, alone, self._tally_of)
            collect_lexicons(self.job.signer.tools.canonicalizer.lexicon, workers)
        finally:
            for worker in workers:
                worker.close()

    def _tally_of(self, worker: WorkerProcess) -> SignTally | None:
        """Wait until a worker's part is written, and return its tally; None if the worker died before."""
        tally: SignTally | None = worker.answer()
        if tally is None or not tally.held:
            return tally
        # All parts before this one are taken, so its position is known.
        worker.ask(self._place)
        placed: SignTally | None = worker.answer()
        return placed

    @property
    def _place(self) -> OutputPosition:
        place = self.sink.place
        assert place is not None
        return place


def _work(make: PartWriter, request: PartTask | OutputPosition | Path) -> SignTally | bool:
    """Make or write a part, or save the lexicon to a file."""
    if isinstance(request, Path):
        return save_lexicon(make.signer.tools.canonicalizer.lexicon, request)
    return make(request)
