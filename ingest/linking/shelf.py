"""Where the columns of a collection are: in a folder that a killed run goes on with, or in nameless files."""

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from shinglefold.durable import sync_folder
from shinglefold.errors import ConfigError, InputError, why
from shinglefold.locks import lock

State = dict[str, Any]
_BUFFER = 1 << 20
_NOTES = "stages.json"


class Shelf:
    """Files by name, and notes on what was made of them.

    Args:
        folder: where they are kept; None keeps them in temporary files that are gone with the process.
        restart: forget what an earlier run left there.

    Raises:
        ConfigError: another run works there, or it is a folder of something else.
        InputError: it can't be made.
    """

    def __init__(self, folder: Path | None = None, restart: bool = False) -> None:
        self.folder = folder
        self._files: dict[str, IO[bytes]] = {}
        self._notes: dict[str, State] = {}
        self._lock = -1
        if folder is not None:
            self._begin(folder, restart)

    def _begin(self, folder: Path, restart: bool) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            foreign = not (folder / _NOTES).exists() and any(folder.iterdir())
            self._lock = os.open(folder, os.O_RDONLY)
        except OSError as error:
            raise InputError(f"cannot work in {folder}: {why(error)}; check the path") from error
        if foreign:
            raise ConfigError(f"{folder} holds other files: name an empty or a new folder with --work")
        if not lock(self._lock):
            raise ConfigError(f"another run works in {folder}: wait for it, or name another folder")
        if not restart:
            # A note is whole or not there: it is renamed into its place.
            with suppress(FileNotFoundError, ValueError):
                self._notes = json.loads((folder / _NOTES).read_text("utf-8"))
        self._write_notes()

    def file(self, name: str, anew: bool = False) -> IO[bytes]:
        """Return a file to read and write; the same one for the same name.

        Args:
            anew: what it holds is forgotten.
        """
        if name not in self._files:
            if self.folder is None:
                self._files[name] = tempfile.TemporaryFile(buffering=_BUFFER)  # noqa: SIM115 - kept open
            else:
                path = self.folder / name
                self._files[name] = path.open("r+b" if path.exists() else "w+b", buffering=_BUFFER)
        file = self._files[name]
        if anew:
            cut(file, 0)
        return file

    def noted(self, stage: str, identity: Mapping[str, Any]) -> State | None:
        """Return what was noted of a stage; None where there is nothing, or of other options."""
        found = self._notes.get(stage)
        if found is None or found["identity"] != _plain(identity):
            return None
        state: State = found["state"]
        return state

    def left_over(self, stage: str) -> State | None:
        """Return what a stage depended on, whose note is there; None where there is none."""
        found = self._notes.get(stage)
        return None if found is None else found["identity"]

    def note(self, stage: str, identity: Mapping[str, Any], state: State, *names: str) -> None:
        """Note how far a stage is, once the files it made are on the disk."""
        if self.folder is None:
            return
        for name in names:
            file = self.file(name)
            file.flush()
            os.fsync(file.fileno())
        self._notes[stage] = {"identity": _plain(identity), "state": state}
        self._write_notes()

    def close(self) -> None:
        """Let another run go on, and give back what temporary files hold."""
        for file in self._files.values():
            # What a full disk does not take was not noted, and is made again.
            with suppress(OSError):
                file.close()
        self._files.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _write_notes(self) -> None:
        assert self.folder is not None
        made = self.folder / f"{_NOTES}.new"
        with made.open("w", encoding="utf-8") as file:
            json.dump(self._notes, file)
            file.flush()
            os.fsync(file.fileno())
        made.replace(self.folder / _NOTES)
        # With the names of the files that the notes tell of.
        sync_folder(self.folder)


def cut(file: IO[bytes], size: int) -> None:
    """Cut a file off behind so many bytes, and go on writing there."""
    file.flush()
    file.truncate(size)
    file.seek(size)


def _plain(identity: Mapping[str, Any]) -> State:
    plain: State = json.loads(json.dumps(identity))
    return plain
