"""All that a query finds in one order, kept with the snapshot: a page further down costs what it returns."""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
#: What stands for no value: behind all ranks; before them, where that is asked for.
GAP = 2**62
#: Rows of all orders kept with a snapshot; a row has 12 bytes and 8 more a key.
_KEPT = 4_000_000


@dataclass(frozen=True, slots=True)
class Column:
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
        """Return where a cursor's value stands; one that no hit has stands between its neighbours."""
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
    columns: tuple[Column, ...]
    best: float | None

    @classmethod
    def of(cls, places: Places, scores: npt.NDArray[np.float32], columns: Sequence[Column]) -> Self:
        """Return hits sorted by columns; equal ones by place."""
        rows = np.lexsort((places, *(column.ranks for column in reversed(columns))))
        sorted_columns = tuple(
            Column(one.ranks[rows], one.distinct, one.sign, one.gap, one.number) for one in columns
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


class Orders:
    """The orders asked for last; threads may share them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Order] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Order | None:
        """Return an order that is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: Hashable, order: Order) -> None:
        """Keep an order in place of those not asked for longest."""
        with self._lock:
            self._kept[key] = order
            while len(self._kept) > 1 and sum(one.places.size for one in self._kept.values()) > _KEPT:
                self._kept.popitem(last=False)
