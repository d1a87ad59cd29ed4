"""Bloom filters of a single set: the classic one, and the counting one, which can remove elements."""

import os
from dataclasses import asdict
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Bytes, Uint64s
from shinglefold.relatives.bloom.file_format import load, save
from shinglefold.relatives.bloom.matrix import Shape


class SingleFilter:
    """The base of filters of one set.

    Attributes:
        kind: the kind that its files name.
        cells: how many positions of the filter one byte holds.
    """

    kind: ClassVar[str]
    cells: ClassVar[int]

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._held: Bytes = np.zeros(-(-shape.bits // self.cells), np.uint8)

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return self._held.nbytes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the filter to a file; see ``load``."""
        save(path, {"kind": self.kind, "shape": asdict(self.shape)}, [self._held])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a filter from a file.

        Raises:
            InputError: there is no such filter, or the file is damaged.
        """
        stored = load(path, cls.kind)
        stored.check(0)
        found = cls(Shape(**stored.header["shape"]))
        found._held = stored.arrays[0].astype(np.uint8)
        return found


class ClassicFilter(SingleFilter):
    """A Bloom filter of a set: false positives, no false negatives."""

    kind = "classic"
    cells = 8

    def add(self, elements: Uint64s) -> None:
        """Add elements."""
        places = self.shape.places(elements).ravel()
        # Bit by bit, because an assignment sets only one of several positions in the same byte.
        for bit in range(8):
            self._held[places[places & 7 == bit] >> 3] |= np.uint8(1 << bit)

    def contains(self, elements: Uint64s) -> NDArray[np.bool_]:
        """Return for each element whether it may be in the set, bool (E,)."""
        places = self.shape.places(elements)
        bits = self._held[places >> 3] >> (places & 7).astype(np.uint8) & 1
        held: NDArray[np.bool_] = np.all(bits, axis=1)
        return held


_FULL = 255


class CountingFilter(SingleFilter):
    """A Bloom filter of a multiset, with counters, so elements can be removed.

    A full counter is never decreased: its true value is unknown, and keeping it causes only false positives.
    """

    kind = "counting"
    cells = 1

    def add(self, elements: Uint64s) -> None:
        """Add elements; repeated ones count."""
        places, times = self._counted(elements)
        counters = self._held[places].astype(np.int64) + times
        self._held[places] = np.minimum(counters, _FULL)

    def remove(self, elements: Uint64s) -> None:
        """Remove elements, each as often as it is given.

        Raises:
            KeyError: one is not in the filter; then none is removed.
        """
        places, times = self._counted(elements)
        before = self._held[places].astype(np.int64)
        stays = before == _FULL
        if not (stays | (before >= times)).all():
            raise KeyError("an element that is not in the filter can't be removed")
        self._held[places] = np.where(stays, before, before - times)

    def contains(self, elements: Uint64s) -> NDArray[np.bool_]:
        """Return for each element whether it may be in the multiset, bool (E,)."""
        counters = self._held[self.shape.places(elements)]
        held: NDArray[np.bool_] = np.all(counters > 0, axis=1)
        return held

    def _counted(self, elements: Uint64s) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.unique(self.shape.places(elements).ravel(), return_counts=True)
