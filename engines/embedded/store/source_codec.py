"""Stored sources: the JSON of a document, and separately its top-level objects (the head).

tantivy stores the source, but needs memory for three copies of it while a document is added. A long source is
compressed instead and stored outside of tantivy, as the payload of its head.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tantivy

from shinglefold.contracts.exclusive_writes import SourceAndHead
from shinglefold.documents import plain_json
from shinglefold.engines.embedded.schema.tantivy_schema import SOURCE
from shinglefold.engines.embedded.store.record_files import Heads, read_head

#: A source of at least this many bytes is stored outside of tantivy; and zlib's level for it.
_LONG, _LEVEL = 1 << 21, 1
#: The types of most values of a document.
_PLAIN = frozenset({str, int, float, bool, type(None)})


class StoredSource(NamedTuple):
    """A document as JSON: ``main`` with null for each top-level object, ``head`` with these objects.

    If ``apart``, ``main`` is compressed and stored outside of tantivy.
    """

    main: bytes
    head: bytes
    apart: bool = False

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.main) + len(self.head)

    def load(self) -> dict[str, Any]:
        """Return the original document."""
        return parse_source(self.json()) | read_head(self.head).parts

    def json(self) -> bytes:
        """Return ``main`` uncompressed."""
        return zlib.decompress(self.main) if self.apart else self.main

    def add_to(self, document: tantivy.Document) -> None:
        """Add ``main`` to a tantivy document, unless it is stored outside."""
        if not self.apart:
            document.add_bytes(SOURCE, self.main)


def encode_source(id_: str, source: Mapping[str, Any], made: SourceAndHead | None = None) -> StoredSource:
    """Return a document as JSON.

    Args:
        made: the result of ``source_and_head``, if a worker has it.

    Raises:
        ValueError: it is not JSON.
    """
    main, parts = made or _split_source(source)
    if len(main) < _LONG:
        return StoredSource(main, _head(id_, parts))
    return StoredSource(zlib.compress(main, _LEVEL), _head(id_, parts), apart=True)


def source_and_head(source: Mapping[str, Any]) -> SourceAndHead | None:
    """Return a source as JSON, split at its top level; None if it is not JSON."""
    try:
        return _split_source(source)
    except ValueError:
        # The writer tries again and reports the reason.
        return None


def _split_source(source: Mapping[str, Any]) -> SourceAndHead:
    """Return a source as JSON with null for each top-level object, and these objects.

    Raises:
        ValueError: it is not JSON.
    """
    # A name with a dot may mean a field of an object.
    try:
        parts = {
            name: value
            for name, value in source.items()
            if "." in str(name) or (type(value) not in _PLAIN and _has_object(value))
        }
    except RecursionError as error:
        raise ValueError("the source is not JSON: lists nested too deeply") from error
    return _json({**source, **dict.fromkeys(parts)}), _json(parts)


def _head(id_: str, parts: bytes) -> bytes:
    return b"[" + _json(id_) + b"," + parts + b"]"


def parse_source(main: bytes) -> dict[str, Any]:
    """Parse the JSON of a source."""
    source: dict[str, Any] = json.loads(main.decode("utf-8", "surrogatepass"))
    return source


def stored_main(searcher: tantivy.Searcher, heads: Heads, address: tantivy.DocAddress) -> bytes:
    """Return the stored source of a document as JSON, without its top-level objects."""
    return _main(searcher, heads, address).json()


def stored_source(searcher: tantivy.Searcher, heads: Heads, address: tantivy.DocAddress) -> StoredSource:
    """Return the source of a stored document."""
    (source,) = stored_sources(searcher, heads, [address])
    return source


def stored_sources(
    searcher: tantivy.Searcher, heads: Heads, addresses: Sequence[tantivy.DocAddress]
) -> list[StoredSource]:
    """Return the sources of stored documents. Cost: some 20 µs each."""
    found = heads.load(searcher, addresses)
    return [
        _main(searcher, heads, address)._replace(head=head)
        for address, head in zip(addresses, found, strict=True)
    ]


def _main(searcher: tantivy.Searcher, heads: Heads, address: tantivy.DocAddress) -> StoredSource:
    """Return a stored source without its head."""
    main = searcher.doc(address).get_first(SOURCE)
    if main is None and (payload := heads.payload(searcher, address)) is not None:
        return StoredSource(payload, b"", apart=True)
    return StoredSource(bytes(main or b"{}"), b"")


def _has_object(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list | tuple) and any(map(_has_object, value)))


def _json(value: object) -> bytes:
    if (made := plain_json(value)) is not None:
        return made
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the source is not JSON: {error}") from error
    return text.encode("utf-8", "surrogatepass")
