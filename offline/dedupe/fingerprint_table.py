"""The fingerprints of a collection as columns in temporary files, and its exact duplicates.

Rows are appended block by block, and mapped into memory where they are read.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import numpy as np
import xxhash
from numpy.typing import DTypeLike, NDArray

from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Bytes, Int64s, Uint32s, Uint64s
from shinglefold.sketch.b_bit_minhash import packed_size
from shinglefold.sketch.shingles import mix64
from shinglefold.sketch.verification import Texts, Words

_BUFFER = 1 << 20


class MappedColumn:
    """Rows of ``width`` values of one type in a temporary file without a name; with width 0 single values."""

    def __init__(self, files: ExitStack, dtype: DTypeLike, width: int = 0) -> None:
        self._file = files.enter_context(tempfile.TemporaryFile(buffering=_BUFFER))  # noqa: SIM115
        self._dtype = np.dtype(dtype)
        self._width = width
        self._size = 0

    @property
    def row_bytes(self) -> int:
        """The bytes of a row."""
        return self._dtype.itemsize * max(1, self._width)

    def __len__(self) -> int:
        return self._size // self.row_bytes

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows at the end."""
        data = np.ascontiguousarray(rows, self._dtype)
        self._file.write(data.data.cast("B") if data.size else b"")
        self._size += data.nbytes

    def mapped(self) -> NDArray[Any]:
        """Return all rows, shape (N,) or (N, width); they are read from the file when they are used."""
        self._file.flush()
        shape = (len(self), self._width) if self._width else (len(self),)
        if not len(self):
            return np.zeros(shape, self._dtype)
        # A plain array, because slices of a memmap are slow.
        return np.asarray(np.memmap(self._file, self._dtype, "r", shape=shape))

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """Return a copy of the rows begin…end − 1; no part of the file stays mapped."""
        self._file.flush()
        self._file.seek(begin * self.row_bytes)
        data = np.frombuffer(self._file.read((end - begin) * self.row_bytes), self._dtype)
        self._file.seek(0, 2)
        return data.reshape(-1, self._width) if self._width else data


class Blobs:
    """Byte strings of any length: one column has the bytes, another one the end of each string."""

    def __init__(self, files: ExitStack) -> None:
        self._bytes = MappedColumn(files, np.uint8)
        self._ends = MappedColumn(files, np.int64)

    def append(self, data: bytes, sizes: Int64s) -> None:
        """Add pieces of this many bytes each, one after another in ``data``."""
        ends = np.cumsum(sizes) + len(self._bytes)
        self._bytes.append(np.frombuffer(data, np.uint8))
        self._ends.append(ends)

    def __len__(self) -> int:
        return len(self._ends)

    def words(self) -> Words:
        """Return the pieces as words of four bytes."""
        bounds: Int64s = np.concatenate((np.zeros(1, np.int64), self._ends.mapped()))
        return Words(self._bytes.mapped().view(np.uint32), bounds // 4)

    def reader(self) -> "Reader":
        """Return a fast function that returns pieces by number, from mapped files."""
        data, all_ends = self._bytes.mapped().data, self._ends.mapped()

        def read(numbers: NDArray[np.integer]) -> list[bytes]:
            begins = np.where(numbers > 0, all_ends[numbers - 1], 0).tolist()
            ends = all_ends[numbers].tolist()
            return [data[begin:end].tobytes() for begin, end in zip(begins, ends, strict=True)]

        return read


Reader = Callable[[NDArray[np.integer]], list[bytes]]


#: The bytes of a digest; then the flags of documents with a signature, and of those with a digest.
DIGEST = 9
SIGNED, DIGESTED = np.uint8(1), np.uint8(2)
SlotWords = Uint64s | Uint32s
#: How many document ids are read at a time.
_TOGETHER = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class FingerprintBlock:
    """The fingerprints of n documents, in order.

    ``words``: supershingles, uint64 (n, M), or the bits of them that keywords store, uint32 (n, M).
    ``signatures``: uint8 (n, B). Both are zeros if there is no signature.
    ``shingles``: int64 (n,). ``digests``: uint8 (n, 9). ``flags``: uint8 (n,), ``SIGNED`` and ``DIGESTED``.
    ``ids``: one after another, in UTF-8. ``id_sizes``: their bytes, int64 (n,), 0 for none.
    ``id_hashes``: uint64 (n,). ``sources``, ``lines``: where the documents were read.
    ``written``, ``canonical``: their words, from ``Words.bytes_of``, if texts decide.
    ``facts``: uint64 (n,), the facts that must not differ, 0 for none; None if no document has any. Digests
    of documents with other facts differ, see ``with_facts``.
    ``shown``: as JSON, the language of each document and the fields of it that are shown.
    """

    words: SlotWords
    signatures: Bytes
    shingles: Int64s
    digests: Bytes
    flags: Bytes
    ids: bytes
    id_sizes: Int64s
    id_hashes: Uint64s
    sources: Sequence[str]
    lines: Int64s
    written: Sequence[bytes] = ()
    canonical: Sequence[bytes] = ()
    facts: Uint64s | None = None
    shown: Sequence[bytes] = ()

    def __len__(self) -> int:
        return len(self.flags)


def with_facts(digests: Bytes, facts: Uint64s) -> Bytes:
    """Return digests that also differ where facts differ: uint8 (n, 9)."""
    mixed = digests.copy()
    keys = np.where(facts > 0, mix64(facts.copy()), np.uint64(0))
    mixed[:, :8] ^= keys.view(np.uint8).reshape(-1, 8)
    return mixed


def id_columns(ids: Sequence[str | None]) -> tuple[bytes, Int64s, Uint64s]:
    """Return the three id columns of a block."""
    raw = [b"" if name is None else name.encode("utf-8", "surrogatepass") for name in ids]
    hashes = np.fromiter(map(xxhash.xxh3_64_intdigest, raw), np.uint64, len(raw))
    return b"".join(raw), np.fromiter(map(len, raw), np.int64, len(raw)), hashes


@dataclass(slots=True)
class Failures:
    """The number of documents left out, and the reason of the first."""

    count: int = 0
    first: str = ""

    def add(self, reason: str) -> None:
        """Count a document, and keep the first reason."""
        self.first = self.first or reason
        self.count += 1


class FingerprintTable:
    """The fingerprints of D documents, in the order added.

    Args:
        scheme: the scheme of the fingerprints.
        whole: supershingles have 64 bits, in all slots; else the bits and slots of stored keywords.

    Cost: memory only for mapped pages. On disk some 260 bytes for each stored fingerprint; for one made of a
    text 850 bytes, and 8 for each word.
    """

    def __init__(self, scheme: Scheme, whole: bool) -> None:
        sketch, files = scheme.sketch, ExitStack()
        self.scheme = scheme
        self._files = files
        self.whole = whole
        slots = sketch.values // sketch.group_size if whole else sketch.groups
        self.words = MappedColumn(files, np.uint64 if whole else np.uint32, slots)
        self.signatures = MappedColumn(files, np.uint8, packed_size(sketch.values, sketch.bits))
        self.shingles = MappedColumn(files, np.int64)
        self.digests = MappedColumn(files, np.uint8, DIGEST)
        self.flags = MappedColumn(files, np.uint8)
        self.ids = Blobs(files)
        self.id_hashes = MappedColumn(files, np.uint64)
        self.failures = Failures()
        self._places = MappedColumn(files, np.int64, 2)
        self._sources: list[str] = []
        self._written, self._canonical = Blobs(files), Blobs(files)
        self._facts, self._has_facts = MappedColumn(files, np.uint64), False
        self._shown = Blobs(files)
        self._shown_reader: Reader | None = None

    def __len__(self) -> int:
        return len(self.flags)

    def close(self) -> None:
        """Delete the files."""
        # Closing writes the buffers, which fails on a full disk.
        with suppress(OSError):
            self._files.close()

    def add(self, block: FingerprintBlock) -> None:
        """Add documents."""
        self.words.append(block.words)
        self.signatures.append(block.signatures)
        self.shingles.append(block.shingles)
        self.digests.append(block.digests)
        self.flags.append(block.flags)
        self.ids.append(block.ids, block.id_sizes)
        self.id_hashes.append(_id_hashes(block))
        self._add_places(block)
        self._has_facts = self._has_facts or block.facts is not None
        self._facts.append(np.zeros(len(block), np.uint64) if block.facts is None else block.facts)
        for blobs, texts in (
            (self._written, block.written),
            (self._canonical, block.canonical),
            (self._shown, block.shown),
        ):
            if texts:
                blobs.append(b"".join(texts), np.fromiter(map(len, texts), np.int64, len(texts)))

    def _add_places(self, block: FingerprintBlock) -> None:
        numbers: list[int] = []
        for source, same in groupby(block.sources):
            if self._sources[-1:] != [source]:
                self._sources.append(source)
            numbers += [len(self._sources) - 1] * len(list(same))
        self._places.append(np.column_stack((np.array(numbers, np.int64), block.lines)))

    def place(self, document: int) -> str:
        """Return the source and the line of a document."""
        source, line = self._places.read(document, document + 1)[0].tolist()
        return f"{self._sources[source]}:{line}"

    def shown_fields(self, documents: NDArray[np.integer]) -> list[tuple[str, dict[str, Any]]]:
        """Return the languages of documents, and the fields that are shown; empty if none were read."""
        if not len(self._shown):
            return [("", {}) for _ in documents]
        if self._shown_reader is None:
            # Kept, because opening one takes longer than reading a group.
            self._shown_reader = self._shown.reader()
        return [json.loads(one) for one in self._shown_reader(documents.astype(np.int64))]

    def with_scheme(self, scheme: Scheme) -> "FingerprintTable":
        """Return the same documents with another decision."""
        table = copy(self)
        table.scheme = scheme
        return table

    @property
    def has_texts(self) -> bool:
        """Whether the words of documents are kept: texts decide, and were read."""
        return self.whole and self.scheme.decision.verify == "text"

    @property
    def texts(self) -> Texts | None:
        """The words of documents, if they are stored."""
        if not self.has_texts:
            return None
        return Texts(self._written.words(), self._canonical.words())

    @property
    def facts(self) -> Uint64s | None:
        """The facts of documents, uint64 (D,), 0 for none; None if no document has any."""
        return self._facts.mapped() if self._has_facts else None

    def valid(self) -> NDArray[np.bool_]:
        """Return which documents have a signature, bool (D,)."""
        found: NDArray[Any] = (self.flags.read(0, len(self)) & SIGNED) > 0
        return found


def _id_hashes(block: FingerprintBlock) -> Uint64s:
    """Return the hashes of ids; for documents without an id, of source and line."""
    hashes = block.id_hashes.copy()
    for row in np.flatnonzero(block.id_sizes == 0).tolist():
        place = f"{block.sources[row]}:{block.lines[row]}".encode("utf-8", "surrogatepass")
        hashes[row] = xxhash.xxh3_64_intdigest(place)
    return hashes


class DocumentNames:
    """The names of documents: their ids, or source and line if they have none.

    A document with the id of an earlier one, as ``repeated`` has them, is named by id, source and line.
    """

    def __init__(self, table: FingerprintTable, ids: Reader, repeated: set[int]) -> None:
        self._table, self._ids, self.repeated = table, ids, repeated

    def __getitem__(self, document: int) -> str:
        return self.many(np.array([document]))[0]

    def many(self, documents: NDArray[np.integer]) -> list[str]:
        """Return the names of several documents."""
        documents = documents.astype(np.int64)
        found = [raw.decode("utf-8", "surrogatepass") for raw in self._ids(documents)]
        for row, document in enumerate(documents.tolist()):
            if not found[row]:
                found[row] = self._table.place(document)
            if document in self.repeated:
                found[row] = f"{found[row]} ({self._table.place(document)})"
        return found

    def of_each(self, groups: Iterable[Int64s]) -> Iterator[tuple[Int64s, list[str]]]:
        """Yield the documents of each group with their names, which are read for many groups at a time."""
        waiting: list[Int64s] = []
        size = 0
        for documents in groups:
            waiting.append(documents)
            size += len(documents)
            if size >= _TOGETHER:
                yield from self._split(waiting)
                waiting, size = [], 0
        yield from self._split(waiting)

    def _split(self, groups: Sequence[Int64s]) -> Iterator[tuple[Int64s, list[str]]]:
        if groups:
            names = iter(self.many(np.concatenate(groups)))
            yield from ((documents, [*islice(names, len(documents))]) for documents in groups)


#: The number of documents compared at a time.
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
    # The fast sort above is not stable, so the few equal keys are sorted again.
    rows, found = order[shared].astype(np.int64), ranked[shared]
    order = np.lexsort((rows, found))
    rows, found = rows[order], found[order]
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = found[1:] != found[:-1]
    return rows, rows[begins][np.cumsum(begins) - 1]


def names_of(table: FingerprintTable) -> DocumentNames:
    """Return the names of the documents."""
    (rows, firsts), ids = equal_keys(table.id_hashes.mapped()), table.ids.reader()
    repeated: set[int] = set()
    seen: set[bytes] = set()
    # Ids with equal hashes may still differ.
    for row, first, name in zip(rows.tolist(), firsts.tolist(), ids(rows), strict=True):
        if row == first:
            seen.clear()
        if name in seen:
            repeated.add(row)
        seen.add(name)
    return DocumentNames(table, ids, repeated)


class Duplicates:
    """Exact duplicates, found by their digests, so that candidates are searched once for each text.

    ``first``: int32 (D,), the first document with the same text, or the document itself.
    ``is_duplicate``: bool (D,), whether its sketch equals that of the first, too. Equal texts of two
    languages may have different sketches.
    """

    def __init__(self, table: FingerprintTable) -> None:
        self.first = np.arange(len(table), dtype=np.int32)
        self.is_duplicate = np.zeros(len(table), np.bool_)
        rows, firsts = equal_keys(_digest_keys(table))
        digests, has_digest = table.digests.mapped(), (table.flags.mapped() & DIGESTED) > 0
        for begin in range(0, len(rows), _ROWS):
            own, first = rows[begin : begin + _ROWS], firsts[begin : begin + _ROWS]
            # The key has eight of the nine bytes of a digest.
            same = has_digest[own] & (own != first) & (digests[own, -1] == digests[first, -1])
            own, first = own[same], first[same]
            self.first[own] = first
            self.is_duplicate[own] = _same_sketch(table, own, first)


def _digest_keys(table: FingerprintTable) -> Uint64s:
    # A document without a digest equals no other: it gets a key of its own, unlikely to equal a digest.
    keys: Uint64s = np.arange(len(table), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for begin in range(0, len(table), _ROWS):
        end = min(begin + _ROWS, len(table))
        digested = (table.flags.read(begin, end) & DIGESTED) > 0
        digests = np.ascontiguousarray(table.digests.read(begin, end)[:, :8]).view(np.uint64)[:, 0]
        keys[begin:end] = np.where(digested, digests, keys[begin:end])
    return keys


def _same_sketch(table: FingerprintTable, own: Int64s, first: Int64s) -> NDArray[np.bool_]:
    flags, shingles = table.flags.mapped(), table.shingles.mapped()
    words, signatures = table.words.mapped(), table.signatures.mapped()
    same = ((flags[own] & flags[first] & SIGNED) > 0) & (shingles[own] == shingles[first])
    same &= (words[own] == words[first]).all(axis=1)
    same &= (signatures[own] == signatures[first]).all(axis=1)
    return np.asarray(same, np.bool_)
