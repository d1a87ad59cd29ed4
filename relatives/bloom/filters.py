"""Bloom filters: of one set, of a multiset, and the matrix filter, one for each document of one size."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from math import ceil, log
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.values import Bytes, Int64s, Uint64s
from shinglefold.relatives.bloom.file_format import load, save

_LOW = np.uint64(0xFFFFFFFF)
#: The most bits of a filter: a bit position is computed from 32 bits of the hash.
_MOST_BITS = 2**31


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a filter, or of a row of a filter.

    Attributes:
        elements: n, the capacity in distinct elements.
        false_positives: p, the rate of false positives with n elements.
        bits: m = −n·ln p/(ln 2)².
        hashes: k = m/n·ln 2, the bit positions of each element.
    """

    elements: int
    false_positives: float
    bits: int
    hashes: int

    @classmethod
    def of(cls, elements: int, false_positives: float) -> "Shape":
        """Return the smallest filter for a number of elements and a rate of false positives.

        Raises:
            ConfigError: a value is out of range, or the filter has more than 2³¹ bits.

        Source: Bloom 1970; the optimum as in Broder, Mitzenmacher 2004, "Network applications of Bloom
        filters".
        """
        if elements < 1 or not 0.0 < false_positives < 1.0:
            raise ConfigError(
                f"a filter for {elements} elements at {false_positives} false positives; "
                "it needs at least 1, and a probability between 0 and 1"
            )
        bits = ceil(-elements * log(false_positives) / log(2) ** 2)
        if bits > _MOST_BITS:
            raise ConfigError(f"a filter of {bits:,} bits is too large; split it: the most is {_MOST_BITS:,}")
        return cls(elements, false_positives, bits, max(1, round(bits / elements * log(2))))

    def rate(self, held: int) -> float:
        """Return the rate of false positives with this many distinct elements."""
        return float(self.rates(np.array(held)))

    def rates(self, held: Int64s) -> NDArray[np.float64]:
        """Return ``rate`` for several numbers of elements."""
        empty = np.exp(-self.hashes * held / self.bits)
        return np.asarray((1.0 - empty) ** self.hashes, np.float64)

    def places(self, elements: Uint64s) -> Int64s:
        """Return the k bit positions of each element, int64 (E, k), each below ``bits``.

        Args:
            elements: uint64 (E,), well mixed hashes, such as shingles.

        Source: Kirsch, Mitzenmacher 2006, "Less hashing, same performance": all k positions come from two
            hashes.
        Deviations: the second hash is made odd; a multiplication and a shift replace the slower remainder.
        """
        first, second = elements & _LOW, (elements >> np.uint64(32)) | np.uint64(1)
        steps = np.arange(self.hashes, dtype=np.uint64)
        drawn = (first[:, None] + steps * second[:, None]) & _LOW
        return ((drawn * np.uint64(self.bits)) >> np.uint64(32)).astype(np.int64)


def pseudo_matrix_rows(lengths: Iterable[int], elements: int) -> int:
    """Return the fewest rows that a pseudo-matrix filter needs, at n elements a row."""
    return ceil(sum(lengths) / elements)


#: The number of rows in a block: bit r of word b is bit b of row r.
ROWS = 64


class BitSlicedRows:
    """Bit rows in blocks of 64; a block is an array with a word for each bit of its rows.

    A lookup in 64 rows reads k words and computes k − 1 conjunctions. Rows are numbered from 0, and are added
    64 at a time, empty.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.blocks: list[Uint64s] = []
        #: Called before a block is read; verifies blocks on disk.
        self.before_reading: Callable[[int], None] = _nothing

    def __len__(self) -> int:
        return len(self.blocks) * ROWS

    def adopt(self, blocks: list[Uint64s], before_reading: Callable[[int], None]) -> None:
        """Use stored blocks; a read-only block is copied before it is changed."""
        self.blocks = blocks
        self.before_reading = before_reading

    def extend(self) -> None:
        """Add 64 empty rows."""
        self.blocks.append(np.zeros(self.shape.bits, np.uint64))

    def drop(self) -> None:
        """Remove the last 64 rows."""
        self.blocks.pop()

    def add(self, row: int, elements: Uint64s) -> None:
        """Add elements to a row.

        Cost: k words an element, about 10 ns a word.
        """
        block = self._writable(row // ROWS)
        # Duplicate positions are harmless: they set the same bit.
        block[self.shape.places(elements).ravel()] |= np.uint64(1 << row % ROWS)

    def clear(self, row: int) -> None:
        """Empty a row.

        Cost: one pass over a block, m words.
        """
        block = self._writable(row // ROWS)
        np.bitwise_and(block, np.uint64(~(1 << row % ROWS) & (2**64 - 1)), out=block)

    def counts(self, elements: Uint64s) -> Int64s:
        """Return for each row how many of the elements it has, int64 (rows,).

        Cost: k words an element and block of 64 rows; for 4,000 elements, k = 4, about 0.4 ms a block.
        """
        places = self.shape.places(elements)
        found = np.zeros(len(self), np.int64)
        for number in range(len(self.blocks)):
            found[number * ROWS : (number + 1) * ROWS] = self._block_counts(number, places)
        return found

    def contains(self, row: int, elements: Uint64s) -> Uint64s:
        """Return 1 for each element that a row may have and 0 for the others, uint64 (E,)."""
        together = self._together(row // ROWS, self.shape.places(elements))
        return (together >> np.uint64(row % ROWS)) & np.uint64(1)

    @property
    def nbytes(self) -> int:
        """The memory the rows take."""
        return sum(block.nbytes for block in self.blocks)

    def _together(self, number: int, places: Int64s) -> Uint64s:
        """Return a word for each element; its bit r says whether row r of the block has the element."""
        self.before_reading(number)
        block = self.blocks[number]
        together = block[places[:, 0]]
        for column in range(1, places.shape[1]):
            np.bitwise_and(together, block[places[:, column]], out=together)
        return together

    def _block_counts(self, number: int, places: Int64s) -> Int64s:
        words = self._together(number, places)
        bits = np.unpackbits(words.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        counts: Int64s = bits.sum(axis=0, dtype=np.int64)
        return counts

    def _writable(self, number: int) -> Uint64s:
        self.before_reading(number)
        if not self.blocks[number].flags.writeable:
            self.blocks[number] = self.blocks[number].copy()
        return self.blocks[number]


def _nothing(_: int) -> None:
    """Do nothing: blocks in memory need no check."""


_KIND = "matrix"


class MatrixFilter:
    """A Bloom filter with a row for each document; all rows have the size for the longest document."""

    def __init__(self, shape: Shape) -> None:
        self.bit_rows = BitSlicedRows(shape)
        self._rows: dict[str, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._rows)

    def insert(self, name: str, elements: Uint64s) -> None:
        """Add a document.

        Args:
            elements: uint64 (E,), distinct.

        Raises:
            ConfigError: the document exists already, or has more elements than fit into a row.
        """
        if name in self._rows:
            raise ConfigError(f"{name!r} is in the filter already; delete it first")
        if len(elements) > self.bit_rows.shape.elements:
            raise ConfigError(
                f"{name!r} has {len(elements):,} elements, a row takes {self.bit_rows.shape.elements:,}; "
                "the pseudo-matrix filter takes documents of any length"
            )
        if not self._free:
            self._free.extend(range(len(self.bit_rows) + 63, len(self.bit_rows) - 1, -1))
            self.bit_rows.extend()
        row = self._rows[name] = self._free.pop()
        self.bit_rows.add(row, elements)

    def delete(self, name: str) -> None:
        """Remove a document; its row becomes free.

        Raises:
            KeyError: there is no such document.
        """
        row = self._rows.pop(name)
        self.bit_rows.clear(row)
        self._free.append(row)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the filter to a file; see ``load``."""
        for number in range(len(self.bit_rows.blocks)):
            self.bit_rows.before_reading(number)
        header = {"kind": _KIND, "shape": asdict(self.bit_rows.shape), "rows": self._rows}
        save(path, header, self.bit_rows.blocks)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "MatrixFilter":
        """Memory-map a filter from a file; changes stay in memory until they are saved.

        Raises:
            InputError: there is no such filter, or the file is damaged.
        """
        stored = load(path, _KIND)
        found = cls(Shape(**stored.header["shape"]))
        found.bit_rows.adopt(stored.arrays, stored.check)
        found._rows = dict(stored.header["rows"])
        held = set(found._rows.values())
        found._free = [row for row in reversed(range(len(found.bit_rows))) if row not in held]
        return found

    def counts(self, elements: Uint64s) -> Mapping[str, int]:
        """Return for each document how many of the elements it may have."""
        counts = self.bit_rows.counts(elements).tolist()
        return {name: counts[row] for name, row in self._rows.items()}


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
        places, times = self._count_positions(elements)
        counters = self._held[places].astype(np.int64) + times
        self._held[places] = np.minimum(counters, _FULL)

    def remove(self, elements: Uint64s) -> None:
        """Remove elements, each as often as it is given.

        Raises:
            KeyError: one is not in the filter; then none is removed.
        """
        places, times = self._count_positions(elements)
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

    def _count_positions(self, elements: Uint64s) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.unique(self.shape.places(elements).ravel(), return_counts=True)
