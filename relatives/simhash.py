"""simhash: fingerprints that differ in few bits for similar sets of features, and an index of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.sketch.shingles import mix64

#: The supported widths, in bits.
WIDTHS = (32, 64, 128)
_SECOND = np.uint64(0x9E3779B97F4A7C15)
#: How many features are unpacked at a time, each bit to a byte.
_BLOCK = 1 << 14
_BITS = 64
#: About how many unrelated fingerprints a query of a table may be compared with.
_STRANGERS = 64
#: The number of fingerprints that ``pairs`` looks up at a time.
_BATCH = 1 << 14
#: The number of comparisons made at a time.
_COMPARED = 1 << 21
#: Blocks of ``near_once``: more of them mean smaller buckets and more tables.
_NEAR_BLOCKS = 5


def simhashes(
    features: Uint64s, offsets: Int64s, bits: int = 64, weights: NDArray[np.floating] | None = None
) -> Uint64s:
    """Return the simhash of each of D documents.

    Bit i is set if the features with bit i set in their hash outweigh the others.

    Args:
        features: uint64 (T,), well mixed hashes of canonical tokens or shingles; repeats count.
        offsets: int64 (D + 1,), document d has ``features[offsets[d]:offsets[d + 1]]``.
        bits: 32, 64 or 128.
        weights: (T,), at least 0 each; by default 1.

    Returns:
        uint64 (D, 1), or (D, 2) for 128 bits; for 32 bits the high half is 0. All bits are 0 for a document
        without features.

    Cost: about 0.1 µs a feature for 64 bits.

    Source: Charikar 2002, "Similarity estimation techniques from rounding algorithms".
    """
    if bits not in WIDTHS:
        raise ConfigError(f"no simhash of {bits} bits; there are {', '.join(map(str, WIDTHS))}")
    words = [_signs(features, offsets, weights)]
    if bits == 128:
        words.append(_signs(mix64(features ^ _SECOND), offsets, weights))
    if bits == 32:
        words[0] &= np.uint64(0xFFFFFFFF)
    return np.stack(words, axis=1)


def window_simhashes(features: Uint64s, width: int) -> Uint64s:
    """Return the 64-bit simhash of each window of ``width`` features, uint64 (T − width + 1,).

    The results are those of ``simhashes``; overlapping windows share the unpacked bits.

    Args:
        features: uint64 (T,), well mixed hashes.
        width: 1 to 255.

    Cost: some 0.1 µs a window; memory for the result only.
    """
    count = max(0, len(features) - width + 1)
    found = np.empty(count, np.uint64)
    for begin in range(0, count, _BLOCK):
        end = min(begin + _BLOCK, count)
        part = features[begin : end + width - 1].astype("<u8").view(np.uint8).reshape(-1, 8)
        spread = np.unpackbits(part, axis=1, bitorder="little")
        held = np.zeros((end - begin, 64), np.uint8)
        for place in range(width):
            held += spread[place : place + end - begin]
        outweighing = np.packbits(held > width // 2, axis=1, bitorder="little")
        found[begin:end] = outweighing.view("<u8").reshape(-1)
    return found


def distance(one: Uint64s, other: Uint64s) -> Int64s:
    """Return the Hamming distance of simhashes, int64 (…); both are uint64 (…, W), and are broadcast."""
    differing: Int64s = np.bitwise_count(one ^ other).sum(axis=-1, dtype=np.int64)
    return differing


def similarity(one: Uint64s, other: Uint64s, bits: int = 64) -> NDArray[np.float64]:
    """Return 1 − Hamming distance/bits; about .5 for unrelated documents."""
    return np.asarray(1.0 - distance(one, other) / bits, np.float64)


def _signs(features: Uint64s, offsets: Int64s, weights: NDArray[np.floating] | None) -> Uint64s:
    """Return a word for each document; a bit is 1 if its balance is positive."""
    balance = np.zeros((len(offsets) - 1, 64))
    for begin in range(0, len(features), _BLOCK):
        part = features[begin : begin + _BLOCK]
        first = int(np.searchsorted(offsets, begin, "right")) - 1
        last = int(np.searchsorted(offsets, begin + len(part), "left"))
        # A document may span several blocks, whose balances add up.
        bounds = np.clip(offsets[first : last + 1] - begin, 0, len(part))
        filled = np.diff(bounds) > 0
        weighed = None if weights is None else weights[begin : begin + len(part)]
        balance[first:last][filled] += _balance(part, bounds[:-1][filled], weighed)
    set_bits = np.packbits(balance > 0, axis=1, bitorder="little")
    return np.ascontiguousarray(set_bits).view("<u8").astype(np.uint64).reshape(-1)


def _balance(features: Uint64s, starts: Int64s, weights: NDArray[np.floating] | None) -> NDArray[np.float64]:
    """Return the weight of set bits minus that of the others, float64 (documents, 64)."""
    spread = np.unpackbits(features.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    if weights is None:
        counts = np.add.reduceat(spread, starts, axis=0, dtype=np.int32)
        sizes = np.diff(np.append(starts, len(features)))
        return np.asarray(2.0 * counts - sizes[:, None], np.float64)
    signed = np.where(spread, 1.0, -1.0) * weights[:, None]
    return np.asarray(np.add.reduceat(signed, starts, axis=0), np.float64)


@dataclass(frozen=True, slots=True)
class _BitTable:
    """Fingerprints sorted by the bits in ``mask``; ``order`` has their original positions."""

    mask: int
    keys: Uint64s
    order: Int64s


class HammingIndex:
    """Finds 64-bit fingerprints within a Hamming distance; results are exact and complete.

    The bits are cut into blocks. Two fingerprints that differ in d bits agree in all but at most d blocks. So
    there is a sorted table for each choice of d blocks to omit, and fingerprints equal in the others are
    compared.

    Args:
        fingerprints: uint64 (N,); may repeat.
        distance: the most differing bits, 0 to 8.
        blocks: more than ``distance``; by default the fewest with which unrelated pairs are rarely compared.

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
        """Return the fingerprints within the distance of each query.

        Args:
            queries: uint64 (Q,).

        Returns:
            Two int64 (H,): the numbers of queries and of fingerprints, sorted, each pair once.
        """
        found = [self._look_up(table, queries) for table in self._tables]
        pairs = np.unique(np.concatenate(found))
        size = max(1, len(self))
        return pairs // size, pairs % size

    def pairs(self) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield all pairs a < b of fingerprints within the distance, in batches."""
        for begin in range(0, len(self), _BATCH):
            queries, found = self.within(self._fingerprints[begin : begin + _BATCH])
            later = found > queries + begin
            yield queries[later] + begin, found[later]

    def _look_up(self, table: _BitTable, queries: Uint64s) -> Int64s:
        """Return query · N + fingerprint for each match in a table."""
        return _matches_in_buckets(
            self._fingerprints, queries, self.distance, table, _buckets(table, queries)
        )


class Near(NamedTuple):
    """The result of ``HammingIndex.within``; ``crowded``: bool (Q,), queries that may lack matches."""

    queries: Int64s
    found: Int64s
    crowded: NDArray[np.bool_]


def near_once(fingerprints: Uint64s, queries: Uint64s, most: int, distance: int = 3) -> Near:
    """Return the fingerprints within a distance of queries, in bounded time.

    Makes, queries and drops one table after another. A bucket has the fingerprints that agree in all blocks
    of the table. The largest buckets are skipped if they exceed the limit.

    Args:
        most: the most comparisons for a table; buckets of one fingerprint are always compared.

    Cost: a sort of fingerprints and queries, and ``most`` comparisons, for each table.
    """
    found = _NearHashes()
    crowded = np.zeros(len(queries), np.bool_)
    for mask in _masks(_NEAR_BLOCKS, distance):
        table = _table(fingerprints, mask)
        buckets = _buckets(table, queries)
        kept = buckets.counts <= _limit(buckets.counts, most)
        crowded |= ~kept
        for some in _portions(buckets.of(np.flatnonzero(kept & (buckets.counts > 0)))):
            found.add(_matches_in_buckets(fingerprints, queries, distance, table, some))
    size, pairs = max(1, len(fingerprints)), found.each_once()
    return Near(pairs // size, pairs % size, crowded)


class _NearHashes:
    """A set of numbers that are added repeatedly; it stores little more than the distinct ones."""

    def __init__(self) -> None:
        self._parts: list[Int64s] = [np.zeros(0, np.int64)]

    def add(self, numbers: Int64s) -> None:
        self._parts.append(numbers)
        if sum(map(len, self._parts[1:])) > max(_COMPARED, len(self._parts[0])):
            self._parts = [self.each_once()]

    def each_once(self) -> Int64s:
        return sorted_distinct(np.concatenate(self._parts))


def sorted_distinct(numbers: Int64s) -> Int64s:
    """Return the distinct numbers in ascending order, several times as fast as ``np.unique``."""
    in_order = np.sort(numbers)
    return np.asarray(in_order[np.diff(in_order, prepend=in_order[:1] - 1) != 0], np.int64)


class _BitBuckets(NamedTuple):
    """The start of each query's bucket in a table, and how many fingerprints the bucket has."""

    queries: Int64s
    first: Int64s
    counts: Int64s

    def of(self, places: Int64s | slice) -> "_BitBuckets":
        return _BitBuckets(self.queries[places], self.first[places], self.counts[places])


def _buckets(table: _BitTable, queries: Uint64s) -> _BitBuckets:
    keys = _mask_bits(queries, table.mask)
    # In ascending order, because neighbours are in the cache then.
    order = np.argsort(keys, kind="stable")
    first, counts = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    first[order] = np.searchsorted(table.keys, keys[order], "left")
    counts[order] = np.searchsorted(table.keys, keys[order], "right")
    return _BitBuckets(np.arange(len(queries)), first, counts - first)


def _limit(counts: Int64s, most: int) -> int:
    """Return the largest bucket size to compare, at least 1.

    All buckets up to this size together have at most ``most`` fingerprints.
    """
    sizes, often = np.unique(counts, return_counts=True)
    fitting = sizes[np.cumsum(sizes * often) <= most]
    return max(1, int(fitting[-1])) if len(fitting) else 1


def _portions(buckets: _BitBuckets) -> Iterator[_BitBuckets]:
    """Yield the buckets in portions of about ``_COMPARED`` comparisons."""
    begins = np.cumsum(buckets.counts) - buckets.counts
    for cut in range(0, int(begins[-1]) + 1 if len(begins) else 0, _COMPARED):
        yield buckets.of(slice(*np.searchsorted(begins, (cut, cut + _COMPARED)).tolist()))


def _matches_in_buckets(
    fingerprints: Uint64s, queries: Uint64s, distance: int, table: _BitTable, buckets: _BitBuckets
) -> Int64s:
    """Return query · N + fingerprint for each fingerprint in a query's bucket within the distance."""
    asking = np.repeat(buckets.queries, buckets.counts)
    # The positions first, first + 1, … of each query, concatenated.
    steps = np.arange(len(asking)) - np.repeat(np.cumsum(buckets.counts) - buckets.counts, buckets.counts)
    nominated = table.order[np.repeat(buckets.first, buckets.counts) + steps]
    near = np.bitwise_count(fingerprints[nominated] ^ queries[asking]) <= distance
    return np.asarray(asking[near] * len(fingerprints) + nominated[near], np.int64)


def _blocks(count: int, distance: int) -> int:
    """Return the fewest blocks with which unrelated fingerprints are rarely equal in the kept bits."""
    for blocks in range(distance + 1, 16):
        kept = _BITS * (blocks - distance) // blocks
        if count <= _STRANGERS << kept:
            return blocks
    return 16


def _masks(blocks: int, distance: int) -> Iterator[int]:
    """Yield the mask of kept bits for each choice of blocks to omit."""
    bounds = [_BITS * number // blocks for number in range(blocks + 1)]
    for kept in combinations(range(blocks), blocks - distance):
        yield sum((1 << bounds[number + 1]) - (1 << bounds[number]) for number in kept)


def _table(fingerprints: Uint64s, mask: int) -> _BitTable:
    keys = _mask_bits(fingerprints, mask)
    order = np.argsort(keys, kind="stable")
    return _BitTable(mask, keys[order], order)


def _mask_bits(fingerprints: Uint64s, mask: int) -> Uint64s:
    """Return the kept bits at their positions: sorting makes equal keys adjacent whatever their order."""
    return fingerprints & np.uint64(mask)
