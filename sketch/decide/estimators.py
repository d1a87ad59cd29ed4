"""Estimates: the resemblance of two documents from how many packed values agree."""

from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shinglefold.sketch.bit_packing import check_bits

Floats = NDArray[np.float64]


@overload
def estimate(agreeing: int, values: int, bits: int) -> tuple[float, float]: ...
@overload
def estimate(agreeing: NDArray[np.integer], values: int, bits: int) -> tuple[Floats, Floats]: ...
def estimate(
    agreeing: int | NDArray[np.integer], values: int, bits: int
) -> tuple[float, float] | tuple[Floats, Floats]:
    """Return the estimated resemblance and its standard error.

    Strangers agree in a share 2^−b of their values by chance; the estimate takes that out and is then kept
    within 0…1.

    Args:
        agreeing: how many values agree, a number or an array of them.
        values: K.
        bits: b, the bits kept of each value.

    Returns:
        (resemblance, standard error), numbers for a number, float64 arrays for an array.

    Source: Li & König 2010, "b-bit minwise hashing", for sets small against the universe of hashes.
    """
    share = np.asarray(agreeing, np.float64) / values
    resemblance = np.clip(corrected(share, bits), 0.0, 1.0)
    error = np.sqrt(share * (1.0 - share) / values) / (1.0 - chance(bits))
    if isinstance(agreeing, np.ndarray):
        return resemblance, error
    return float(resemblance), float(error)


def chance(bits: int) -> float:
    """Return the share of values that agree between strangers: 2^−b."""
    check_bits(bits)
    return float(2.0**-bits)


def corrected(share: ArrayLike, bits: int) -> Floats:
    """Return the resemblance of a share of agreeing values, not kept within 0…1: it is unbiased."""
    by_chance = chance(bits)
    return (np.asarray(share, np.float64) - by_chance) / (1.0 - by_chance)


def standard_error(resemblance: float, values: int, bits: int) -> float:
    """Return the standard error to expect at a true resemblance, 0…1."""
    by_chance = chance(bits)
    share = by_chance + (1.0 - by_chance) * resemblance
    return float(np.sqrt(share * (1.0 - share) / values) / (1.0 - by_chance))


def length_ratio(one: ArrayLike, other: ArrayLike) -> Floats:
    """Return 2·min(a, b)/(a + b) of shingle counts, 0…1; 1 where both are 0."""
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    total, twice = a + b, 2.0 * np.minimum(a, b)
    return np.divide(twice, total, out=np.ones_like(total), where=total > 0)
