"""Who matches whom in a block of hits, decided as far as it is asked for."""

import numpy as np

from shinglefold.model import Int64s
from shinglefold.rerank.bits import places, sets
from shinglefold.rerank.match import ROWS, Compared, Mask, Matcher, crowded, rows_at_once


class Neighbours:
    """The free hits of a block that match one of them, as sets of places.

    Hits are decided when the first of them is asked for, together with the free hits behind it: what a group
    took in the meantime is never compared again.

    Args:
        backwards: whether free hits before the one asked for matter; they do not where the first free one
            is always asked for.

    Attributes:
        free: the hits in no group yet; whoever takes hits takes them out of it, and never puts one back.
    """

    def __init__(self, matcher: Matcher, block: Compared, free: int, *, backwards: bool) -> None:
        self.free = free
        self._matcher = matcher
        self._block = block
        self._backwards = backwards
        self._decided: dict[int, int] = {}

    def of(self, place: int) -> int:
        """Return the free hits that match a free hit, itself left out."""
        if place not in self._decided:
            self._decide(place)
        return self._decided[place] & self.free

    def _decide(self, place: int) -> None:
        free = places(self.free)
        begin = free[0]
        most = rows_at_once(len(self._block) - begin)
        rows = np.array([row for row in free if row >= place and row not in self._decided][:most], np.int64)
        near = self._candidates(rows, begin)
        rows = rows[: len(near)]
        decide = self._matcher.all_of if crowded(near) else self._matcher.those_of
        near = decide(near, self._block, rows, self._block, begin)
        self._decided.update(zip(rows.tolist(), sets(near, begin), strict=True))

    def _candidates(self, rows: Int64s, begin: int) -> Mask:
        """Return the candidates of some rows: of few where there are many, as most are taken undecided."""
        first = self._matcher.candidates(self._block, rows[:ROWS], self._block, begin)
        if len(rows) == len(first) or crowded(first):
            return first
        later = begin if self._backwards else int(rows[ROWS])
        rest = self._matcher.candidates(self._block, rows[ROWS:], self._block, later)
        if crowded(rest):
            return first
        near = np.zeros((len(rows), len(self._block) - begin), np.bool_)
        near[:ROWS], near[ROWS:, later - begin :] = first, rest
        return near


def nonzero(near: Mask) -> tuple[Int64s, Int64s]:
    """Return the places of all True in row order; several times faster than numpy's own in two dimensions."""
    row, column = np.divmod(np.flatnonzero(near), np.int64(max(1, near.shape[1])))
    return row, column
