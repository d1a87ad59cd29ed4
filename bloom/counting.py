"""The counting filter: a small number for each bit, so that elements can be taken out again."""

import os
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from shinglefold.bloom.shape import Shape
from shinglefold.bloom.storage import load, save
from shinglefold.model import Bytes, Uint64s

_KIND, _FULL = "counting", 255


class CountingFilter:
    """A multiset of elements that may say yes to strangers and never says no to its own.

    A counter that has once been full stays so: its true value is unknown, and too much errs
    on the side of false positives.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._counters: Bytes = np.zeros(shape.bits, np.uint8)

    def add(self, elements: Uint64s) -> None:
        """Take elements in; an element given twice is in it twice."""
        places, times = self._counted(elements)
        counters = self._counters[places].astype(np.int64) + times
        self._counters[places] = np.minimum(counters, _FULL)

    def remove(self, elements: Uint64s) -> None:
        """Take elements out that were taken in before, each as often as it is given.

        Raises:
            KeyError: one was never taken in; nothing is taken out then.
        """
        places, times = self._counted(elements)
        before = self._counters[places].astype(np.int64)
        stays = before == _FULL
        if not (stays | (before >= times)).all():
            raise KeyError("an element that was never taken in can't be taken out")
        self._counters[places] = np.where(stays, before, before - times)

    def contains(self, elements: Uint64s) -> NDArray[np.bool_]:
        """Tell for each element whether it may be in, bool (E,)."""
        counters = self._counters[self.shape.places(elements)]
        held: NDArray[np.bool_] = np.all(counters > 0, axis=1)
        return held

    def _counted(self, elements: Uint64s) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.unique(self.shape.places(elements).ravel(), return_counts=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the filter into a file; see ``load``."""
        save(path, {"kind": _KIND, "shape": asdict(self.shape)}, [self._counters])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "CountingFilter":
        """Read a filter.

        Raises:
            InputError: there is no such filter, or it was changed.
        """
        stored = load(path, _KIND)
        stored.check(0)
        found = cls(Shape(**stored.header["shape"]))
        found._counters = stored.arrays[0].astype(np.uint8)
        return found

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return self._counters.nbytes
