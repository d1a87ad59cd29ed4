"""Buckets of documents to sets of near-duplicates: only pairs that would join two sets are decided on."""

from collections.abc import Callable
from math import comb

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s
from shinglefold.sketch.cluster.buckets import Buckets
from shinglefold.sketch.cluster.candidates import CHUNK
from shinglefold.sketch.cluster.clustering import Forest

#: Tells which pairs of documents (a[p], b[p]) are near-duplicates: bool (P,).
Alike = Callable[[Int64s, Int64s], NDArray[np.bool_]]


def connect(buckets: Buckets, forest: Forest, alike: Alike) -> None:
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


def _join(a: Int64s, b: Int64s, forest: Forest, alike: Alike) -> None:
    apart = forest.roots(a) != forest.roots(b)
    a, b = a[apart], b[apart]
    if len(a):
        kept = alike(a, b)
        forest.merge(a[kept], b[kept])


def _undecided(buckets: Buckets, forest: Forest) -> Buckets:
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


def connect_crowded(documents: Int64s, forest: Forest, alike: Alike, leaders: int) -> int:
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
