"""Collects fingerprints into columns: made of texts by worker processes, or read from what ``sign`` wrote."""

from base64 import urlsafe_b64decode
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shinglefold.contracts.engine import Document
from shinglefold.errors import ConfigError, InputError, SchemeMismatch, suggest
from shinglefold.ingest import Outcome, Pipeline, Record
from shinglefold.ingest.batching import RAW_BUDGET, blocks, weight
from shinglefold.ingest.fingerprinter import UnstoredFingerprint
from shinglefold.ingest.processors.supershingle import UnstoredSupershingle
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.ingest.writing.worker_pool import (
    WorkerProcess,
    answers_in_order,
    cores,
    forks,
    process_blocks,
)
from shinglefold.model.scheme import PRESETS, Scheme
from shinglefold.offline.dedupe.decode import TaskAnswer
from shinglefold.offline.dedupe.fingerprint_table import (
    DIGEST,
    DIGESTED,
    SIGNED,
    FingerprintBlock,
    FingerprintTable,
    id_columns,
)
from shinglefold.offline.dedupe.read_signed import SignedReader, is_signed
from shinglefold.offline.sign.tasks import LineRange, Task, is_parquet, is_repeatable, tasks
from shinglefold.registry import make_scheme
from shinglefold.runtime.signals import Interrupts
from shinglefold.sketch import packed_size

#: The field in which workers return fingerprints.
_FIELD = "dedup"


def pipeline_for(scheme: Scheme, fields: Sequence[str], language_field: str, html: bool) -> Pipeline:
    """Return the pipeline that replaces the texts of a document by their fingerprint.

    Args:
        html: every document is HTML; else those whose ``format`` says so. A field ``title`` never is.
    """
    condition: dict[str, Any] = {} if html else {"if": "ctx.format == 'html'"}
    strip = [
        {"html_strip": {"field": name, "ignore_missing": True, "keep_hidden": True, **condition}}
        for name in fields
        if name != "title"
    ]
    beside = {"fields": list(fields), "target_field": _FIELD, "language_field": language_field}
    definition = {
        "processors": [
            *strip,
            {UnstoredSupershingle.type: beside},
            {"remove": {"field": list(fields), "ignore_missing": True}},
        ]
    }
    return Pipeline.from_json(
        definition, scheme, processors={UnstoredSupershingle.type: UnstoredSupershingle}
    )


def collect_texts(  # noqa: PLR0917 - what it reads, by what, and into what
    records: Iterable[Record],
    pipeline: Pipeline,
    wanted: Sequence[str],
    workers: int,
    table: FingerprintTable,
    progress: Callable[[float], None],
) -> None:
    """Add the fingerprints of all records to a table.

    Args:
        wanted: fields the pipeline needs; the others are not sent to the workers.
        workers: processes; 0 means one per core.
        progress: gets the share of the sources that was read.
    """
    pending: list[list[Record]] = []

    def documents() -> Iterator[list[Document]]:
        made = blocks(records, lambda record: weight(record.document), RAW_BUDGET)
        while True:
            with interrupts.breakable():
                block = next(made, None)
            if block is None:
                return
            interrupts.check()
            pending.append(block)
            yield [_only(record.document, wanted) for record in block if record.document is not None]

    with (
        Interrupts() as interrupts,
        closing(process_blocks(pipeline, documents(), workers, check=interrupts.check)) as answers,
    ):
        for answer in answers:
            block = pending.pop(0)
            _take(table, block, answer.outcomes)
            progress(block[-1].fraction)
        interrupts.check()


def _only(document: Document, wanted: Sequence[str]) -> Document:
    return {name: document[name] for name in wanted if name in document}


def _take(table: FingerprintTable, block: Sequence[Record], outcomes: Sequence[Outcome]) -> None:
    made = iter(outcomes)
    kept: list[tuple[Record, UnstoredFingerprint]] = []
    for record in block:
        place = f"{record.source}:{record.line}"
        if record.document is None:
            table.failures.add(f"{place}: {record.reason}")
            continue
        outcome = next(made)
        if outcome.document is None:
            table.failures.add(f"{place}: {outcome.failure.reason if outcome.failure else 'dropped'}")
        else:
            kept.append((record, outcome.document[_FIELD]))
    if kept:
        table.add(_block(table, kept))


def _block(table: FingerprintTable, kept: Sequence[tuple[Record, UnstoredFingerprint]]) -> FingerprintBlock:
    sketch = table.scheme.sketch
    found = [beside for _, beside in kept]
    flags = [
        SIGNED * bool(one.fingerprint.signature) | DIGESTED * bool(one.fingerprint.digest) for one in found
    ]
    blank, none = bytes(packed_size(sketch.values, sketch.bits)), bytes(DIGEST)
    ids = [(record.document or {}).get("_id") for record, _ in kept]
    texts = table.has_texts
    return FingerprintBlock(
        np.frombuffer(b"".join(one.supershingles for one in found), np.uint64).reshape(len(found), -1),
        _rows(one.fingerprint.signature or blank for one in found),
        np.array([one.fingerprint.shingles for one in found], np.int64),
        _rows(urlsafe_b64decode(one.fingerprint.digest) or none for one in found),
        np.array(flags, np.uint8),
        *id_columns([None if name is None else str(name) for name in ids]),
        [record.source for record, _ in kept],
        np.array([record.line for record, _ in kept], np.int64),
        [one.written for one in found] if texts else (),
        [one.canonical for one in found] if texts else (),
        np.array([one.facts for one in found], np.uint64)
        if table.scheme.decision.facts == "numbers"
        else None,
    )


def _rows(found: Iterable[bytes]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    parts = list(found)
    return np.frombuffer(b"".join(parts), np.uint8).reshape(len(parts), -1)


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
            f"{suggest('sign', bare[0], output='signed.parquet')}, and give that"
        )
    if signed and other:
        raise ConfigError(
            f"{signed[0]} is signed and {other[0]} is not: sign that, too, or add --texts, which makes all "
            "fingerprints anew"
        )
    return bool(signed) or (not other and any(map(is_parquet, sources)))


def collect_signed(
    sources: Sequence[str],
    reader: SignedReader,
    table: FingerprintTable,
    workers: int,
    progress: Callable[[float], None],
) -> None:
    """Add the fingerprints of all signed files to a table.

    Args:
        workers: processes; 0 means one per core.
        progress: gets the share of the sources that was read.

    Raises:
        InputError: a file can't be read.
        SchemeMismatch: a fingerprint is of another scheme.
    """
    source, lines = "", 0
    with Interrupts() as interrupts:
        every = iter(tasks(sources, reader.options, {}))
        with closing(_answers(every, reader, workers, interrupts)) as answers:
            for task, answer in answers:
                interrupts.check()
                # The lines of a range of bytes are numbered on from those of the ranges before.
                source, lines = task.source, lines if task.source == source else 0
                _add(table, answer, lines)
                lines += answer.lines
                progress(task.fraction)
        interrupts.check()


def _answers(
    every: Iterator[Task], reader: SignedReader, workers: int, interrupts: Interrupts
) -> Generator[tuple[Task, TaskAnswer], None, None]:
    count = workers or cores()
    if count == 1 or not forks():
        yield from ((task, reader(task)) for task in every)
        return
    processes = [WorkerProcess(partial(_read, reader), interrupts.check) for _ in range(count)]
    try:
        yield from answers_in_order(processes, every, _died)
    finally:
        for process in processes:
            process.close()


def _read(reader: SignedReader, task: Task) -> tuple[Task, TaskAnswer]:
    # Its lines need not travel back.
    return replace(task, lines=()) if isinstance(task, LineRange) else task, reader(task)


def _died(worker: WorkerProcess, task: Task) -> tuple[Task, TaskAnswer]:
    return task, TaskAnswer(problem=f"{task.source}: a worker process died of it: {worker.exit_reason}")


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
