"""The matrix filter: one row a document, all rows of one shape."""

import os
from collections.abc import Mapping
from dataclasses import asdict

from shinglefold.errors import ConfigError
from shinglefold.model.values import Uint64s
from shinglefold.relatives.bloom.bit_sliced_rows import Lanes
from shinglefold.relatives.bloom.file_format import load, save
from shinglefold.relatives.bloom.sizing import Shape

_KIND = "matrix"


class MatrixFilter:
    """A row for each document, made for the longest of them."""

    def __init__(self, shape: Shape) -> None:
        self.lanes = Lanes(shape)
        self._rows: dict[str, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._rows)

    def insert(self, name: str, elements: Uint64s) -> None:
        """Take a document in.

        Args:
            elements: uint64 (E,), distinct.

        Raises:
            ConfigError: it is there already, or has more elements than a row takes.
        """
        if name in self._rows:
            raise ConfigError(f"{name!r} is in the filter already; delete it first")
        if len(elements) > self.lanes.shape.elements:
            raise ConfigError(
                f"{name!r} has {len(elements):,} elements, a row takes {self.lanes.shape.elements:,}; "
                "the pseudo-matrix filter takes documents of any length"
            )
        if not self._free:
            self._free.extend(range(len(self.lanes) + 63, len(self.lanes) - 1, -1))
            self.lanes.extend()
        row = self._rows[name] = self._free.pop()
        self.lanes.add(row, elements)

    def delete(self, name: str) -> None:
        """Take a document out; its row is free again.

        Raises:
            KeyError: there is none of this name.
        """
        row = self._rows.pop(name)
        self.lanes.clear(row)
        self._free.append(row)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the filter into a file; see ``load``."""
        for number in range(len(self.lanes.blocks)):
            self.lanes.before_reading(number)
        header = {"kind": _KIND, "shape": asdict(self.lanes.shape), "rows": self._rows}
        save(path, header, self.lanes.blocks)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "MatrixFilter":
        """Map a filter into memory; it can be changed, which changes nothing on disk until it is saved.

        Raises:
            InputError: there is no such filter, or it was changed.
        """
        stored = load(path, _KIND)
        found = cls(Shape(**stored.header["shape"]))
        found.lanes.adopt(stored.arrays, stored.check)
        found._rows = dict(stored.header["rows"])
        held = set(found._rows.values())
        found._free = [row for row in reversed(range(len(found.lanes))) if row not in held]
        return found

    def counts(self, elements: Uint64s) -> Mapping[str, int]:
        """Return how many of the elements each document may have."""
        counts = self.lanes.counts(elements).tolist()
        return {name: counts[row] for name, row in self._rows.items()}
