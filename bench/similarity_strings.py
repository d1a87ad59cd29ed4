"""All pairs of piecewise hashes: the strings of one size are compared with each other."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

from bench.labelled import Similarities
from shinglefold.relatives.piecewise_hash import Piecewise, ssdeep_similarity

_COMMON = 7


def alike_strings(made: Sequence[Piecewise]) -> Similarities:
    """Return the similarities of all pairs; those whose sizes can't be compared have 0."""
    found = np.zeros((len(made), len(made)), np.float32)
    for members in _by_size((one.size, one.fine, one.coarse) for one in made).values():
        numbers = [number for number, _ in members]
        strings = [string for _, string in members]
        alike = cdist(strings, strings, scorer=Indel.normalized_similarity, dtype=np.float32)
        block = np.ix_(numbers, numbers)
        found[block] = np.maximum(found[block], alike)
    return found


def alike_ssdeep(made: Sequence[str]) -> Similarities:
    """Return ssdeep's scores of all pairs; only those with seven letters in common can have one above 0."""
    found = np.zeros((len(made), len(made)), np.float32)
    parts = (text.split(":") for text in made)
    for members in _by_size((int(size), fine, coarse) for size, fine, coarse in parts).values():
        for one, other in _with_letters_in_common(members):
            found[one, other] = found[other, one] = ssdeep_similarity(made[one], made[other])
    return found


def _by_size(hashes: Iterable[tuple[int, str, str]]) -> dict[int, list[tuple[int, str]]]:
    sizes: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for number, (size, fine, coarse) in enumerate(hashes):
        sizes[size].append((number, fine))
        sizes[2 * size].append((number, coarse))
    return sizes


def _with_letters_in_common(members: list[tuple[int, str]]) -> set[tuple[int, int]]:
    holders: dict[str, set[int]] = defaultdict(set)
    for number, string in members:
        for at in range(len(string) - _COMMON + 1):
            holders[string[at : at + _COMMON]].add(number)
    return {(one, other) for held in holders.values() for one in held for other in held if one < other}
