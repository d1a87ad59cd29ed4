"""Supershingles by slot: a column for each, so that one slot after the other is sorted."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from shinglefold.ingest.linking.column import Column
from shinglefold.ingest.linking.prints import Prints
from shinglefold.model import Uint32s, Uint64s
from shinglefold.scheme import Decision, Scheme
from shinglefold.sketch import Buckets

#: Documents read at a time, and bytes that sorting a slot takes for each.
_ROWS, _SORTING = 1 << 16, 32
_HALF = np.uint64(32)
NAME = "slots"


def looked_at(scheme: Scheme, decision: Decision, whole: bool) -> int:
    """Return how many slots candidates are found by.

    All there are, where one is enough to nominate a pair and something else decides; else those of an index.
    """
    sketch = scheme.sketch
    if not whole or decision.min_shared > 1 or decision.verify == "keywords":
        return sketch.groups
    return sketch.values // sketch.group_size


class Slots:
    """Of every document 32 bits of the supershingle in each slot, slot by slot."""

    def __init__(self, prints: Prints, count: int) -> None:
        self.count = count
        self._documents = len(prints)
        self._parts = Column(prints.shelf, NAME, np.uint32)

    def make(self, prints: Prints, check: Callable[[], None]) -> None:
        """Write them. Cost: what there is read once, and 4 bytes a supershingle written."""
        self._parts.cut(self.count * self._documents)
        for begin in range(0, self._documents, _ROWS):
            check()
            block = prints.words.read(begin, min(begin + _ROWS, self._documents))
            for slot in range(self.count):
                self._parts.write(slot * self._documents + begin, _part(block[:, slot]))

    def buckets(self, slot: int, kept: NDArray[np.bool_], memory: int) -> Iterator[tuple[Buckets, bool]]:
        """Yield the buckets of a slot, part by part of their supershingles, and whether a part is the last.

        Args:
            kept: bool (D,), which documents to look at.
            memory: bytes it may take.
        """
        parts = max(1, -(-self._documents * _SORTING // memory))
        for part in range(parts):
            yield Buckets.of(self._keys(slot, kept, part, parts)), part == parts - 1

    def _keys(self, slot: int, kept: NDArray[np.bool_], part: int, parts: int) -> Uint64s:
        found = [np.zeros(0, np.uint64)]
        first = slot * self._documents
        for begin in range(0, self._documents, _ROWS):
            end = min(begin + _ROWS, self._documents)
            block: Uint32s = self._parts.read(first + begin, first + end)
            chosen = kept[begin:end]
            if parts > 1:
                chosen = chosen & (_spread(block) * np.uint64(parts) >> _HALF == part)
            keys = block.astype(np.uint64) << _HALF | np.arange(begin, end, dtype=np.uint64)
            found.append(keys[chosen])
        return np.concatenate(found)


def _spread(block: Uint32s) -> NDArray[np.uint64]:
    # What keywords name has 30 bits: its highest ones are none.
    return (block.astype(np.uint64) << np.uint64(2)) & np.uint64(0xFFFFFFFF)


def _part(words: NDArray[np.unsignedinteger]) -> Uint32s:
    return (words >> _HALF).astype(np.uint32) if words.itemsize == 8 else words.astype(np.uint32)
