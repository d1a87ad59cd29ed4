"""Rows of Bloom filters of one shape, laid so that one look compares 64 of them."""

from collections.abc import Callable

import numpy as np

from shinglefold.model.values import Int64s, Uint64s
from shinglefold.relatives.bloom.sizing import Shape

#: Rows in a block: bit r of word b is bit b of row r.
LANES = 64


class Lanes:
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
        return len(self.blocks) * LANES

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
        block = self._writable(row // LANES)
        # Equal places set the same bit of the same row, so that none gets lost.
        block[self.shape.places(elements).ravel()] |= np.uint64(1 << row % LANES)

    def clear(self, row: int) -> None:
        """Empty a row; the other rows of its block stay as they are.

        Cost: one pass over a block, m words.
        """
        block = self._writable(row // LANES)
        np.bitwise_and(block, np.uint64(~(1 << row % LANES) & (2**64 - 1)), out=block)

    def counts(self, elements: Uint64s) -> Int64s:
        """Return how many of the elements each row has, int64 (rows,).

        Cost: k words an element and block of 64 rows; for 4,000 elements, k = 4, about 0.4 ms a block.
        """
        places = self.shape.places(elements)
        found = np.zeros(len(self), np.int64)
        for number in range(len(self.blocks)):
            found[number * LANES : (number + 1) * LANES] = self._block_counts(number, places)
        return found

    def contains(self, row: int, elements: Uint64s) -> Uint64s:
        """Return 1 for each element a row has and 0 for the others, uint64 (E,)."""
        together = self._together(row // LANES, self.shape.places(elements))
        return (together >> np.uint64(row % LANES)) & np.uint64(1)

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
