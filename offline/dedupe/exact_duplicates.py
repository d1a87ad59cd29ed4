"""Finds documents with equal digests or equal ids, by sorting."""

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s, Uint64s
from shinglefold.offline.dedupe.fingerprint_table import DIGESTED, SIGNED, DocumentNames, FingerprintTable

#: Documents compared at a time.
_ROWS = 1 << 18


def equal_keys(keys: Uint64s) -> tuple[Int64s, Int64s]:
    """Return the rows of keys that occur more than once, and for each the first row with its key.

    Both are sorted by key, then by row. Cost: one sort, which takes some 40 bytes a key.
    """
    order = np.argsort(keys)
    ranked = keys[order]
    same = ranked[1:] == ranked[:-1]
    shared = np.zeros(len(keys), np.bool_)
    shared[1:] = same
    shared[:-1] |= same
    # Mostly few. The fast sort above leaves equal keys in any order, so these are sorted again.
    rows, found = order[shared].astype(np.int64), ranked[shared]
    order = np.lexsort((rows, found))
    rows, found = rows[order], found[order]
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = found[1:] != found[:-1]
    return rows, rows[begins][np.cumsum(begins) - 1]


def names_of(table: FingerprintTable) -> DocumentNames:
    """Return the names of the documents."""
    rows, firsts = equal_keys(table.id_hashes.mapped())
    found: list[int] = []
    seen: set[bytes] = set()
    # Ids with equal hashes may still differ.
    for row, first, name in zip(rows.tolist(), firsts.tolist(), table.ids.reader().of(rows), strict=True):
        if row == first:
            seen.clear()
        if name in seen:
            found.append(row)
        seen.add(name)
    return DocumentNames(table, np.array(sorted(found), np.int64))


class Duplicates:
    """Documents of equal texts, so that candidates are looked for only once a text.

    ``first``: int32 (D,), the first document with the text, itself where there is no other one.
    ``is_duplicate``: bool (D,), whether it also has the sketch of that document. In two languages, equal
    texts may have different sketches.
    """

    def __init__(self, table: FingerprintTable) -> None:
        self.first = np.arange(len(table), dtype=np.int32)
        self.is_duplicate = np.zeros(len(table), np.bool_)
        rows, firsts = equal_keys(_digest_keys(table))
        digests, has_digest = table.digests.mapped(), (table.flags.mapped() & DIGESTED) > 0
        for begin in range(0, len(rows), _ROWS):
            own, first = rows[begin : begin + _ROWS], firsts[begin : begin + _ROWS]
            # The key has eight bytes of nine.
            same = has_digest[own] & (own != first) & (digests[own, -1] == digests[first, -1])
            own, first = own[same], first[same]
            self.first[own] = first
            self.is_duplicate[own] = _same_sketch(table, own, first)


def _digest_keys(table: FingerprintTable) -> Uint64s:
    # A document without a digest is equal to no other: it gets 64 bits of its own, which hardly meet others.
    keys: Uint64s = np.arange(len(table), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for begin in range(0, len(table), _ROWS):
        end = min(begin + _ROWS, len(table))
        told = (table.flags.read(begin, end) & DIGESTED) > 0
        digests = np.ascontiguousarray(table.digests.read(begin, end)[:, :8]).view(np.uint64)[:, 0]
        keys[begin:end] = np.where(told, digests, keys[begin:end])
    return keys


def _same_sketch(table: FingerprintTable, own: Int64s, first: Int64s) -> NDArray[np.bool_]:
    flags, shingles = table.flags.mapped(), table.shingles.mapped()
    words, signatures = table.words.mapped(), table.signatures.mapped()
    same = ((flags[own] & flags[first] & SIGNED) > 0) & (shingles[own] == shingles[first])
    same &= (words[own] == words[first]).all(axis=1)
    same &= (signatures[own] == signatures[first]).all(axis=1)
    return np.asarray(same, np.bool_)
