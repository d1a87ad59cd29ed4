"""b-bit MinHash signatures: packing, counting equal values, and estimating the resemblance.

Source: Li & König 2010, "b-bit minwise hashing".
"""

from math import ceil
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.scheme import SketchOptions
from shinglefold.model.values import Bytes, Int64s, Uint32s, Uint64s
from shinglefold.sketch.shingles import mix32

WIDTHS = (1, 2, 4, 8, 16, 32)


def check_bits(bits: int) -> None:
    """Raise ``ConfigError`` unless a packed value may have this many bits."""
    if bits not in WIDTHS:
        raise ConfigError(f"bits {bits} is none of {', '.join(map(str, WIDTHS))}")


def packed_size(values: int, bits: int) -> int:
    """Return the size of a signature in bytes."""
    return ceil(values * bits / 8)


def low_bits(minima: Uint32s, bits: int) -> Uint32s:
    """Return b well mixed bits of each minimum, as values below 2^bits.

    The minima are mixed first, which the source does not do. The lowest bits of an odd multiply-add depend
    only on the lowest bits of its input. In short documents few shingles hold all minima, so the functions
    would agree or disagree together. Without the mix, the estimate for unrelated documents with 4 shingles
    has 2.4 times the standard deviation.
    """
    check_bits(bits)
    return mix32(minima) >> np.uint32(32 - bits)


def pack(values: Uint32s, bits: int) -> Bytes:
    """Pack the lowest b bits of each value, the first value lowest; the last byte is padded with zeros.

    Args:
        values: uint32 (D, K), each below 2^bits.
        bits: 1, 2, 4, 8, 16 or 32.

    Returns:
        uint8 (D, ceil(K·bits/8)).
    """
    check_bits(bits)
    if bits >= 8:
        wide = np.ascontiguousarray(values, f"<u{bits // 8}")
        return wide.view(np.uint8).copy()
    share = 8 // bits
    padded = np.zeros((len(values), packed_size(values.shape[1], bits) * share), np.uint8)
    padded[:, : values.shape[1]] = values
    packed = padded[:, ::share].copy()
    for place in range(1, share):
        packed |= padded[:, place::share] << np.uint8(place * bits)
    return packed


#: The number of words of 64 values whose differences fit into a byte.
_COUNTED = 3


def agreement_rows(ones: Bytes, others: Bytes, bits: int, values: int) -> Int64s:
    """Count the equal values of signatures row by row: uint8 (P, B) and (P, B) → int64 (P,).

    Args:
        bits, values: b, and K of a signature.

    Raises:
        ConfigError: the rows do not have the length of K values of b bits.

    Cost: about 0.1 µs a pair of 84 bytes.
    """
    one, other, size = int(ones.shape[-1]), int(others.shape[-1]), packed_size(values, bits)
    if not one == other == size:
        raise ConfigError(
            f"signatures of {one} and {other} bytes can't be compared as {values} values of {bits} bits: "
            "check their schemes"
        )
    words = _words(ones ^ others, bits)
    # Fold the bits of every value into its lowest one, which is then 1 if the value differs.
    shift = bits // 2
    while shift:
        words |= words >> words.dtype.type(shift)
        shift //= 2
    words &= words.dtype.type(lowest_bits(bits, words.itemsize))
    differing: Int64s = np.bitwise_count(words).sum(axis=-1, dtype=np.int64)
    return values - differing


def _words(rows: Bytes, bits: int) -> Uint64s:
    """View rows as the widest integers that divide their length and hold whole values."""
    size = next(size for size in (8, 4, 2, 1) if rows.shape[-1] % size == 0 and size * 8 >= bits)
    words: Uint64s = rows.view(f"u{size}")
    return words


def bit_planes(rows: Bytes, bits: int, wanted: int | None = None) -> Uint64s:
    """Return signatures as bit planes, to compare them by ``count_differing``.

    Args:
        rows: packed signatures, uint8 (N, B).
        wanted: how many bits of each value, the lowest first; by default all.

    Returns:
        uint64 (wanted, words, N), unused bits 0. The order of values differs from that in the row, but is the
        same for all rows and bits.
    """
    count = -(-rows.shape[1] // (8 * bits))
    padded = np.zeros((len(rows), count * 8 * bits), np.uint8)
    padded[:, : rows.shape[1]] = rows
    # A word has 64/b values. Bit i of the values of b words, each shifted by its position, fills one word.
    words = padded.view(np.uint64).reshape(len(rows), count, bits)
    lowest = np.uint64(lowest_bits(bits, 8))
    planes = np.empty((bits if wanted is None else wanted, count, len(rows)), np.uint64)
    for bit in range(len(planes)):
        for place in range(bits):
            part = (words[:, :, place].T >> np.uint64(bit)) & lowest
            if place:
                planes[bit] |= part << np.uint64(place)
            else:
                planes[bit] = part
    return planes


def count_differing(ones: Uint64s, others: Uint64s) -> NDArray[np.unsignedinteger]:
    """Count the differing values of each row of one set of bit planes and each row of another.

    Args:
        ones: planes of N rows.
        others: as many planes of M rows.

    Returns:
        uint8 (N, M), or uint16 if a byte can't count all values.

    Cost: about 2 ns a word, bit and pair. Matrix products would be as fast, but start threads, which wait if
    every core is busy.
    """
    shape = ones.shape[2], others.shape[2]
    here = ones[:, :, :, None]
    different, spare = np.empty(shape, np.uint64), np.empty(shape, np.uint64)
    counted, counts = np.empty(shape, np.uint8), np.empty(shape, np.uint8)
    before: NDArray[np.uint16] | None = None
    for word in range(ones.shape[1]):
        first = word % _COUNTED == 0
        if word and first:
            before = counts.astype(np.uint16) if before is None else before + counts
        np.bitwise_xor(here[0, word], others[0, word], out=different)
        for bit in range(1, len(ones)):
            np.bitwise_xor(here[bit, word], others[bit, word], out=spare)
            np.bitwise_or(different, spare, out=different)
        np.bitwise_count(different, out=counts if first else counted)
        if not first:
            counts += counted
    return counts if before is None else before + counts


def lowest_bits(bits: int, size: int) -> int:
    """Return the mask of ``size`` bytes with the lowest bit of every b-bit field set."""
    return int(((bits - 1) * "0" + "1") * (size * 8 // bits), 2)


Floats = NDArray[np.float64]


@overload
def estimate(agreeing: int, values: int, bits: int) -> tuple[float, float]: ...
@overload
def estimate(agreeing: NDArray[np.integer], values: int, bits: int) -> tuple[Floats, Floats]: ...
def estimate(
    agreeing: int | NDArray[np.integer], values: int, bits: int
) -> tuple[float, float] | tuple[Floats, Floats]:
    """Return the estimated resemblance and its standard error.

    By chance unrelated documents agree in a share 2^−b of their values. The estimate subtracts it and is
    clipped to 0…1.

    Args:
        agreeing: how many values agree, a number or an array.
        values: K.
        bits: b, the bits of each value.

    Returns:
        (resemblance, standard error), as numbers or float64 arrays.

    Source: Li & König 2010, for sets that are small compared with the universe of hashes.
    """
    share = np.asarray(agreeing, np.float64) / values
    resemblance = np.clip(unbiased_resemblance(share, bits), 0.0, 1.0)
    error = np.sqrt(share * (1.0 - share) / values) / (1.0 - chance(bits))
    if isinstance(agreeing, np.ndarray):
        return resemblance, error
    return float(resemblance), float(error)


def chance(bits: int) -> float:
    """Return the share of values in which unrelated documents agree: 2^−b."""
    check_bits(bits)
    return float(2.0**-bits)


def unbiased_resemblance(share: ArrayLike, bits: int) -> Floats:
    """Return the unbiased resemblance for a share of agreeing values; it is not clipped to 0…1."""
    by_chance = chance(bits)
    return (np.asarray(share, np.float64) - by_chance) / (1.0 - by_chance)


def standard_error(resemblance: float, values: int, bits: int) -> float:
    """Return the expected standard error at a true resemblance, 0…1."""
    by_chance = chance(bits)
    share = by_chance + (1.0 - by_chance) * resemblance
    return float(np.sqrt(share * (1.0 - share) / values) / (1.0 - by_chance))


def least_estimate(similar: float, width: int, options: SketchOptions) -> float:
    """Return the least estimated resemblance of two texts with an edit similarity.

    In two texts of n words with similarity s, (1 − s)·n words of each have no match, and each affects up to w
    shingles. So the resemblance is at least (1 − w(1 − s))/(1 + w(1 − s)), if no two edits are adjacent.
    Three standard errors are subtracted for the estimate.
    """
    spoiled = min(1.0, width * (1 - similar))
    worst = (1 - spoiled) / (1 + spoiled)
    return max(0.0, worst - 3 * standard_error(worst, options.values, options.bits))


def length_ratio(one: ArrayLike, other: ArrayLike) -> Floats:
    """Return 2·min(a, b)/(a + b) of shingle counts, 0…1; 1 if both are 0."""
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    total, twice = a + b, 2.0 * np.minimum(a, b)
    return np.divide(twice, total, out=np.ones_like(total), where=total > 0)
