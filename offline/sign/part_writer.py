"""A part: what a worker made of one task, and wrote itself: into the output, or a file it is taken from."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from shinglefold.errors import InputError, is_full, reason_of
from shinglefold.ingest.readers.record import Record
from shinglefold.ingest.writing.worker_pool import WorkerProcess
from shinglefold.offline.sign.signer import Signer, SignOptions, SignTally
from shinglefold.offline.sign.tasks import ByteRange, LineRange, RowGroup, Task, read_lines

#: Pieces written in one call, of which there are four a document. Linux would take 1,024, and then makes room
#: for megabytes at once, in large pages that were not in use yet: a virtual machine gets these from its host,
#: at several times the processor time.
_AT_ONCE = 64
Pieces = Sequence[bytes | memoryview]


@dataclass(frozen=True, slots=True)
class Question:
    """A task, and the file its part goes to.

    ``hold``: lines are kept until their place in the output is told, which is known once all parts before
    are made. ``alone``: only the line at that place of the task. ``sample``: a few documents are wanted back.
    """

    task: Task
    path: str
    hold: bool = False
    sample: bool = False
    alone: int | None = None


@dataclass(frozen=True, slots=True)
class OutputPosition:
    """Where the part that was made last goes: the output, from that byte on."""

    path: str
    at: int


@dataclass(slots=True)
class PartWriter:
    """Makes parts, as JSON lines or as Parquet, and holds at most one that waits for its place."""

    signer: Signer
    parquet: bool = False
    _held: tuple[Pieces, SignTally] = field(default=((), SignTally()), init=False)

    def __call__(self, asked: Question | OutputPosition) -> SignTally:
        """Make a part, or write the one that is held; return what became of its documents.

        Of a part that is held the answer tells no more than its bytes. What goes wrong is the ``problem``.
        """
        tally = SignTally()
        try:
            if isinstance(asked, OutputPosition):
                (pieces, tally), self._held = self._held, ((), SignTally())
                write(pieces, asked.path, asked.at)
                tally.placed = True
            else:
                return self._made(asked, tally)
        except OSError as error:
            tell(tally, error, asked.path)
        except InputError as error:
            tally.problem = str(error)
        return tally

    def _made(self, question: Question, tally: SignTally) -> SignTally:
        task, held = question.task, False
        if isinstance(task, RowGroup):
            from shinglefold.offline.sign.parquet import sign_rows

            tally.size = sign_rows(self.signer, task, question.path, tally, as_parquet=self.parquet)
        else:
            lines = one_line(task, question.alone, self.signer)
            pieces = self.signer.signed_lines(lines, tally, sample=question.sample)
            held = self._lines(question, pieces, tally)
        if not question.sample:
            tally.sample = []
        return SignTally(size=tally.size, held=True) if held else tally

    def _lines(self, question: Question, pieces: Pieces, tally: SignTally) -> bool:
        """Write the part of some lines, or tell that it is held."""
        if self.parquet:
            from shinglefold.offline.sign.parquet import write_ids

            tally.size = write_ids(pieces, self.signer.options.target, question.path)
            return False
        tally.size = sum(map(len, pieces))
        if question.hold:
            self._held = pieces, tally
        else:
            write(pieces, question.path)
        return question.hold


def tell(tally: SignTally, error: OSError, path: str) -> None:
    """Let an answer say what kept the part from being made, or from being written to a path."""
    tally.problem = f"{error.filename or path}: {reason_of(error)}"
    # Not all libraries name the file; but nobody runs out of room by reading.
    if error.errno and (is_full(error) or error.filename == path):
        tally.unwritten = error.errno


def one_line(task: ByteRange | LineRange, place: int | None, signer: Signer) -> ByteRange | LineRange:
    """Return a task, or the one of a single of its lines."""
    if place is None:
        return task
    read = read_lines(task, signer.options.reading.max_bytes)
    return LineRange(read.source, (read.lines[place],), read.encoding, task.fraction, named=read.named)


def write(pieces: Pieces, path: str, at: int | None = None) -> None:
    """Write pieces one behind another, without putting them together first.

    Args:
        at: the byte of the file to begin at; None for a file of their own.

    Raises:
        OSError: they can't all be written.
    """
    file = os.open(path, os.O_WRONLY | (os.O_CREAT | os.O_TRUNC if at is None else 0), 0o644)
    try:
        at = at or 0
        for first in range(0, len(pieces), _AT_ONCE):
            some = pieces[first : first + _AT_ONCE]
            written, size = os.pwritev(file, some, at), sum(map(len, some))
            while written < size:
                # On a disk that fills up only the next call tells why.
                written += os.pwrite(file, b"".join(some)[written:], at + written)
            at += size
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(file)


#: Lines of one task that workers die of, after which its other lines are given up.
_PATIENCE = 3


def line_by_line(options: SignOptions, parquet: bool, worker: WorkerProcess, question: Question) -> SignTally:
    """Return the answer to a question a worker died of: the guilty lines failed, the others as usual.

    Args:
        parquet: parts are tables, which do not become one by standing one behind another.

    Raises:
        InputError: it was a row group, which has no lines.
    """
    task = question.task
    if isinstance(task, RowGroup):
        raise InputError(
            f"{task.source}: a worker process died of row group {task.number + 1}: {worker.exit_reason}; "
            "sign its rows as JSON lines, of which the guilty ones alone fail, or write smaller row groups"
        )
    whole, crashes = SignTally(), 0
    read = read_lines(task, options.reading.max_bytes)
    made: list[bytes] = []
    alone = Path(f"{question.path}.one")
    with _told(whole, question.path):
        for place, line in enumerate(read.lines):
            found = None
            if crashes < _PATIENCE:
                worker.ask(replace(question, path=str(alone), hold=False, alone=place))
                found = worker.answer()
            if found is None:
                crashes += 1
                reason = f"the worker process died: {worker.exit_reason}"
                raw = line.raw.decode("utf-8", "surrogateescape")
                record = Record(None, line.file or task.source, line.number, reason, raw)
                whole.refused.append(("worker", reason, record))
                continue
            _add(whole, found)
            if found.problem:
                break
            made.append(alone.read_bytes())
        whole.size = _joined(made, question.path, options.target if parquet else None)
        alone.unlink(missing_ok=True)
    whole.lines = read.count
    whole.meter.counts["crashes"] += min(crashes, _PATIENCE)
    return whole


@contextmanager
def _told(whole: SignTally, path: str) -> Iterator[None]:
    """Let the answer say why its part could not be written."""
    try:
        yield
    except OSError as error:
        tell(whole, error, path)


def _joined(made: Sequence[bytes], path: str, target: str | None) -> int:
    """Make one part of those of single lines; return its bytes.

    Args:
        target: the column of the fingerprints where the parts are tables.
    """
    if target is not None:
        from shinglefold.offline.sign.parquet import join

        join(made, target, path)
    else:
        write(made, path)
    return Path(path).stat().st_size


def _add(whole: SignTally, one: SignTally) -> None:
    whole.signed += one.signed
    whole.refused += one.refused
    whole.meter.add(one.meter)
    whole.present |= one.present
    whole.problem = whole.problem or one.problem
    whole.unwritten = whole.unwritten or one.unwritten
