"""Who matches whom in a block of hits, decided as far as it is asked for."""

import numpy as np

from shinglefold.model import Int64s
from shinglefold.rerank.match import ROWS, Compared, Mask, Matcher, crowded


class Neighbours:
    """The free hits of a block that match one of them.

    Rows are decided when the first of them is asked for, together with those of the free hits behind it: what
    a group took in the meantime is never compared again.

    Args:
        free: one byte a hit, kept by the caller, who takes hits and never gives one back.
    """

    def __init__(self, matcher: Matcher, block: Compared, free: bytearray) -> None:
        self._matcher = matcher
        self._block = block
        self._free: Mask = np.frombuffer(free, np.bool_)
        self._dense = False
        #: By place: where the columns begin and the row of decisions, or None for one that matches nobody.
        self._rows: dict[int, tuple[int, Mask] | None] = {}

    def of(self, place: int) -> list[int]:
        """Return the places of the free hits that match a free hit, itself left out, in order."""
        if place not in self._rows:
            self._decide(place)
        known = self._rows[place]
        if known is None:
            return []
        begin, row = known
        found: list[int] = ((row & self._free[begin:]).nonzero()[0] + begin).tolist()
        return found

    def _decide(self, place: int) -> None:
        free = self._free.nonzero()[0]
        begin = int(free[0])
        rows = [row for row in free[np.searchsorted(free, place) :].tolist() if row not in self._rows][:ROWS]
        index = np.array(rows, np.int64)
        near = self._matcher.matches(self._block, index, self._block, begin, dense=self._dense)
        self._dense = crowded(near)
        busy_ones: list[bool] = np.logical_or.reduce(near, axis=1).tolist()
        for row, matching, busy in zip(rows, near, busy_ones, strict=True):
            self._rows[row] = (begin, matching) if busy else None


def nonzero(near: Mask) -> tuple[Int64s, Int64s]:
    """Return the places of all True in row order; several times faster than numpy's own in two dimensions."""
    row, column = np.divmod(np.flatnonzero(near), np.int64(max(1, near.shape[1])))
    return row, column
