"""What filters of a single set have in common: bytes for its shape, saved and loaded as one array."""

import os
from dataclasses import asdict
from typing import ClassVar, Self

import numpy as np

from shinglefold.model.values import Bytes
from shinglefold.relatives.bloom.file_format import load, save
from shinglefold.relatives.bloom.sizing import Shape


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
