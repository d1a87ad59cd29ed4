"""Parts: the output of one task each, which workers write, and the sinks that join them in order."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from shinglefold.errors import InputError, is_full, reason_of
from shinglefold.ingest.readers.record import Record
from shinglefold.ingest.writing.worker_pool import MOST_DEATHS, WorkerProcess, answers_one_by_one
from shinglefold.offline.sign.parquet_file import common, parquet_file
from shinglefold.offline.sign.run_journal import OUTPUT, RunJournal, State, is_named
from shinglefold.offline.sign.signer import Signer, SignOptions, SignTally
from shinglefold.offline.sign.tasks import ByteRange, LineRange, RowGroup, Task, read_lines
from shinglefold.runtime.durable_files import sync_folder
from shinglefold.runtime.signals import Interrupts

#: The number of pieces of one write call, four for each document. Linux allows 1,024, but then allocates
#: fresh large pages, which cost a virtual machine several times the processor time.
_AT_ONCE = 64
#: The bytes of a copy from file to file, and of a write to a pipe, whose buffer is not larger.
_CHUNK, _PIECE = 1 << 20, 1 << 16
Pieces = Sequence[bytes | memoryview]


@dataclass(frozen=True, slots=True)
class PartTask:
    """A task, and the file of its part.

    ``hold``: keep the lines in memory until an ``OutputPosition`` says where to write them. ``alone``: sign
    only this line of the task. ``sample``: return a few documents in the tally.
    """

    task: Task
    path: str
    hold: bool = False
    sample: bool = False
    alone: int | None = None


@dataclass(frozen=True, slots=True)
class OutputPosition:
    """The file and the byte at which the part in memory is to be written."""

    path: str
    at: int


@dataclass(slots=True)
class PartWriter:
    """Writes parts as JSON lines or Parquet; keeps at most one in memory until its position is known."""

    signer: Signer
    parquet: bool = False
    _held: tuple[Pieces, SignTally] = field(default=((), SignTally()), init=False)

    def __call__(self, request: PartTask | OutputPosition) -> SignTally:
        """Sign the documents of a task, or write the part in memory at the position that is now known.

        Returns:
            The tally of the part. Its ``problem`` is the error, if there was one. A part that stays in memory
            has a tally with its size only.
        """
        tally = SignTally()
        try:
            if isinstance(request, OutputPosition):
                (pieces, tally), self._held = self._held, ((), SignTally())
                write(pieces, request.path, request.at)
                tally.placed = True
            else:
                return self._make(request, tally)
        except OSError as error:
            record_error(tally, error, request.path)
        except InputError as error:
            tally.problem = str(error)
        return tally

    def _make(self, request: PartTask, tally: SignTally) -> SignTally:
        task, held = request.task, False
        if isinstance(task, RowGroup):
            from shinglefold.offline.sign.parquet import sign_rows

            tally.size = sign_rows(self.signer, task, request.path, tally, as_parquet=self.parquet)
        else:
            lines = one_line(task, request.alone, self.signer)
            pieces = self.signer.signed_lines(lines, tally, sample=request.sample)
            held = self._write_lines(request, pieces, tally)
        if not request.sample:
            tally.sample = []
        return SignTally(size=tally.size, held=True) if held else tally

    def _write_lines(self, request: PartTask, pieces: Pieces, tally: SignTally) -> bool:
        """Write the lines of a part or keep them in memory; return whether they were kept."""
        if self.parquet:
            from shinglefold.offline.sign.parquet import write_ids

            tally.size = write_ids(pieces, self.signer.options.target, request.path)
            return False
        tally.size = sum(map(len, pieces))
        if request.hold:
            self._held = pieces, tally
        else:
            write(pieces, request.path)
        return request.hold


def record_error(tally: SignTally, error: OSError, path: str) -> None:
    """Record in a tally why its part could not be made, or not be written to a path."""
    tally.problem = f"{error.filename or path}: {reason_of(error)}"
    # Not all libraries name the file, but a full disk is always an error of writing.
    if error.errno and (is_full(error) or error.filename == path):
        tally.unwritten = error.errno


def one_line(task: ByteRange | LineRange, place: int | None, signer: Signer) -> ByteRange | LineRange:
    """Return a task for line ``place`` of a task only; the task itself if that is None."""
    if place is None:
        return task
    read = read_lines(task, signer.options.reading.max_bytes)
    return LineRange(read.source, (read.lines[place],), read.encoding, task.fraction, named=read.named)


def write(pieces: Pieces, path: str, at: int | None = None) -> None:
    """Write pieces one after another, without joining them in memory.

    Args:
        at: the byte to begin at in an existing file; None for a new file.

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
                # A write that fills the disk writes some bytes; only the next one raises.
                written += os.pwrite(file, b"".join(some)[written:], at + written)
            at += size
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(file)


def line_by_line(options: SignOptions, parquet: bool, worker: WorkerProcess, request: PartTask) -> SignTally:
    """Sign a task that killed a worker again, line by line, so that only the lines that kill it fail."""
    task = request.task
    if isinstance(task, RowGroup):
        raise InputError(
            f"{task.source}: a worker process died of row group {task.number + 1}: {worker.exit_reason}; "
            "sign its rows as JSON lines, of which the guilty ones alone fail, or write smaller row groups"
        )
    whole, crashes = SignTally(), 0
    read = read_lines(task, options.reading.max_bytes)
    made: list[bytes] = []
    alone = Path(f"{request.path}.one")
    try:
        single = (
            replace(request, path=str(alone), hold=False, alone=place) for place in range(len(read.lines))
        )
        for line, found in zip(read.lines, answers_one_by_one(worker, single), strict=True):
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
        if parquet:
            from shinglefold.offline.sign.parquet import join

            join(made, options.target, request.path)
        else:
            write(made, request.path)
        whole.size = Path(request.path).stat().st_size
        alone.unlink(missing_ok=True)
    except OSError as error:
        record_error(whole, error, request.path)
    whole.lines = read.count
    whole.meter.counts["crashes"] += min(crashes, MOST_DEATHS)
    return whole


def _add(whole: SignTally, one: SignTally) -> None:
    whole.signed += one.signed
    whole.refused += one.refused
    whole.meter.add(one.meter)
    whole.present |= one.present
    whole.problem = whole.problem or one.problem
    whole.unwritten = whole.unwritten or one.unwritten


class Sink:
    """Takes parts in order; ``suffix``: of the files of parts."""

    suffix = ".tmp"

    @property
    def place(self) -> OutputPosition | None:
        """Where the worker writes the next part; None if parts are files."""
        return None

    def resume(self, state: State | None) -> None:
        """Discard output after the journal's last entry; raise ``InputError`` if noted output is missing."""

    def take(self, part: Path, tally: SignTally) -> None:
        """Append a part: a file, which is then removed, or bytes that are already at their position."""
        raise NotImplementedError

    def sync(self) -> int:
        """Sync everything to the disk and return the bytes of the output, 0 if no run resumes it."""
        return 0

    def finish(self) -> None:
        """Publish the complete output."""

    def discard(self) -> None:
        """Remove the output of a run that signed no document."""


class FileSink(Sink):
    """Joins JSON lines in a file that gets its name once it is complete.

    Workers write their parts into it, so that no byte is copied. Half-written parts are beyond ``_end``.
    """

    def __init__(self, journal: RunJournal) -> None:
        self._journal = journal
        self._path = journal.folder / OUTPUT
        self._file: IO[bytes] | None = None
        self._end = 0

    @property
    def place(self) -> OutputPosition:
        """Return the end of the parts taken."""
        return OutputPosition(str(self._path), self._end)

    def resume(self, state: State | None) -> None:
        """Cut off the output after the last entry of the journal."""
        noted = state["bytes"] if state else 0
        if is_named(self._journal.target):
            # The run was killed after the rename: complete it again.
            self._journal.target.replace(self._path)
        self._path.touch()
        sync_folder(self._journal.folder)
        self._file = self._path.open("r+b")
        if self._path.stat().st_size < noted:
            raise InputError(f"{self._path} is shorter than its journal says: begin anew with --restart")
        self._file.truncate(noted)
        self._end = noted

    def take(self, part: Path, tally: SignTally) -> None:
        """Append a part that is a file, or count the bytes of one that was written at its position."""
        assert self._file is not None
        if not tally.placed:
            self._file.seek(self._end)
            with part.open("rb") as made:
                shutil.copyfileobj(made, self._file, _CHUNK)
            self._file.flush()
            part.unlink()
        self._end += tally.size

    def sync(self) -> int:
        """Sync the file and return its bytes."""
        assert self._file is not None
        # No worker writes now, but one that died may have written beyond the last part.
        self._file.truncate(self._end)
        os.fsync(self._file.fileno())
        return self._end

    def finish(self) -> None:
        """Give the file its name."""
        assert self._file is not None
        self._file.close()
        self._journal.name(self._path)

    def discard(self) -> None:
        """Remove the file and its journal."""
        assert self._file is not None
        self._file.close()
        self._journal.remove()


class StreamSink(Sink):
    """Writes parts to a stream, which cannot be resumed.

    An interrupt ends a write only while the reader reads nothing, so lines that it reads stay complete.
    """

    def __init__(self, stream: IO[bytes], interrupts: Interrupts) -> None:
        self._stream = stream
        self._interrupts = interrupts
        self._moved = 0

    def take(self, part: Path, tally: SignTally) -> None:
        """Write a part."""
        with part.open("rb") as made, self._interrupts.breakable(moving=lambda: self._moved):
            while piece := made.read(_PIECE):
                self._stream.write(piece)
                self._moved += len(piece)
            self._stream.flush()
        part.unlink()


class ParquetSink(Sink):
    """Keeps parts as files until all are made, then joins them to one file with a row group for each."""

    suffix = ".parquet"

    def __init__(self, journal: RunJournal) -> None:
        self._journal = journal
        self._parts: list[Path] = []
        self._fresh: list[Path] = []

    def resume(self, state: State | None) -> None:
        """Remove the parts made after the last entry of the journal."""
        count = state["tasks"] if state else 0
        self._parts = [self._journal.folder / f"part-{number:08}{self.suffix}" for number in range(count)]
        if missing := next((part for part in self._parts if not part.exists()), None):
            raise InputError(f"{missing} is missing, which the journal has: begin anew with --restart")
        for part in set(self._journal.folder.glob(f"part-*{self.suffix}*")) - set(self._parts):
            part.unlink()

    def take(self, part: Path, tally: SignTally) -> None:
        """Add a part, which stays a file until ``finish``."""
        self._parts.append(part)
        self._fresh.append(part)

    def sync(self) -> int:
        """Sync the new parts; return 0, because the journal needs no sizes of parts."""
        for part in self._fresh:
            _sync(part)
        sync_folder(self._journal.folder)
        self._fresh = []
        return 0

    def finish(self) -> None:
        """Join the parts to one file and give it its name."""
        from shinglefold.offline.sign.parquet import parquet_writer

        whole = self._journal.folder / OUTPUT
        schema = common([parquet_file(str(part)).schema_arrow for part in self._parts])
        with parquet_writer(whole, schema) as writer:
            for part in self._parts:
                writer.write_table(parquet_file(str(part)).read().select(schema.names).cast(schema))
        _sync(whole)
        self._journal.name(whole)

    def discard(self) -> None:
        """Remove the parts."""
        self._journal.remove()


def _sync(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
