"""Union-find over whole numbers: which items chains of pairs lead to, in arrays."""

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s

Places = NDArray[np.int32]


class Forest:
    """Sets of items 0…count − 1, each named by its least item; at first every item is a set of its own.

    Args:
        parents: int32 (count,), what another forest had: it goes on from there.

    Cost: 4 bytes an item. Pairs are taken in by the block: a few passes over the pairs that join anything,
    in the order of the logarithm of the longest chain, and never one over all items.
    """

    def __init__(self, count: int, parents: Places | None = None) -> None:
        #: Of each item one of its set that is not greater; the least of a set is its own.
        self.parents: Places = np.arange(count, dtype=np.int32) if parents is None else parents

    def roots(self, items: NDArray[np.integer]) -> Places:
        """Return the least item of the set of each of some items."""
        found: Places = self.parents[items]
        while not np.array_equal(above := self.parents[found], found):
            found = above
        self.parents[items] = found
        return found

    def merge(self, a: NDArray[np.integer], b: NDArray[np.integer]) -> None:
        """Make one set of those of a[p] and b[p], for every p."""
        while len(a):
            one, other = self.roots(a), self.roots(b)
            apart = one != other
            a, b = one[apart], other[apart]
            # A root points to the least root it meets; the next turn sees to the others.
            np.minimum.at(self.parents, np.maximum(a, b), np.minimum(a, b))

    def labels(self) -> Places:
        """Return the least item of the set of every item, int32 (count,), which is its parent from now on."""
        while not np.array_equal(above := self.parents[self.parents], self.parents):
            self.parents = above
        return self.parents


def connected(a: Int64s, b: Int64s, count: int) -> Int64s:
    """Return the group of each of ``count`` items, given pairs (a[p], b[p]) of items that belong together.

    Returns:
        int64 (count,), the least item of the group: an item of no pair is its own group.
    """
    forest = Forest(count)
    forest.merge(a, b)
    return forest.labels().astype(np.int64)
