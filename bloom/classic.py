"""The classic filter: one set, bits only, nothing can be taken out."""

import os
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from shinglefold.bloom.shape import Shape
from shinglefold.bloom.storage import load, save
from shinglefold.model import Bytes, Uint64s

_KIND = "classic"


class ClassicFilter:
    """A set of elements that may say yes to strangers and never says no to its own."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._bits: Bytes = np.zeros((shape.bits + 7) // 8, np.uint8)

    def add(self, elements: Uint64s) -> None:
        """Take elements in; those it has already change nothing."""
        places = self.shape.places(elements).ravel()
        # Places that share a byte must all be set, so each bit of a byte has its turn.
        for bit in range(8):
            self._bits[places[places & 7 == bit] >> 3] |= np.uint8(1 << bit)

    def contains(self, elements: Uint64s) -> NDArray[np.bool_]:
        """Tell for each element whether it may have been taken in, bool (E,)."""
        places = self.shape.places(elements)
        bits = self._bits[places >> 3] >> (places & 7).astype(np.uint8) & 1
        held: NDArray[np.bool_] = np.all(bits, axis=1)
        return held

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the filter into a file; see ``load``."""
        save(path, {"kind": _KIND, "shape": asdict(self.shape)}, [self._bits])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "ClassicFilter":
        """Read a filter.

        Raises:
            InputError: there is no such filter, or it was changed.
        """
        stored = load(path, _KIND)
        stored.check(0)
        found = cls(Shape(**stored.header["shape"]))
        found._bits = stored.arrays[0].astype(np.uint8)
        return found

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return self._bits.nbytes
