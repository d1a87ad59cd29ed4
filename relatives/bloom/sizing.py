"""How large a Bloom filter is, and where in it an element lies."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.values import Int64s, Uint64s

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


def matrix_rows(lengths: Iterable[int]) -> int:
    """Return the rows of a matrix filter: one a document."""
    return sum(1 for _ in lengths)


def pseudo_matrix_rows(lengths: Iterable[int], elements: int) -> int:
    """Return the rows of a pseudo-matrix filter that are enough: n elements each, of whichever documents."""
    return ceil(sum(lengths) / elements)
