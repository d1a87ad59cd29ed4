"""MinHash in numpy: K independent minima of the shingles of each document."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.scheme import SketchOptions
from shinglefold.model.values import Int64s, Uint32s, Uint64s
from shinglefold.sketch.hash_mixing import stream
from shinglefold.sketch.shingles import batch_shingles, count_repeats, shingle_counts

#: The minimum of a document without shingles.
EMPTY = np.uint32(0xFFFFFFFF)
#: The number of shingle positions processed at a time.
BLOCK = 16384
#: The number of values of the scratch buffer: 512 KiB, half of a common second-level cache.
_BUFFER = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class Affine32:
    """K functions x → (multiplier·x + addend) mod 2³² with odd multipliers.

    Function i takes the low half of the 64-bit shingle hash if i is even, else the high half.
    """

    multipliers: Uint32s
    addends: Uint32s

    @classmethod
    def of(cls, count: int, seed: int) -> "Affine32":
        """Return ``count`` functions for a seed; more of them begin with the same ones."""
        drawn = stream(seed, count)
        return cls(
            drawn.astype(np.uint32) | np.uint32(1),
            (drawn >> np.uint64(32)).astype(np.uint32),
        )

    def half(self, half: int) -> "Affine32":
        """Return the functions that take the low (0) or the high half (1)."""
        return Affine32(self.multipliers[half::2], self.addends[half::2])

    def slice(self, begin: int, end: int) -> "Affine32":
        """Return the functions begin…end − 1 as columns, for broadcasting."""
        return Affine32(self.multipliers[begin:end, None], self.addends[begin:end, None])

    def __len__(self) -> int:
        return len(self.multipliers)


def minima(
    shingles: Uint64s, starts: Int64s, functions: Affine32, block: int = BLOCK, *, both_ends: bool = False
) -> Uint32s:
    """Return the K minima of each of D documents, optionally followed by the K maxima as 2³² − 1 − maximum.

    Args:
        shingles: uint64 (T,), well mixed; repeats are allowed.
        starts: int64 (D,), strictly ascending from 0: the start of each document; none may be empty.
        block: positions processed at a time, at least 1; the result does not depend on it.
        both_ends: return the maxima, too. The complement of a permutation is a permutation with its minimum
            at another shingle, so maxima are worth as much as minima of more functions.

    Returns:
        uint32 (D, K), with maxima (D, 2K).

    Cost: about 0.11 µs a function for 500 shingles, 0.14 with maxima. Memory: 512 KiB, and the result.

    Source: Broder 1997; Broder, Charikar, Frieze, Mitzenmacher 1998 (min-wise permutations). Deviation:
    an odd multiply-add modulo 2³² permutes the half-hashes; it is min-wise only because they are mixed
    before.
    """
    result = np.full((len(starts), len(functions) * (1 + both_ends)), EMPTY, np.uint32)
    buffer = np.empty(max(_BUFFER, min(block, len(shingles))), np.uint32)
    for begin in range(0, len(shingles), block):
        part = shingles[begin : begin + block]
        first = int(np.searchsorted(starts, begin, "right")) - 1
        last = int(np.searchsorted(starts, begin + len(part), "left"))
        # A document may begin in an earlier block; its minima are then combined.
        local = np.maximum(starts[first:last] - begin, 0)
        rows = result[first:last]
        np.minimum(rows, _block_minima(part, local, functions, buffer, both_ends).T, out=rows)
    return result


def _block_minima(
    shingles: Uint64s, starts: Int64s, functions: Affine32, buffer: Uint32s, both_ends: bool
) -> Uint32s:
    count = len(functions)
    found = np.empty((count * (1 + both_ends), len(starts)), np.uint32)
    for half in (0, 1):
        values = (shingles >> np.uint64(32 * half)).astype(np.uint32)
        most = found[count + half :: 2] if both_ends else None
        _half_minima(values, starts, functions.half(half), buffer, found[half:count:2], most)
    np.invert(found[count:], out=found[count:])
    return found


def _half_minima(  # noqa: PLR0917 - inputs, scratch memory, outputs
    values: Uint32s,
    starts: Int64s,
    functions: Affine32,
    buffer: Uint32s,
    least: Uint32s,
    most: Uint32s | None,
) -> None:
    size = len(values)
    # As many functions at a time as fit into the buffer: few calls for short input, cached blocks for long.
    step = max(1, min(len(functions), len(buffer) // size))
    for begin in range(0, len(functions), step):
        chosen = functions.slice(begin, begin + step)
        work = buffer[: len(chosen) * size].reshape(len(chosen), size)
        np.multiply(values, chosen.multipliers, out=work)
        np.add(work, chosen.addends, out=work)
        np.minimum.reduceat(work, starts, axis=1, out=least[begin : begin + step])
        if most is not None:
            np.maximum.reduceat(work, starts, axis=1, out=most[begin : begin + step])


#: How many positions of a document are checked first when its distinct shingles are counted.
_GLANCE = 64


class BatchMinima(Protocol):
    """A function that computes the min-values of a batch."""

    def __call__(
        self, hashes: Uint64s, offsets: Int64s, width: int, options: SketchOptions, functions: Affine32
    ) -> tuple[Uint32s, NDArray[np.bool_]]:
        """Return the values of each document, and whether it has enough shingles; see ``batch_minima``."""
        ...


def batch_minima(
    hashes: Uint64s, offsets: Int64s, width: int, options: SketchOptions, functions: Affine32
) -> tuple[Uint32s, NDArray[np.bool_]]:
    """Return the values of each document, and whether it has enough shingles for a signature.

    Args:
        hashes: uint64 (T,), the token hashes of all documents one after another.
        offsets: int64 (D + 1,), from 0.
        width: the shingle width of all documents.

    Returns:
        uint32 (D, K), 2³² − 1 for documents that are not valid, and bool (D,).
    """
    shingles = batch_shingles(hashes, offsets, width)
    valid = _enough(shingles, offsets[:-1], shingle_counts(offsets, width), options.min_shingles)
    if options.counted:
        count_repeats(shingles, offsets, width)
    # Without empty documents, for which reduceat returns the value of a neighbour.
    filled = np.flatnonzero(np.diff(offsets))
    found = np.full((len(valid), options.values), EMPTY, np.uint32)
    found[filled] = minima(shingles, offsets[:-1][filled], functions, both_ends=options.both_ends)
    found[~valid] = EMPTY
    return found, valid


def _enough(shingles: Uint64s, starts: Int64s, counts: Int64s, wanted: int) -> NDArray[np.bool_]:
    """Return which documents have ``wanted`` distinct shingles; usually their first ones suffice."""
    enough = np.zeros(len(counts), np.bool_)
    hopeful = np.flatnonzero(counts >= wanted)
    glance = np.arange(min(4 * wanted, _GLANCE))
    places = starts[hopeful, None] + np.minimum(glance, counts[hopeful, None] - 1)
    seen = np.sort(shingles[places], axis=1)
    enough[hopeful] = 1 + np.count_nonzero(seen[:, 1:] != seen[:, :-1], axis=1) >= wanted
    for document in hopeful[~enough[hopeful]].tolist():
        start = starts[document]
        enough[document] = len(np.unique(shingles[start : start + counts[document]])) >= wanted
    return enough
