"""Groups of documents from pairs: union-find in arrays, and clusters with leaders."""

from collections.abc import Callable
from math import comb

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s
from shinglefold.sketch.candidates import CHUNK, Buckets

Places = NDArray[np.int32]


class DisjointSets:
    """Disjoint sets of the items 0…count − 1 (union-find), each named by its least item.

    Args:
        parents: int32 (count,), those of another instance, to continue from; by default each item is a set.

    Cost: 4 bytes an item. Merging makes about log(longest chain) passes over the pairs that join anything,
    and none over all items.
    """

    def __init__(self, count: int, parents: Places | None = None) -> None:
        #: For each item a smaller or equal one of its set; the least item is its own parent.
        self.parents: Places = np.arange(count, dtype=np.int32) if parents is None else parents

    def roots(self, items: NDArray[np.integer]) -> Places:
        """Return the least item in the set of each given item."""
        found: Places = self.parents[items]
        while not np.array_equal(above := self.parents[found], found):
            found = above
        self.parents[items] = found
        return found

    def merge(self, a: NDArray[np.integer], b: NDArray[np.integer]) -> None:
        """Merge the sets of a[p] and b[p], for every p."""
        while len(a):
            one, other = self.roots(a), self.roots(b)
            distinct = one != other
            a, b = one[distinct], other[distinct]
            # A root gets the least root of its pairs as parent; the next pass merges the others.
            np.minimum.at(self.parents, np.maximum(a, b), np.minimum(a, b))

    def labels(self) -> Places:
        """Return the least item in the set of every item, int32 (count,), after path compression."""
        while not np.array_equal(above := self.parents[self.parents], self.parents):
            self.parents = above
        return self.parents


def connected_components(a: Int64s, b: Int64s, count: int) -> Int64s:
    """Return the connected component of each of ``count`` items, given the pairs (a[p], b[p]).

    Returns:
        int64 (count,), the least item of the component.
    """
    forest = DisjointSets(count)
    forest.merge(a, b)
    return forest.labels().astype(np.int64)


def leader_clusters(a: Int64s, b: Int64s, count: int) -> Int64s:
    """Return the leader of each of ``count`` items: the first leader it matches, or itself.

    An item that matches no earlier leader becomes a leader. So every member matches its leader, and no two
    leaders match, which connected components do not guarantee.

    Returns:
        int64 (count,); an item without pairs is its own leader.

    Cost: a sort of the pairs, and a step in Python for each item with an earlier partner.
    """
    first, second = np.minimum(a, b), np.maximum(a, b)
    order = np.lexsort((first, second))
    first, second = first[order], second[order]
    leader = np.arange(count, dtype=np.int64)
    items, begins = np.unique(second, return_index=True)
    # ``split`` returns one empty part even without pairs.
    for item, earlier in zip(items.tolist(), np.split(first, begins[1:]), strict=False):
        leading = earlier[leader[earlier] == earlier]
        if len(leading):
            leader[item] = leading[0]
    return leader


#: Returns which pairs of documents (a[p], b[p]) are near-duplicates: bool (P,).
Alike = Callable[[Int64s, Int64s], NDArray[np.bool_]]


def connect(buckets: Buckets, forest: DisjointSets, alike: Alike) -> None:
    """Merge the sets of all documents that share a bucket and are alike.

    Compares all pairs of a bucket that are not in one set yet. The pairs with the bucket's first document
    come first, which usually leaves no others.
    """
    ones, others = buckets.stars()
    for begin in range(0, len(ones), CHUNK):
        _join(ones[begin : begin + CHUNK], others[begin : begin + CHUNK], forest, alike)
    rest = _undecided_buckets(buckets, forest)
    for a, b in rest.pairs():
        _join(a, b, forest, alike)


def _join(a: Int64s, b: Int64s, forest: DisjointSets, alike: Alike) -> None:
    distinct = forest.roots(a) != forest.roots(b)
    a, b = a[distinct], b[distinct]
    if len(a):
        kept = alike(a, b)
        forest.merge(a[kept], b[kept])


def _undecided_buckets(buckets: Buckets, forest: DisjointSets) -> Buckets:
    """Return the buckets with several sets, without their first documents, which were compared before."""
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
    """Merge the documents of a bucket that is too large for all its pairs: compare them with a few leaders.

    Args:
        documents: those of the bucket, ascending.
        leaders: how many documents all others are compared with.

    Returns:
        An upper bound of the pairs in different sets that were not compared.
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
