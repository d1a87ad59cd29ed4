"""The lexicon: a cache from word forms to canonical tokens, as hashes or strings, in flat arrays for numpy.

It caches a pure function, so forgotten forms are just learned again. Forked workers share arrays of numbers,
because these have no reference counts.
"""

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from shinglefold.errors import ConfigError, InputError, reason_of
from shinglefold.model.values import Int64s, Uint64s

_SMALLEST = 1 << 12
#: A saved file begins with a header of 30 bytes and the name of the first array.
_HEADER, _FIRST = 30, b"identity.npy"
#: Errors that reading a damaged file, or one that is not a lexicon, may raise.
_LOAD_ERRORS = (OSError, ValueError, KeyError, EOFError, BadZipFile, RuntimeError)


class LexiconSlots(NamedTuple):
    """A hash table with open addressing; key 0 is free. Replaced as a whole, so readers need no lock."""

    keys: Uint64s
    values: Uint64s
    repairs: NDArray[np.uint8]


class LexiconEntries(NamedTuple):
    """The entries of given keys: ``known`` bool, ``values`` uint64 (0: dropped word), ``repairs`` uint8."""

    known: NDArray[np.bool_]
    values: Uint64s
    repairs: NDArray[np.uint8]


class HasLock(Protocol):
    """An object with a lock."""

    def renew_lock(self) -> None:
        """Start with a free lock."""
        ...


class Lexicon:
    """A bounded map from the key of a word form to the hash of its canonical token.

    Args:
        capacity: the most forms kept; a full lexicon forgets all. A form takes 2 to 4 slots of 17 bytes.
        identity: everything the values depend on; files of another identity are not loaded.
    """

    def __init__(self, capacity: int = 1 << 20, identity: str = "") -> None:
        if capacity < 1:
            raise ConfigError(f"lexicon capacity {capacity} is below 1")
        self.capacity = capacity
        self.identity = identity
        self._lock = threading.Lock()
        self._slots = _empty(_SMALLEST)
        self._count = 0
        renew_lock_after_fork(self)

    def __len__(self) -> int:
        return self._count

    @property
    def slots(self) -> LexiconSlots:
        """The current table, for compiled code; its size never changes."""
        return self._slots

    def find(self, keys: Uint64s) -> LexiconEntries:
        """Look up keys (uint64, not 0). Cost: about 10 ns a key."""
        return _find(self._slots, keys)

    def learn(self, keys: Uint64s, values: Uint64s, repairs: NDArray[np.uint8]) -> None:
        """Add forms; known ones keep their values."""
        for start in range(0, len(keys), self.capacity):
            chunk = slice(start, start + self.capacity)
            with self._lock:
                self._learn(keys[chunk], values[chunk], repairs[chunk])

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._slots, self._count = _empty(_SMALLEST), 0

    def save(self, path: str | Path) -> None:
        """Write the forms to a file, atomically.

        Raises:
            InputError: the file can't be written, or is not a lexicon.
        """
        slots = self._slots
        used = slots.keys != 0
        target = Path(path)
        unfinished = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            if not _is_lexicon(target):
                raise InputError(
                    f"the lexicon can't be saved to {target}: it holds something else, which would be lost; "
                    "name another file"
                )
            with unfinished.open("wb") as file:
                np.savez(
                    file,
                    identity=np.array(self.identity),
                    keys=slots.keys[used],
                    values=slots.values[used],
                    repairs=slots.repairs[used],
                )
            unfinished.replace(target)
        except OSError as error:
            raise InputError(f"the lexicon can't be saved to {target}: {reason_of(error)}") from error
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)

    def load(self, path: str | Path) -> bool:
        """Add the forms of a file; return False if it is missing, damaged, or of another identity."""
        try:
            with Path(path).open("rb") as file, NpzFile(file, allow_pickle=False) as data:
                if str(data["identity"]) != self.identity:
                    return False
                saved = data["keys"], data["values"], data["repairs"]
        except _LOAD_ERRORS:
            return False
        if not _is_table(*saved):
            return False
        keys, values, repairs = (one[: self.capacity] for one in saved)
        self.learn(keys, values, repairs)
        return True

    def _learn(self, keys: Uint64s, values: Uint64s, repairs: NDArray[np.uint8]) -> None:
        new = ~_find(self._slots, keys).known
        keys, values, repairs = keys[new], values[new], repairs[new]
        if self._count + len(keys) > self.capacity:
            self._slots, self._count = _empty(_SMALLEST), 0
        if 2 * (self._count + len(keys)) > len(self._slots.keys):
            self._slots = _grow(self._slots, 4 * (self._count + len(keys)))
        self._count += _insert(self._slots, keys, values, repairs)

    def renew_lock(self) -> None:
        """Replace the lock: in a forked child, the thread that had it does not exist."""
        self._lock = threading.Lock()


def renew_lock_after_fork(owner: HasLock) -> None:
    """Replace the lock of an object in each forked child, while the object exists."""
    known = weakref.ref(owner)

    def renew() -> None:
        if (alive := known()) is not None:
            alive.renew_lock()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)


def _is_lexicon(path: Path) -> bool:
    """Return whether a path is free, or holds a lexicon of any version, damaged or not."""
    if not path.is_file():
        return not path.exists()
    with path.open("rb") as file:
        head = file.read(_HEADER + len(_FIRST))
    return not head or head[_HEADER:] == _FIRST


def _is_table(*columns: object) -> bool:
    """Return whether columns are keys, values and repairs of the same length."""
    found = [one for one in columns if isinstance(one, np.ndarray) and one.ndim == 1]
    if [one.dtype for one in found] != [np.uint64, np.uint64, np.uint8]:
        return False
    return len({len(one) for one in found}) == 1


def _empty(size: int) -> LexiconSlots:
    # A key and its value are adjacent, so a lookup misses the cache once.
    table = np.zeros((size, 2), np.uint64)
    return LexiconSlots(table[:, 0], table[:, 1], np.zeros(size, np.uint8))


def _grow(slots: LexiconSlots, wanted: int) -> LexiconSlots:
    bigger = _empty(1 << max(_SMALLEST, wanted - 1).bit_length())
    used = slots.keys != 0
    _insert(bigger, slots.keys[used], slots.values[used], slots.repairs[used])
    return bigger


def _find(slots: LexiconSlots, keys: Uint64s) -> LexiconEntries:
    last = np.uint64(len(slots.keys) - 1)
    place = (keys & last).view(np.int64)
    stored = slots.keys[place]
    known = stored == keys
    pending = np.flatnonzero(~known & (stored != 0))
    while len(pending):
        place[pending] = (place[pending] + 1) & np.int64(last)
        stored = slots.keys[place[pending]]
        known[pending] = same = stored == keys[pending]
        pending = pending[~same & (stored != 0)]
    return LexiconEntries(known, slots.values[place], slots.repairs[place])


def _insert(slots: LexiconSlots, keys: Uint64s, values: Uint64s, repairs: NDArray[np.uint8]) -> int:
    """Put forms into free slots, and return how many; duplicate keys count once.

    The value is written before its key, so a reader that finds the key reads its value.

    Cost: about 0.1 µs a form.
    """
    keys, first = np.unique(keys, return_index=True)
    values, repairs = values[first], repairs[first]
    last = np.int64(len(slots.keys) - 1)
    place = (keys & np.uint64(last)).view(np.int64)
    pending, count = np.arange(len(keys)), 0
    while len(pending):
        own = place[pending]
        free = pending[slots.keys[own] == 0]
        wanted = place[free]
        # If several forms want one slot, the last one gets it, in all three columns.
        slots.values[wanted], slots.repairs[wanted] = values[free], repairs[free]
        slots.keys[wanted] = keys[free]
        count += int(np.count_nonzero(slots.keys[wanted] == keys[free]))
        pending = pending[slots.keys[own] != keys[pending]]
        place[pending] = (place[pending] + 1) & last
    return count


#: Returns the words at the given positions, int64 (N,).
WordsAt = Callable[[Int64s], Sequence[str]]
_UNBOUNDED = 1 << 62


class TokenStrings(NamedTuple):
    """The words of T keys. ``numbers``: int64 (T,), 0 for dropped words. ``words``: the words by number."""

    numbers: Int64s
    words: NDArray[np.object_]


class StringLexicon:
    """A bounded map from the key of a word form to its canonical word; empty if the word is dropped.

    Args:
        capacity: the most words kept; a full lexicon forgets all. A word takes some 150 bytes.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        #: The known words; replaced when all are forgotten.
        self.kept = InternedStrings()

    def find_or_learn(self, keys: Uint64s, words: WordsAt) -> TokenStrings:
        """Return the word of each key; learn unknown ones.

        Args:
            keys: uint64 (T,), not 0.
            words: returns the words at the positions of unknown keys.

        Cost: about 20 ns a known key.
        """
        kept = self.kept
        found = kept.numbers.find(keys)
        if not found.known.all():
            distinct, first = np.unique(keys, return_index=True)
            missing = ~kept.numbers.find(distinct).known
            if kept.count + np.count_nonzero(missing) > self.capacity:
                # Other threads keep the table they are reading.
                kept, missing[:] = self._reset(), True
            kept.learn(distinct[missing], words(first[missing]))
            found = kept.numbers.find(keys)
        # The words are read after the numbers, so every number has its word.
        return TokenStrings(found.values.view(np.int64), kept.words)

    def learn(self, keys: Uint64s, words: Sequence[str]) -> None:
        """Add words; known ones stay.

        Args:
            keys: uint64, distinct.
        """
        kept = self.kept if self.kept.count + len(keys) <= self.capacity else self._reset()
        if len(keys) <= self.capacity:
            kept.learn(keys, words)

    def _reset(self) -> "InternedStrings":
        self.kept = kept = InternedStrings()
        return kept


class InternedStrings:
    """Words by number; 0 is the empty word.

    ``numbers`` maps keys to numbers. ``words`` has the word of each number that was ever found.
    """

    def __init__(self) -> None:
        self.numbers = Lexicon(_UNBOUNDED)
        self.words = np.full(_SMALLEST, "", np.object_)
        self.count = 1
        self._lock = threading.Lock()
        renew_lock_after_fork(self)

    @property
    def slots(self) -> LexiconSlots:
        """The table of numbers, for compiled code."""
        return self.numbers.slots

    def find(self, keys: Uint64s) -> LexiconEntries:
        """Look up the numbers of keys."""
        return self.numbers.find(keys)

    def learn(self, keys: Uint64s, words: Sequence[str]) -> None:
        """Add words; known ones stay."""
        added = np.array(words, np.object_)
        with self._lock:
            new = ~self.numbers.find(keys).known
            keys, added = keys[new], added[new]
            first, end = self.count, self.count + len(added)
            if end > len(self.words):
                self.words = np.append(self.words, np.full(2 * end - len(self.words), "", np.object_))
            # Add words before numbers, so that every number found has its word.
            self.words[first:end] = added
            self.count = end
            numbers = np.arange(first, end, dtype=np.uint64)
            numbers[added == ""] = 0
            self.numbers.learn(keys, numbers, np.zeros(len(keys), np.uint8))

    def renew_lock(self) -> None:
        """Replace the lock: in a forked child, the thread that had it does not exist."""
        self._lock = threading.Lock()


def join_words(words: Sequence[str], ends: Sequence[int]) -> list[str]:
    """Return the words of each text joined by spaces; ``ends`` has the end of each text."""
    return [" ".join(words[start:end]) for start, end in pairwise((0, *ends))]
