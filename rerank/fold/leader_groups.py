"""Leader clustering within a block of hits.

A free hit is in no group. Sets of hits are integers whose bit p stands for position p; at this size they are
faster than arrays.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s
from shinglefold.rerank.fold.matcher import ROWS, Compared, Mask, Matcher, is_dense, nonzero

#: The number of pairs compared at a time to find candidates.
_PAIRS = 1 << 16
#: A set of at most this many members is faster to read one by one than by unpacking all bits.
_FEW = 16
#: The number of hits compared in the first round, in which one leader may take most hits; the factor by which
#: it grows each round.
_FIRST, _GROWTH = 16, 4
#: Groups in rank order: the leader of each, and all its members.
LeaderGroups = tuple[list[int], list[list[int]]]
#: Yields the groups of free hits in rank order, as ``leader_groups`` does.
GroupByLeader = Callable[[Matcher, Compared, list[int]], Iterator[LeaderGroups]]


class Neighbours:
    """Finds the free hits of a block that match one of them.

    A hit is compared on first use, together with the free hits after it. Hits that have joined a group are
    not compared again.

    Args:
        free: the set of free hits.
    """

    def __init__(self, matcher: Matcher, block: Compared, free: int) -> None:
        self.free = free
        self._matcher = matcher
        self._block = block
        self._decided: dict[int, int] = {}

    def of(self, place: int) -> int:
        """Return the other free hits that match a free hit."""
        if place not in self._decided:
            waiting = [row for row in places(self.free) if row >= place and row not in self._decided]
            rows, begin, near = self._decide(waiting)
            self._decided.update(zip(rows.tolist(), sets(near, begin), strict=True))
        return self._decided[place] & self.free

    def take(self, group: int) -> list[int]:
        """Remove hits from the free ones and return their positions."""
        self.free &= ~group
        return places(group)

    def _decide(self, waiting: list[int]) -> tuple[Int64s, int, Mask]:
        """Compare the first of the waiting hits with all hits after them.

        Returns:
            these hits; the first position compared; and bool (R, m): which of the m hits from there match.
        """
        begin = (self.free & -self.free).bit_length() - 1
        rows = np.array(waiting[: rows_at_once(len(self._block) - begin)], np.int64)
        near = np.zeros((len(rows), len(self._block) - begin), np.bool_)
        for part in (slice(0, ROWS), slice(ROWS, None)):
            if not len(rows[part]):
                break
            found = self._matcher.candidates(self._block, rows[part], self._block, begin)
            if is_dense(found):
                near = found if not part.start else near[:ROWS]
                break
            near[part] = found
        rows = rows[: len(near)]
        return rows, begin, self._matcher.decide(near, self._block, rows, self._block, begin)


def leader_groups(matcher: Matcher, block: Compared, waiting: list[int]) -> Iterator[LeaderGroups]:
    """Yield the groups of free hits in rank order. The leader of a group is the first free hit.

    Most hits match no other. If most hits are alike, a few leaders take most of them; so these are
    compared first, and then only the rest.
    """
    few, dense = _FIRST, False
    while waiting:
        whole = len(waiting) == len(block)
        unassigned = block if whole else block.take(waiting)
        near, dense = _near(matcher, unassigned, few, dense)
        found, free = _groups_of_sets(near) if is_dense(near) else _groups_of_pairs(near)
        if whole:
            yield found
        else:
            leaders, groups = found
            members = [[waiting[member] for member in group] for group in groups]
            yield [waiting[leader] for leader in leaders], members
        waiting = [place for place, one in zip(waiting, free, strict=True) if one]
        few *= _GROWTH


def _near(matcher: Matcher, block: Compared, few: int, dense: bool) -> tuple[Mask, bool]:
    """Return which later hits each of the first hits matches, and whether most pairs were candidates.

    Args:
        few: how many hits to compare if they have many candidates.
        dense: whether to treat all pairs as candidates.
    """
    count = len(block)
    most = rows_at_once(count)
    if dense:
        # A small rest is compared now: a further round would cost as much.
        rows = np.arange(min(count if count <= 2 * few else few, most))
        return matcher.decide_dense(np.arange(count) > rows[:, None], block, rows, block, 0), True
    near = np.zeros((min(most, count), count), np.bool_)
    begin = 0
    few, last = min(few, len(near)), len(near)
    for end in dict.fromkeys((few, (few + last) // 2, last)):
        found = matcher.later_candidates(block, begin, end)
        if begin and is_dense(found):
            near = near[:begin]
            break
        near[begin:end, begin:] = found
        if is_dense(found):
            near = near[:end]
            break
        begin = end
    rows = np.arange(len(near))
    if not is_dense(near):
        return matcher.decide_sparse(near, block, rows, block, 0), False
    return matcher.decide_dense(near, block, rows, block, 0), bool(2 * np.count_nonzero(near) > near.size)


def _groups_of_sets(near: Mask) -> tuple[LeaderGroups, Sequence[int]]:
    """Return the groups, and for each hit 1 if it is in none. Cheap if leaders have many matches."""
    count = near.shape[1]
    free = (1 << count) - 1
    leaders, members = [], []
    for place, group in enumerate(sets(near)):
        if free >> place & 1:
            group_set = group & free | 1 << place
            free &= ~group_set
            leaders.append(place)
            members.append(places(group_set))
    unassigned = bytearray(count)
    for place in places(free):
        unassigned[place] = 1
    return (leaders, members), unassigned


def _groups_of_pairs(near: Mask) -> tuple[LeaderGroups, Sequence[int]]:
    """Return the groups, and for each hit 1 if it is in none. Cheap if leaders have few matches."""
    rows, count = near.shape
    free = bytearray(b"\1") * count
    members = [[place] for place in range(rows)]
    row, column = nonzero(near)
    for one, other in zip(row.tolist(), column.tolist(), strict=True):
        if free[one] and free[other]:
            # The leader stays free for now, as no later one matches it.
            free[other] = 0
            members[one].append(other)
    first = free[:rows]
    free[:rows] = bytes(rows)
    return (list(compress(range(rows), first)), list(compress(members, first))), free


def places(bits: int) -> list[int]:
    """Return the positions in a set, ascending."""
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
    """Return the set of each row, bool (R, n); the first column stands for position ``begin``."""
    packed = np.packbits(rows, axis=1, bitorder="little")
    size, data = packed.shape[1], packed.tobytes()
    return [
        int.from_bytes(data[at : at + size], "little") << begin for at in range(0, len(rows) * size, size)
    ]


def rows_at_once(columns: int) -> int:
    """Return how many rows to compare at a time with this many columns."""
    return max(ROWS, _PAIRS // max(1, columns))
