"""The classic filter: one set, bits only, nothing can be taken out."""

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Uint64s
from shinglefold.relatives.bloom.set_filters import SingleFilter


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
