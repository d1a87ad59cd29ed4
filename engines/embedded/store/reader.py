"""Index files opened for searches: in place, or through a mirror of links if the folder is read-only."""

import json
import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import tantivy

from shinglefold.engines.embedded.schema.catalog import Catalog
from shinglefold.engines.embedded.schema.tantivy_schema import TANTIVY, translated
from shinglefold.engines.embedded.store.checksums import (
    META,
    TRIES,
    check_files,
    damaged,
    head_problems,
    segment_files,
)
from shinglefold.engines.embedded.store.record_files import FOLDER, Heads, RecordFiles
from shinglefold.engines.embedded.store.write_ahead_log import check_journal
from shinglefold.errors import EngineUnavailable, reason_of

_LOCK = ".tantivy-meta.lock"
#: Bytes up to which an index is checked completely when it is opened: 60 ms from memory.
_CHECKED = 256_000_000
#: Identifies a version of an index: folder, list of segments, catalog.
Stamp = tuple[tuple[int, int, int], ...]


class Reader:
    """An index's files, open for searches.

    tantivy wants to write a lock file whenever it opens segments. Where it can't, it is given a folder of
    links to the files instead, in the system's folder for temporary files.

    Args:
        folder: of the index.
        catalog: its own.

    Raises:
        EngineUnavailable: the files are damaged or can't be read.
    """

    def __init__(self, folder: Path, catalog: Catalog) -> None:
        self._folder = folder
        self._files = folder / TANTIVY
        self._schema = catalog.schema
        self._record_files = RecordFiles({})
        check_files(self._files, self._schema, _CHECKED)
        check_journal(folder)
        self._mirror = None if _writable(self._files) else _Mirror(self._files)
        with translated(f"opening {folder.name}"):
            self.index = tantivy.Index.open(str(self._mirror.path if self._mirror else self._files))
            # Searches see commits only when ``reload`` is called.
            self.index.config_reader("manual")
            self._reload()
        self._check_heads(_CHECKED)
        # While the folder is open, no other gets its inode number, which identifies it.
        self._held: int | None = os.open(self._files, os.O_RDONLY)

    @property
    def heads(self) -> Heads:
        """The heads of all documents that current and earlier searchers see."""
        return Heads(self._record_files)

    def reload(self) -> None:
        """Let new searchers see what is committed now."""
        with translated(f"refreshing {self._folder.name}"):
            if self._mirror:
                self._mirror.update()
            self._reload()

    def check(self) -> None:
        """Check the contents of all files.

        Raises:
            EngineUnavailable: some are damaged; the message names them.
        """
        check_files(self._files, self._schema)
        check_journal(self._folder)
        self._check_heads(None)

    def _reload(self) -> None:
        self._loaded = self.stamp()
        # Mapped before and after: a writer may remove files that earlier searchers still need.
        before = RecordFiles.of(self._folder / FOLDER, self._record_files)
        self.index.reload()
        self._record_files = before | RecordFiles.of(self._folder / FOLDER, before)

    def _check_heads(self, most: int | None) -> None:
        for tried in range(1, TRIES + 1):
            with translated(f"checking {self._folder.name}"):
                found = head_problems(self.index, self._folder / FOLDER, most)
            if not found:
                return
            if tried == TRIES or self._loaded == self.stamp():
                raise damaged(self._folder, found)
            # A writer committed meanwhile, and may have removed files.
            self.reload()

    def stamp(self) -> Stamp:
        """Return the version, which changes with every commit of any process. Cost: a few microseconds."""
        return stamp(self._folder)

    @property
    def read_only(self) -> bool:
        """Whether nothing may be written to the folder."""
        return self._mirror is not None

    def close(self) -> None:
        """Close the mirror and the folder."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)
        if self._mirror:
            self._mirror.close()


def stamp(folder: Path) -> Stamp:
    """Return the version of an index; zeros if it is gone."""
    with suppress(OSError):
        files = (folder / TANTIVY, folder / TANTIVY / META, folder / "catalog.json")
        first, *others = [file.stat() for file in files]
        return ((first.st_ino, 0, 0), *((one.st_ino, one.st_mtime_ns, one.st_size) for one in others))
    return ((0, 0, 0),)


class _Mirror:
    """A folder with tantivy's list of segments and links to their files."""

    def __init__(self, files: Path) -> None:
        self._files = files.resolve()
        try:
            self._folder = TemporaryDirectory(prefix="shinglefold-", ignore_cleanup_errors=True)
        except OSError as error:
            raise EngineUnavailable(
                f"the index in {files.parent} can't be written, and there is no folder for temporary files "
                f"to read it through ({reason_of(error)}); set TMPDIR to one"
            ) from error
        self.path = Path(self._folder.name)
        with translated(f"opening {files.parent.name}"):
            self.update()

    def update(self) -> None:
        """Link new files, then copy the list of segments."""
        content = (self._files / META).read_bytes()
        wanted = {name for name, _ in segment_files(json.loads(content))}
        for name in wanted:
            if not (self.path / name).is_symlink():
                (self.path / name).symlink_to(self._files / name)
        part = self.path / f".{META}"
        part.write_bytes(content)
        part.replace(self.path / META)
        for link in self.path.iterdir():
            if link.is_symlink() and link.name not in wanted:
                link.unlink()

    def close(self) -> None:
        self._folder.cleanup()


def _writable(files: Path) -> bool:
    lock = files / _LOCK
    return os.access(files, os.W_OK | os.X_OK) and (not lock.exists() or os.access(lock, os.R_OK | os.W_OK))
