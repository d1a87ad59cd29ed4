"""Collects fingerprints into a table: makes them from texts, or reads those that ``sign`` wrote."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from shinglefold.errors import ConfigError, InputError, SchemeMismatch, suggest
from shinglefold.ingest.field_statistics import FieldWatch
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.ingest.writing.worker_pool import (
    WorkerProcess,
    answers_in_order,
    answers_one_by_one,
    cores,
    forks,
    infrequent_gc,
)
from shinglefold.model.scheme import PRESETS
from shinglefold.offline.dedupe.decode import TaskAnswer
from shinglefold.offline.dedupe.fingerprint_table import FingerprintTable
from shinglefold.offline.dedupe.read_signed import is_signed
from shinglefold.offline.sign.tasks import LineRange, RowGroup, Task, is_parquet, is_repeatable, read_lines
from shinglefold.registry import make_scheme
from shinglefold.runtime.signals import Interrupts


def are_signed(sources: Sequence[str], field: str, options: ReadOptions) -> bool:
    """Return whether sources hold fingerprints, by the first document of each that can be read twice.

    Raises:
        ConfigError: only some do, or a Parquet file does not.
    """
    found: dict[str, bool | None] = {}
    for source in sources:
        # A missing Parquet file raises its own error.
        if is_repeatable(source) or (is_parquet(source) and not Path(source).exists()):
            found[source] = is_signed(source, field, options)
    signed = [source for source in sources if found.get(source)]
    # A file without documents may be of either kind.
    other = [source for source in sources if found.get(source, False) is False]
    bare = [source for source in other if is_parquet(source)]
    if bare:
        raise ConfigError(
            f"{bare[0]} holds no fingerprints in [{field}]: make a file with "
            f"{suggest('sign', bare[0], output='signed.parquet')}, and give that"
        )
    if signed and other:
        raise ConfigError(
            f"{signed[0]} is signed and {other[0]} is not: sign that, too, or add --texts, which makes all "
            "fingerprints anew"
        )
    return bool(signed) or (not other and any(map(is_parquet, sources)))


class TaskReader(Protocol):
    """Returns the fingerprints of tasks."""

    options: ReadOptions

    def __call__(self, task: Task) -> TaskAnswer:
        """Return the fingerprints of one task."""
        ...


def collect(  # noqa: PLR0917 - what it reads, by what, and into what
    tasks: Iterable[Task],
    reader: TaskReader,
    table: FingerprintTable,
    workers: int,
    progress: Callable[[float], None],
    watch: FieldWatch | None = None,
) -> None:
    """Add the fingerprints of all tasks to a table.

    Args:
        workers: processes; 0 means one per core.
        progress: called with the share of the sources that was read.
        watch: called with the fields that documents have.

    Raises:
        InputError: a source can't be read.
        SchemeMismatch: a fingerprint is of another scheme.
    """
    source, lines = "", 0
    with Interrupts() as interrupts:
        every = _breakable(iter(tasks), interrupts)
        with closing(_answers(every, reader, workers, interrupts)) as answers:
            for task, answer in answers:
                interrupts.check()
                # Line numbers continue from the ranges before.
                source, lines = task.source, lines if task.source == source else 0
                _add(table, answer, lines)
                lines += answer.lines
                if watch is not None and answer.seen is not None:
                    watch.merge(answer.seen)
                progress(task.fraction)
        interrupts.check()


def _breakable(tasks: Iterator[Task], interrupts: Interrupts) -> Iterator[Task]:
    """Yield tasks; an interrupt ends the wait for a pipe that nobody writes to."""
    while True:
        with interrupts.breakable():
            task = next(tasks, None)
        if task is None:
            return
        interrupts.check()
        yield task


def _answers(
    every: Iterator[Task], reader: TaskReader, workers: int, interrupts: Interrupts
) -> Generator[tuple[Task, TaskAnswer], None, None]:
    count = workers or cores()
    with infrequent_gc():
        if count == 1 or not forks():
            yield from ((task, reader(task)) for task in every)
            return
        processes = [WorkerProcess(partial(_read, reader), interrupts.check) for _ in range(count)]
        try:
            yield from answers_in_order(processes, every, partial(_line_by_line, reader.options))
        finally:
            for process in processes:
                process.close()


def _read(reader: TaskReader, task: Task) -> tuple[Task, TaskAnswer]:
    # The parent does not need the lines again, so they are not sent back.
    return replace(task, lines=()) if isinstance(task, LineRange) else task, reader(task)


def _line_by_line(options: ReadOptions, worker: WorkerProcess, task: Task) -> tuple[Task, TaskAnswer]:
    """Read a task that killed a worker again, line by line; leave out only the lines that kill it."""
    if isinstance(task, RowGroup):
        return task, TaskAnswer(problem=f"{task.source}: a worker process died of it: {worker.exit_reason}")
    read = read_lines(task, options.max_bytes)
    whole = TaskAnswer((), read.count, [(one.source, one.line, one.reason) for one in read.refused])
    single = (
        LineRange(read.source, (line,), read.encoding, task.fraction, named=read.named) for line in read.lines
    )
    for line, answer in zip(read.lines, answers_one_by_one(worker, single), strict=True):
        if answer is None:
            place = line.file or read.source, line.number, f"the worker process died: {worker.exit_reason}"
            whole = whole.join(TaskAnswer(left_out=[place]))
        else:
            whole = whole.join(answer[1])
    return task, whole


def _add(table: FingerprintTable, answer: TaskAnswer, before: int) -> None:
    if answer.problem:
        raise InputError(answer.problem)
    if answer.other_scheme is not None:
        source, line, scheme = answer.other_scheme
        raise _mismatch(table, f"{source}:{line + before}", scheme)
    for block in answer.blocks:
        table.add(replace(block, lines=block.lines + before) if before else block)
    for source, line, reason in answer.left_out:
        table.failures.add(f"{source}:{line + before}: {reason}")


def _mismatch(table: FingerprintTable, where: str, found: str) -> SchemeMismatch:
    known = [name for name in PRESETS if make_scheme(name).id == found]
    named = f"with: --preset {known[0]}" if known else "with its preset and languages"
    return SchemeMismatch(
        found=found,
        expected=table.scheme.id,
        where=where,
        remedy=f"Repeat this {named}, if all sources are of that scheme. Else sign all of them with one, or "
        "make the fingerprints anew of the texts that are in them: --texts.",
    )
