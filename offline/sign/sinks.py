"""Where parts go: one behind another in one file, or handed on to standard output."""

import os
import shutil
from pathlib import Path
from typing import IO, Protocol

from shinglefold.errors import InputError
from shinglefold.offline.sign.part_writer import OutputPosition
from shinglefold.offline.sign.run_journal import OUTPUT, RunJournal, State, is_named
from shinglefold.offline.sign.signer import SignTally
from shinglefold.runtime.durable_files import sync_folder
from shinglefold.runtime.signals import Interrupts

_CHUNK = 1 << 20
#: As much as a pipe holds.
_PIECE = 1 << 16


class Sink(Protocol):
    """Takes parts in order."""

    suffix: str

    @property
    def place(self) -> OutputPosition | None:
        """Where the next part goes whoever made it writes it; None where parts are files."""
        ...

    def resume(self, state: State | None) -> None:
        """Cut off what stands beyond the last note."""
        ...

    def take(self, part: Path, tally: SignTally) -> None:
        """Take a part: a file, gone afterwards, or one that has its place."""
        ...

    def sync(self) -> int:
        """Bring everything to the disk and return how much that is."""
        ...

    def finish(self) -> None:
        """Let the whole be seen."""
        ...

    def discard(self) -> None:
        """Leave nothing, as there is nothing to be seen."""
        ...


class FileSink:
    """Puts JSON lines into a file that gets its name once it is whole.

    Those who make parts write them there, one after another, as each byte that is moved costs. What they left
    half written is behind the end, as this counts it.
    """

    suffix = ".tmp"

    def __init__(self, journal: RunJournal) -> None:
        self._journal = journal
        self._path = journal.folder / OUTPUT
        self._file: IO[bytes] | None = None
        self._end = 0

    @property
    def place(self) -> OutputPosition:
        """The end of the file."""
        return OutputPosition(str(self._path), self._end)

    def resume(self, state: State | None) -> None:
        """Cut off what stands beyond the last note.

        Raises:
            InputError: there is less than that.
        """
        noted = state["bytes"] if state else 0
        if is_named(self._journal.target):
            # It goes on from there, to its end.
            self._journal.target.replace(self._path)
        self._path.touch()
        sync_folder(self._journal.folder)
        # Not for appending, which the kernel's own copying refuses.
        self._file = self._path.open("r+b")
        if self._path.stat().st_size < noted:
            raise InputError(f"{self._path} is shorter than its journal says: begin anew with --restart")
        self._file.truncate(noted)
        self._end = noted

    def take(self, part: Path, tally: SignTally) -> None:
        """Count a part that has its place, and append one that is a file."""
        assert self._file is not None
        if not tally.placed:
            self._file.seek(self._end)
            with part.open("rb") as made:
                _copied(made, self._file, tally.size)
            part.unlink()
        self._end += tally.size

    def sync(self) -> int:
        """Bring everything to the disk and return its bytes."""
        assert self._file is not None
        # Nobody writes while nobody is told a place; a worker that died may have left more than was taken.
        self._file.truncate(self._end)
        os.fsync(self._file.fileno())
        return self._end

    def finish(self) -> None:
        """Give the file its name."""
        assert self._file is not None
        self._file.close()
        self._journal.name(self._path)

    def discard(self) -> None:
        """Remove the file, which would stand in the way of the next run."""
        assert self._file is not None
        self._file.close()
        self._journal.remove()


class StreamSink:
    """Hands parts on to a stream, which nobody can go on with.

    A run that is to end breaks off where nobody takes anything; lines that somebody reads stay whole.
    """

    suffix = ".tmp"
    place = None

    def __init__(self, stream: IO[bytes], interrupts: Interrupts) -> None:
        self._stream = stream
        self._interrupts = interrupts
        self._moved = 0

    def resume(self, state: State | None) -> None:
        """Begin."""

    def take(self, part: Path, tally: SignTally) -> None:
        """Write a part."""
        with part.open("rb") as made, self._interrupts.breakable(moving=lambda: self._moved):
            while piece := made.read(_PIECE):
                self._stream.write(piece)
                self._moved += len(piece)
            self._stream.flush()
        part.unlink()

    def sync(self) -> int:
        """Return nothing: what is written is gone."""
        return 0

    def finish(self) -> None:
        """End."""

    def discard(self) -> None:
        """End."""


def _copied(made: IO[bytes], output: IO[bytes], size: int) -> None:
    """Append a file to another, inside the kernel where it can do that."""
    output.flush()
    done = 0
    try:
        while done < size and (sent := os.sendfile(output.fileno(), made.fileno(), done, size - done)):
            done += sent
    except (AttributeError, OSError):
        if done:
            raise
    if not done:
        shutil.copyfileobj(made, output, _CHUNK)
        output.flush()
