"""The pseudo-matrix filter: rows of one size; short documents share a row, long ones span several."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.values import Int64s, Uint64s
from shinglefold.relatives.bloom.file_format import load, save
from shinglefold.relatives.bloom.filters import ROWS, BitSlicedRows, Shape


@dataclass(frozen=True, slots=True)
class RowPiece:
    """The elements ``begin`` … ``end`` − 1 of a document, in the order of its text, and their row."""

    row: int
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin


def pieces_of(begin: int, placed: list[tuple[int, int]]) -> tuple[RowPiece, ...]:
    """Return consecutive pieces of a document from element ``begin`` on, given row and length of each."""
    bounds = [begin]
    for _, length in placed:
        bounds.append(bounds[-1] + length)
    return tuple(
        RowPiece(row, first, last) for (row, _), (first, last) in zip(placed, pairwise(bounds), strict=True)
    )


def place(length: int, free: Int64s, capacity: int, whole: bool) -> list[tuple[int, int]] | None:
    """Return the rows for a document and the number of elements for each; None without enough space.

    Args:
        length: the number of elements.
        free: int64 (rows,), the free space of each row, in elements.
        capacity: the space of an empty row.
        whole: keep a document in one row if it fits into one; else fill the rows in order.
    """
    if not length:
        return []
    return _whole(length, free.copy(), capacity) if whole else _split(length, free)


def _whole(length: int, free: Int64s, capacity: int) -> list[tuple[int, int]] | None:
    """Fill whole rows first, then put the rest into the fullest row with enough space (best fit)."""
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
    """Fill the rows in order."""
    filled = np.cumsum(free)
    if not len(free) or filled[-1] < length:
        return None
    last = int(np.searchsorted(filled, length))
    rows = np.flatnonzero(free[: last + 1] > 0)
    taken = free[rows].copy()
    taken[-1] = length - (filled[last] - free[last])
    return list(zip(rows.tolist(), taken.tolist(), strict=True))


#: Returns the elements of a document by its name, as they were inserted.
Elements = Callable[[str], Uint64s]
_KIND = "pseudo-matrix"


class PseudoMatrixFilter:
    """Many documents in rows of one shape, each filled to its capacity.

    The filter knows the free space and the documents of each row. It does not store elements, so methods that
    rebuild a row ask for them.

    Args:
        whole: keep a document in one row if it fits into one; else fill the rows in order.
    """

    def __init__(self, shape: Shape, whole: bool = True) -> None:
        self.bit_rows = BitSlicedRows(shape)
        self.whole = whole
        self._free: Int64s = np.zeros(0, np.int64)
        self._held: list[set[str]] = []
        self._pieces: dict[str, tuple[RowPiece, ...]] = {}

    def __len__(self) -> int:
        return len(self._pieces)

    def __contains__(self, name: str) -> bool:
        return name in self._pieces

    @property
    def rows(self) -> int:
        """How many rows have a document."""
        return sum(1 for held in self._held if held)

    @property
    def free(self) -> Int64s:
        """The free space of each row in elements, int64 (rows,)."""
        return self._free.copy()

    def documents(self, row: int) -> frozenset[str]:
        """Return the documents that have elements in this row."""
        return frozenset(self._held[row])

    def pieces(self, name: str) -> tuple[RowPiece, ...]:
        """Return the pieces of a document."""
        return self._pieces[name]

    def insert(self, name: str, elements: Uint64s) -> None:
        """Add a document; repeated elements count once.

        Raises:
            ConfigError: the document exists already.
        """
        if name in self._pieces:
            raise ConfigError(f"{name!r} is in the filter already; delete it first")
        distinct = _distinct(elements)
        self._add(name, distinct, pieces_of(0, self._place(len(distinct))))

    def delete(self, name: str, elements: Elements) -> None:
        """Remove a document, and rebuild the rows it was in.

        Args:
            elements: called for the other documents of those rows, before any change.

        Raises:
            KeyError: there is no such document.
            ConfigError: another document has different elements than at its insertion; nothing is changed.
        """
        rows = {piece.row for piece in self._pieces[name]}
        others = {other for row in rows for other in self._held[row]} - {name}
        known = {other: self._distinct_elements(other, elements) for other in sorted(others)}
        for piece in self._pieces.pop(name):
            self._free[piece.row] += len(piece)
            self._held[piece.row].discard(name)
        for row in rows:
            self.bit_rows.clear(row)
        for other, distinct in known.items():
            for piece in self._pieces[other]:
                if piece.row in rows:
                    self.bit_rows.add(piece.row, distinct[piece.begin : piece.end])

    def compact(self, elements: Elements) -> Iterator[int]:
        """Empty the last row into the others as often as they have space; yield how many rows remain.

        Between two steps the filter can be used and changed: elements are added to their new row before the
        old one is emptied.
        """
        while (last := max((row for row, held in enumerate(self._held) if held), default=0)) > 0:
            moved = self._move_pieces(last)
            if moved is None:
                return
            known = {name: self._distinct_elements(name, elements) for name in moved}
            for name, pieces in moved.items():
                kept = tuple(piece for piece in self._pieces[name] if piece.row != last)
                self._add(name, known[name], pieces, kept)
            self._empty(last)
            yield self.rows

    def counts(self, elements: Uint64s) -> Int64s:
        """Return an upper bound of the distinct elements that each row has, int64 (rows,)."""
        return self.bit_rows.counts(_distinct(elements))

    def row_shares(self, elements: Uint64s) -> NDArray[np.float64]:
        """Return for each row the estimated share of the elements it has, float64 (rows,), 0 to 1.

        The estimate corrects for false positives: with their rate r, c of E elements counted mean (c/E −
        r)/(1 − r). For unrelated elements the standard error is about √(r/E).
        """
        distinct = _distinct(elements)
        counted = self.bit_rows.counts(distinct) / max(1, len(distinct))
        rates = self.bit_rows.shape.rates(self.bit_rows.shape.elements - self._free)
        return np.clip((counted - rates) / (1.0 - rates), 0.0, 1.0)

    def shares(self, elements: Uint64s) -> Mapping[str, float]:
        """Return for each document the estimated share of the elements in its rows, 0 to 1.

        The shares of several rows add up. Documents in the same row get the same share.
        """
        rows = self.row_shares(elements)
        return {
            name: float(min(1.0, sum(rows[row] for row in {piece.row for piece in pieces})))
            for name, pieces in self._pieces.items()
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the filter to a file; see ``load``."""
        for number in range(len(self.bit_rows.blocks)):
            self.bit_rows.before_reading(number)
        pieces = {name: [[p.row, p.begin, p.end] for p in found] for name, found in self._pieces.items()}
        header = {"kind": _KIND, "shape": asdict(self.bit_rows.shape), "whole": self.whole, "pieces": pieces}
        save(path, header, self.bit_rows.blocks)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "PseudoMatrixFilter":
        """Memory-map a filter from a file; changes stay in memory until they are saved.

        The checksum of a block of 64 rows is verified at its first use.

        Raises:
            InputError: there is no such filter, or its header is damaged. Later methods raise it for damaged
                rows.
        """
        stored = load(path, _KIND)
        found = cls(Shape(**stored.header["shape"]), stored.header["whole"])
        found.bit_rows.adopt(stored.arrays, stored.check)
        found._grow(len(found.bit_rows))
        for name, pieces in stored.header["pieces"].items():
            found._note(name, tuple(RowPiece(*piece) for piece in pieces))
        return found

    def _place(self, length: int) -> list[tuple[int, int]]:
        """Return rows for a new document, with the number of elements for each; add rows if necessary."""
        capacity = self.bit_rows.shape.elements
        while (placed := place(length, self._free, capacity, self.whole)) is None:
            self.bit_rows.extend()
            self._grow(ROWS)
        return placed

    def _move_pieces(self, last: int) -> dict[str, tuple[RowPiece, ...]] | None:
        """Return new pieces, in the rows before, for the documents of a row; None if not all fit."""
        free = self._free[:last].copy()
        moved: dict[str, tuple[RowPiece, ...]] = {}
        for name in sorted(self._held[last]):
            for piece in self._pieces[name]:
                if piece.row != last:
                    continue
                placed = place(len(piece), free, self.bit_rows.shape.elements, self.whole)
                if placed is None:
                    return None
                for row, length in placed:
                    free[row] -= length
                moved[name] = (*moved.get(name, ()), *pieces_of(piece.begin, placed))
        return moved

    def _add(
        self, name: str, distinct: Uint64s, pieces: tuple[RowPiece, ...], kept: tuple[RowPiece, ...] = ()
    ) -> None:
        for piece in pieces:
            self.bit_rows.add(piece.row, distinct[piece.begin : piece.end])
        self._pieces[name] = kept
        self._note(name, pieces)

    def _note(self, name: str, pieces: tuple[RowPiece, ...]) -> None:
        self._pieces[name] = (*self._pieces.get(name, ()), *pieces)
        for piece in pieces:
            self._free[piece.row] -= len(piece)
            self._held[piece.row].add(name)

    def _empty(self, row: int) -> None:
        self._held[row] = set()
        self._free[row] = self.bit_rows.shape.elements
        self.bit_rows.clear(row)
        if not any(self._held[-ROWS:]):
            self.bit_rows.drop()
            self._free = self._free[:-ROWS].copy()
            del self._held[-ROWS:]

    def _grow(self, rows: int) -> None:
        fresh = np.full(rows, self.bit_rows.shape.elements, np.int64)
        self._free = np.concatenate((self._free, fresh))
        self._held.extend(set() for _ in range(rows))

    def _distinct_elements(self, name: str, elements: Elements) -> Uint64s:
        distinct = _distinct(elements(name))
        if len(distinct) != sum(map(len, self._pieces[name])):
            raise ConfigError(
                f"{name!r} has other elements than when it was inserted; pass the inserted ones"
            )
        return distinct


def _distinct(elements: Uint64s) -> Uint64s:
    """Return each element once, in the order of first occurrences, so that passages stay together."""
    return elements[np.sort(np.unique(elements, return_index=True)[1])]
