"""All 64-bit fingerprints within a few bits of one, found without a scan."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.values import Int64s, Uint64s

_BITS = 64
#: Strangers a table may bring up for comparison, about.
_STRANGERS = 64
#: Fingerprints looked up at a time by ``pairs``.
_BATCH = 1 << 14
#: Comparisons made at a time.
_COMPARED = 1 << 21


@dataclass(frozen=True, slots=True)
class _BitTable:
    """Some blocks of every fingerprint: ``mask`` says which, ``keys`` are sorted, ``order`` says whose."""

    mask: int
    keys: Uint64s
    order: Int64s


class HammingIndex:
    """Fingerprints of 64 bits, found exactly within a Hamming distance.

    The bits are cut into blocks. Two fingerprints that differ in d bits agree in all but d blocks, whichever
    these are, so there is a sorted table for each choice of d blocks to leave out; what agrees in the others
    is compared. Nothing is missed and nothing else is answered.

    Args:
        fingerprints: uint64 (N,); they may repeat.
        distance: bits they may differ in, 0 to 8.
        blocks: more than ``distance``; by default as few as keep strangers rare.

    Cost: C(blocks, distance) tables of 16 bytes a fingerprint: for 3 bits and 10⁶, 4 tables or 64 MB.

    Source: Manku, Jain, Das Sarma 2007, "Detecting near-duplicates for web crawling" (permuted tables).
    """

    def __init__(self, fingerprints: Uint64s, distance: int = 3, blocks: int | None = None) -> None:
        if not 0 <= distance <= 8:
            raise ConfigError(f"a distance of {distance} bits; 0 to 8 can be looked for without a scan")
        chosen = _blocks(len(fingerprints), distance) if blocks is None else blocks
        if not distance < chosen <= 16:
            raise ConfigError(f"{chosen} blocks for a distance of {distance}; it takes {distance + 1} to 16")
        self.distance = distance
        self._fingerprints = fingerprints
        self._tables = [_table(fingerprints, mask) for mask in _masks(chosen, distance)]

    def __len__(self) -> int:
        return len(self._fingerprints)

    def within(self, queries: Uint64s) -> tuple[Int64s, Int64s]:
        """Return which fingerprints are within the distance of which queries.

        Args:
            queries: uint64 (Q,).

        Returns:
            Two int64 (H,): numbers of queries and of fingerprints, in ascending order, each pair once.
        """
        found = [self._looked_up(table, queries) for table in self._tables]
        pairs = np.unique(np.concatenate(found))
        size = max(1, len(self))
        return pairs // size, pairs % size

    def pairs(self) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield all pairs a < b of fingerprints within the distance, by batches of a."""
        for begin in range(0, len(self), _BATCH):
            asked, found = self.within(self._fingerprints[begin : begin + _BATCH])
            later = found > asked + begin
            yield asked[later] + begin, found[later]

    def _looked_up(self, table: _BitTable, queries: Uint64s) -> Int64s:
        """Return query · N + fingerprint for what a table finds."""
        return _compared(self._fingerprints, queries, self.distance, table, _buckets(table, queries))


class Near(NamedTuple):
    """Numbers of queries and of fingerprints near them, as ``HammingIndex.within`` returns them; ``crowded``:
    bool (Q,), the queries of which some may be missing."""

    queries: Int64s
    found: Int64s
    crowded: NDArray[np.bool_]


def near_once(fingerprints: Uint64s, queries: Uint64s, most: int, distance: int = 3, blocks: int = 5) -> Near:
    """Return the fingerprints within a distance of queries as ``HammingIndex`` does, in bounded time.

    Each table is made, asked and dropped in turn. A bucket of one holds the fingerprints that agree in all
    blocks but those left out; where many are alike in these bits alone, the largest buckets are passed over.

    Args:
        most: comparisons of a table, all in all; each bucket of one is looked at whatever that is.
        blocks: as of ``HammingIndex``; more of them have smaller buckets, and more tables.

    Cost: a sort of both for each table, and ``most`` comparisons.
    """
    found = _NearHashes()
    crowded = np.zeros(len(queries), np.bool_)
    for mask in _masks(blocks, distance):
        table = _table(fingerprints, mask)
        buckets = _buckets(table, queries)
        kept = buckets.counts <= _limit(buckets.counts, most)
        crowded |= ~kept
        for some in _portions(buckets.of(np.flatnonzero(kept & (buckets.counts > 0)))):
            found.add(_compared(fingerprints, queries, distance, table, some))
    size, pairs = max(1, len(fingerprints)), found.each_once()
    return Near(pairs // size, pairs % size, crowded)


class _NearHashes:
    """Numbers that come again and again, of which little more is held than there are different ones."""

    def __init__(self) -> None:
        self._parts: list[Int64s] = [np.zeros(0, np.int64)]

    def add(self, numbers: Int64s) -> None:
        self._parts.append(numbers)
        if sum(map(len, self._parts[1:])) > max(_COMPARED, len(self._parts[0])):
            self._parts = [self.each_once()]

    def each_once(self) -> Int64s:
        return ascending(np.concatenate(self._parts))


def ascending(numbers: Int64s) -> Int64s:
    """Return numbers in ascending order, each once; ``np.unique`` takes several times as long for many."""
    in_order = np.sort(numbers)
    return np.asarray(in_order[np.diff(in_order, prepend=in_order[:1] - 1) != 0], np.int64)


class _BitBuckets(NamedTuple):
    """Where in a table the bucket of each query begins, and how many fingerprints it holds."""

    queries: Int64s
    first: Int64s
    counts: Int64s

    def of(self, places: Int64s | slice) -> "_BitBuckets":
        return _BitBuckets(self.queries[places], self.first[places], self.counts[places])


def _buckets(table: _BitTable, queries: Uint64s) -> _BitBuckets:
    keys = _kept(queries, table.mask)
    # Looked up in ascending order, neighbours are in the cache already.
    order = np.argsort(keys, kind="stable")
    first, counts = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    first[order] = np.searchsorted(table.keys, keys[order], "left")
    counts[order] = np.searchsorted(table.keys, keys[order], "right")
    return _BitBuckets(np.arange(len(queries)), first, counts - first)


def _limit(counts: Int64s, most: int) -> int:
    """Return the size of buckets up to which all of them together have at most so many, at least 1."""
    sizes, often = np.unique(counts, return_counts=True)
    fitting = sizes[np.cumsum(sizes * often) <= most]
    return max(1, int(fitting[-1])) if len(fitting) else 1


def _portions(buckets: _BitBuckets) -> Iterator[_BitBuckets]:
    """Yield buckets, so many comparisons at a time."""
    begins = np.cumsum(buckets.counts) - buckets.counts
    for cut in range(0, int(begins[-1]) + 1 if len(begins) else 0, _COMPARED):
        yield buckets.of(slice(*np.searchsorted(begins, (cut, cut + _COMPARED)).tolist()))


def _compared(
    fingerprints: Uint64s, queries: Uint64s, distance: int, table: _BitTable, buckets: _BitBuckets
) -> Int64s:
    """Return query · N + fingerprint of what is near in the buckets of queries."""
    asked = np.repeat(buckets.queries, buckets.counts)
    # The places first, first + 1, … of each query, laid one after another.
    steps = np.arange(len(asked)) - np.repeat(np.cumsum(buckets.counts) - buckets.counts, buckets.counts)
    nominated = table.order[np.repeat(buckets.first, buckets.counts) + steps]
    near = np.bitwise_count(fingerprints[nominated] ^ queries[asked]) <= distance
    return np.asarray(asked[near] * len(fingerprints) + nominated[near], np.int64)


def _blocks(count: int, distance: int) -> int:
    """Return the fewest blocks whose kept bits leave few strangers equal."""
    for blocks in range(distance + 1, 16):
        kept = _BITS * (blocks - distance) // blocks
        if count <= _STRANGERS << kept:
            return blocks
    return 16


def _masks(blocks: int, distance: int) -> Iterator[int]:
    """Yield the bits that are kept, for every choice of blocks to leave out."""
    bounds = [_BITS * number // blocks for number in range(blocks + 1)]
    for kept in combinations(range(blocks), blocks - distance):
        yield sum((1 << bounds[number + 1]) - (1 << bounds[number]) for number in kept)


def _table(fingerprints: Uint64s, mask: int) -> _BitTable:
    keys = _kept(fingerprints, mask)
    order = np.argsort(keys, kind="stable")
    return _BitTable(mask, keys[order], order)


def _kept(fingerprints: Uint64s, mask: int) -> Uint64s:
    """Return the kept bits where they stand: equal keys are neighbours whichever bits count for most."""
    return fingerprints & np.uint64(mask)
