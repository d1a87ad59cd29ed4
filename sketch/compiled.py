"""Repeats of shingles, minima and maxima of each document, compiled: those of numpy, in less time.

Four shingles at a time meet each function, whose multiplier, addend and minimum are read and written once
for all four; the loop over functions becomes vector instructions. Importing this imports numba.
"""

import numpy as np

from shinglefold.compiled import compiled
from shinglefold.model import Int64s, Uint32s, Uint64s
from shinglefold.sketch.minhash import EMPTY, Affine32
from shinglefold.sketch.mix import MIX_FACTORS
from shinglefold.sketch.shingles import FACTOR, shingle_counts

_U32 = np.uint32
_FACTOR = FACTOR
_ONE, _ONE32 = np.uint64(1), np.uint32(1)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_M1, _M2 = map(np.uint64, MIX_FACTORS)


def compiled_minima(
    shingles: Uint64s, starts: Int64s, functions: Affine32, *, both_ends: bool = False
) -> Uint32s:
    """Return what ``minima`` returns.

    Cost: about 0.016 µs a function for 500 shingles.
    """
    count = len(functions)
    bounds = np.append(starts, len(shingles)).astype(np.int64)
    found = np.full((len(starts), count * (1 + both_ends)), EMPTY, np.uint32)
    for half in (0, 1):
        own = functions.half(half)
        factors, addends = np.ascontiguousarray(own.multipliers), np.ascontiguousarray(own.addends)
        values = (shingles >> np.uint64(32 * half)).astype(np.uint32)
        if both_ends:
            _both_ends(values, bounds, factors, addends, found[:, half:count:2], found[:, count + half :: 2])
        else:
            _least(values, bounds, factors, addends, found[:, half::2])
    return found


def compiled_repeats(shingles: Uint64s, offsets: Int64s, width: int) -> None:
    """Do what ``count_repeats`` does.

    Cost: about 5 ns a position; 16 bytes and more, up to twice that, for each of the longest document.
    """
    counts = shingle_counts(offsets, width)
    size = 1 << int(2 * counts.max(initial=1) - 1).bit_length()
    held, times = np.empty(size, np.uint64), np.empty(size, np.uint32)
    _number_repeats(shingles, offsets, counts, held, np.full(size, -1, np.int32), times)


@compiled
def _number_repeats(shingles, offsets, counts, held, owner, times):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917
    for document in range(len(counts)):
        start, end = offsets[document], offsets[document] + counts[document]
        # A slot is free until this document took it; short documents keep to the first slots, in the cache.
        size = 2
        while size < 2 * (end - start):
            size *= 2
        last = np.uint64(size - 1)
        for place in range(start, end):
            shingle = shingles[place]
            slot = shingle & last
            while owner[slot] == document and held[slot] != shingle:
                slot = (slot + _ONE) & last
            if owner[slot] != document:
                owner[slot], held[slot], times[slot] = document, shingle, 0
                continue
            times[slot] += _ONE32
            number = shingle + np.uint64(times[slot]) * _FACTOR
            number = (number ^ (number >> _S30)) * _M1
            number = (number ^ (number >> _S27)) * _M2
            shingles[place] = number ^ (number >> _S31)


@compiled
def _least(values, bounds, factors, addends, found):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    count = len(factors)
    least = np.empty(count, np.uint32)
    for document in range(len(bounds) - 1):
        least[:] = EMPTY
        at, end = bounds[document], bounds[document + 1]
        while at + 4 <= end:
            x0, x1, x2, x3 = values[at], values[at + 1], values[at + 2], values[at + 3]
            for f in range(count):
                m, a = factors[f], addends[f]
                v0, v1, v2, v3 = _U32(x0 * m + a), _U32(x1 * m + a), _U32(x2 * m + a), _U32(x3 * m + a)
                least[f] = min(least[f], v0, v1, v2, v3)
            at += 4
        while at < end:
            for f in range(count):
                least[f] = min(least[f], _U32(values[at] * factors[f] + addends[f]))
            at += 1
        found[document, :] = least


@compiled
def _both_ends(values, bounds, factors, addends, found, inverted):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917
    count = len(factors)
    least, most = np.empty(count, np.uint32), np.empty(count, np.uint32)
    for document in range(len(bounds) - 1):
        least[:] = EMPTY
        most[:] = 0
        at, end = bounds[document], bounds[document + 1]
        while at + 4 <= end:
            x0, x1, x2, x3 = values[at], values[at + 1], values[at + 2], values[at + 3]
            for f in range(count):
                m, a = factors[f], addends[f]
                v0, v1, v2, v3 = _U32(x0 * m + a), _U32(x1 * m + a), _U32(x2 * m + a), _U32(x3 * m + a)
                least[f] = min(least[f], v0, v1, v2, v3)
                most[f] = max(most[f], v0, v1, v2, v3)
            at += 4
        while at < end:
            for f in range(count):
                v0 = _U32(values[at] * factors[f] + addends[f])
                least[f] = min(least[f], v0)
                most[f] = max(most[f], v0)
            at += 1
        found[document, :] = least
        for f in range(count):
            inverted[document, f] = EMPTY - most[f]
