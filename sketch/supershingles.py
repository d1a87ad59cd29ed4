"""Supershingles and megashingles: few hashes, equal only where many minima are."""

from itertools import combinations
from math import comb

import numpy as np

from shinglefold.errors import ConfigError
from shinglefold.model.values import Uint32s, Uint64s
from shinglefold.sketch.hash_mixing import mix64, stream

_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_MOST_SUBSETS = 1 << 16


def supershingles(minima: Uint32s, groups: int, group_size: int) -> Uint64s:
    """Return the hash of each group of consecutive minima.

    Args:
        minima: uint32 (D, K) with K ≥ groups·group_size; the rest is not looked at.
        groups: M, the supershingles of a document.
        group_size: N, the minima in each.

    Returns:
        uint64 (D, M). The slot takes part in the hash, so equality never crosses slots.

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

    Two documents share a megashingle exactly where they share at least ``size`` supershingles: a search
    for one common megashingle then does what counting common supershingles would.

    Args:
        supershingles: uint64 (D, M).
        size: 1…M.

    Returns:
        uint64 (D, C(M, size)), subsets in lexicographic order of their slots.

    Raises:
        ConfigError: no such subsets, or more than 65,536 of them.

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
