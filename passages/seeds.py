"""Pairs of equal elements of two texts: pure functions of their hashes."""

from typing import NamedTuple

import numpy as np

from shinglefold.model.values import Int64s, Uint64s
from shinglefold.passages.shingle_positions import Elements

#: Pairs that one repeated element may have; one that has more is paired in the order of its occurrences.
MOST_PAIRS = 64
#: Pairs of two texts that are taken whatever the lengths: some tens of milliseconds.
FREE_PAIRS = 1 << 16


def pairs_between(a: Elements, b: Elements) -> Int64s:
    """Return the pairs of ordinals of equal elements of two texts, [[55, 109], [55, 211], …] in order.

    Returns:
        int64 (P, 2).

    Cost: x log z and what is found, not x·z; a phrase that both repeat a thousand times is found a million
    times, see ``bounded_pairs``.
    """
    order, first, counts = _places(a, b, np.argsort(a.hashes, kind="stable"))
    return np.stack((np.repeat(np.arange(len(a)), counts), order[expanded(first, counts)]), axis=1)


class BoundedPairs(NamedTuple):
    """Pairs of ordinals, int64 (P, 2), and how many more there are that were left out."""

    pairs: Int64s
    left_out: int


def bounded_pairs(a: Elements, b: Elements, most: int = FREE_PAIRS) -> BoundedPairs:
    """Return pairs as ``pairs_between``, but at most ``MOST_PAIRS`` of an element that is repeated.

    Of an element that would have more, the first is paired with the first, the second with the second and so
    on, which is how copies repeat. Where that still makes more pairs than both texts have elements,
    an element may have 16, 4 or one.

    Args:
        most: pairs that no one minds, whatever the lengths.

    Cost: time and memory grow with the texts' lengths alone.
    """
    ascending = np.argsort(a.hashes, kind="stable")
    order, first, counts = _places(a, b, ascending)
    rank, own = _repeated(a.hashes, ascending)
    products = own * counts
    for limit in (MOST_PAIRS, 16, 4, 1):
        many = products > limit
        kept = np.where(many, rank < counts, counts)
        if (total := int(kept.sum())) <= max(most, len(a) + len(b)):
            break
    first += np.where(many, rank, 0)
    pairs = np.stack((np.repeat(np.arange(len(a)), kept), order[expanded(first, kept)]), axis=1)
    return BoundedPairs(pairs, int(counts.sum()) - total)


def _repeated(hashes: Uint64s, order: Int64s) -> tuple[Int64s, Int64s]:
    """Return how many equal hashes stand before each, and how many there are of it in all."""
    begins = np.flatnonzero(np.diff(hashes[order], prepend=~hashes[order[:1]]))
    sizes = np.diff(begins, append=len(hashes))
    rank, own = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.int64)
    rank[order] = np.arange(len(hashes)) - np.repeat(begins, sizes)
    own[order] = np.repeat(sizes, sizes)
    return rank, own


def expanded(first: Int64s, counts: Int64s) -> Int64s:
    """Return first, first + 1, … for each count, one after another."""
    ends = np.cumsum(counts)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.asarray(np.repeat(first, counts) + within, np.int64)


def _places(a: Elements, b: Elements, ascending: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return the order of b's hashes, and where in it each element of a begins and how often it is there.

    Args:
        ascending: the order of a's.
    """
    order = np.argsort(b.hashes, kind="stable")
    hashes = b.hashes[order]
    # Looked up in ascending order, neighbours are in the cache already.
    asked = a.hashes[ascending]
    first, counts = np.empty(len(a), np.int64), np.empty(len(a), np.int64)
    first[ascending] = np.searchsorted(hashes, asked, "left")
    counts[ascending] = np.searchsorted(hashes, asked, "right")
    return order, first, counts - first
