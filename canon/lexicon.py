"""The lexicon: word form → canonical token, as hashes in flat arrays that numpy looks up by the block.

It is a cache of a pure function, so what it forgets is only learned again. Arrays of numbers stay shared
between forked workers: nothing counts references in them.
"""

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from shinglefold.errors import ConfigError, InputError, reason_of
from shinglefold.model.values import Int64s, Uint64s

_SMALLEST = 1 << 12
#: How a saved file begins: a header of 30 bytes, and the name of the first array.
_HEADER, _FIRST = 30, b"identity.npy"
#: What reading a file raises that no lexicon was saved to, or in which a bit has changed since.
_NO_FILE_OF_OURS = (OSError, ValueError, KeyError, EOFError, BadZipFile, RuntimeError)


class LexiconSlots(NamedTuple):
    """Open addressing; key 0 is a free slot. Replaced as a whole, so that readers need no lock."""

    keys: Uint64s
    values: Uint64s
    repairs: NDArray[np.uint8]


class LexiconEntries(NamedTuple):
    """What the lexicon knows of some keys: ``known`` bool, ``values`` uint64 (0: dropped), ``repairs``."""

    known: NDArray[np.bool_]
    values: Uint64s
    repairs: NDArray[np.uint8]


class Locked(Protocol):
    """What has a lock."""

    def renew_lock(self) -> None:
        """Start with a free lock."""
        ...


class Lexicon:
    """A bounded map from the key of a word form to the hash of its canonical token.

    Args:
        capacity: forms kept at most; when full, all are forgotten. A form takes 2 to 4 slots of 17 bytes.
        identity: what the values depend on; a file saved under another identity isn't loaded.
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
        """The table as it is now, for compiled code to read; later ones don't change its size."""
        return self._slots

    def find(self, keys: Uint64s) -> LexiconEntries:
        """Look up keys (uint64, not 0). Cost: about 10 ns a key."""
        return _find(self._slots, keys)

    def learn(self, keys: Uint64s, values: Uint64s, repairs: NDArray[np.uint8]) -> None:
        """Add forms; those known already are left as they are."""
        for start in range(0, len(keys), self.capacity):
            chunk = slice(start, start + self.capacity)
            with self._lock:
                self._learn(keys[chunk], values[chunk], repairs[chunk])

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._slots, self._count = _empty(_SMALLEST), 0

    def save(self, path: str | Path) -> None:
        """Write the forms to a file, whole or not at all.

        Raises:
            InputError: the file can't be written, or holds something else.
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
        """Add the forms of a saved file; False when there is none, or none that fits this lexicon."""
        try:
            with Path(path).open("rb") as file, NpzFile(file, allow_pickle=False) as data:
                if str(data["identity"]) != self.identity:
                    return False
                saved = data["keys"], data["values"], data["repairs"]
        except _NO_FILE_OF_OURS:
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
            self._slots = _grown(self._slots, 4 * (self._count + len(keys)))
        self._count += _insert(self._slots, keys, values, repairs)

    def renew_lock(self) -> None:
        """Start with a free lock: in a forked child, where the thread that held it is not."""
        self._lock = threading.Lock()


def renew_lock_after_fork(owner: Locked) -> None:
    """Have something start with a free lock in each forked child, as long as it lives."""
    known = weakref.ref(owner)

    def renew() -> None:
        if (alive := known()) is not None:
            alive.renew_lock()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)


def _is_lexicon(path: Path) -> bool:
    """Tell whether a saved lexicon stands there, of whatever version and however damaged, or nothing."""
    if not path.is_file():
        return not path.exists()
    with path.open("rb") as file:
        head = file.read(_HEADER + len(_FIRST))
    return not head or head[_HEADER:] == _FIRST


def _is_table(*columns: object) -> bool:
    """Tell whether what was saved are keys, values and repairs, as many of each."""
    found = [one for one in columns if isinstance(one, np.ndarray) and one.ndim == 1]
    if [one.dtype for one in found] != [np.uint64, np.uint64, np.uint8]:
        return False
    return len({len(one) for one in found}) == 1


def _empty(size: int) -> LexiconSlots:
    # A key and its value side by side: memory that is not in the cache is waited for once.
    table = np.zeros((size, 2), np.uint64)
    return LexiconSlots(table[:, 0], table[:, 1], np.zeros(size, np.uint8))


def _grown(slots: LexiconSlots, wanted: int) -> LexiconSlots:
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
    """Put forms into free slots and return how many there were; a key given twice counts once.

    The value is written before its key: a reader that sees the key sees its value.

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
        # Of several forms for one slot the last one gets it, in each of the three columns.
        slots.values[wanted], slots.repairs[wanted] = values[free], repairs[free]
        slots.keys[wanted] = keys[free]
        count += int(np.count_nonzero(slots.keys[wanted] == keys[free]))
        pending = pending[slots.keys[own] != keys[pending]]
        place[pending] = (place[pending] + 1) & last
    return count


#: A word for each of some places, which are int64 (N,).
WordsAt = Callable[[Int64s], Sequence[str]]
_UNBOUNDED = 1 << 62


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
