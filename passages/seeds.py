"""Pairs of equal or similar elements of two texts, from which passages grow: pure functions of hashes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s, Uint64s
from shinglefold.passages.shingle_positions import Elements
from shinglefold.relatives.simhash import near_once, sorted_distinct
from shinglefold.sketch.shingles import mix64

#: The most pairs of a repeated element. If it has more, ``bounded_pairs`` pairs its n-th occurrences.
MOST_PAIRS = 64
#: The number of pairs that even short texts may have: some tens of milliseconds.
FREE_PAIRS = 1 << 16


class BoundedPairs(NamedTuple):
    """Pairs of ordinals, int64 (P, 2), and how many pairs were left out."""

    pairs: Int64s
    left_out: int


def bounded_pairs(a: Elements, b: Elements, most: int = FREE_PAIRS) -> BoundedPairs:
    """Return the pairs of equal elements of two texts, at most ``MOST_PAIRS`` of a repeated element.

    If an element has more, its first occurrences are paired with each other, then its second ones, and so on:
    copies repeat in the same order. If that still makes more pairs than both texts have elements, the
    limit is 16, 4 or one.

    Args:
        most: pairs that are allowed whatever the lengths.

    Cost: time and memory grow with the lengths of the texts only.
    """
    ascending = np.argsort(a.hashes, kind="stable")
    order, first, counts = _places(a, b, ascending)
    rank, own = _count_repetitions(a.hashes, ascending)
    products = own * counts
    for limit in (MOST_PAIRS, 16, 4, 1):
        many = products > limit
        kept = np.where(many, rank < counts, counts)
        if (total := int(kept.sum())) <= max(most, len(a) + len(b)):
            break
    first += np.where(many, rank, 0)
    pairs = np.stack((np.repeat(np.arange(len(a)), kept), order[expand_ranges(first, kept)]), axis=1)
    return BoundedPairs(pairs, int(counts.sum()) - total)


def _count_repetitions(hashes: Uint64s, order: Int64s) -> tuple[Int64s, Int64s]:
    """Return how many equal hashes precede each hash, and how many equal ones there are in all."""
    begins = np.flatnonzero(np.diff(hashes[order], prepend=~hashes[order[:1]]))
    sizes = np.diff(begins, append=len(hashes))
    rank, own = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.int64)
    rank[order] = np.arange(len(hashes)) - np.repeat(begins, sizes)
    own[order] = np.repeat(sizes, sizes)
    return rank, own


def expand_ranges(first: Int64s, counts: Int64s) -> Int64s:
    """Return ``first, first + 1, …``, ``count`` numbers for each, concatenated."""
    ends = np.cumsum(counts)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.asarray(np.repeat(first, counts) + within, np.int64)


def _places(a: Elements, b: Elements, ascending: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return the order of the hashes of b, and for each element of a its first position and count in it.

    Args:
        ascending: the order of the hashes of a.
    """
    order = np.argsort(b.hashes, kind="stable")
    hashes = b.hashes[order]
    # Looked up in ascending order: neighbours are then in the processor's cache.
    wanted = a.hashes[ascending]
    first, counts = np.empty(len(a), np.int64), np.empty(len(a), np.int64)
    first[ascending] = np.searchsorted(hashes, wanted, "left")
    counts[ascending] = np.searchsorted(hashes, wanted, "right")
    return order, first, counts - first


#: The most bits in which the simhashes of similar elements differ.
DISTANCE = 3
#: The number of simhashes compared for each element of both texts and each table of the index.
_COMPARED = 2
#: The number of simhashes compared even for short texts: some milliseconds.
_FREE_COMPARED = 1 << 18
#: The number of pairs whose words are compared at a time.
_AT_ONCE = 1 << 16


class NearPairs(NamedTuple):
    """Pairs of ordinals, int64 (P, 2), in order.

    ``left_out``: how many pairs of elements found were left out. ``crowded``: elements of the first text for
    which not all candidates were compared, because too many share a part of their bits.
    """

    pairs: Int64s
    left_out: int
    crowded: int


class _Kinds(NamedTuple):
    """Elements grouped by kind: those of one kind have the same words in any order.

    ``order``: int64 (E,), ordinals kind by kind; those of kind k are ``sizes[k]`` from ``begins[k]`` on.
    """

    keys: Uint64s
    order: Int64s
    begins: Int64s
    sizes: Int64s

    @property
    def one(self) -> Int64s:
        """The first element of each kind."""
        return self.order[self.begins]


def near_pairs(a: Elements, b: Elements) -> NearPairs:
    """Return the pairs of elements with similar simhashes that share all words but one.

    Simhashes that differ in at most three bits only make a pair a candidate: a word that an element repeats
    decides most of the bits. Equal elements are always paired, as by ``bounded_pairs``.

    Args:
        a, b: made with one width, and with simhashes.

    Cost: time and memory grow with the lengths of the texts only. To that end some
    pairs are left out, and counted: pairs of elements that both texts repeat, as in ``bounded_pairs``; and
    pairs of unequal elements that share most bits with too many others.
    """
    sides = _kinds(a), _kinds(b)
    most = max(_FREE_COMPARED, _COMPARED * (len(a) + len(b)))
    near = near_once(b.near[sides[1].one], a.near[sides[0].one], most, DISTANCE)
    same = _same(*sides)
    one, other = (np.concatenate(pair) for pair in zip(same, (near.queries, near.found), strict=True))
    fitting = _words_shared(a, b, sides[0].one[one], sides[1].one[other]) >= a.width - 1
    kinds = _distinct(np.stack((one[fitting], other[fitting]), axis=1), len(sides[1].keys))
    pairs, whole = _of_kinds(kinds, *sides, most=max(FREE_PAIRS, 2 * (len(a) + len(b))))
    found = _distinct(np.concatenate((pairs, bounded_pairs(a, b).pairs)), len(b))
    crowded = int(sides[0].sizes[near.crowded].sum())
    return NearPairs(found, whole - len(found), crowded)


def _distinct(pairs: Int64s, size: int) -> Int64s:
    """Return pairs in order and without repetition; the second number of each is below ``size``."""
    keys = sorted_distinct(pairs[:, 0] * size + pairs[:, 1])
    return np.stack((keys // size, keys % size), axis=1)


def _kinds(of: Elements) -> _Kinds:
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(mix64(of.words.copy()), dtype=np.uint64)))
    # The sum of the words does not depend on their order.
    keys = sums[of.width :] - sums[: -of.width]
    order = np.argsort(keys, kind="stable")
    distinct, begins, sizes = np.unique(keys[order], return_index=True, return_counts=True)
    return _Kinds(distinct, order, begins, sizes)


def _same(a: _Kinds, b: _Kinds) -> tuple[Int64s, Int64s]:
    _, one, other = np.intersect1d(a.keys, b.keys, assume_unique=True, return_indices=True)
    return one, other


def _words_shared(a: Elements, b: Elements, one: Int64s, other: Int64s) -> Int64s:
    """Return how many words elements have in common, repeated ones counted as often as both have them."""
    shared = np.zeros(len(one), np.int64)
    steps = np.arange(a.width)
    for begin in range(0, len(one), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        ours, theirs = (
            _number_repetitions(side.words[places[part, None] + steps])
            for side, places in ((a, one), (b, other))
        )
        shared[part] = (ours[:, :, None] == theirs[:, None, :]).any(axis=2).sum(axis=1)
    return shared


def _number_repetitions(words: Uint64s) -> Uint64s:
    """Return the words of each row, uint64 (N, width); a second occurrence becomes another word."""
    earlier: NDArray[np.uint64] = np.zeros(words.shape, np.uint64)
    for place in range(1, words.shape[1]):
        earlier[:, place] = (words[:, :place] == words[:, place, None]).sum(axis=1)
    return np.asarray(mix64(words + earlier), np.uint64)


def _of_kinds(kinds: Int64s, a: _Kinds, b: _Kinds, most: int) -> tuple[Int64s, int]:
    """Return the pairs of elements of pairs of kinds, and how many there are without a limit.

    If two kinds have too many pairs, their first elements are paired, then the second ones, and so on.
    """
    ours, theirs = a.sizes[kinds[:, 0]], b.sizes[kinds[:, 1]]
    products = ours * theirs
    for limit in (MOST_PAIRS, 16, 4, 1):
        many = products > limit
        kept = np.where(many, np.minimum(ours, theirs), products)
        if int(kept.sum()) <= most:
            break
    place = expand_ranges(np.zeros(len(kept), np.int64), kept)
    row = np.repeat(np.arange(len(kept)), kept)
    one = np.where(many[row], place, place // theirs[row])
    other = np.where(many[row], place, place % theirs[row])
    ordinals = a.order[a.begins[kinds[row, 0]] + one], b.order[b.begins[kinds[row, 1]] + other]
    return np.stack(ordinals, axis=1), int(products.sum())
