"""Mixing functions: 64-bit and 32-bit integers scrambled, one to one."""

import numpy as np

from shinglefold.model.values import Uint32s, Uint64s

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1
#: The factors of ``mix64``, for compiled code.
MIX_FACTORS = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
#: The factor of ``mix32``.
MIX32_FACTOR = 0x9E3779B1


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
