"""The counting filter: a small number for each bit, so that elements can be taken out again."""

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Uint64s
from shinglefold.relatives.bloom.set_filters import SingleFilter

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
