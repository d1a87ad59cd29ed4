"""Shingles: every w consecutive tokens as one 64-bit hash; the hash; and exact measures of shingle sets."""

from collections.abc import Iterator

import numpy as np

from shinglefold.errors import ConfigError
from shinglefold.model.values import Int64s, Uint32s, Uint64s

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1
#: The factors of ``mix64``, for compiled code.
MIX_FACTORS = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
#: The factor of ``mix32``.
MIX32_FACTOR = 0x9E3779B1
MIN_WIDTH, MAX_WIDTH = 1, 10
#: The positions hashed at a time: hashes and scratch memory, 128 KiB each, stay in the second-level cache.
_BLOCK = 16384
#: The number of positions sorted at a time.
_SORTED = 1 << 20
#: The factor of the hash chain, and of the numbers of repeats.
FACTOR = np.uint64(0xD6E8FEB86659FD93)


def mix64(values: Uint64s, spare: Uint64s | None = None) -> Uint64s:
    """Scramble 64-bit integers in place; every output bit depends on every input bit.

    Args:
        values: any shape, contiguous; overwritten and returned.
        spare: scratch memory of the same shape, for callers that work block by block.

    Source: the finalizer of SplitMix64 (Steele, Lea, Flood 2014, with the constants of Stafford's "mix 13").
    """
    spare = np.empty_like(values) if spare is None else spare
    for shift, factor in zip((30, 27, 31), (*MIX_FACTORS, 0), strict=True):
        np.right_shift(values, np.uint64(shift), out=spare)
        np.bitwise_xor(values, spare, out=values)
        if factor:
            np.multiply(values, np.uint64(factor), out=values)
    return values


def mix32(values: Uint32s) -> Uint32s:
    """Return scrambled 32-bit integers; the high bits depend on all bits of the input."""
    mixed = values >> np.uint32(16)
    np.bitwise_xor(values, mixed, out=mixed)
    np.multiply(mixed, np.uint32(MIX32_FACTOR), out=mixed)
    return mixed


def stream(seed: int, count: int) -> Uint64s:
    """Return the first ``count`` numbers of the SplitMix64 generator with this seed, uint64 (count,)."""
    first = np.uint64((seed + _GOLDEN) & _MASK)
    return mix64(first + np.arange(count, dtype=np.uint64) * np.uint64(_GOLDEN))


def check_width(width: int) -> None:
    """Raise ``ConfigError`` unless a shingle may have this many tokens."""
    if not MIN_WIDTH <= width <= MAX_WIDTH:
        raise ConfigError(f"shingle width {width} is outside {MIN_WIDTH}…{MAX_WIDTH}; 2 to 5 suit most texts")


def shingle_hashes(hashes: Uint64s, width: int) -> Uint64s:
    """Return the shingles of one document in order, repeats included.

    Args:
        hashes: uint64 (T,), the document's token hashes.
        width: tokens in a shingle, 1…10.

    Returns:
        uint64 (max(0, T − width + 1),).

    Raises:
        ConfigError: the width is out of range.

    Source: Broder 1997, "On the resemblance and containment of documents" (w-shingling); hashed by a
    multiply-xor chain over the tokens instead of Rabin fingerprints, which process single bytes.
    """
    check_width(width)
    shingles = np.empty(max(0, len(hashes) - width + 1), np.uint64)
    _fill(shingles, hashes, width)
    return shingles


def shingle_set(hashes: Uint64s, width: int, counted: bool = False) -> Uint64s:
    """Return the distinct shingles of one document in ascending order, for the exact measures.

    Args:
        counted: repeats of a shingle are different elements.
    """
    shingles = shingle_hashes(hashes, width)
    if counted:
        _number(shingles, shingles.copy())
    return np.unique(shingles)


def shingle_counts(offsets: Int64s, width: int) -> Int64s:
    """Return the number of shingles of each document, int64 (D,): max(0, tokens − width + 1)."""
    counts: Int64s = np.maximum(np.diff(offsets) - (width - 1), 0)
    return counts


def batch_shingles(hashes: Uint64s, offsets: Int64s, width: int) -> Uint64s:
    """Return the shingles of many documents at the positions of their first tokens.

    There are as many positions as tokens: the last ``width − 1`` of a document repeat its first shingle. That
    does not change the set. Positions of a document shorter than ``width`` mean nothing.

    Returns:
        uint64 (T,), document d at ``[offsets[d]:offsets[d + 1]]``.
    """
    check_width(width)
    shingles = np.zeros(len(hashes), np.uint64)
    _fill(shingles[: max(0, len(hashes) - width + 1)], hashes, width)
    long_enough = shingle_counts(offsets, width) > 0
    starts, ends = offsets[:-1][long_enough], offsets[1:][long_enough]
    for back in range(1, width):
        shingles[ends - back] = shingles[starts]
    return shingles


def count_repeats(shingles: Uint64s, offsets: Int64s, width: int) -> None:
    """Make repeats of a shingle in a document different elements, in place.

    Args:
        shingles: uint64 (T,), from ``batch_shingles``.
        offsets: int64 (D + 1,), from 0.

    Cost: a sort of all positions, some 7 ns each. Memory: 8 bytes for each position, and 50 more for each
        position of a block of a million.
    """
    lengths = np.diff(offsets)
    # With the number of the document: equal shingles of two documents are not repeats.
    keys = np.repeat(np.arange(len(lengths), dtype=np.uint64) * FACTOR, lengths)
    keys += shingles
    long_enough = shingle_counts(offsets, width) > 0
    starts, ends = offsets[:-1][long_enough], offsets[1:][long_enough]
    first = shingles[starts]
    for back in range(1, width):
        keys[ends - back] = 0
    _number(shingles, keys)
    # The last positions repeat the first shingle, without the number of a repeat.
    for back in range(1, width):
        shingles[ends - back] = first


def _number(shingles: Uint64s, keys: Uint64s) -> None:
    """Mix the number of the repeat into each repeated shingle; first occurrences stay unchanged."""
    for part in _partition(keys):
        chosen, number = _repeats(keys if part is None else keys[part])
        places = chosen if part is None else part[chosen]
        shingles[places] = mix64(shingles[places] + number * FACTOR)


def _partition(keys: Uint64s) -> Iterator[Int64s | None]:
    """Yield the positions of keys in parts of about a million, equal keys in one part; None for all at once.

    Sorting takes several times the memory of the tokens, so a long text is sorted in parts.
    """
    parts = 1 << (len(keys) // _SORTED).bit_length()
    if parts == 1:
        yield None
        return
    # Keys are hashes, so equal ranges have about equally many, except for zeros.
    width = 2**64 // parts
    for part in range(parts):
        low, high = np.uint64(part * width), np.uint64((part + 1) * width - 1)
        yield np.flatnonzero((keys >= low) & (keys <= high))


def _repeats(keys: Uint64s) -> tuple[Int64s, Uint64s]:
    """Return the positions of repeated keys, and the number of each repeat."""
    places, before = _ranked_repeats(keys)
    own = np.arange(len(places))
    # A run of equal keys begins where the key before is not a repeat.
    begins = np.append(True, places[:-1] != before[1:])[: len(places)]
    number = own - np.maximum.accumulate(np.where(begins, own, 0)) + 1
    return places, number.astype(np.uint64)


def _ranked_repeats(keys: Uint64s) -> tuple[Int64s, Int64s]:
    """Return the positions of repeated keys, grouped by key, and that of each preceding occurrence.

    The lowest bits of each key are replaced by its position, and the numbers are sorted, which takes a third
    of the time of ``argsort``. If keys agree in all other bits, which is rare, ``argsort`` is used.
    """
    bits = np.uint64(max(1, (len(keys) - 1).bit_length()))
    tagged = keys >> bits
    tagged <<= bits
    tagged |= np.arange(len(keys), dtype=np.uint64)
    tagged.sort()
    alike = np.flatnonzero((tagged[1:] ^ tagged[:-1]) >> bits == 0)
    below = (np.uint64(1) << bits) - np.uint64(1)
    before, places = ((tagged[ranks] & below).view(np.int64) for ranks in (alike, alike + 1))
    if np.array_equal(keys[places], keys[before]):
        return places, before
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    alike = np.flatnonzero(ranked[1:] == ranked[:-1])
    return order[alike + 1], order[alike]


def _fill(shingles: Uint64s, hashes: Uint64s, width: int) -> None:
    spare = np.empty(min(len(shingles), _BLOCK), np.uint64)
    for start in range(0, len(shingles), _BLOCK):
        block = shingles[start : start + _BLOCK]
        _hash_block(hashes[start : start + len(block) + width - 1], width, block, spare[: len(block)])


def _hash_block(tokens: Uint64s, width: int, out: Uint64s, spare: Uint64s) -> None:
    count = len(out)
    np.copyto(out, tokens[:count])
    for place in range(1, width):
        # The shift makes the chain nonlinear, so equal differences of tokens don't cancel out.
        np.right_shift(out, np.uint64(32), out=spare)
        np.bitwise_xor(out, spare, out=out)
        np.multiply(out, FACTOR, out=out)
        np.add(out, tokens[place : place + count], out=out)
    mix64(out, spare)


def common(one: Uint64s, other: Uint64s) -> int:
    """Return the number of common elements of two sorted arrays of distinct elements.

    Cost: n·log m, n being the smaller size.
    """
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    if not len(small):
        return 0
    places = np.searchsorted(large, small)
    places[places == len(large)] = len(large) - 1
    return int(np.count_nonzero(large[places] == small))


def resemblance(one: Uint64s, other: Uint64s) -> float:
    """Return |A ∩ B| / |A ∪ B| of two sorted arrays of distinct elements; 0 if both are empty.

    Source: Broder 1997, "On the resemblance and containment of documents".
    """
    shared = common(one, other)
    return _share(shared, len(one) + len(other) - shared)


def containment(one: Uint64s, other: Uint64s) -> float:
    """Return |A ∩ B| / |A|, the share of the first set in the second; 0 if the first is empty."""
    return _share(common(one, other), len(one))


def sorensen(one: Uint64s, other: Uint64s) -> float:
    """Return 2·|A ∩ B| / (|A| + |B|) of two sorted arrays of distinct elements; 0 if both are empty."""
    return _share(2 * common(one, other), len(one) + len(other))


def _share(part: int, whole: int) -> float:
    # Empty documents do not count as equal.
    return part / whole if whole else 0.0
