"""The fingerprints of a collection as columns in temporary files: as many documents as the disk holds."""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Bytes, Int64s, Uint32s, Uint64s
from shinglefold.offline.dedupe.mapped_columns import Blobs, ColumnStore, MappedColumn
from shinglefold.sketch import Texts, packed_size

#: Bytes of a digest, and what its flag says of a document.
DIGEST = 9
SIGNED, DIGESTED = np.uint8(1), np.uint8(2)
Words = Uint64s | Uint32s
#: Documents named at a time.
_TOGETHER = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class FingerprintBlock:
    """The fingerprints of n documents, in order.

    ``words``: supershingles, uint64 (n, M) whole or uint32 (n, M) what keywords name of them; ``signatures``:
    uint8 (n, B), both zeros where there is none; ``shingles``: int64 (n,); ``digests``: uint8 (n, 9);
    ``flags``: uint8 (n,), ``SIGNED`` and ``DIGESTED``. ``ids``: one after another, in UTF-8; ``id_sizes``:
    their bytes, int64 (n,), 0 for none; ``id_hashes``: uint64 (n,). ``sources``, ``lines``: their places.
    ``written``, ``canonical``: their words, from ``Words.bytes_of``, where texts decide. ``facts``: uint64
    (n,), from ``facts_of``, where they count.
    """

    words: Words
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

    def __len__(self) -> int:
        return len(self.flags)


def id_columns(ids: Sequence[str | None]) -> tuple[bytes, Int64s, Uint64s]:
    """Return the three id columns of a block."""
    raw = [b"" if name is None else name.encode("utf-8", "surrogatepass") for name in ids]
    hashes = np.fromiter(map(xxhash.xxh3_64_intdigest, raw), np.uint64, len(raw))
    return b"".join(raw), np.fromiter(map(len, raw), np.int64, len(raw)), hashes


@dataclass(slots=True)
class Failures:
    """Documents left out: how many, and why the first one was."""

    count: int = 0
    first: str = ""

    def add(self, reason: str) -> None:
        """Count one."""
        self.first = self.first or reason
        self.count += 1


class FingerprintTable:
    """The fingerprints of D documents, in the order added.

    Args:
        scheme: of the fingerprints.
        whole: supershingles are whole, of all values; else what keywords name of the stored ones.

    Cost: memory only for mapped pages; on disk some 260 bytes a document whose fingerprint was stored, 850
    and 8 a word where it is made of a text.
    """

    def __init__(self, scheme: Scheme, whole: bool) -> None:
        sketch, store = scheme.sketch, ColumnStore()
        self.scheme = scheme
        self.store = store
        self.whole = whole
        slots = sketch.values // sketch.group_size if whole else sketch.groups
        self.words = MappedColumn(store, np.uint64 if whole else np.uint32, slots)
        self.signatures = MappedColumn(store, np.uint8, packed_size(sketch.values, sketch.bits))
        self.shingles = MappedColumn(store, np.int64)
        self.digests = MappedColumn(store, np.uint8, DIGEST)
        self.flags = MappedColumn(store, np.uint8)
        self.ids = Blobs(store)
        self.id_hashes = MappedColumn(store, np.uint64)
        self.failures = Failures()
        self._places = MappedColumn(store, np.int64, 2)
        self._sources: list[str] = []
        self._written, self._canonical = Blobs(store), Blobs(store)
        self._facts = MappedColumn(store, np.uint64)

    def __len__(self) -> int:
        return len(self.flags)

    def close(self) -> None:
        """Delete the files."""
        self.store.close()

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
        if block.facts is not None:
            self._facts.append(block.facts)
        for blobs, texts in ((self._written, block.written), (self._canonical, block.canonical)):
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

    def with_scheme(self, scheme: Scheme) -> "FingerprintTable":
        """Return the same documents with another decision of the scheme."""
        table = copy(self)
        table.scheme = scheme
        return table

    @property
    def has_texts(self) -> bool:
        """Whether the words of documents are kept, too: where texts decide, and are at hand."""
        return self.whole and self.scheme.decision.verify == "text"

    @property
    def texts(self) -> Texts | None:
        """The words of documents, where they are kept."""
        if not self.has_texts:
            return None
        facts = self._facts.mapped() if self._has_facts else None
        return Texts(self._written.words(), self._canonical.words(), facts)

    @property
    def _has_facts(self) -> bool:
        return self.has_texts and self.scheme.decision.facts == "numbers"

    def valid(self) -> NDArray[np.bool_]:
        """Tell which documents have a signature, bool (D,)."""
        found: NDArray[Any] = (self.flags.read(0, len(self)) & SIGNED) > 0
        return found


def _id_hashes(block: FingerprintBlock) -> Uint64s:
    """Return the hashes of ids; of documents without an id, of their places."""
    hashes = block.id_hashes.copy()
    for row in np.flatnonzero(block.id_sizes == 0).tolist():
        place = f"{block.sources[row]}:{block.lines[row]}".encode("utf-8", "surrogatepass")
        hashes[row] = xxhash.xxh3_64_intdigest(place)
    return hashes


@dataclass(slots=True)
class DocumentNames:
    """The names of documents: their ids, with the place where an earlier document has the same id.

    A document without an id is named by its place.

    Args:
        repeated: the documents with the id of an earlier one, int64, ascending.
    """

    table: FingerprintTable
    repeated: Int64s
    _ids: Any = field(init=False)
    _also: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        self._ids = self.table.ids.reader()
        self._also = frozenset(self.repeated.tolist())

    def __getitem__(self, document: int) -> str:
        return self.many(np.array([document]))[0]

    def many(self, documents: NDArray[np.integer]) -> list[str]:
        """Return the names of several documents."""
        documents = documents.astype(np.int64)
        found = [raw.decode("utf-8", "surrogatepass") for raw in self._ids.of(documents)]
        for row, document in enumerate(documents.tolist()):
            if not found[row]:
                found[row] = self.table.place(document)
            if document in self._also:
                found[row] = f"{found[row]} ({self.table.place(document)})"
        return found

    def of_each(self, groups: Iterable[Int64s]) -> Iterator[list[str]]:
        """Yield the names of the documents of each group, many groups at a time."""
        waiting: list[Int64s] = []
        size = 0
        for documents in groups:
            waiting.append(documents)
            size += len(documents)
            if size >= _TOGETHER:
                yield from self._split(waiting)
                waiting, size = [], 0
        yield from self._split(waiting)

    def _split(self, groups: Sequence[Int64s]) -> Iterator[list[str]]:
        if groups:
            names = iter(self.many(np.concatenate(groups)))
            yield from ([*islice(names, len(documents))] for documents in groups)
