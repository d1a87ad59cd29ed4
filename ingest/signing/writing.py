"""A part: what a worker made of one task, written by itself where the parent takes it from."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from shinglefold.errors import InputError, is_full, why
from shinglefold.ingest.signing.parts import Signer, Tally
from shinglefold.ingest.signing.spans import read_lines
from shinglefold.ingest.signing.tasks import Lines, RowGroup, Span, Task


@dataclass(frozen=True, slots=True)
class Question:
    """A task, and where its part goes.

    ``alone``: only the line at that place of the task. ``sample``: a few documents are wanted back.
    """

    task: Task
    path: str
    sample: bool = False
    alone: int | None = None


@dataclass(frozen=True, slots=True)
class PartWriter:
    """Makes parts, as JSON lines or as Parquet."""

    signer: Signer
    parquet: bool = False

    def __call__(self, question: Question) -> Tally:
        """Write a part and return what became of its documents; what goes wrong is its ``problem``."""
        tally = Tally()
        try:
            self._write(question, tally)
        except OSError as error:
            tally.problem, tally.full = f"{error.filename or question.path}: {why(error)}", is_full(error)
        except InputError as error:
            tally.problem = str(error)
        if not question.sample:
            tally.sample = []
        return tally

    def _write(self, question: Question, tally: Tally) -> None:
        task = question.task
        if isinstance(task, RowGroup):
            from shinglefold.ingest.signing.parquet import sign_rows

            tally.size = sign_rows(self.signer, task, question.path, tally, as_parquet=self.parquet)
            return
        pieces = self.signer.signed_lines(
            one_line(task, question.alone, self.signer), tally, sample=question.sample
        )
        if self.parquet:
            from shinglefold.ingest.signing.parquet import write_ids

            tally.size = write_ids(pieces, self.signer.options.target, question.path)
        else:
            tally.size = _written(question.path, pieces)


def one_line(task: Span | Lines, place: int | None, signer: Signer) -> Span | Lines:
    """Return a task, or the one of a single of its lines."""
    if place is None:
        return task
    read = read_lines(task, signer.options.reading.max_bytes)
    return Lines(read.source, (read.lines[place],), read.encoding, task.fraction, named=read.named)


def _written(path: str, pieces: Sequence[bytes | memoryview]) -> int:
    data = memoryview(b"".join(pieces))
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        rest = data
        while rest:
            rest = rest[os.write(file, rest) :]
    finally:
        os.close(file)
    return len(data)
