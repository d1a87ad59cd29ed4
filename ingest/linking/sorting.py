"""Rows of a file in order, however many there are: spread over parts, each of which memory sorts."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.ingest.linking.column import Column
from shinglefold.ingest.linking.shelf import Shelf
from shinglefold.model import Int64s, Uint64s

#: Rows read at a time, rows that tell how keys are spread, and how often sorting has a row in memory.
_ROWS, _SAMPLE, _COPIES = 1 << 16, 1 << 16, 4
Rows = NDArray[np.void]


class Order(NamedTuple):
    """What rows are sorted by: ``rank`` first, then two numbers of documents."""

    rank: Int64s
    one: Int64s
    other: Int64s

    def sorted(self) -> Int64s:
        """Return the places of the rows in order."""
        return np.lexsort((self.other, self.one, self.rank)).astype(np.int64)

    def heads(self) -> Uint64s:
        """Return numbers that are less only where the rows come before: 14 bits of rank, 31 and 19 below."""
        found: Uint64s = self.rank.astype(np.uint64) << np.uint64(50)
        found |= self.one.astype(np.uint64) << np.uint64(19)
        return found | self.other.astype(np.uint64) >> np.uint64(12)


def in_order(
    shelf: Shelf, rows: Column, order: Callable[[Rows], Order], memory: int, check: Callable[[], None]
) -> Iterator[Rows]:
    """Yield all rows in order, some at a time.

    Args:
        memory: bytes it may take.
    """
    parts = -(-len(rows) * rows.row_bytes * _COPIES // memory)
    if parts <= 1:
        whole = rows.read(0, len(rows))
        yield from _chunks(whole[order(whole).sorted()])
        return
    bounds = _bounds(rows, order, parts)
    spread = [Column(shelf, f"sorting.{part:05}", rows.dtype) for part in range(parts)]
    for column in spread:
        column.cut(0)
    for begin in range(0, len(rows), _ROWS):
        check()
        block = rows.read(begin, min(begin + _ROWS, len(rows)))
        part = np.searchsorted(bounds, order(block).heads(), "right")
        for number in np.unique(part).tolist():
            spread[number].append(block[part == number])
    for column in spread:
        check()
        whole = column.read(0, len(column))
        column.cut(0)
        yield from _chunks(whole[order(whole).sorted()])


def _chunks(rows: Rows) -> Iterator[Rows]:
    for begin in range(0, len(rows), _ROWS):
        yield rows[begin : begin + _ROWS]


def _bounds(rows: Column, order: Callable[[Rows], Order], parts: int) -> Uint64s:
    mapped: Any = rows.mapped()
    heads = np.sort(order(mapped[:: max(1, len(rows) // _SAMPLE)]).heads())
    found: Uint64s = heads[np.arange(1, parts) * len(heads) // parts]
    return found
