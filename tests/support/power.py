"""What a machine has on its disk that loses its power: what was synchronized, and nothing that was not."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Disk:
    """Keeps a folder as it is on disk at worst: what was synchronized, folders and files each for itself.

    Args:
        folder: which is on disk as it is now.
        before: called ahead of each synchronization.
        synced_folder: a folder in it whose files are synchronized elsewhere: they are on disk as they are.
    """

    def __init__(
        self, folder: Path, patch: pytest.MonkeyPatch, before: Callable[[], None], synced_folder: str = ""
    ) -> None:
        self._folder, self._before, self._synced_folder = folder, before, synced_folder
        #: By the number of each: what a file holds; the names in a folder, their numbers, which are folders.
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, list[tuple[str, int, bool]]] = {}
        #: All stay open, as what is made later would else get the number of what is gone.
        self._held: list[int] = []
        self._fsync = os.fsync
        for path in (folder, *folder.rglob("*")):
            self._keep(path)
        patch.setattr(os, "fsync", self._synchronize)

    def copy(self, to: Path) -> None:
        """Write what is on disk into a folder."""
        self._write(self._folder.stat().st_ino, to)
        live, copied = self._folder / self._synced_folder, to / self._synced_folder
        if self._synced_folder and live.is_dir() and copied.is_dir():
            # Threads of tantivy write their notes beside.
            shutil.copytree(live, copied, ignore=shutil.ignore_patterns(".tmp*"), dirs_exist_ok=True)

    def close(self) -> None:
        for descriptor in self._held:
            os.close(descriptor)

    def _synchronize(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_relative_to(self._folder):
            self._before()
            self._keep(path)
        self._fsync(descriptor)

    def _keep(self, path: Path) -> None:
        held = os.open(path, os.O_RDONLY)
        self._held.append(held)
        number = os.fstat(held).st_ino
        if path.is_dir():
            self._names[number] = [(one.name, one.inode(), one.is_dir()) for one in os.scandir(path)]
        else:
            self._contents[number] = path.read_bytes()

    def _write(self, number: int, to: Path) -> None:
        to.mkdir(parents=True)
        for name, inside, is_folder in self._names.get(number, ()):
            if is_folder:
                self._write(inside, to / name)
            else:
                (to / name).write_bytes(self._contents.get(inside, b""))


@contextmanager
def losses(folder: Path, copies: Path) -> Iterator[list[Path]]:
    """Yield a list of copies: what is on disk ahead of each synchronization, and at the end of the block.

    Args:
        folder: which is made here, and written to in the block.
        copies: the folder they go to.
    """
    made: list[Path] = []
    folder.mkdir()

    def lose() -> None:
        made.append(copies / f"{len(made):03}")
        disk.copy(made[-1])

    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(folder, patch, lose)
        yield made
        lose()
        disk.close()
