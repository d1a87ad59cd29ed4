"""Supershingles and megashingles: a few hashes that are equal only if many minima are; and their keywords."""

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError, InputError
from shinglefold.model.values import Bytes, Uint32s, Uint64s
from shinglefold.sketch.hash_mixing import mix64, stream

_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_MOST_SUBSETS = 1 << 16


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


#: Characters of a keyword for bits of its supershingle. A sixth one would cost two bytes a keyword on disk
#: (bench/storage.py), and save 0.01 false candidates a slot among ten million documents.
HASHED = 5
#: The digits of keywords: those of URL-safe base64.
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_MOST_SLOTS = 64 * 64
_NO_DIGIT = 255


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
