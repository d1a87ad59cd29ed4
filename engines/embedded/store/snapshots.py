"""Readers and snapshots of an index, cached sort orders, and points in time."""

import json
import os
import re
import time
import uuid
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import isinf
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import tantivy

from shinglefold.documents import well_formed
from shinglefold.engines.embedded.schema.catalog import Catalog
from shinglefold.engines.embedded.schema.tantivy_schema import TANTIVY, translate_errors
from shinglefold.engines.embedded.store.checksums import (
    META,
    TRIES,
    check_files,
    damage_error,
    head_problems,
    segment_files,
)
from shinglefold.engines.embedded.store.document_encoder import stored_source, stored_sources
from shinglefold.engines.embedded.store.record_files import FOLDER, Heads, RecordFiles
from shinglefold.engines.embedded.store.write_ahead_log import check_journal
from shinglefold.errors import EngineUnavailable, PitExpired, UnsupportedQuery, reason_of

Places = npt.NDArray[np.int64]
#: The rank of a missing value: after all others, or negated before them.
GAP = 2**62
#: The most rows cached with a snapshot; a row has 12 bytes, and 8 more for each key.
_CACHED_ROWS = 4_000_000


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A sort key of all hits: ``ranks`` are positions in ``distinct`` (negated if descending) or ``gap``.

    ``distinct`` ascends; it is None if the ranks are the values. ``number`` converts a cursor's value so
    that it compares with ``distinct``.
    """

    ranks: Places
    distinct: Sequence[Any] | None
    sign: int
    gap: int
    number: Callable[[Any], Any]

    def value(self, row: int) -> Any:  # noqa: ANN401 - what the field holds
        """Return the sort value of a row for the response."""
        rank = int(self.ranks[row])
        if rank == self.gap:
            return None
        if self.distinct is None:
            return self.sign * rank
        return shown_value(self.distinct[self.sign * rank])

    def rank_of(self, value: object) -> float:
        """Return the rank of a cursor's value. A value that no hit has ranks between its neighbours."""
        if value is None:
            return self.gap
        wanted = self.number(value)
        if self.distinct is None:
            return int(self.sign * wanted)
        rank = bisect_left(self.distinct, wanted)
        known = rank < len(self.distinct) and self.distinct[rank] == wanted
        return self.sign * (rank if known else rank - 0.5)


def shown_value(value: Any) -> Any:  # noqa: ANN401 - what a field holds
    """Return a sort value as servers do: 32 bits as their shortest decimal number, and infinity as a text."""
    if isinstance(value, np.generic):
        value = float(str(value)) if value.dtype == np.float32 else value.item()
    if isinstance(value, float) and isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


@dataclass(frozen=True, slots=True)
class Order:
    """Hits in order: positions in the index, scores, sort keys, and the best score."""

    places: Places
    scores: npt.NDArray[np.float32]
    columns: tuple[SortColumn, ...]
    best: float | None

    @classmethod
    def of(cls, places: Places, scores: npt.NDArray[np.float32], columns: Sequence[SortColumn]) -> Self:
        """Return hits sorted by columns, then by position in the index."""
        rows = np.lexsort((places, *(column.ranks for column in reversed(columns))))
        sorted_columns = tuple(
            SortColumn(one.ranks[rows], one.distinct, one.sign, one.gap, one.number) for one in columns
        )
        best = float(scores.max()) if scores.size else None
        return cls(places[rows], scores[rows], sorted_columns, best)

    def after(self, cursor: Sequence[Any]) -> int:
        """Return the first row after a cursor."""
        wanted = tuple(column.rank_of(value) for column, value in zip(self.columns, cursor, strict=True))
        low, high = 0, self.places.size
        while low < high:
            middle = (low + high) // 2
            if tuple(int(column.ranks[middle]) for column in self.columns) > wanted:
                high = middle
            else:
                low = middle + 1
        return low

    def sort_values(self, row: int) -> list[Any]:
        """Return the sort values of a row."""
        return [column.value(row) for column in self.columns]


class SortCache:
    """An LRU cache of sorted results; threads may share it."""

    def __init__(self) -> None:
        self._cache: OrderedDict[Hashable, Order] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Order | None:
        """Return a cached order, None if there is none."""
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
            return self._cache.get(key)

    def keep(self, key: Hashable, order: Order) -> None:
        """Cache an order, and evict the least recently used ones."""
        with self._lock:
            self._cache[key] = order
            while len(self._cache) > 1 and self._rows() > _CACHED_ROWS:
                self._cache.popitem(last=False)

    def _rows(self) -> int:
        return sum(order.places.size for order in self._cache.values())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of an index at one moment; later writes and merges do not change it."""

    name: str
    catalog: Catalog
    searcher: tantivy.Searcher
    schema: tantivy.Schema
    heads: Heads
    sort_cache: SortCache = field(default_factory=SortCache)

    def source(self, id_: str) -> dict[str, Any] | None:
        """Return a document, None if it does not exist."""
        place = self._place(id_)
        return stored_source(self.searcher, self.heads, place).load() if place else None

    def sources(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the documents that exist, by id. Columns are opened once for all."""
        there = {id_: place for id_ in ids if (place := self._place(id_))}
        found = stored_sources(self.searcher, self.heads, list(there.values()))
        return {id_: source.load() for id_, source in zip(there, found, strict=True)}

    def _place(self, id_: str) -> tantivy.DocAddress | None:
        """Return the address of a document, None if it does not exist or the id is not valid Unicode."""
        if well_formed(id_) != id_:
            return None
        query = tantivy.Query.term_query(self.schema, "_id", id_)
        hits = self.searcher.search(query, 1, count=False).hits
        return hits[0][1] if hits else None


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


@dataclass(slots=True)
class Pits:
    """The open points in time of an engine; ``clock`` gives seconds."""

    clock: Callable[[], float] = time.monotonic
    _open: dict[str, tuple[Snapshot, float]] = field(default_factory=dict)

    def open(self, snapshot: Snapshot, keep_alive: str) -> str:
        """Keep a snapshot and return its id."""
        seconds = _seconds(keep_alive)
        self._expire()
        pit = uuid.uuid4().hex
        self._open[pit] = snapshot, self.clock() + seconds
        return pit

    def snapshot(self, pit: str, keep_alive: str | None) -> Snapshot:
        """Return the snapshot of a point in time, and extend its time by ``keep_alive``.

        Raises:
            PitExpired: it was closed or ran out.
        """
        self._expire()
        if pit not in self._open:
            raise PitExpired(f"no point in time {pit!r}: it was closed or ran out; open another")
        snapshot, until = self._open[pit]
        if keep_alive is not None:
            self._open[pit] = snapshot, max(until, self.clock() + _seconds(keep_alive))
        return snapshot

    def close(self, pit: str) -> None:
        """Close a point in time."""
        self._open.pop(pit, None)

    def drop(self, index: str) -> None:
        """Close all points in time of an index."""
        self._open = {pit: one for pit, one in self._open.items() if one[0].name != index}

    def clear(self) -> None:
        """Close all points in time."""
        self._open.clear()

    def _expire(self) -> None:
        now = self.clock()
        self._open = {pit: one for pit, one in self._open.items() if one[1] > now}


def _seconds(text: object) -> float:
    found = re.fullmatch(r"(\d{1,9})(ms|s|m|h|d)", str(text))
    if found is None:
        raise UnsupportedQuery(
            f"keep_alive {text!r}: expected a number and one of {', '.join(_UNITS)}, such as 1m"
        )
    return int(found[1]) * _UNITS[found[2]]


_LOCK = ".tantivy-meta.lock"
#: An index of at most this many bytes is checked completely when it is opened: 60 ms from memory.
_CHECKED = 256_000_000
#: Identifies a version of an index by its folder, list of segments and catalog.
Stamp = tuple[tuple[int, int, int], ...]


class Reader:
    """The files of an index, open for searches.

    tantivy writes a lock file whenever it opens segments. For a read-only folder it opens a temporary folder
    with links to the files instead.

    Args:
        folder: the folder of the index.
        catalog: the catalog of the index.

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
        with translate_errors(f"opening {folder.name}"):
            self.index = tantivy.Index.open(str(self._mirror.path if self._mirror else self._files))
            # Searches see commits only when ``reload`` is called.
            self.index.config_reader("manual")
            self._reload()
        self._check_heads(_CHECKED)
        # While the folder is open, no other gets its inode number, which identifies it.
        self._folder_descriptor: int | None = os.open(self._files, os.O_RDONLY)

    @property
    def heads(self) -> Heads:
        """The heads of all documents in current and earlier searchers."""
        return Heads(self._record_files)

    def reload(self) -> None:
        """Let new searchers see the last commit."""
        with translate_errors(f"refreshing {self._folder.name}"):
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
        self._loaded_stamp = self.stamp()
        # Map the files before and after the reload, because earlier searchers may need removed ones.
        before = RecordFiles.of(self._folder / FOLDER, self._record_files)
        self.index.reload()
        self._record_files = before | RecordFiles.of(self._folder / FOLDER, before)

    def _check_heads(self, most: int | None) -> None:
        for tried in range(1, TRIES + 1):
            with translate_errors(f"checking {self._folder.name}"):
                found = head_problems(self.index, self._folder / FOLDER, most)
            if not found:
                return
            if tried == TRIES or self._loaded_stamp == self.stamp():
                raise damage_error(self._folder, found)
            # A writer has committed and may have removed files.
            self.reload()

    def stamp(self) -> Stamp:
        """Return the version; every commit of any process changes it. Cost: a few microseconds."""
        return stamp(self._folder)

    @property
    def read_only(self) -> bool:
        """Whether the folder is read-only."""
        return self._mirror is not None

    def close(self) -> None:
        """Close the mirror and the folder."""
        descriptor, self._folder_descriptor = self._folder_descriptor, None
        if descriptor is not None:
            os.close(descriptor)
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
        with translate_errors(f"opening {files.parent.name}"):
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


def _close_inherited_lock() -> None:
    """Close tantivy's lock that another thread held when this process was forked.

    That thread is not in this process, so the lock would be held, and the parent would wait, until it ends.
    """
    # Without /proc nothing shows which file a descriptor belongs to.
    with suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                if "/.tantivy-meta.lock" in os.readlink(f"/proc/self/fd/{name}"):
                    os.close(int(name))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited_lock)
