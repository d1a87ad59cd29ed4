"""The canonical words themselves, by the key of the form they came from: looked up by the block, in numpy."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.canon.words.lexicon import Lexicon, LexiconEntries, LexiconSlots, renew_lock_after_fork
from shinglefold.model.values import Int64s, Uint64s

#: A word for each of some places, which are int64 (N,).
WordsAt = Callable[[Int64s], Sequence[str]]
_UNBOUNDED = 1 << 62
_SMALLEST = 1 << 12


class Said(NamedTuple):
    """The words of T keys: ``numbers`` int64 (T,), 0 where the word is dropped, and the words by number."""

    numbers: Int64s
    words: NDArray[np.object_]


class Strings:
    """A bounded map from the key of a word form to its canonical word; empty where the word is dropped.

    Args:
        capacity: words kept at most; when full, all are forgotten. A word takes some 150 bytes.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        #: What is known; another one when all was forgotten.
        self.kept = InternedStrings()

    def all_of(self, keys: Uint64s, words: WordsAt) -> Said:
        """Return the word of each key.

        Args:
            keys: uint64 (T,), not 0.
            words: tells the words of keys that are not known, by their places.

        Cost: about 20 ns a key that is known.
        """
        kept = self.kept
        found = kept.numbers.find(keys)
        if not found.known.all():
            distinct, first = np.unique(keys, return_index=True)
            missing = ~kept.numbers.find(distinct).known
            if kept.count + np.count_nonzero(missing) > self.capacity:
                # What is looked up is held by whoever looks it up, whatever is forgotten meanwhile.
                kept, missing[:] = self._forgotten(), True
            kept.learn(distinct[missing], words(first[missing]))
            found = kept.numbers.find(keys)
        # Read behind the numbers, which mean words that are there already.
        return Said(found.values.view(np.int64), kept.words)

    def learn(self, keys: Uint64s, words: Sequence[str]) -> None:
        """Add words; those known already are left as they are.

        Args:
            keys: uint64, none twice.
        """
        kept = self.kept if self.kept.count + len(keys) <= self.capacity else self._forgotten()
        if len(keys) <= self.capacity:
            kept.learn(keys, words)

    def _forgotten(self) -> "InternedStrings":
        self.kept = kept = InternedStrings()
        return kept


class InternedStrings:
    """Words and the numbers they are known by; 0 is the empty one.

    ``numbers`` tells the number of a key. ``words``: by number; whoever found a number finds its word.
    """

    def __init__(self) -> None:
        self.numbers = Lexicon(_UNBOUNDED)
        self.words = np.full(_SMALLEST, "", np.object_)
        self.count = 1
        self._lock = Lock()
        renew_lock_after_fork(self)

    @property
    def slots(self) -> LexiconSlots:
        """Where the numbers are looked up."""
        return self.numbers.slots

    def find(self, keys: Uint64s) -> LexiconEntries:
        """Look up the numbers of keys."""
        return self.numbers.find(keys)

    def learn(self, keys: Uint64s, words: Sequence[str]) -> None:
        """Add words; those known already are left as they are."""
        said = np.array(words, np.object_)
        with self._lock:
            new = ~self.numbers.find(keys).known
            keys, said = keys[new], said[new]
            first, end = self.count, self.count + len(said)
            if end > len(self.words):
                self.words = np.append(self.words, np.full(2 * end - len(self.words), "", np.object_))
            # Before their numbers: whoever finds one of these finds its word.
            self.words[first:end] = said
            self.count = end
            numbers = np.arange(first, end, dtype=np.uint64)
            numbers[said == ""] = 0
            self.numbers.learn(keys, numbers, np.zeros(len(keys), np.uint8))

    def renew_lock(self) -> None:
        """Start with a free lock: in a forked child, where the thread that held it is not."""
        self._lock = Lock()


def spaced(words: Sequence[str], ends: Sequence[int]) -> list[str]:
    """Return words with a space between them, by texts, each of which ends behind so many words."""
    return [" ".join(words[start:end]) for start, end in pairwise((0, *ends))]
