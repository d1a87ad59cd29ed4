"""The journal of a run on disk, from which the next run resumes after a kill.

Until the run is complete, the folder ``FILE.unfinished`` stands next to FILE. Output is written and synced
first. Then an entry with its size is appended to the journal and synced. The next run cuts off output beyond
the last entry and makes it again, so nothing is written twice or in part.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import xxhash

from shinglefold.errors import ConfigError, InputError, OutputError, shorten
from shinglefold.ingest.readers.read import is_page_file
from shinglefold.model.scheme import Scheme
from shinglefold.offline.sign.signer import SignOptions
from shinglefold.offline.sign.tasks import LARGEST, is_repeatable
from shinglefold.runtime.durable_files import is_same_file, lock, require_locks, sync_folder

#: Seconds between two entries: a kill loses at most the work of this time.
_PAUSE = 1.0
#: Seconds to wait for another run to release the journal.
_PATIENCE = 5.0
#: The files of the folder.
_NAME, OUTPUT = "journal", "output"
#: The names of all files of the folder, and the beginning of a journal.
_OWN, _HEAD = re.compile(rf"{_NAME}|{OUTPUT}|part-\d{{8}}\..+"), b'{"layout": ['
#: Suffix of the folder.
UNFINISHED = ".unfinished"
#: Increase it if tasks or output bytes change, so that no run resumes one of an earlier layout.
LAYOUT = 1
State = dict[str, Any]


class RunJournal:
    """The journal of one run, locked against other runs.

    Args:
        target: the output file.
        identity: everything that decides the output, as JSON.
    """

    def __init__(self, target: Path, identity: Mapping[str, Any]) -> None:
        require_locks("signing into a file")
        self.target = target
        self.folder = _unfinished_folder(target)
        self._path = self.folder / _NAME
        self._identity = json.loads(json.dumps(identity))
        self._file: int | None = None
        self._noted = monotonic()

    def open(self, restart: bool = False) -> State | None:
        """Lock the journal and return its last entry, None for a new run.

        Args:
            restart: discard the output of an earlier run.

        Raises:
            ConfigError: the folder is of a run with other sources or options, another run writes to it, or it
                has files of others.
            OutputError: the folder can't be made.
        """
        # The run that had the lock may have finished and removed the file.
        while self._file is None or not is_same_file(self._file, self._path):
            self.close()
            self._file = self._open_file()
            self._lock(self._file)
        # A kill may have cut off the first entry.
        if not _HEAD.startswith(os.pread(self._file, len(_HEAD), 0)):
            raise self._foreign(self._path)
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
        """Whether the next entry is due."""
        return monotonic() - self._noted >= _PAUSE

    def note(self, state: State) -> None:
        """Append an entry; sync the output that it counts before."""
        self._append(state)
        self._noted = monotonic()

    def close(self) -> None:
        """Release the lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def name(self, whole: Path) -> None:
        """Rename a complete, synced file to the target, and remove the folder."""
        whole.replace(self.target)
        self._sync_parent()
        self.remove()

    def remove(self) -> None:
        """Remove the folder."""
        # Rename it first: another run may be waiting to make a folder of this name.
        gone = self.folder.with_name(f".{self.folder.name}.{os.getpid()}")
        self.folder.rename(gone)
        shutil.rmtree(gone)

    def _open_file(self) -> int:
        while True:
            try:
                self.folder.mkdir(exist_ok=True)
                for path in sorted(self.folder.iterdir()):
                    if not _OWN.fullmatch(path.name):
                        raise self._foreign(path)
                return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            except OSError as error:
                missing = isinstance(error, FileNotFoundError) and not self.folder.exists()
                # Another run may have removed the folder in between.
                if not missing or not self.target.parent.is_dir():
                    raise OutputError.of(f"beside {self.target}", error) from error

    def _foreign(self, path: Path) -> ConfigError:
        return ConfigError(
            f"{path} is not a file of sign, which would remove it: move it away, or name another output file"
        )

    def _lock(self, file: int) -> None:
        # The workers of a killed run keep the lock until they have finished their parts.
        end = monotonic() + _PATIENCE
        while not lock(file):
            if monotonic() > end:
                raise ConfigError(f"another run is writing {self.target}: wait for it, or name another file")
            sleep(0.05)

    def _begin(self) -> None:
        assert self._file is not None
        os.ftruncate(self._file, 0)
        for path in self.folder.iterdir():
            if path != self._path:
                path.unlink()
        try:
            self._append(self._identity)
        except OSError as error:
            raise OutputError.of(f"beside {self.target}", error) from error
        self._sync_parent()

    def _sync_parent(self) -> None:
        # Syncing needs the right to read the folder, which its writer may lack.
        with suppress(OSError):
            sync_folder(self.target.parent)

    def _append(self, value: Mapping[str, Any]) -> None:
        assert self._file is not None
        line = json.dumps(value).encode() + b"\n"
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            # A kill cut off the last entry.
            line = b"\n" + line
        os.write(self._file, line)
        os.fsync(self._file)


def is_named(target: Path) -> bool:
    """Return whether a run was killed between renaming its output and removing its folder."""
    folder = _unfinished_folder(target)
    if (folder / OUTPUT).exists() or not target.is_file() or not (folder / _NAME).is_file():
        return False
    _, *notes = _notes(folder / _NAME) or [{}]
    return bool(notes) and notes[-1].get("bytes") == target.stat().st_size


def _unfinished_folder(target: Path) -> Path:
    return target.with_name(f"{target.name}{UNFINISHED}")


def _notes(path: Path) -> list[State]:
    """Return the complete entries."""
    found: list[State] = []
    for line in path.read_bytes().splitlines():
        # An entry that was cut off is not JSON.
        with suppress(ValueError):
            found.append(json.loads(line))
    return found


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describe the first difference between the identities of two runs."""
    name = next((name for name in now if before.get(name) != now[name]), "")
    if name == "sources":
        return _other_sources(before.get(name) or [], now[name])
    if not name:
        return "other options"
    other = "other" if name.endswith("s") else "another"
    return f"{other} {name} ({before.get(name)!r:.200}, here {now.get(name)!r:.200})"


def _other_sources(before: Sequence[Sequence[Any]], now: Sequence[Sequence[Any]]) -> str:
    """Describe how the sources of two runs differ; each is its name and its state."""
    names = [[str(one[0]) for one in several] for several in (before, now)]
    if names[0] != names[1]:
        return f"other sources ({shorten(', '.join(names[0]))}, here {shorten(', '.join(names[1]))})"
    changed = next(one[0] for one, other in zip(before, now, strict=True) if list(one) != list(other))
    if not is_repeatable(changed):
        return f"what came through another pipe ({changed}), which nobody can read again"
    return f"{changed} as it was before it changed"


def identity(sources: Sequence[str], options: SignOptions, scheme: Scheme, seal: str) -> dict[str, Any]:
    """Return everything that decides the output of a run, as JSON.

    Only a run of the same identity resumes. Each pipe is different, so a run that reads one never does.
    """
    reading = options.reading
    return {
        "layout": [LAYOUT, LARGEST],
        "sources": [_source_state(source) for source in sources],
        "scheme": scheme.id,
        "seal": seal,
        "texts": list(options.fields),
        "language field": options.language_field,
        **({"never_differ": options.never_differ.names} if options.never_differ else {}),
        "html": options.html,
        "only ids": options.only_ids,
        "field": options.target,
        "reading": [reading.format, reading.id_field, reading.encoding, reading.header, reading.max_bytes],
    }


class SourceStates:
    """The states of sources when a run began, to detect changes while it reads them.

    Pipes are read once and in order, so they cannot change.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        self._states = {source: _source_state(source) for source in sources if is_repeatable(source)}

    def check(self, *, folders: bool = True) -> None:
        """Raise ``InputError`` if a source has changed; walking through ``folders`` takes long."""
        for source, state in self._states.items():
            if (folders or not Path(source).is_dir()) and _source_state(source) != state:
                raise InputError(
                    f"{source} changed while it was read, so that documents may be missing or torn: begin "
                    "anew once nobody writes to it, or with a copy"
                )


def _source_state(source: str) -> list[Any]:
    """Return the name of a source and its state: size and time, or a digest of these for a folder."""
    if not is_repeatable(source):
        return [source, os.getpid(), os.urandom(8).hex()]
    path = Path(source)
    if path.is_dir():
        return [str(path.resolve()), _folder_digest(source)]
    found = path.stat()
    return [str(path.resolve()), found.st_size, found.st_mtime_ns]


def _folder_digest(source: str) -> str:
    digest = xxhash.xxh3_128()
    for folder, folders, names in os.walk(source):
        # The output and the dead letters may be written into the folder; they are not sources.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            file = os.path.join(folder, name)
            if not is_page_file(file):
                continue
            try:
                found = os.stat(file)
            except OSError:
                continue
            digest.update(repr((folder, name, found.st_size, found.st_mtime_ns)).encode("utf-8", "replace"))
    return digest.hexdigest()
