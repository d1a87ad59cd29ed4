"""Where the elements of a document go in a pseudo-matrix: pure functions of the free space a row."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from shinglefold.model.values import Int64s


@dataclass(frozen=True, slots=True)
class RowPiece:
    """Elements ``begin`` … ``end`` − 1 of a document, in the order of its text, and the row they are in."""

    row: int
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin


def pieces_of(begin: int, placed: list[tuple[int, int]]) -> tuple[RowPiece, ...]:
    """Return the pieces for pairs of row and length, from ``begin`` on."""
    bounds = [begin]
    for _, length in placed:
        bounds.append(bounds[-1] + length)
    return tuple(
        RowPiece(row, first, last) for (row, _), (first, last) in zip(placed, pairwise(bounds), strict=True)
    )


def place(length: int, free: Int64s, capacity: int, whole: bool) -> list[tuple[int, int]] | None:
    """Return rows and how many elements each takes, or None where there is too little room.

    Args:
        length: elements to place.
        free: int64 (rows,), elements each row still takes.
        capacity: elements an empty row takes.
        whole: a document that fits into one row is kept in one; else it fills up what room there is.
    """
    if not length:
        return []
    return _whole(length, free.copy(), capacity) if whole else _split(length, free)


def _whole(length: int, free: Int64s, capacity: int) -> list[tuple[int, int]] | None:
    """Place full rows first, then the rest in the fullest row that takes it (best fit)."""
    placed = []
    while length > 0:
        part = min(length, capacity)
        fitting = np.where(free >= part, free, capacity + 1)
        row = int(fitting.argmin()) if len(free) else 0
        if not len(free) or fitting[row] > capacity:
            return None
        placed.append((row, part))
        free[row] -= part
        length -= part
    return placed


def _split(length: int, free: Int64s) -> list[tuple[int, int]] | None:
    """Fill up rows in their order."""
    filled = np.cumsum(free)
    if not len(free) or filled[-1] < length:
        return None
    last = int(np.searchsorted(filled, length))
    rows = np.flatnonzero(free[: last + 1] > 0)
    taken = free[rows].copy()
    taken[-1] = length - (filled[last] - free[last])
    return list(zip(rows.tolist(), taken.tolist(), strict=True))
