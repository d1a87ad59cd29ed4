"""MinHash in numpy: K independent minima of the shingles of each document, and supershingles of the minima.

A supershingle is a hash of a few minima, equal only if all of these are; it is stored as a keyword.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError, InputError
from shinglefold.model.scheme import SketchOptions
from shinglefold.model.values import Bytes, Int64s, Uint32s, Uint64s
from shinglefold.sketch.shingles import batch_shingles, count_repeats, mix64, shingle_counts, stream

#: The minimum of a document without shingles.
EMPTY = np.uint32(0xFFFFFFFF)
#: The number of shingle positions processed at a time.
BLOCK = 16384
#: The number of values of the scratch buffer: 512 KiB, half of a common second-level cache.
_BUFFER = 1 << 17
#: How many positions of a document are checked first when its distinct shingles are counted.
_GLANCE = 64
_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_MOST_SUBSETS = 1 << 16
#: Characters of a keyword for bits of its supershingle. A sixth one would cost two bytes a keyword on disk
#: (bench/runs/2026-11-26-storage.json), and save 0.01 false candidates a slot among ten million documents.
HASHED = 5
#: The digits of keywords: those of URL-safe base64.
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_MOST_SLOTS = 64 * 64
_NO_DIGIT = 255


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


#: ``batch_minima``, or the compiled function of the same results.
BatchMinima = Callable[[Uint64s, Int64s, int, SketchOptions, Affine32], tuple[Uint32s, NDArray[np.bool_]]]


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
    long_enough = np.flatnonzero(counts >= wanted)
    glance = np.arange(min(4 * wanted, _GLANCE))
    places = starts[long_enough, None] + np.minimum(glance, counts[long_enough, None] - 1)
    seen = np.sort(shingles[places], axis=1)
    enough[long_enough] = 1 + np.count_nonzero(seen[:, 1:] != seen[:, :-1], axis=1) >= wanted
    for document in long_enough[~enough[long_enough]].tolist():
        start = starts[document]
        enough[document] = len(np.unique(shingles[start : start + counts[document]])) >= wanted
    return enough


def supershingles(minima: Uint32s, groups: int, group_size: int) -> Uint64s:
    """Return the hash of each group of consecutive minima.

    Args:
        minima: uint32 (D, K) with K ≥ groups·group_size; the rest is ignored.
        groups: M, the supershingles of a document.
        group_size: N, the minima in each.

    Returns:
        uint64 (D, M). The hash includes the slot, so supershingles of different slots differ.

    Source: Broder, Glassman, Manasse, Zweig 1997, "Syntactic clustering of the Web"; 6×14 is of
    Fetterly, Manasse, Najork 2003, "On the evolution of clusters of near-duplicate web pages".
    """
    grouped = minima[:, : groups * group_size].reshape(len(minima), groups, group_size)
    hashed = np.broadcast_to(stream(0, groups), (len(minima), groups)).copy()
    for place in range(group_size):
        _absorb(hashed, grouped[:, :, place])
    return mix64(hashed)


def megashingles(supershingles: Uint64s, size: int) -> Uint64s:
    """Return the hash of every subset of ``size`` supershingles of each document.

    Two documents share a megashingle exactly if they share at least ``size`` supershingles. So a search for
    one common megashingle replaces counting common supershingles.

    Args:
        supershingles: uint64 (D, M).
        size: 1…M.

    Returns:
        uint64 (D, C(M, size)), subsets in lexicographic order of their slots.

    Raises:
        ConfigError: the size is out of range, or there are more than 65,536 subsets.

    Source: Broder 1997, "Identifying and filtering near-duplicate documents" (pairs of supershingles).
    """
    groups = supershingles.shape[1]
    if not 1 <= size <= groups:
        raise ConfigError(f"no {size} of {groups} supershingles: choose a size of 1 to {groups}")
    if comb(groups, size) > _MOST_SUBSETS:
        raise ConfigError(
            f"{comb(groups, size):,} megashingles a document: choose a smaller size or fewer groups"
        )
    slots = np.array(list(combinations(range(groups), size)), np.int64)
    hashed = np.full((len(supershingles), len(slots)), size, np.uint64)
    for place in range(size):
        _absorb(hashed, supershingles[:, slots[:, place]])
    return mix64(hashed)


def _absorb(state: Uint64s, values: Uint64s | Uint32s) -> None:
    np.bitwise_xor(state, values, out=state)
    np.multiply(state, _FACTOR, out=state)
    np.bitwise_xor(state, state >> np.uint64(32), out=state)


def slot_characters(groups: int) -> int:
    """Return the number of characters of a keyword for its slot: 1 up to 64 groups, else 2."""
    return 1 if groups <= 64 else 2


def hash_bits() -> int:
    """Return the number of bits of a supershingle in its keyword."""
    return 6 * HASHED


def to_keywords(supershingles: Uint64s, valid: NDArray[np.bool_]) -> list[tuple[str, ...]]:
    """Return the keywords of each document, in slot order; none if it is not valid.

    A keyword has 6 characters of the URL-safe base64 alphabet (7 for more than 64 groups): its slot, then
    hash bits. So keywords of different slots differ.

    Args:
        supershingles: uint64 (D, M).
        valid: bool (D,).

    Cost: about 0.1 µs a keyword; the strings are views of one array.
    """
    found = letters(supershingles[valid])
    texts = found.astype(np.uint32).view(f"U{found.shape[2]}")[:, :, 0]
    rows = iter(texts.tolist())
    return [tuple(next(rows)) if good else () for good in valid.tolist()]


def letters(supershingles: Uint64s) -> Bytes:
    """Return the ASCII letters of all keywords, uint8 (D, M, characters of a keyword).

    Raises:
        ConfigError: there are more groups than a keyword can name.
    """
    documents, groups = supershingles.shape
    if groups > _MOST_SLOTS:
        raise ConfigError(f"{groups} groups can't be named in a keyword: lower groups to {_MOST_SLOTS}")
    alphabet = np.frombuffer(ALPHABET.encode("ascii"), np.uint8)
    slots = slot_characters(groups)
    found = np.empty((documents, groups, slots + HASHED), np.uint8)
    found[:, :, :slots] = _digits(np.arange(groups, dtype=np.uint64), slots, alphabet)
    found[:, :, slots:] = _digits(supershingles, HASHED, alphabet)
    return found


def from_letters(found: Bytes, slots: int) -> Uint32s:
    """Return the hash bits of keywords, uint32 (D, M); the inverse of ``letters``.

    Args:
        found: ASCII letters, uint8 (D, M, characters of a keyword).
        slots: characters for the slot.

    Raises:
        InputError: a letter is outside the alphabet, or a keyword is out of slot order.
    """
    alphabet = np.frombuffer(ALPHABET.encode("ascii"), np.uint8)
    values = np.full(256, _NO_DIGIT, np.uint8)
    values[alphabet] = np.arange(64, dtype=np.uint8)
    named = _digits(np.arange(found.shape[1], dtype=np.uint64), slots, alphabet)
    digits = values[found[:, :, slots:]]
    if (found[:, :, :slots] != named).any() or (digits == _NO_DIGIT).any():
        raise InputError("its supershingles do not have the form of this version; sign it again")
    result = np.zeros(found.shape[:2], np.uint32)
    for place in range(HASHED):
        result <<= np.uint32(6)
        result |= digits[:, :, place]
    return result


def _digits(values: Uint64s, count: int, alphabet: Bytes) -> Bytes:
    """Return the lowest ``count`` base-64 digits as letters, highest first, along a new last axis."""
    found = np.empty((*values.shape, count), np.uint8)
    for place in range(count):
        sextets = (values >> np.uint64(6 * (count - 1 - place))).astype(np.uint8) & np.uint8(63)
        found[..., place] = alphabet[sextets]
    return found
