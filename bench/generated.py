"""Texts made of made-up words, drawn as often as words of a language are: as long as an experiment needs."""

from dataclasses import dataclass

import numpy as np

from shinglefold.model.values import Int64s, Uint64s
from shinglefold.sketch.hash_mixing import mix64

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Made-up words by falling frequency: ``chances`` follow Zipf's law, ``words`` are distinct."""

    words: tuple[bytes, ...]
    chances: np.ndarray

    @classmethod
    def of(cls, count: int, seed: int = 0) -> "Vocabulary":
        """Return so many words of 3 to 12 letters."""
        chance = np.random.default_rng(seed)
        found: dict[bytes, None] = {}
        while len(found) < count:
            for length in chance.integers(3, 13, count).tolist():
                found.setdefault(chance.choice(_LETTERS, length).tobytes())
        chances = 1.0 / np.arange(1, count + 1)
        return cls(tuple(found)[:count], chances / chances.sum())

    def drawn(self, length: int, seed: int) -> Int64s:
        """Return the numbers of the words of a text, int64 (length,)."""
        chance = np.random.default_rng(seed)
        return np.searchsorted(np.cumsum(self.chances), chance.random(length)).clip(0, len(self.words) - 1)


def hashes_of(numbers: Int64s) -> Uint64s:
    """Return a well mixed hash for each number of a word; equal numbers have equal hashes."""
    return mix64(numbers.astype(np.uint64) + np.uint64(1))


def windows_named(numbers: Int64s, width: int) -> Int64s:
    """Return a number for every window of words, equal exactly where the windows are: nothing is hashed.

    Windows of 1, 2, 4, … words are numbered from two of half the width; the last step lets them overlap.
    """
    names, reach = numbers, 1
    while reach < width:
        step = min(reach, width - reach)
        pairs = names[:-step] * (int(names.max()) + 1) + names[step:]
        names = np.unique(pairs, return_inverse=True)[1]
        reach += step
    return names
