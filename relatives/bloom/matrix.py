"""The matrix filter: one row a document, all rows of one shape."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.relatives.bloom.file_format import load, save

_LOW = np.uint64(0xFFFFFFFF)
#: Bits of a filter at most: a place is drawn from 32 bits of the hash.
_MOST_BITS = 2**31


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a filter, or of a row of one.

    ``elements``: n, distinct elements it is made for. ``false_positives``: p, the share of strangers it takes
    for its own when it holds n. ``bits``: m = −n·ln p/(ln 2)². ``hashes``: k = m/n·ln 2, places an element.
    """

    elements: int
    false_positives: float
    bits: int
    hashes: int

    @classmethod
    def of(cls, elements: int, false_positives: float) -> "Shape":
        """Return the smallest filter for so many elements.

        Raises:
            ConfigError: no elements, no probability, or a filter of more than 2³¹ bits.

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
        """Return the share of strangers taken for its own when it holds so many distinct elements."""
        return float(self.rates(np.array(held)))

    def rates(self, held: Int64s) -> NDArray[np.float64]:
        """Return ``rate`` for each number of elements."""
        empty = np.exp(-self.hashes * held / self.bits)
        return np.asarray((1.0 - empty) ** self.hashes, np.float64)

    def places(self, elements: Uint64s) -> Int64s:
        """Return the k places of each element, int64 (E, k), each below ``bits``.

        Args:
            elements: uint64 (E,), well mixed hashes, such as shingles.

        Source: Kirsch, Mitzenmacher 2006, "Less hashing, same performance": two hashes make all k. Deviation:
        the second is odd, and a place is taken from the high bits by a product, not by a slow remainder.
        """
        first, second = elements & _LOW, (elements >> np.uint64(32)) | np.uint64(1)
        steps = np.arange(self.hashes, dtype=np.uint64)
        drawn = (first[:, None] + steps * second[:, None]) & _LOW
        return ((drawn * np.uint64(self.bits)) >> np.uint64(32)).astype(np.int64)


def pseudo_matrix_rows(lengths: Iterable[int], elements: int) -> int:
    """Return the rows of a pseudo-matrix filter that are enough: n elements each, of whichever documents."""
    return ceil(sum(lengths) / elements)


#: Rows in a block: bit r of word b is bit b of row r.
ROWS = 64


class BitSlicedRows:
    """Bit rows in blocks of 64; each block is an array of words, one for each bit of the rows.

    Whether an element is in any of 64 rows takes k words and k − 1 conjunctions. Rows are numbered from 0;
    they are made empty, 64 at a time.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.blocks: list[Uint64s] = []
        #: Looks at a block before it is read, for blocks on disk.
        self.before_reading: Callable[[int], None] = _nothing

    def __len__(self) -> int:
        return len(self.blocks) * ROWS

    def adopt(self, blocks: list[Uint64s], before_reading: Callable[[int], None]) -> None:
        """Take over blocks that were stored; one that may not be written is copied when it has to be."""
        self.blocks = blocks
        self.before_reading = before_reading

    def extend(self) -> None:
        """Add 64 empty rows."""
        self.blocks.append(np.zeros(self.shape.bits, np.uint64))

    def drop(self) -> None:
        """Remove the last 64 rows."""
        self.blocks.pop()

    def add(self, row: int, elements: Uint64s) -> None:
        """Take elements into a row.

        Cost: k words each, about 10 ns a word.
        """
        block = self._writable(row // ROWS)
        # Equal places set the same bit of the same row, so that none gets lost.
        block[self.shape.places(elements).ravel()] |= np.uint64(1 << row % ROWS)

    def clear(self, row: int) -> None:
        """Empty a row; the other rows of its block stay as they are.

        Cost: one pass over a block, m words.
        """
        block = self._writable(row // ROWS)
        np.bitwise_and(block, np.uint64(~(1 << row % ROWS) & (2**64 - 1)), out=block)

    def counts(self, elements: Uint64s) -> Int64s:
        """Return how many of the elements each row has, int64 (rows,).

        Cost: k words an element and block of 64 rows; for 4,000 elements, k = 4, about 0.4 ms a block.
        """
        places = self.shape.places(elements)
        found = np.zeros(len(self), np.int64)
        for number in range(len(self.blocks)):
            found[number * ROWS : (number + 1) * ROWS] = self._block_counts(number, places)
        return found

    def contains(self, row: int, elements: Uint64s) -> Uint64s:
        """Return 1 for each element a row has and 0 for the others, uint64 (E,)."""
        together = self._together(row // ROWS, self.shape.places(elements))
        return (together >> np.uint64(row % ROWS)) & np.uint64(1)

    @property
    def nbytes(self) -> int:
        """The memory the rows take."""
        return sum(block.nbytes for block in self.blocks)

    def _together(self, number: int, places: Int64s) -> Uint64s:
        """Return a word for each element whose bit r says whether row r of the block has it."""
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
    """Look at nothing: a block in memory is as it was written."""


_KIND = "matrix"


class MatrixFilter:
    """A row for each document, made for the longest of them."""

    def __init__(self, shape: Shape) -> None:
        self.bit_rows = BitSlicedRows(shape)
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
        """Take a document out; its row is free again.

        Raises:
            KeyError: there is none of this name.
        """
        row = self._rows.pop(name)
        self.bit_rows.clear(row)
        self._free.append(row)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the filter into a file; see ``load``."""
        for number in range(len(self.bit_rows.blocks)):
            self.bit_rows.before_reading(number)
        header = {"kind": _KIND, "shape": asdict(self.bit_rows.shape), "rows": self._rows}
        save(path, header, self.bit_rows.blocks)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "MatrixFilter":
        """Map a filter into memory; it can be changed, which changes nothing on disk until it is saved.

        Raises:
            InputError: there is no such filter, or it was changed.
        """
        stored = load(path, _KIND)
        found = cls(Shape(**stored.header["shape"]))
        found.bit_rows.adopt(stored.arrays, stored.check)
        found._rows = dict(stored.header["rows"])
        held = set(found._rows.values())
        found._free = [row for row in reversed(range(len(found.bit_rows))) if row not in held]
        return found

    def counts(self, elements: Uint64s) -> Mapping[str, int]:
        """Return how many of the elements each document may have."""
        counts = self.bit_rows.counts(elements).tolist()
        return {name: counts[row] for name, row in self._rows.items()}
