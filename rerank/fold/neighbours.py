"""The hits of a block that are in no group yet, and which of them match.

Sets of hits are whole numbers, whose bit p stands for place p. At this size they beat arrays.
"""

import numpy as np
from numpy.typing import NDArray

from shinglefold.model import Int64s
from shinglefold.rerank.fold.matcher import ROWS, Compared, Mask, Matcher, crowded, nonzero

#: Pairs looked through at a time for those that may match.
_PAIRS = 1 << 16
#: Ones of a set up to which taking them out one by one is faster than unpacking all bits.
_FEW = 16
#: A group: whom to show, and all its members.
Found = tuple[int, list[int]]


class Neighbours:
    """The free hits of a block that match one of them.

    Hits are decided when the first of them is asked for, together with the free hits behind it: what a group
    took in the meantime is never compared again.

    Args:
        free: the hits in no group yet.
    """

    def __init__(self, matcher: Matcher, block: Compared, free: int) -> None:
        self.free = free
        self._matcher = matcher
        self._block = block
        self._decided: dict[int, int] = {}

    def of(self, place: int) -> int:
        """Return the free hits that match a free hit, itself left out."""
        if place not in self._decided:
            waiting = [row for row in places(self.free) if row >= place and row not in self._decided]
            rows, begin, near = self._decide(waiting, backwards=True)
            self._decided.update(zip(rows.tolist(), sets(near, begin), strict=True))
        return self._decided[place] & self.free

    def take(self, group: int) -> list[int]:
        """Take hits out of the free ones and return them."""
        self.free &= ~group
        return places(group)

    def led(self) -> list[Found]:
        """Take the next groups: of each the leader, which is the first free hit, and those it matches.

        Most hits match none, and are groups without being looked at.
        """
        waiting = places(self.free)
        rows, begin, near = self._decide(waiting, backwards=False)
        if crowded(near):
            return self._of_sets(rows, begin, near)
        return self._of_pairs(waiting, rows, begin, near)

    def _of_sets(self, rows: Int64s, begin: int, near: Mask) -> list[Found]:
        """Take the groups of leaders that match many."""
        found = []
        for place, group in zip(rows.tolist(), sets(near, begin), strict=True):
            if self.free >> place & 1:
                found.append((place, self.take(group & self.free | 1 << place)))
        return found

    def _of_pairs(self, waiting: list[int], rows: Int64s, begin: int, near: Mask) -> list[Found]:
        """Take the groups of leaders that match few."""
        free = bytearray(len(self._block))
        for place in waiting:
            free[place] = 1
        groups: dict[int, list[int]] = {}
        row, column = nonzero(near)
        for one, other in zip(rows[row].tolist(), (column + begin).tolist(), strict=True):
            if free[one] and free[other]:
                # A leader stays free for now: no later one matches it.
                free[other] = 0
                groups.setdefault(one, [one]).append(other)
        leaders = [place for place in rows.tolist() if free[place]]
        for place in leaders:
            free[place] = 0
        self.free = sets(np.frombuffer(free, np.bool_)[None])[0]
        return [(leader, groups.get(leader) or [leader]) for leader in leaders]

    def _decide(self, waiting: list[int], *, backwards: bool) -> tuple[Int64s, int, Mask]:
        """Decide the first of some free hits.

        Args:
            backwards: whether free hits before each matter; they do not where all are decided in order.

        Returns:
            these hits, and bool (R, m): which they match of the m hits from a place on, the second value.
        """
        begin = (self.free & -self.free).bit_length() - 1
        rows = np.array(waiting[: rows_at_once(len(self._block) - begin)], np.int64)
        near = self._candidates(rows, begin, backwards=backwards)
        rows = rows[: len(near)]
        decide = self._matcher.all_of if crowded(near) else self._matcher.those_of
        return rows, begin, decide(near, self._block, rows, self._block, begin)

    def _candidates(self, rows: Int64s, begin: int, *, backwards: bool) -> Mask:
        """Return the candidates of some rows: of few where there are many, as most are taken undecided."""
        near = np.zeros((len(rows), len(self._block) - begin), np.bool_)
        for part in (slice(0, ROWS), slice(ROWS, None)):
            some = rows[part]
            if not len(some):
                break
            later = begin if backwards else int(some[0])
            found = self._matcher.candidates(self._block, some, self._block, later)
            if not backwards:
                found &= np.arange(later, len(self._block)) > some[:, None]
            if crowded(found):
                return found if not part.start else near[:ROWS]
            near[part, later - begin :] = found
        return near


def places(bits: int) -> list[int]:
    """Return the places of a set, in order."""
    if bits.bit_count() > _FEW:
        packed = np.frombuffer(bits.to_bytes(-(-bits.bit_length() // 8), "little"), np.uint8)
        many: list[int] = np.unpackbits(packed, bitorder="little").nonzero()[0].tolist()
        return many
    few = []
    while bits:
        last = bits & -bits
        few.append(last.bit_length() - 1)
        bits ^= last
    return few


def sets(rows: NDArray[np.bool_], begin: int = 0) -> list[int]:
    """Return the set of each row, bool (R, n), whose first column stands for place ``begin``."""
    packed = np.packbits(rows, axis=1, bitorder="little")
    size, data = packed.shape[1], packed.tobytes()
    return [
        int.from_bytes(data[at : at + size], "little") << begin for at in range(0, len(rows) * size, size)
    ]


def rows_at_once(columns: int) -> int:
    """Return how many hits to look through at a time for candidates among so many others."""
    return max(ROWS, _PAIRS // max(1, columns))
