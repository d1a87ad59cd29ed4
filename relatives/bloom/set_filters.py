"""What filters of a single set have in common: bytes for its shape, saved and loaded as one array."""

import os
from dataclasses import asdict
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Bytes, Uint64s
from shinglefold.relatives.bloom.file_format import load, save
from shinglefold.relatives.bloom.matrix import Shape


class SingleFilter:
    """The bytes of a filter of one set.

    Attributes:
        kind: what its files say they are.
        cells: places of the shape that one byte holds.
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
        """Write the filter into a file; see ``load``."""
        save(path, {"kind": self.kind, "shape": asdict(self.shape)}, [self._held])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a filter.

        Raises:
            InputError: there is no such filter, or it was changed.
        """
        stored = load(path, cls.kind)
        stored.check(0)
        found = cls(Shape(**stored.header["shape"]))
        found._held = stored.arrays[0].astype(np.uint8)
        return found


class ClassicFilter(SingleFilter):
    """A set of elements that may say yes to strangers and never says no to its own."""

    kind = "classic"
    cells = 8

    def add(self, elements: Uint64s) -> None:
        """Take elements in; those it has already change nothing."""
        places = self.shape.places(elements).ravel()
        # Places that share a byte must all be set, so each bit of a byte has its turn.
        for bit in range(8):
            self._held[places[places & 7 == bit] >> 3] |= np.uint8(1 << bit)

    def contains(self, elements: Uint64s) -> NDArray[np.bool_]:
        """Tell for each element whether it may have been taken in, bool (E,)."""
        places = self.shape.places(elements)
        bits = self._held[places >> 3] >> (places & 7).astype(np.uint8) & 1
        held: NDArray[np.bool_] = np.all(bits, axis=1)
        return held


_FULL = 255


class CountingFilter(SingleFilter):
    """A multiset of elements that may say yes to strangers and never says no to its own.

    A counter that has once been full stays so: its true value is unknown, and too much errs
    on the side of false positives.
    """

    kind = "counting"
    cells = 1

    def add(self, elements: Uint64s) -> None:
        """Take elements in; an element given twice is in it twice."""
        places, times = self._counted(elements)
        counters = self._held[places].astype(np.int64) + times
        self._held[places] = np.minimum(counters, _FULL)

    def remove(self, elements: Uint64s) -> None:
        """Take elements out that were taken in before, each as often as it is given.

        Raises:
            KeyError: one was never taken in; nothing is taken out then.
        """
        places, times = self._counted(elements)
        before = self._held[places].astype(np.int64)
        stays = before == _FULL
        if not (stays | (before >= times)).all():
            raise KeyError("an element that was never taken in can't be taken out")
        self._held[places] = np.where(stays, before, before - times)

    def contains(self, elements: Uint64s) -> NDArray[np.bool_]:
        """Tell for each element whether it may be in, bool (E,)."""
        counters = self._held[self.shape.places(elements)]
        held: NDArray[np.bool_] = np.all(counters > 0, axis=1)
        return held

    def _counted(self, elements: Uint64s) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.unique(self.shape.places(elements).ravel(), return_counts=True)
