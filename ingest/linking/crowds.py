"""Buckets too large for all their pairs, put aside until all others are done."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shinglefold.ingest.linking.column import Column
from shinglefold.ingest.linking.shelf import Shelf
from shinglefold.model import Bytes, Int64s
from shinglefold.sketch import Buckets


class Crowds:
    """The documents of large buckets, with the slot each is of."""

    def __init__(self, shelf: Shelf) -> None:
        self._documents = Column(shelf, "crowds", np.int32)
        self._sizes = Column(shelf, "crowds.sizes", np.int64, 2)

    @property
    def files(self) -> tuple[str, str]:
        """The names of their files."""
        return self._documents.name, self._sizes.name

    def state(self) -> list[int]:
        """Return what ``resume`` needs, as JSON."""
        return [len(self._documents), len(self._sizes)]

    def resume(self, state: list[int] | None) -> None:
        """Cut off what stands beyond a note."""
        documents, sizes = state or (0, 0)
        self._documents.cut(documents)
        self._sizes.cut(sizes)

    def add(self, slot: int, buckets: Buckets) -> None:
        """Put buckets aside."""
        self._documents.append(buckets.documents)
        self._sizes.append(np.column_stack((np.full(len(buckets), slot), buckets.sizes)))

    def all(self) -> Iterator[tuple[int, Int64s]]:
        """Yield each bucket: its slot, and its documents."""
        begin = 0
        for slot, size in self._sizes.read(0, len(self._sizes)).tolist():
            yield slot, self._documents.read(begin, begin + size).astype(np.int64)
            begin += size


class CrowdedSlots:
    """In which slots a document is in a large bucket: a bit a slot."""

    def __init__(self, documents: int, slots: int, crowds: Crowds) -> None:
        self._slots = slots
        self._bits: Bytes = np.zeros((documents, -(-slots // 8)), np.uint8)
        for slot, members in crowds.all():
            self.add(slot, members)

    def add(self, slot: int, documents: Int64s) -> None:
        """Note that documents are in a large bucket of a slot."""
        self._bits[documents, slot // 8] |= np.uint8(128 >> slot % 8)

    def of(self, documents: Int64s) -> NDArray[np.bool_]:
        """Return it for some documents, bool (P, slots)."""
        return np.unpackbits(self._bits[documents], axis=1, count=self._slots).view(np.bool_)
