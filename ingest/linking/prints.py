"""The fingerprints of a collection as columns in files: as many documents as the disk holds."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from shinglefold.ingest.linking.column import Blobs, Column
from shinglefold.ingest.linking.shelf import Shelf, State
from shinglefold.model import Bytes, Int64s, Uint32s, Uint64s
from shinglefold.scheme import Scheme
from shinglefold.sketch import Texts, packed_size

#: Bytes of a digest, and what its flag says of a document.
DIGEST = 9
SIGNED, DIGESTED = np.uint8(1), np.uint8(2)
Words = Uint64s | Uint32s
#: Documents named at a time.
_TOGETHER = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The fingerprints of n documents, in order.

    ``words``: supershingles, uint64 (n, M) whole or uint32 (n, M) what keywords name of them; ``signatures``:
    uint8 (n, B), both zeros where there is none; ``shingles``: int64 (n,); ``digests``: uint8 (n, 9);
    ``flags``: uint8 (n,), ``SIGNED`` and ``DIGESTED``. ``ids``: one after another, in UTF-8; ``id_sizes``:
    their bytes, int64 (n,), 0 for none; ``id_hashes``: uint64 (n,). ``sources``, ``lines``: where they stood.
    ``written``, ``canonical``: what they say, as ``Words.bytes_of`` yields it, where texts decide. ``facts``:
    uint64 (n,), as ``facts_of`` has them, where they count.
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


def named(ids: Sequence[str | None]) -> tuple[bytes, Int64s, Uint64s]:
    """Return ids as a block has them."""
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


class Prints:
    """The fingerprints of D documents, in the order added.

    Args:
        scheme: theirs.
        whole: supershingles are whole, of all values; else what keywords name of the stored ones.

    Cost: of the documents nothing in memory but what files are mapped; on disk some 260 bytes each where
    fingerprints were stored, 850 and 8 a word where they are made of texts.
    """

    def __init__(self, shelf: Shelf, scheme: Scheme, whole: bool) -> None:
        sketch = scheme.sketch
        self.scheme = scheme
        self.shelf = shelf
        self.whole = whole
        slots = sketch.values // sketch.group_size if whole else sketch.groups
        self.words = Column(shelf, "supershingles", np.uint64 if whole else np.uint32, slots)
        self.signatures = Column(shelf, "signatures", np.uint8, packed_size(sketch.values, sketch.bits))
        self.shingles = Column(shelf, "shingles", np.int64)
        self.digests = Column(shelf, "digests", np.uint8, DIGEST)
        self.flags = Column(shelf, "flags", np.uint8)
        self.ids = Blobs(shelf, "ids")
        self.id_hashes = Column(shelf, "ids.hashes", np.uint64)
        self.places = Column(shelf, "places", np.int64, 2)
        self.sources = Blobs(shelf, "sources")
        self._written, self._canonical = Blobs(shelf, "words"), Blobs(shelf, "tokens")
        self._facts = Column(shelf, "facts", np.uint64)
        self.failures = Failures()
        self._source: str | None = None
        self._source_count = 0

    def __len__(self) -> int:
        return len(self.flags)

    @property
    def _columns(self) -> tuple[Column, ...]:
        return (
            self.words, self.signatures, self.shingles, self.digests, self.flags, self.id_hashes, self.places
        )  # fmt: skip

    @property
    def _blobs(self) -> tuple[Blobs, ...]:
        return self.ids, self.sources, self._written, self._canonical

    @property
    def files(self) -> tuple[str, ...]:
        """The names of their files."""
        columns = (*self._columns, self._facts)
        return (*(one.name for one in columns), *(name for one in self._blobs for name in one.names))

    def add(self, block: Block) -> None:
        """Add documents."""
        self.words.append(block.words)
        self.signatures.append(block.signatures)
        self.shingles.append(block.shingles)
        self.digests.append(block.digests)
        self.flags.append(block.flags)
        self.ids.append(block.ids, block.id_sizes)
        self.id_hashes.append(_told_apart(block))
        self._place(block)
        if block.facts is not None:
            self._facts.append(block.facts)
        for blobs, said in ((self._written, block.written), (self._canonical, block.canonical)):
            if said:
                blobs.append(b"".join(said), np.fromiter(map(len, said), np.int64, len(said)))

    def _place(self, block: Block) -> None:
        numbers: list[int] = []
        for source, same in groupby(block.sources):
            if source != self._source:
                raw = source.encode("utf-8", "surrogatepass")
                self.sources.append(raw, np.array([len(raw)], np.int64))
                self._source, self._source_count = source, self._source_count + 1
            numbers += [self._source_count - 1] * len(list(same))
        self.places.append(np.column_stack((np.array(numbers, np.int64), block.lines)))

    def state(self) -> State:
        """Return what ``resume`` needs, as JSON."""
        return {
            "documents": len(self),
            "sources": self._source_count,
            "left_out": self.failures.count,
            "first": self.failures.first,
        }

    def resume(self, state: State | None) -> None:
        """Cut off what stands beyond a note; all of it without one."""
        count, sources = (state["documents"], state["sources"]) if state else (0, 0)
        for column in self._columns:
            column.cut(count)
        self.ids.cut(count)
        self.sources.cut(sources)
        for blobs in (self._written, self._canonical):
            blobs.cut(count if self.has_texts else 0)
        self._facts.cut(count if self._has_facts else 0)
        self._source_count = sources
        self._source = self.sources.piece(sources - 1).decode("utf-8", "surrogatepass") if sources else None
        if state:
            self.failures = Failures(state["left_out"], state["first"])

    @property
    def has_texts(self) -> bool:
        """Whether what documents say is kept, too: where texts decide, and are at hand."""
        return self.whole and self.scheme.decision.verify == "text"

    @property
    def texts(self) -> Texts | None:
        """What documents say, where it is kept."""
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


def _told_apart(block: Block) -> Uint64s:
    """Return the hashes of ids; of documents without one, of where they stood."""
    hashes = block.id_hashes.copy()
    for row in np.flatnonzero(block.id_sizes == 0).tolist():
        place = f"{block.sources[row]}:{block.lines[row]}".encode("utf-8", "surrogatepass")
        hashes[row] = xxhash.xxh3_64_intdigest(place)
    return hashes


@dataclass(slots=True)
class Names:
    """What documents are called: their ids; also where they stood, if another one before has the id.

    A document without an id is named by where it stood.

    Args:
        repeated: the documents with the id of an earlier one, int64, ascending.
    """

    prints: Prints
    repeated: Int64s
    _ids: Any = field(init=False)
    _also: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        self._ids = self.prints.ids.reader()
        self._also = frozenset(self.repeated.tolist())

    def __getitem__(self, document: int) -> str:
        return self.many(np.array([document]))[0]

    def many(self, documents: NDArray[np.integer]) -> list[str]:
        """Return the names of several documents."""
        documents = documents.astype(np.int64)
        found = [raw.decode("utf-8", "surrogatepass") for raw in self._ids.of(documents)]
        for row, document in enumerate(documents.tolist()):
            if not found[row]:
                found[row] = self._place(document)
            if document in self._also:
                found[row] = f"{found[row]} ({self._place(document)})"
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

    def _place(self, document: int) -> str:
        source, line = self.prints.places.read(document, document + 1)[0].tolist()
        return f"{self.prints.sources.piece(source).decode('utf-8', 'surrogatepass')}:{line}"
