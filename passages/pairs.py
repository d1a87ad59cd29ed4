"""Pairs of equal elements of two texts: pure functions of their hashes."""

import numpy as np

from shinglefold.model import Int64s
from shinglefold.passages.elements import Elements

#: Pairs that one repeated element may have; one that has more is paired in the order of its occurrences.
MOST_PAIRS = 64


def pairs_between(a: Elements, b: Elements) -> Int64s:
    """Return the pairs of ordinals of equal elements of two texts, [[55, 109], [55, 211], …] in order.

    Returns:
        int64 (P, 2).

    Cost: x log z and what is found, not x·z; a phrase that both repeat a thousand times is found a million
    times, see ``bounded_pairs``.
    """
    order, first, counts = _places(a, b)
    return np.stack((np.repeat(np.arange(len(a)), counts), order[expanded(first, counts)]), axis=1)


def bounded_pairs(a: Elements, b: Elements) -> Int64s:
    """Return pairs as ``pairs_between``, but at most ``MOST_PAIRS`` of an element that is repeated.

    Of an element that would have more, the first is paired with the first, the second with the second and so
    on, which is how copies repeat.

    Cost: time and memory grow with the texts' lengths alone.
    """
    order, first, counts = _places(a, b)
    own_order = np.argsort(a.hashes, kind="stable")
    _, begins, sizes = np.unique(a.hashes[own_order], return_index=True, return_counts=True)
    rank, own = np.empty(len(a), np.int64), np.empty(len(a), np.int64)
    rank[own_order] = np.arange(len(a)) - np.repeat(begins, sizes)
    own[own_order] = np.repeat(sizes, sizes)
    many = own * counts > MOST_PAIRS
    first = np.where(many, first + rank, first)
    counts = np.where(many, (rank < counts).astype(np.int64), counts)
    return np.stack((np.repeat(np.arange(len(a)), counts), order[expanded(first, counts)]), axis=1)


def expanded(first: Int64s, counts: Int64s) -> Int64s:
    """Return first, first + 1, … for each count, one after another."""
    ends = np.cumsum(counts)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.asarray(np.repeat(first, counts) + within, np.int64)


def _places(a: Elements, b: Elements) -> tuple[Int64s, Int64s, Int64s]:
    """Return the order of b's hashes, and where in it each element of a begins and how often it is there."""
    order = np.argsort(b.hashes, kind="stable")
    hashes = b.hashes[order]
    first = np.searchsorted(hashes, a.hashes, "left")
    return order, first, np.searchsorted(hashes, a.hashes, "right") - first
