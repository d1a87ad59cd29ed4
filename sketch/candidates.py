"""Candidates: pairs of documents with common supershingles, found by sorting."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s, Uint64s

#: The number of candidate pairs processed at a time.
CHUNK = 1 << 16


def nominate(supershingles: Uint64s, min_shared: int, chunk: int = CHUNK) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield all pairs of rows that share at least ``min_shared`` supershingles in the same slots.

    Args:
        supershingles: uint64 (C, M).
        min_shared: k, at least 1.
        chunk: slot-wise matches processed together. It bounds the memory, except for a single row with more
            matches.

    Yields:
        (a, b) with a < b, int64; sorted by a, then b; every pair once.

    Cost: C·M·log C for sorting, then in proportion to the matches in slots; 24·C·M bytes.
    """
    rows, groups = supershingles.shape
    if rows < 2 or min_shared > groups:
        return
    buckets = _Buckets.of(supershingles)
    columns = np.ascontiguousarray(supershingles.T)
    matches = buckets.partners.sum(axis=0)
    # A row with more matches than rows is cheaper to compare with all rows at once.
    crowded = np.flatnonzero(matches > rows)
    totals = np.cumsum(matches)
    begin = 0
    while begin < rows:
        following = int(np.searchsorted(crowded, begin))
        stop = int(crowded[following]) if following < len(crowded) else rows
        if begin == stop:
            end = begin + 1
            yield _candidates_of_row(columns, begin, min_shared)
        else:
            limit = int(totals[begin] - matches[begin]) + chunk
            end = min(stop, max(begin + 1, int(np.searchsorted(totals, limit, "right"))))
            yield buckets.pairs(begin, end, min_shared)
        begin = end


def iter_ragged(counts: Int64s, limit: int = CHUNK) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield (owner, number) for each owner and number below counts[owner], at most ``limit`` at a time."""
    ends = np.cumsum(counts)
    begins = ends - counts
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, limit):
        end = min(begin + limit, total)
        first, last = np.searchsorted(ends, (begin, end - 1), "right").tolist()
        inside = counts[first : last + 1].copy()
        inside[0] = ends[first] - begin
        inside[-1] -= ends[last] - end
        owner = np.repeat(np.arange(first, last + 1), inside)
        yield owner, np.arange(begin, end) - begins[owner]


def _candidates_of_row(columns: Uint64s, row: int, min_shared: int) -> tuple[Int64s, Int64s]:
    shared = np.count_nonzero(columns[:, row + 1 :] == columns[:, row, None], axis=0)
    others = np.flatnonzero(shared >= min_shared) + (row + 1)
    return np.full(len(others), row, np.int64), others.astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Buckets:
    """Rows of equal supershingles, slot by slot; each int64 (M, C).

    ``order``: the rows, sorted by supershingle. ``places``: the position of each row in that order.
    ``partners``: how many rows of its bucket come after it; the sort is stable, so these are later rows.
    """

    order: Int64s
    places: Int64s
    partners: Int64s

    @classmethod
    def of(cls, supershingles: Uint64s) -> "_Buckets":
        rows, groups = supershingles.shape
        order = np.empty((groups, rows), np.int64)
        places, partners = np.empty_like(order), np.empty_like(order)
        for slot in range(groups):
            column = np.ascontiguousarray(supershingles[:, slot])
            order[slot] = np.argsort(column, kind="stable")
            ranked = column[order[slot]]
            ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), rows - 1) + 1
            places[slot, order[slot]] = np.arange(rows)
            partners[slot, order[slot]] = np.repeat(ends, np.diff(ends, prepend=0)) - np.arange(rows) - 1
        return cls(order, places, partners)

    def pairs(self, begin: int, end: int, min_shared: int) -> tuple[Int64s, Int64s]:
        """Return the pairs of rows begin…end − 1 with later rows that share enough slots."""
        rows = self.order.shape[1]
        counts = self.partners[:, begin:end].ravel()
        owner = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        slot, row = np.divmod(owner, end - begin)
        place = self.places[:, begin:end].ravel()[owner] + 1 + number
        keys = (row + begin) * np.int64(rows) + self.order[slot, place]
        found, shared = np.unique(keys, return_counts=True)
        a, b = np.divmod(found[shared >= min_shared], rows)
        return a, b


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """B buckets of at least two documents: ``documents[starts[i]:starts[i] + sizes[i]]``, ascending.

    ``documents``: int64, those of all buckets. ``starts``, ``sizes``: int64 (B,).
    """

    documents: Int64s
    starts: Int64s
    sizes: Int64s

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def of(cls, keys: Uint64s, bits: int = 32) -> "Buckets":
        """Return the buckets of documents with equal supershingles in one slot.

        Args:
            keys: uint64 (N,): the highest bits of the supershingle, and below them the number of the
                document; sorted in place.
            bits: how many the number takes.

        Cost: a sort of 64-bit numbers, 7 ns each if the processor has AVX-512. Memory: 9 bytes a document,
        and 32 more in a bucket.
        """
        keys.sort()
        return cls.of_sorted(keys, bits)

    @classmethod
    def of_sorted(cls, keys: Uint64s, bits: int = 32) -> "Buckets":
        """Return the buckets of sorted keys; see ``of``."""
        low = np.uint64(bits)
        high = keys >> low
        equal = high[1:] == high[:-1]
        del high
        # Most supershingles occur in one document only, and are dropped here.
        shared = np.zeros(len(keys), np.bool_)
        shared[1:] = equal
        shared[:-1] |= equal
        kept = keys[shared]
        bounds = np.flatnonzero(kept[1:] >> low != kept[:-1] >> low) + 1
        starts = np.concatenate((np.zeros(min(1, len(kept)), np.int64), bounds))
        return cls(
            (kept & np.uint64((1 << bits) - 1)).astype(np.int64), starts, np.diff(starts, append=len(kept))
        )

    def only(self, chosen: NDArray[np.bool_]) -> "Buckets":
        """Return the chosen buckets; ``chosen``: bool (B,)."""
        sizes = self.sizes[chosen]
        starts = np.cumsum(sizes) - sizes
        return Buckets(self.documents[np.repeat(chosen, self.sizes)], starts, sizes)

    def stars(self) -> tuple[Int64s, Int64s]:
        """Return pairs of the first document of each bucket with every other one."""
        first = np.zeros(len(self.documents), np.bool_)
        first[self.starts] = True
        return np.repeat(self.documents[self.starts], self.sizes - 1), self.documents[~first]

    def pairs(self, limit: int = CHUNK) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield every two documents of a bucket, a < b, at most ``limit`` at a time."""
        ends = np.repeat(self.starts + self.sizes, self.sizes)
        for owner, number in iter_ragged(ends - np.arange(len(ends)) - 1, limit):
            yield self.documents[owner], self.documents[owner + 1 + number]
