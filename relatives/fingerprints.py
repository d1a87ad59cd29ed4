"""Fingerprints of windows and pieces of a text: Rabin–Karp modulo a prime, CRC32, CRC64; their collisions."""

from dataclasses import dataclass
from math import expm1, log1p, sqrt
from zlib import crc32 as crc32_of

import numpy as np

from shinglefold.errors import ConfigError, MissingExtra
from shinglefold.model.values import Int64s, Uint32s, Uint64s
from shinglefold.sketch.shingles import stream

#: The number of windows processed at a time, so that intermediate arrays fit into the second-level cache.
_BLOCK = 8192
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
#: The widths in ``birthday_table``, in bits.
WIDTHS = (32, 40, 48, 56, 64, 72)
#: The probabilities of a collision in ``birthday_table``.
PROBABILITIES = (0.01, 0.1, 0.4)


@dataclass(frozen=True, slots=True)
class Prime:
    """The prime 2^bits − gap, with 32 to 64 bits; the gap is so small that two folds reduce a product."""

    bits: int
    gap: int

    @property
    def value(self) -> int:
        """The prime itself."""
        return (1 << self.bits) - self.gap


#: The greatest prime of each width.
PRIMES = {bits: Prime(bits, gap) for bits, gap in ((32, 5), (40, 87), (48, 59), (56, 5), (61, 1), (64, 59))}


def prime_of(bits: int) -> Prime:
    """Return the prime for fingerprints of this width.

    Raises:
        ConfigError: the width is not supported.
    """
    if bits not in PRIMES:
        raise ConfigError(f"no fingerprints of {bits} bits; there are {', '.join(map(str, PRIMES))}")
    return PRIMES[bits]


def multiply(a: Uint64s, b: Uint64s, prime: Prime) -> Uint64s:
    """Return a·b modulo the prime; both must be below it, and are broadcast."""
    if prime.bits == 32:
        return np.asarray(a * b % np.uint64(prime.value))
    return reduce(*_product(a, b), prime)


def reduce(high: Uint64s, low: Uint64s, prime: Prime) -> Uint64s:
    """Return high·2^64 + low modulo the prime; the number must be below the square of the prime."""
    gap, modulus = np.uint64(prime.gap), np.uint64(prime.value)
    if prime.bits == 64:
        folded = _fold_64(high, low, gap)
    else:
        bits, mask = np.uint64(prime.bits), np.uint64((1 << prime.bits) - 1)
        # 2^bits ≡ gap, so the bits above are multiplied by the gap and added; twice leaves less than 2
        # primes.
        folded = ((high << np.uint64(64 - prime.bits)) | (low >> bits)) * gap + (low & mask)
        folded = (folded >> bits) * gap + (folded & mask)
    return np.where(folded >= modulus, folded - modulus, folded)


def subtract(a: Uint64s, b: Uint64s, prime: Prime) -> Uint64s:
    """Return a − b modulo the prime; both must be below it."""
    return np.where(a >= b, a - b, a + (np.uint64(prime.value) - b))


def add(a: Uint64s, b: Uint64s, prime: Prime) -> Uint64s:
    """Return a + b modulo the prime; both must be below it."""
    return subtract(a, subtract(np.zeros_like(b), b, prime), prime)


def powers(base: int, count: int, prime: Prime) -> Uint64s:
    """Return 1, base, base², … modulo the prime, uint64 (count,)."""
    found = np.ones(1, np.uint64)
    while len(found) < count:
        step = np.uint64(pow(base, len(found), prime.value))
        found = np.concatenate((found, multiply(found, np.array([step]), prime)))
    return found[:count]


def _product(a: Uint64s, b: Uint64s) -> tuple[Uint64s, Uint64s]:
    """Return the high and the low 64 bits of a·b."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW, b >> _HALF, b & _LOW
    left, right = a_high * b_low, a_low * b_high
    carried = ((a_low * b_low) >> _HALF) + (left & _LOW) + (right & _LOW)
    return a_high * b_high + (left >> _HALF) + (right >> _HALF) + (carried >> _HALF), a * b


def _fold_64(high: Uint64s, low: Uint64s, gap: np.uint64) -> Uint64s:
    """Return high·gap + low modulo 2^64 − gap: each overflow is multiplied by the gap and added."""
    upper, lower = (high >> _HALF) * gap, (high & _LOW) * gap
    product = (upper << _HALF) + lower
    over = (upper >> _HALF) + (product < lower)
    total = product + low
    over = over + (total < low)
    folded = total + over * gap
    # After this overflow the rest is small, so adding another gap can't overflow.
    return np.asarray(folded + (folded < total) * gap)


def base_of(prime: Prime, seed: int = 0) -> int:
    """Return the base of the polynomial for a seed; at least 2^16, so adjacent words don't overlap."""
    return int(stream(seed, 1)[0]) % (prime.value - 2**16) + 2**16


def rolling_fingerprints(words: Uint64s, width: int, bits: int = 64, seed: int = 0) -> Uint64s:
    """Return the fingerprint of every window of ``width`` words.

    The fingerprint of the words t₀ … t₍w−1₎ is t₀·B^(w−1) + … + t₍w−1₎ modulo the prime of its width. All
    windows are differences of one running sum; ``roll`` makes the single step from one window to the next.

    Args:
        words: uint64 (T,), a number or hash for each word; words that are equal modulo the prime count as
            equal.
        width: words in a window, at least 1.
        bits: 32, 40, 48, 56, 61 (modulo 2^61 − 1) or 64.
        seed: selects the base.

    Returns:
        uint64 (max(0, T − width + 1),), each below 2^bits.

    Cost: two modular products a window, whatever the width; about 0.1 µs.

    Source: Karp, Rabin 1987, "Efficient randomized pattern-matching algorithms". Deviation: the running sum
    is over t_j·B^(−j), so windows don't depend on each other; the result is the same.
    """
    _check_width(width)
    prime = prime_of(bits)
    base = base_of(prime, seed)
    reach = min(_BLOCK, len(words)) + width
    rising = powers(base, reach, prime)
    falling = powers(pow(base, -1, prime.value), reach, prime)
    found = np.empty(max(0, len(words) - width + 1), np.uint64)
    for begin in range(0, len(found), _BLOCK):
        block = found[begin : begin + _BLOCK]
        entered = words[begin : begin + len(block) + width - 1] % np.uint64(prime.value)
        terms = multiply(entered, falling[: len(entered)], prime)
        sums = reduce(*_window_sums(terms, width), prime)
        block[:] = multiply(sums, rising[width - 1 : width - 1 + len(block)], prime)
    return found


def direct(words: Uint64s, width: int, bits: int = 64, seed: int = 0) -> Uint64s:
    """Return the same as ``rolling_fingerprints``, computed for each window by Horner's rule.

    Cost: width − 1 modular products a window; faster than ``rolling`` for two or three words.
    """
    _check_width(width)
    prime = prime_of(bits)
    base = np.array([base_of(prime, seed)], np.uint64)
    count = max(0, len(words) - width + 1)
    reduced = words % np.uint64(prime.value)
    found = np.zeros(count, np.uint64)
    for place in range(width):
        found = add(multiply(found, base, prime), reduced[place : place + count], prime)
    return found


def roll(
    windows: Uint64s, leaving: Uint64s, entering: Uint64s, width: int, *, bits: int = 64, seed: int = 0
) -> Uint64s:
    """Return the fingerprints of the next window of many texts.

    Args:
        windows: uint64 (D,), the fingerprint of the current window of each text.
        leaving: uint64 (D,), the first word of the window, which is subtracted.
        entering: uint64 (D,), the word after the window, which is added.
    """
    prime = prime_of(bits)
    base = base_of(prime, seed)
    first = np.array([pow(base, width - 1, prime.value)], np.uint64)
    modulus = np.uint64(prime.value)
    rest = subtract(windows, multiply(leaving % modulus, first, prime), prime)
    return add(multiply(rest, np.array([base], np.uint64), prime), entering % modulus, prime)


def _window_sums(terms: Uint64s, width: int) -> tuple[Uint64s, Uint64s]:
    """Return the 128-bit sums of ``width`` consecutive terms, as high and low words."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    upper, lower = _differences(terms >> half, width), _differences(terms & low, width)
    sums = (upper << half) + lower
    return (upper >> half) + (sums < lower), sums


def _differences(values: Uint64s, width: int) -> Uint64s:
    running = np.concatenate((np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)))
    return running[width:] - running[:-width]


def _check_width(width: int) -> None:
    if width < 1:
        raise ConfigError(f"a window of {width} words; it needs at least 1")


def crc32(data: bytes, starts: Int64s, ends: Int64s) -> Uint32s:
    """Return the CRC32 of each piece ``data[start:end]``, uint32 (D,).

    Cost: about 0.3 µs a piece of 60 bytes.
    """
    view = memoryview(data)
    pieces = zip(starts.tolist(), ends.tolist(), strict=True)
    return np.fromiter((crc32_of(view[start:end]) for start, end in pieces), np.uint32, len(starts))


def crc64(data: bytes, starts: Int64s, ends: Int64s) -> Uint64s:
    """Return the CRC64 (that of xz: ECMA-182, reflected) of each piece ``data[start:end]``, uint64 (D,).

    Raises:
        MissingExtra: fastcrc is not installed.
    """
    try:
        from fastcrc.crc64 import xz
    except ImportError as error:
        raise MissingExtra("hashes", "CRC64") from error
    pieces = zip(starts.tolist(), ends.tolist(), strict=True)
    return np.fromiter((xz(data[start:end]) for start, end in pieces), np.uint64, len(starts))


@dataclass(frozen=True, slots=True)
class Width:
    """A row of the birthday table.

    ``root``: √R for R = 2^bits values; with more shingles, collisions are likely.
    ``shingles``: for each of ``PROBABILITIES``, how many shingles have a collision with that probability.
    """

    bits: int
    root: float
    shingles: tuple[float, ...]


def birthday_table() -> tuple[Width, ...]:
    """Return the birthday table, one row for each of ``WIDTHS``."""
    return tuple(
        Width(bits, sqrt(2.0**bits), tuple(most_shingles(bits, chance) for chance in PROBABILITIES))
        for bits in WIDTHS
    )


def most_shingles(bits: int, probability: float) -> float:
    """Return how many shingles have a collision with this probability.

    Args:
        probability: at least 0 and below 1.

    Source: N = √(2R ln(1/(1 − P))), the usual approximation of the birthday problem for N much below R.
    """
    return sqrt(2.0 * 2.0**bits * -log1p(-probability))


def expected_collisions(shingles: int, bits: int) -> float:
    """Return the expected number of pairs of distinct shingles with equal fingerprints."""
    return shingles * (shingles - 1) / 2.0 / 2.0**bits


def collision_probability(shingles: int, bits: int) -> float:
    """Return the probability that any two distinct shingles have equal fingerprints."""
    return -expm1(-expected_collisions(shingles, bits))


def width_for(shingles: int, probability: float) -> int:
    """Return the narrowest of ``WIDTHS`` with at most this probability of a collision.

    Raises:
        ConfigError: even the widest has more.
    """
    for bits in WIDTHS:
        if collision_probability(shingles, bits) <= probability:
            return bits
    raise ConfigError(
        f"{shingles:,} shingles are too many for {WIDTHS[-1]} bits at a probability of {probability:g}; "
        "accept a greater probability, or use hashes of 128 bits"
    )
