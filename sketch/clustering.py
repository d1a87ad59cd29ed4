"""Union-find over whole numbers: which items chains of pairs lead to, in arrays."""

from collections.abc import Callable
from math import comb

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s
from shinglefold.sketch.candidates import CHUNK, Buckets

Places = NDArray[np.int32]


class DisjointSets:
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
    forest = DisjointSets(count)
    forest.merge(a, b)
    return forest.labels().astype(np.int64)


def leader_clusters(a: Int64s, b: Int64s, count: int, begun: Int64s | None = None) -> Int64s:
    """Return the leader of each of ``count`` items: the first item it matches that leads, or itself.

    An item that matches no leader before it leads. So every member matches its leader, and no two leaders
    match each other, which chains of pairs do not promise.

    Args:
        begun: the answer for items before all that stand second in a pair here; it is gone on with in place.

    Returns:
        int64 (count,), an item of no pair leads itself.

    Cost: a sort of the pairs, and a step in Python for each item that has a pair.
    """
    first, second = np.minimum(a, b), np.maximum(a, b)
    order = np.lexsort((first, second))
    first, second = first[order], second[order]
    leader = np.arange(count, dtype=np.int64) if begun is None else begun
    items, begins = np.unique(second, return_index=True)
    # Without pairs there is one empty part all the same.
    for item, earlier in zip(items.tolist(), np.split(first, begins[1:]), strict=False):
        leading = earlier[leader[earlier] == earlier]
        if len(leading):
            leader[item] = leading[0]
    return leader


#: Tells which pairs of documents (a[p], b[p]) are near-duplicates: bool (P,).
Alike = Callable[[Int64s, Int64s], NDArray[np.bool_]]


def connect(buckets: Buckets, forest: DisjointSets, alike: Alike) -> None:
    """Join all documents that share a bucket and are alike.

    Every pair of a bucket is looked at, but for those whose documents are in one set already: first all with
    the first of their bucket, which mostly leaves nothing to do.
    """
    ones, others = buckets.stars()
    for begin in range(0, len(ones), CHUNK):
        _join(ones[begin : begin + CHUNK], others[begin : begin + CHUNK], forest, alike)
    rest = _undecided(buckets, forest)
    for a, b in rest.pairs():
        _join(a, b, forest, alike)


def _join(a: Int64s, b: Int64s, forest: DisjointSets, alike: Alike) -> None:
    apart = forest.roots(a) != forest.roots(b)
    a, b = a[apart], b[apart]
    if len(a):
        kept = alike(a, b)
        forest.merge(a[kept], b[kept])


def _undecided(buckets: Buckets, forest: DisjointSets) -> Buckets:
    """Return the buckets of several sets without their first documents, which were compared with all."""
    if not len(buckets):
        return buckets
    roots = forest.roots(buckets.documents)
    least, most = (pick.reduceat(roots, buckets.starts) for pick in (np.minimum, np.maximum))
    mixed = buckets.only((least != most) & (buckets.sizes > 2))
    others = np.ones(len(mixed.documents), np.bool_)
    others[mixed.starts] = False
    sizes = mixed.sizes - 1
    return Buckets(mixed.documents[others], np.cumsum(sizes) - sizes, sizes)


def union_large_bucket(documents: Int64s, forest: DisjointSets, alike: Alike, leaders: int) -> int:
    """Join documents of a bucket too large for all its pairs: with a few of them, each for a set of its own.

    Args:
        documents: of the bucket, ascending.
        leaders: how many of them all others are compared with.

    Returns:
        How many pairs of documents that are in different sets now were not looked at, at most.
    """
    left = documents
    for _ in range(leaders):
        roots = forest.roots(left)
        left, first = left[roots != roots[0]], left[0]
        if not len(left):
            break
        kept = alike(np.full(len(left), first), left)
        forest.merge(np.full(int(kept.sum()), first), left[kept])
        left = left[~kept]
        if not len(left):
            break
    _, sizes = np.unique(forest.roots(documents), return_counts=True)
    return comb(len(documents), 2) - sum(comb(size, 2) for size in sizes.tolist()) if len(left) else 0
