"""Pairs of documents to pairs of all their copies: what holds for the first of equal texts holds for all."""

from collections.abc import Iterator
from math import comb

import numpy as np
from numpy.typing import NDArray

from shinglefold.ingest.linking.equal import Copies
from shinglefold.ingest.linking.pairing import PAIR, Rows, as_rows
from shinglefold.model import Int64s
from shinglefold.sketch import Buckets, Pairs
from shinglefold.sketch.candidates import ragged


class Expansion:
    """Lists the pairs of copies.

    Args:
        most: copies of a text of which all are listed; of more, only the first one.

    Attributes:
        left_out: pairs that were not listed.
    """

    def __init__(self, copies: Copies, most: int) -> None:
        self.left_out = 0
        self._most = most
        self._first = copies.first
        twins = np.flatnonzero(copies.twin)
        order = np.argsort(copies.first[twins], kind="stable")
        self._twins = twins[order]
        self._owners = copies.first[self._twins].astype(np.int64)

    def equal_texts(self, only: NDArray[np.bool_] | None = None) -> Iterator[Rows]:
        """Yield the pairs of documents of equal texts; of many, those with the first one.

        Args:
            only: bool (D,), the documents to be paired.
        """
        others = np.flatnonzero(self._first != np.arange(len(self._first)))
        others = others if only is None else others[only[others]]
        firsts = self._first[others].astype(np.int64)
        members = np.concatenate((np.unique(firsts), others))
        owners = np.concatenate((np.unique(firsts), firsts))
        order = np.lexsort((members, owners))
        starts = np.flatnonzero(np.diff(owners[order], prepend=-1))
        buckets = Buckets(members[order], starts, np.diff(starts, append=len(order)))
        large = buckets.sizes > self._most
        for a, b in buckets.only(~large).pairs():
            yield _same(a, b)
        crowded = buckets.only(large)
        yield _same(*crowded.stars())
        self.left_out += sum(comb(size - 1, 2) for size in crowded.sizes.tolist())

    def of(self, rows: Rows) -> Iterator[Rows]:
        """Yield every copy of a with every copy of b, for each pair."""
        a, b = rows["a"].astype(np.int64), rows["b"].astype(np.int64)
        (of_a, all_a), (of_b, all_b) = self._sizes(a), self._sizes(b)
        self.left_out += int((all_a * all_b - of_a * of_b).sum())
        for owner, number in ragged(of_a * of_b):
            place_a, place_b = np.divmod(number, of_b[owner])
            one, other = self._copy(a[owner], place_a), self._copy(b[owner], place_b)
            found = rows[owner]
            found["a"], found["b"] = np.minimum(one, other), np.maximum(one, other)
            yield found

    def _sizes(self, documents: Int64s) -> tuple[Int64s, Int64s]:
        """Return how many copies are listed of each document, itself among them, and how many there are."""
        counts = 1 + np.searchsorted(self._owners, documents, "right")
        counts -= np.searchsorted(self._owners, documents, "left")
        return np.where(counts > self._most, 1, counts), counts

    def _copy(self, documents: Int64s, place: Int64s) -> Int64s:
        """Return the document itself at place 0, then its copies."""
        if not len(self._twins):
            return documents
        behind = np.searchsorted(self._owners, documents, "left") + place - 1
        return np.where(place == 0, documents, self._twins[np.minimum(behind, len(self._twins) - 1)])


def _same(a: Int64s, b: Int64s) -> Rows:
    ones = np.ones(len(a))
    found = as_rows(Pairs(a, b, ones, ones))
    assert found.dtype == PAIR
    return found
