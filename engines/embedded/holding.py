"""Having an index alone: for one batch, or kept from other processes for longer."""

import threading
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from shinglefold.contracts import JSON
from shinglefold.engines.embedded.index import Index

#: The file by which a process lets another know that it waits for an index.
_WANTED = ".wanted"


class ExclusiveAccess:
    """What the embedded engine offers to whose indices one process at a time may write."""

    path: Path
    _lock: threading.RLock

    @abstractmethod
    def _index(self, index: str) -> Index:
        """Return an open index."""

    @abstractmethod
    def _opened(self, index: str) -> Index | None:
        """Return an index if it is open."""

    @abstractmethod
    def _whole(self, index: str) -> AbstractContextManager[None]:
        """Say which files are damaged, where that is why something goes wrong inside."""

    @contextmanager
    def exclusive(self, index: str) -> Iterator[None]:
        """Be the one that writes to an index; see ``ExclusiveWrites``.

        Other threads wait as long, for searches, too. The lock of the folder is given back at the end, unless
        this engine had it before; whoever dies gives it back as well.

        Raises:
            EngineUnavailable: another process writes to the index.
        """
        with self._lock:
            own = self._index(index)
            had = own.writes
            own.begin()
            try:
                own.refresh()
                yield
                own.refresh()
            finally:
                if not had:
                    own.end()

    @contextmanager
    def deciding(self, index: str, fields: Collection[str]) -> Iterator[None]:
        """Be the one that writes to an index, for one decision after another; see ``ExclusiveWrites``.

        Other threads wait as long. What is written is noted in a journal, and committed for many decisions at
        once: about once a second, beside them, and when the index is given back.

        Raises:
            EngineUnavailable: another process writes to the index, or its files can't be written.
        """
        with self._lock:
            own = self._index(index)
            had = own.writes
            try:
                own.watch(fields)
                yield
                own.note()
            finally:
                if not had:
                    own.end()

    def unsearched(self, index: str, field: str, values: Collection[object]) -> dict[object, list[str]]:
        """Return by value the documents that searches need not see yet; see ``ExclusiveWrites``."""
        with self._lock:
            return self._index(index).unsearched(field, values)

    @contextmanager
    def held(self, index: str) -> Iterator[None]:
        """Keep other processes from writing to an index; see ``ExclusiveWrites``.

        Merging goes on beside. It is waited for when the index is given back, unless this engine had it
        before.

        Raises:
            EngineUnavailable: another process writes to the index.
        """
        with self._lock:
            own = self._index(index)
            had = own.writes
            own.begin()
        try:
            yield
        finally:
            with self._lock:
                if not had and self._opened(index) is own:
                    own.end()

    def want(self, index: str) -> None:
        """Let the process that holds an index know that another waits for it; see ``ExclusiveWrites``."""
        with suppress(OSError):
            (self.path / index / _WANTED).touch()

    def wanted(self, index: str) -> bool:
        """Tell once whether another process waits for an index; see ``ExclusiveWrites``."""
        try:
            (self.path / index / _WANTED).unlink()
        except OSError:
            return False
        return True

    def get_all(self, index: str, ids: Sequence[str]) -> list[JSON | None]:
        """Return the sources of documents as they are now, None for those that are gone; see ``get``."""
        with self._lock, self._whole(index):
            return self._index(index).sources(ids)
