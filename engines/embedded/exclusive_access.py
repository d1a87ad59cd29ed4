"""Exclusive write access to an index: for one batch, or for longer."""

import threading
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from shinglefold.contracts.engine import JSON
from shinglefold.engines.embedded.store.index import Index
from shinglefold.engines.embedded.store.index_folders import LEASE_REQUEST


class ExclusiveAccess:
    """The part of ``EmbeddedEngine`` that implements ``ExclusiveWrites``."""

    path: Path
    _lock: threading.RLock

    @abstractmethod
    def _index(self, index: str) -> Index:
        """Return an open index."""

    @abstractmethod
    def _index_if_open(self, index: str) -> Index | None:
        """Return an index if it is open."""

    @abstractmethod
    def _name_corrupt_files(self, index: str) -> AbstractContextManager[None]:
        """Name corrupt files if the block fails because of them."""

    @contextmanager
    def exclusive(self, index: str) -> Iterator[None]:
        """Keep the write lock of an index; see ``ExclusiveWrites``.

        Other threads of this engine wait meanwhile, also to search. The lock is released at the end, unless
        this engine had it before, or when the process dies.

        Raises:
            EngineUnavailable: another process writes to the index.
        """
        with self._lock:
            opened = self._index(index)
            was_writing = opened.is_writing
            opened.acquire()
            try:
                opened.refresh()
                yield
                opened.refresh()
            finally:
                if not was_writing:
                    opened.release()

    @contextmanager
    def deciding(self, index: str, fields: Collection[str]) -> Iterator[None]:
        """Keep the write lock of an index for one of many decisions; see ``ExclusiveWrites``.

        Other threads of this engine wait meanwhile. Writes are logged, and committed in the background about
        once a second, and when the index is released.

        Raises:
            EngineUnavailable: another process writes to the index, or its files can't be written.
        """
        with self._lock:
            opened = self._index(index)
            was_writing = opened.is_writing
            try:
                opened.watch(fields)
                yield
                opened.log_changes()
            finally:
                if not was_writing:
                    opened.release()

    def pending_by_value(self, index: str, field: str, values: Collection[object]) -> dict[object, list[str]]:
        """Return pending documents by value; see ``ExclusiveWrites``."""
        with self._lock:
            return self._index(index).pending_by_value(field, values)

    @contextmanager
    def lease(self, index: str) -> Iterator[None]:
        """Keep other processes from writing to an index; see ``ExclusiveWrites``.

        Merges run in the background. The last lease releases the index and waits for them, unless this engine
        had it before and nobody released it meanwhile.

        Raises:
            EngineUnavailable: another process writes to the index.
        """
        with self._lock:
            opened = self._index(index)
            was_writing = opened.is_writing
            opened.acquire()
            if not opened.leases:
                opened.kept = was_writing
            opened.leases += 1
        try:
            yield
        finally:
            with self._lock:
                opened.leases -= 1
                if not (opened.leases or opened.kept) and self._index_if_open(index) is opened:
                    opened.release()

    def request_lease(self, index: str) -> None:
        """Ask the process that holds an index to release it; see ``ExclusiveWrites``."""
        with suppress(OSError):
            (self.path / index / LEASE_REQUEST).touch()

    def lease_requested(self, index: str) -> bool:
        """Return whether another process requested an index since the last call; see ``ExclusiveWrites``."""
        try:
            (self.path / index / LEASE_REQUEST).unlink()
        except OSError:
            return False
        return True

    def get_all(self, index: str, ids: Sequence[str]) -> list[JSON | None]:
        """Return the current sources of documents, None for deleted ones; see ``get``."""
        with self._lock, self._name_corrupt_files(index):
            return self._index(index).sources(ids)
