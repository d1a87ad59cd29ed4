"""Reference points: numbers that are close for similar texts, rounded to a grid so that they become equal."""

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.sketch.shingles import mix64, stream

Floats = NDArray[np.float64]
Int32s = NDArray[np.int32]


def values(shingles: Uint64s, offsets: Int64s, count: int, seed: int = 0) -> Floats:
    """Return ``count`` values for each of D documents; they are close if the documents are similar.

    Each shingle adds +1 or −1, by its hash; the sum is divided by the square root of the number of shingles.
    A value has mean 0 and variance 1. The values of two documents with the cosine ρ differ by √(2(1
    − ρ)) (root mean square).

    Args:
        shingles: uint64 (T,), well mixed, preferably distinct within a document.
        offsets: int64 (D + 1,).

    Returns:
        float64 (D, count); 0 for a document without shingles.

    Source: Charikar 2002 (random hyperplanes), without taking the sign.
    """
    sizes = np.diff(offsets)
    filled = sizes > 0
    found = np.zeros((len(sizes), count))
    for word, key in enumerate(stream(seed, -(-count // 64))):
        wanted = found[:, word * 64 : (word + 1) * 64]
        hashes = mix64(shingles ^ key)
        for column in range(wanted.shape[1]):
            signs = ((hashes >> np.uint64(column)) & np.uint64(1)).astype(np.int32)
            wanted[filled, column] = 2.0 * np.add.reduceat(signs, offsets[:-1][filled]) - sizes[filled]
    return found / np.sqrt(np.maximum(sizes, 1))[:, None]


def round_to_grid(found: Floats, step: float, shift: float = 0.0) -> Int32s:
    """Return the numbers of the nearest grid points, int32 of the same shape.

    Args:
        step: the distance between adjacent points, above 0.
        shift: an offset of the grid, in steps.
    """
    if step <= 0.0:
        raise ConfigError(f"a grid with steps of {step}; they must be above 0")
    return np.floor(found / step + 0.5 + shift).astype(np.int32)


def on_two_grids(found: Floats, step: float) -> Int32s:
    """Return the nearest points of two grids, shifted by half a step, int32 (…, 2).

    On one grid, close values are rounded to different points with the probability difference/step. Values
    less than half a step apart are equal on at least one of two grids.
    """
    return np.stack((round_to_grid(found, step), round_to_grid(found, step, 0.5)), axis=-1)


def separation_probability(difference: float, step: float, grids: int) -> float:
    """Return the probability that two values have no grid point in common.

    Args:
        difference: the difference of the values, at least 0.
        grids: how many grids, 1 or 2.
    """
    apart = difference / step
    return min(1.0, apart) if grids == 1 else min(1.0, max(0.0, 2.0 * apart - 1.0))


def cosine(one: Floats, other: Floats) -> Floats:
    """Return the estimated cosine of the shingle sets, |A ∩ B|/√(|A|·|B|), from values (…, K).

    The standard error is √(2/K)·(1 − ρ).
    """
    return np.asarray(1.0 - np.square(one - other).mean(axis=-1) / 2.0, np.float64)
