"""Documents with equal keys, found by sorting parts of the keys: digests, ids."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shinglefold.ingest.linking.column import Column
from shinglefold.ingest.linking.prints import DIGESTED, SIGNED, Names, Prints
from shinglefold.model import Int64s, Uint64s

#: Bytes that sorting takes for each number sorted, and documents read at a time.
_SORTING, _ROWS = 40, 1 << 18


def equal_runs(keys: Column, memory: int) -> Iterator[Int64s]:
    """Yield the rows of 64-bit keys that stand in several rows, some runs of equal ones at a time.

    Yields:
        int64 (N,): rows, sorted by key, then by row; the first row of each run is negative: −1 − row.

    Args:
        keys: uint64, well mixed.
        memory: bytes it may take.
    """
    parts = max(1, -(-len(keys) * _SORTING // memory))
    for part in range(parts):
        rows, found = _shared(*_part(keys, part, parts))
        first = np.ones(len(rows), np.bool_)
        first[1:] = found[1:] != found[:-1]
        if len(rows):
            yield np.where(first, -1 - rows, rows)


def _shared(rows: Int64s, found: Uint64s) -> tuple[Int64s, Uint64s]:
    """Return the keys that stand there twice or more, sorted, and their rows."""
    order = np.argsort(found)
    ranked = found[order]
    same = ranked[1:] == ranked[:-1]
    shared = np.zeros(len(rows), np.bool_)
    shared[1:] = same
    shared[:-1] |= same
    # Mostly few; the fast sort above leaves equal ones in any order.
    rows, found = rows[order[shared]], ranked[shared]
    order = np.lexsort((rows, found))
    return rows[order], found[order]


def _part(keys: Column, part: int, parts: int) -> tuple[Int64s, Uint64s]:
    """Return those of the keys whose highest bits say so, and where they stand."""
    rows, found = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
    for begin in range(0, len(keys), _ROWS):
        block: Uint64s = keys.read(begin, min(begin + _ROWS, len(keys)))
        # 32 bits are mixed well enough, and their product with the number of parts is no more than 64.
        chosen = np.flatnonzero((block >> np.uint64(32)) * np.uint64(parts) >> np.uint64(32) == part)
        rows.append(chosen + begin)
        found.append(block[chosen])
    return np.concatenate(rows), np.concatenate(found)


def firsts_of(runs: Int64s) -> tuple[Int64s, Int64s]:
    """Return the rows of runs as ``equal_runs`` yields them, each with the first row of its run."""
    begins = runs < 0
    rows = np.where(begins, -1 - runs, runs)
    return rows, rows[begins][np.cumsum(begins) - 1]


def repeated_ids(prints: Prints, memory: int) -> Int64s:
    """Return the documents whose id an earlier one has, ascending."""
    ids = prints.ids.reader()
    found: list[int] = []
    for runs in equal_runs(prints.id_hashes, memory):
        rows, _ = firsts_of(runs)
        seen: set[bytes] = set()
        for row, number, name in zip(runs.tolist(), rows.tolist(), ids.of(rows), strict=True):
            if row < 0:
                seen.clear()
            if name in seen:
                found.append(number)
            seen.add(name)
    return np.array(sorted(found), np.int64)


def names_of(prints: Prints, memory: int) -> Names:
    """Return what the documents are called."""
    return Names(prints, repeated_ids(prints, memory))


class Copies:
    """Documents of equal texts: few enough candidates are left when each text is looked at once.

    ``first``: int32 (D,), the first document of a text, itself where there is no other. ``twin``: bool (D,),
    whether it has the sketch of that one, too, which a text in two languages may not have.
    """

    def __init__(self, prints: Prints, memory: int) -> None:
        self.first = np.arange(len(prints), dtype=np.int32)
        self.twin = np.zeros(len(prints), np.bool_)
        keys = Column(prints.shelf, "digests.keys", np.uint64)
        keys.cut(0)
        for begin in range(0, len(prints), _ROWS):
            keys.append(_digest_keys(prints, begin, min(begin + _ROWS, len(prints))))
        for runs in equal_runs(keys, memory):
            rows, firsts = firsts_of(runs)
            told = (prints.flags.mapped()[rows] & DIGESTED) > 0
            self._take(prints, rows[told], firsts[told])

    def pairs(self) -> int:
        """Return how many pairs of documents have equal texts."""
        sizes = np.bincount(self.first)
        return int((sizes * (sizes - 1) // 2).sum())

    def _take(self, prints: Prints, rows: Int64s, firsts: Int64s) -> None:
        digests = prints.digests.mapped()
        for begin in range(0, len(rows), _ROWS):
            own, first = rows[begin : begin + _ROWS], firsts[begin : begin + _ROWS]
            apart = own != first
            own, first = own[apart], first[apart]
            # The key has eight bytes of nine.
            same = digests[own, -1] == digests[first, -1]
            own, first = own[same], first[same]
            self.first[own] = first
            self.twin[own] = _same_sketch(prints, own, first)


def _digest_keys(prints: Prints, begin: int, end: int) -> Uint64s:
    high = np.ascontiguousarray(prints.digests.read(begin, end)[:, :8]).view(np.uint64)[:, 0]
    bare = (prints.flags.read(begin, end) & DIGESTED) == 0
    # Whoever has no digest is equal to nobody: 64 bits of its own, which hardly meet another's.
    numbers = np.arange(begin, end, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.where(bare, numbers, high)


def _same_sketch(prints: Prints, own: Int64s, first: Int64s) -> NDArray[np.bool_]:
    flags, shingles = prints.flags.mapped(), prints.shingles.mapped()
    words, signatures = prints.words.mapped(), prints.signatures.mapped()
    same = ((flags[own] & flags[first] & SIGNED) > 0) & (shingles[own] == shingles[first])
    same &= (words[own] == words[first]).all(axis=1)
    same &= (signatures[own] == signatures[first]).all(axis=1)
    return np.asarray(same, np.bool_)
