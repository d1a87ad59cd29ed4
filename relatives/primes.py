"""Arithmetic modulo a prime just below a power of two, on whole arrays of 64-bit integers."""

from dataclasses import dataclass

import numpy as np

from shinglefold.errors import ConfigError
from shinglefold.model.values import Uint64s

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Prime:
    """The prime 2^bits − gap, of 32 to 64 bits, with a gap so small that two folds reduce a product."""

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
        ConfigError: there is none of this width.
    """
    if bits not in PRIMES:
        raise ConfigError(f"no fingerprints of {bits} bits; there are {', '.join(map(str, PRIMES))}")
    return PRIMES[bits]


def multiply(a: Uint64s, b: Uint64s, prime: Prime) -> Uint64s:
    """Return a·b modulo the prime; both are below it, and broadcast against each other."""
    if prime.bits == 32:
        return np.asarray(a * b % np.uint64(prime.value))
    return reduce(*_product(a, b), prime)


def reduce(high: Uint64s, low: Uint64s, prime: Prime) -> Uint64s:
    """Return high·2^64 + low modulo the prime; the whole is below the prime's square."""
    gap, modulus = np.uint64(prime.gap), np.uint64(prime.value)
    if prime.bits == 64:
        folded = _fold_64(high, low, gap)
    else:
        bits, mask = np.uint64(prime.bits), np.uint64((1 << prime.bits) - 1)
        # 2^bits ≡ gap, so what lies above the bits comes back times the gap; twice leaves less than 2 primes.
        folded = ((high << np.uint64(64 - prime.bits)) | (low >> bits)) * gap + (low & mask)
        folded = (folded >> bits) * gap + (folded & mask)
    return np.where(folded >= modulus, folded - modulus, folded)


def subtract(a: Uint64s, b: Uint64s, prime: Prime) -> Uint64s:
    """Return a − b modulo the prime; both are below it."""
    return np.where(a >= b, a - b, a + (np.uint64(prime.value) - b))


def add(a: Uint64s, b: Uint64s, prime: Prime) -> Uint64s:
    """Return a + b modulo the prime; both are below it."""
    return subtract(a, subtract(np.zeros_like(b), b, prime), prime)


def powers(base: int, count: int, prime: Prime) -> Uint64s:
    """Return 1, base, base², … modulo the prime, uint64 (count,)."""
    found = np.ones(1, np.uint64)
    while len(found) < count:
        step = np.uint64(pow(base, len(found), prime.value))
        found = np.concatenate((found, multiply(found, np.array([step]), prime)))
    return found[:count]


def _product(a: Uint64s, b: Uint64s) -> tuple[Uint64s, Uint64s]:
    """Return the 128 bits of a·b as their high and low halves."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW, b >> _HALF, b & _LOW
    left, right = a_high * b_low, a_low * b_high
    carried = ((a_low * b_low) >> _HALF) + (left & _LOW) + (right & _LOW)
    return a_high * b_high + (left >> _HALF) + (right >> _HALF) + (carried >> _HALF), a * b


def _fold_64(high: Uint64s, low: Uint64s, gap: np.uint64) -> Uint64s:
    """Return high·gap + low without its overflow, which comes back times the gap until there is none."""
    upper, lower = (high >> _HALF) * gap, (high & _LOW) * gap
    product = (upper << _HALF) + lower
    over = (upper >> _HALF) + (product < lower)
    total = product + low
    over = over + (total < low)
    folded = total + over * gap
    # After this overflow little is left, so that one more gap can't overflow again.
    return np.asarray(folded + (folded < total) * gap)
