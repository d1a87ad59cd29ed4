"""The canonical words themselves, by the key of the form they came from."""

from collections.abc import Callable

import numpy as np

from shinglefold.model import Uint64s


class Strings:
    """A bounded map from the key of a word form to its canonical word; empty where the word is dropped.

    Args:
        capacity: words kept at most; when full, all are forgotten. A word takes some 150 bytes.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._words: dict[int, str] = {}

    def all_of(self, keys: Uint64s, word: Callable[[int], str]) -> list[str]:
        """Return the word of each key.

        Args:
            keys: uint64 (T,).
            word: tells the word of a key that is not known, by its place.

        Cost: about 0.1 µs a key that is known.
        """
        wanted = keys.tolist()
        try:
            return list(map(self._words.__getitem__, wanted))
        except KeyError:
            # Of its own: another thread may forget all meanwhile.
            known = self._learned(self._words, keys, word)
            return list(map(known.__getitem__, wanted))

    def _learned(self, known: dict[int, str], keys: Uint64s, word: Callable[[int], str]) -> dict[int, str]:
        distinct, first = np.unique(keys, return_index=True)
        places = dict(zip(distinct.tolist(), first.tolist(), strict=True))
        missing = [key for key in places if key not in known]
        if len(known) + len(missing) > self.capacity:
            known, missing = {}, list(places)
        known.update((key, word(places[key])) for key in missing)
        self._words = known
        return known
