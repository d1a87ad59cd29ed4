"""How far a run is, on disk: a killed one goes on where it was, and nothing is written twice or in half.

Beside FILE stands the folder ``FILE.unfinished`` until the run is whole. What was made goes into it first;
only then the journal notes how much that is, both brought to the disk in this order. What is there beyond the
last note is cut off and made again.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from shinglefold.errors import ConfigError, OutputError, shorten
from shinglefold.offline.sign.tasks import is_repeatable
from shinglefold.runtime.durable_files import is_same_file, lock, sync_folder

#: Seconds between notes: what a kill costs at most.
_PAUSE = 1.0
#: Seconds another run is waited for.
_PATIENCE = 5.0
#: The journal, and what is made, in the folder.
_NAME, OUTPUT = "journal", "output"
#: How the name of the folder ends.
UNFINISHED = ".unfinished"
State = dict[str, Any]


class RunJournal:
    """The journal of one run, which no other run may write meanwhile.

    Args:
        target: the file that is made.
        identity: all that decides what is written, as JSON.
    """

    def __init__(self, target: Path, identity: Mapping[str, Any]) -> None:
        self.target = target
        self.folder = _folder(target)
        self._path = self.folder / _NAME
        self._identity = json.loads(json.dumps(identity))
        self._file: int | None = None
        self._noted = monotonic()

    def open(self, restart: bool = False) -> State | None:
        """Begin, or go on; return what the last note says, None where there is none.

        Args:
            restart: begin anew, whatever there is.

        Raises:
            ConfigError: the folder is of a run with other sources or options, or another run writes to it.
            Unwritable: the folder can't be made.
        """
        # Where it is not there any more, the run that was waited for has removed it, as it was whole.
        while self._file is None or not is_same_file(self._file, self._path):
            self.close()
            self._file = self._opened()
            self._lock(self._file)
        notes = [] if restart else _notes(self._path)
        if notes and notes[0] != self._identity:
            raise ConfigError(
                f"{self.folder} is left of a run with {difference(notes[0], self._identity)}: repeat that "
                "one, or begin anew with --restart"
            )
        if not notes:
            self._begin()
        return notes[-1] if len(notes) > 1 else None

    @property
    def due(self) -> bool:
        """Whether it is time for a note."""
        return monotonic() - self._noted >= _PAUSE

    def note(self, state: State) -> None:
        """Note how far the run is; what it says was made must be on the disk."""
        self._append(state)
        self._noted = monotonic()

    def close(self) -> None:
        """Let another run go on."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def name(self, whole: Path) -> None:
        """Give a file that is whole, and on the disk, the name of the target, and remove the folder."""
        whole.replace(self.target)
        self._sync_beside()
        self.remove()

    def remove(self) -> None:
        """Remove the folder: the run is whole."""
        # In one step, as another run may be waiting to make one of that name.
        gone = self.folder.with_name(f".{self.folder.name}.{os.getpid()}")
        self.folder.rename(gone)
        shutil.rmtree(gone)

    def _opened(self) -> int:
        while True:
            try:
                self.folder.mkdir(exist_ok=True)
                return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            except OSError as error:
                missing = isinstance(error, FileNotFoundError) and not self.folder.exists()
                # Another run may have removed the folder in between.
                if not missing or not self.target.parent.is_dir():
                    raise OutputError.of(f"beside {self.target}", error) from error

    def _lock(self, file: int) -> None:
        # The workers of a killed run hold it, too, and finish their parts before they notice.
        end = monotonic() + _PATIENCE
        while not lock(file):
            if monotonic() > end:
                raise ConfigError(f"another run is writing {self.target}: wait for it, or name another file")
            sleep(0.05)

    def _clear(self) -> None:
        assert self._file is not None
        os.ftruncate(self._file, 0)
        for path in self.folder.iterdir():
            if path != self._path:
                path.unlink()

    def _begin(self) -> None:
        self._clear()
        try:
            self._append(self._identity)
        except OSError as error:
            raise OutputError.of(f"beside {self.target}", error) from error
        self._sync_beside()

    def _sync_beside(self) -> None:
        # Who may write there need not have the right to read, which this takes.
        with suppress(OSError):
            sync_folder(self.target.parent)

    def _append(self, value: Mapping[str, Any]) -> None:
        assert self._file is not None
        line = json.dumps(value).encode() + b"\n"
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            # Half a note: it never was one.
            line = b"\n" + line
        os.write(self._file, line)
        os.fsync(self._file)


def is_named(target: Path) -> bool:
    """Tell whether a run was killed when its file had got its name, and nothing was left but to tidy up."""
    folder = _folder(target)
    if (folder / OUTPUT).exists() or not target.is_file() or not (folder / _NAME).is_file():
        return False
    _, *notes = _notes(folder / _NAME) or [{}]
    return bool(notes) and notes[-1].get("bytes") == target.stat().st_size


def _folder(target: Path) -> Path:
    return target.with_name(f"{target.name}{UNFINISHED}")


def _notes(path: Path) -> list[State]:
    """Return the notes that are whole; the one that was being written when the run ended is none."""
    found: list[State] = []
    for line in path.read_bytes().splitlines():
        # One that was cut off is no JSON.
        with suppress(ValueError):
            found.append(json.loads(line))
    return found


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the first thing in which two runs differ, in words."""
    name = next((name for name in now if before.get(name) != now[name]), "")
    if name == "sources":
        return _other_sources(before.get(name) or [], now[name])
    if not name:
        return "other options"
    other = "other" if name.endswith("s") else "another"
    return f"{other} {name} ({before.get(name)!r:.200}, here {now.get(name)!r:.200})"


def _other_sources(before: Sequence[Sequence[Any]], now: Sequence[Sequence[Any]]) -> str:
    """Return which sources are others; each is its name and what tells whether it changed."""
    names = [[str(one[0]) for one in several] for several in (before, now)]
    if names[0] != names[1]:
        return f"other sources ({shorten(', '.join(names[0]))}, here {shorten(', '.join(names[1]))})"
    changed = next(one[0] for one, other in zip(before, now, strict=True) if list(one) != list(other))
    if not is_repeatable(changed):
        return f"what came through another pipe ({changed}), which nobody can read again"
    return f"{changed} as it was before it changed"
