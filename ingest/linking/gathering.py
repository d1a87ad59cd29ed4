"""Signed files to columns: tasks out to workers, blocks back in order, and on where a killed run was."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from shinglefold.advice import advised
from shinglefold.errors import ConfigError, InputError, SchemeMismatch
from shinglefold.ingest.linking.answers import Answer
from shinglefold.ingest.linking.prints import Prints
from shinglefold.ingest.linking.shelf import State
from shinglefold.ingest.linking.signed import SignedReader, is_signed
from shinglefold.ingest.linking.stages import Pause
from shinglefold.ingest.readers.records import ReadOptions
from shinglefold.ingest.signing.tasks import Lines, Task, is_parquet, is_repeatable, tasks
from shinglefold.ingest.writing.interrupts import Interrupts
from shinglefold.ingest.writing.process import WorkerProcess, in_order
from shinglefold.ingest.writing.workers import cores, forks
from shinglefold.registry import make_scheme
from shinglefold.scheme import PRESETS


def are_signed(sources: Sequence[str], field: str, options: ReadOptions) -> bool:
    """Tell whether sources are what ``sign`` wrote, by the first document of each that can be read twice.

    Raises:
        ConfigError: some are and some are not; or a Parquet file is not.
    """
    found: dict[str, bool | None] = {}
    for source in sources:
        # A table that is not there says so itself.
        if is_repeatable(source) or (is_parquet(source) and not Path(source).exists()):
            found[source] = is_signed(source, field, options)
    signed = [source for source, told in found.items() if told]
    # A file without documents goes with either.
    other = [source for source in sources if found.get(source, False) is False]
    bare = [source for source in other if is_parquet(source)]
    if bare:
        raise ConfigError(
            f"{bare[0]} holds no fingerprints in [{field}]: make a file with "
            f"{advised('sign', bare[0], output='signed.parquet')}, and give that"
        )
    if signed and other:
        raise ConfigError(
            f"{signed[0]} is signed and {other[0]} is not: sign that, too, or add --texts, which makes all "
            "fingerprints anew"
        )
    return bool(signed) or (not other and any(map(is_parquet, sources)))


def gather(  # noqa: PLR0917 - what it reads, by what, and into what
    sources: Sequence[str],
    reader: SignedReader,
    prints: Prints,
    workers: int,
    state: State | None,
    progress: Callable[[float, State | None], None],
) -> State:
    """Add the fingerprints of all documents to columns; return how far that is.

    Args:
        workers: processes; 0 means one per core.
        state: how far an earlier run was.
        progress: told the share of the sources, and every few seconds how far it is.
    """
    books: State = dict(state or {"tasks": 0, "source": "", "lines": 0, "done": False})
    pause = Pause()
    with Interrupts() as interrupts:
        left = islice(tasks(sources, reader.options, {}), books["tasks"], None)
        with closing(_answers(left, reader, workers, interrupts)) as answers:
            for task, answer in answers:
                interrupts.check()
                _book(books, task, answer, prints)
                due = pause.over()
                progress(task.fraction, {**books, **prints.state()} if due else None)
        interrupts.check()
    return {**books, **prints.state(), "done": True}


def _answers(
    left: Iterator[Task], reader: SignedReader, workers: int, interrupts: Interrupts
) -> Generator[tuple[Task, Answer], None, None]:
    count = workers or cores()
    if count == 1 or not forks():
        yield from ((task, reader(task)) for task in left)
        return
    processes = [WorkerProcess(partial(_read, reader), interrupts.check) for _ in range(count)]
    try:
        yield from in_order(processes, left, _died)
    finally:
        for process in processes:
            process.close()


def _read(reader: SignedReader, task: Task) -> tuple[Task, Answer]:
    # Its lines need not travel back.
    return replace(task, lines=()) if isinstance(task, Lines) else task, reader(task)


def _died(worker: WorkerProcess, task: Task) -> tuple[Task, Answer]:
    return task, Answer(problem=f"{task.source}: a worker process died of it: {worker.fate}")


def _book(books: State, task: Task, answer: Answer, prints: Prints) -> None:
    """Add what a task held; lines of a range of bytes are numbered on from those of the ranges before.

    Raises:
        InputError: it could not be read.
        SchemeMismatch: a fingerprint is of another scheme.
    """
    if answer.problem:
        raise InputError(answer.problem)
    if task.source != books["source"]:
        books["source"], books["lines"] = task.source, 0
    before = books["lines"]
    if answer.foreign is not None:
        source, line, scheme = answer.foreign
        raise _mismatch(prints, f"{source}:{line + before}", scheme)
    if answer.block is not None:
        block = answer.block
        prints.add(replace(block, lines=block.lines + before) if before else block)
    for source, line, reason in answer.left_out:
        prints.failures.add(f"{source}:{line + before}: {reason}")
    books["lines"] += answer.lines
    books["tasks"] += 1


def _mismatch(prints: Prints, where: str, found: str) -> SchemeMismatch:
    known = [name for name in PRESETS if make_scheme(name).id == found]
    named = f"with: --preset {known[0]}" if known else "with its preset and languages"
    return SchemeMismatch(
        found=found,
        expected=prints.scheme.id,
        where=where,
        remedy=f"Repeat this {named}, if all sources are of that scheme. Else sign all of them with one, or "
        "make the fingerprints anew of the texts that are in them: --texts.",
    )
