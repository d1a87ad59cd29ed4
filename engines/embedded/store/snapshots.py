"""An index as it was at one moment, its results in one order, and the points in time that keep it."""

import re
import time
import uuid
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import tantivy

from shinglefold.engines.embedded.schema.catalog import Catalog
from shinglefold.engines.embedded.schema.field_types import well_formed
from shinglefold.engines.embedded.store.record_files import Heads
from shinglefold.engines.embedded.store.source_codec import stored_source, stored_sources
from shinglefold.errors import PitExpired, UnsupportedQuery

Places = npt.NDArray[np.int64]
#: The rank of a missing value: behind all others, or before them on request.
GAP = 2**62
#: Rows cached with a snapshot; a row has 12 bytes and 8 more for each key.
_KEPT = 4_000_000


@dataclass(frozen=True, slots=True)
class SortColumn:
    """One key of every hit: ``ranks`` are places in ``distinct``, negated in descending order, or ``gap``.

    ``distinct`` ascends; None where the ranks are the values themselves. ``number`` makes of a cursor's value
    what can be compared with the distinct ones.
    """

    ranks: Places
    distinct: Sequence[Any] | None
    sign: int
    gap: int
    number: Callable[[Any], Any]

    def value(self, row: int) -> Any:  # noqa: ANN401 - what the field holds
        """Return the sort value of a row, as a response shows it."""
        rank = int(self.ranks[row])
        if rank == self.gap:
            return None
        if self.distinct is None:
            return self.sign * rank
        found = self.distinct[self.sign * rank]
        return found.item() if isinstance(found, np.generic) else found

    def rank_of(self, value: object) -> float:
        """Return the rank of a cursor's value; a value that no hit has ranks between its neighbours."""
        if value is None:
            return self.gap
        wanted = self.number(value)
        if self.distinct is None:
            return int(self.sign * wanted)
        rank = bisect_left(self.distinct, wanted)
        known = rank < len(self.distinct) and self.distinct[rank] == wanted
        return self.sign * (rank if known else rank - 0.5)


@dataclass(frozen=True, slots=True)
class Order:
    """Hits in order: places in the index, scores, the keys they were sorted by, and the best score."""

    places: Places
    scores: npt.NDArray[np.float32]
    columns: tuple[SortColumn, ...]
    best: float | None

    @classmethod
    def of(cls, places: Places, scores: npt.NDArray[np.float32], columns: Sequence[SortColumn]) -> Self:
        """Return hits sorted by columns; equal ones by place."""
        rows = np.lexsort((places, *(column.ranks for column in reversed(columns))))
        sorted_columns = tuple(
            SortColumn(one.ranks[rows], one.distinct, one.sign, one.gap, one.number) for one in columns
        )
        best = float(scores.max()) if scores.size else None
        return cls(places[rows], scores[rows], sorted_columns, best)

    def after(self, cursor: Sequence[Any]) -> int:
        """Return the first row whose keys are behind those of a cursor."""
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
        self._kept: OrderedDict[Hashable, Order] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Order | None:
        """Return a cached order, None if there is none."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: Hashable, order: Order) -> None:
        """Cache an order, and evict the least recently used ones."""
        with self._lock:
            self._kept[key] = order
            while len(self._kept) > 1 and sum(one.places.size for one in self._kept.values()) > _KEPT:
                self._kept.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An index as it was at one moment; later writes and merges do not change it."""

    name: str
    catalog: Catalog
    searcher: tantivy.Searcher
    schema: tantivy.Schema
    heads: Heads
    sort_cache: SortCache = field(default_factory=SortCache)

    def source(self, id: str) -> dict[str, Any] | None:  # noqa: A002
        """Return a document, None where it is not there."""
        place = self._place(id)
        return stored_source(self.searcher, self.heads, place).load() if place else None

    def sources(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the documents found, by id. Columns are opened once for all of them."""
        there = {id_: place for id_ in ids if (place := self._place(id_))}
        found = stored_sources(self.searcher, self.heads, list(there.values()))
        return {id_: source.load() for id_, source in zip(there, found, strict=True)}

    def _place(self, id: str) -> tantivy.DocAddress | None:  # noqa: A002
        """Return the address of a document, None if there is none, as for an id that is no valid Unicode."""
        if well_formed(id) != id:
            return None
        query = tantivy.Query.term_query(self.schema, "_id", id)
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
        """Return the snapshot of a point in time; it is kept for longer when ``keep_alive`` says so.

        Raises:
            PitExpired: it was closed, or ran out.
        """
        self._expire()
        if pit not in self._open:
            raise PitExpired(f"no point in time {pit!r}: it was closed or ran out; open another")
        snapshot, until = self._open[pit]
        if keep_alive is not None:
            self._open[pit] = snapshot, max(until, self.clock() + _seconds(keep_alive))
        return snapshot

    def close(self, pit: str) -> None:
        """Release a snapshot."""
        self._open.pop(pit, None)

    def drop(self, index: str) -> None:
        """Close all points in time of an index."""
        self._open = {pit: kept for pit, kept in self._open.items() if kept[0].name != index}

    def clear(self) -> None:
        """Close all points in time."""
        self._open.clear()

    def _expire(self) -> None:
        now = self.clock()
        self._open = {pit: kept for pit, kept in self._open.items() if kept[1] > now}


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d{1,9})(ms|s|m|h|d)", text)
    if found is None:
        raise UnsupportedQuery(
            f"keep_alive {text!r}: expected a number and one of {', '.join(_UNITS)}, such as 1m"
        )
    return int(found[1]) * _UNITS[found[2]]
