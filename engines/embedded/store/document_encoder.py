"""Encode a JSON document for tantivy: columns to search, and the source.

``DocumentPreparer`` runs in the ingest workers: it analyses the texts and serializes the source of each
document, so that the single writer of an index does neither.

The source is stored apart from its top-level objects (the head). tantivy needs memory for three copies of a
source while a document is added, so a long one is compressed and stored outside, as the payload of its head.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import tantivy

from shinglefold.contracts.exclusive_writes import PreparedDocument, SourceAndHead, WordsOf
from shinglefold.documents import items, plain_json, well_formed
from shinglefold.engines.embedded.schema.catalog import Catalog, definition_for
from shinglefold.engines.embedded.schema.field_types import (
    Field,
    FieldKind,
    are_short_strings,
    is_short_keyword,
    to_index,
)
from shinglefold.engines.embedded.schema.tantivy_schema import MANY, NAMES, SOURCE, Analysis
from shinglefold.engines.embedded.store.record_files import Heads, read_head

#: A source of at least this many bytes is stored outside of tantivy; and zlib's level for it.
_LONG, _LEVEL = 1 << 21, 1
#: The types of most values of a document.
_PLAIN = frozenset({str, int, float, bool, type(None)})
_DEEPEST = 20
_SCALARS, _TEXTS = frozenset({str, int, float, bool}), frozenset({str})
#: Metadata in a document from the pipeline.
_PIPELINE_METADATA = ("_id", "_index")


class StoredSource(NamedTuple):
    """A document as JSON: ``main`` with null for each top-level object, ``head`` with these objects.

    If ``is_external``, ``main`` is compressed and stored outside of tantivy.
    """

    main: bytes
    head: bytes
    is_external: bool = False

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.main) + len(self.head)

    def load(self) -> dict[str, Any]:
        """Return the original document."""
        return parse_source(self.json()) | read_head(self.head).parts

    def json(self) -> bytes:
        """Return ``main`` uncompressed."""
        return zlib.decompress(self.main) if self.is_external else self.main

    def add_to(self, document: tantivy.Document) -> None:
        """Add ``main`` to a tantivy document, unless it is stored outside."""
        if not self.is_external:
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
    return StoredSource(zlib.compress(main, _LEVEL), _head(id_, parts), is_external=True)


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
        return StoredSource(payload, b"", is_external=True)
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


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document that is ready for ``analyse``, and the catalog with its new fields.

    ``texts`` are columns with the texts that are not analysed yet. ``words`` are the words of texts that a
    worker has analysed, by text. ``source`` and ``texts`` are not in ``document`` yet.
    """

    document: tantivy.Document
    catalog: Catalog
    source: StoredSource
    texts: list[tuple[str, str]]
    words: WordsOf

    @property
    def characters(self) -> int:
        """The characters of all texts that are not analysed yet."""
        return sum(len(text) for _, text in self.texts)


@dataclass(slots=True)
class _Walk:
    """Collects the values of a document by path, and the definitions of new fields."""

    catalog: Catalog
    values: dict[str, list[Any]] = field(default_factory=dict)
    new: dict[str, dict[str, Any]] = field(default_factory=dict)
    new_objects: dict[str, str] = field(default_factory=dict)

    def run(self, source: Mapping[str, Any]) -> None:
        self._object("", source, 0)

    def _object(self, prefix: str, source: Mapping[str, Any], depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError(f"{prefix}: objects nested deeper than {_DEEPEST}")
        by_source, values = self.catalog.by_source, self.values
        for name, value in source.items():
            # The usual cases first, because a document has dozens of values.
            if type(name) is str and (path := f"{prefix}.{name}" if prefix else name) in by_source:
                if type(value) in _SCALARS:
                    values.setdefault(path, []).append(value)
                    continue
                if type(value) is list and set(map(type, value)) == _TEXTS:
                    values.setdefault(path, []).extend(value)
                    continue
            if not isinstance(name, str) or not name:
                raise ValueError(f"{name!r} is not a valid field name")
            path = f"{prefix}.{name}" if prefix else name
            if "." in path and not all(part.strip() for part in path.split(".")):
                raise ValueError(f"{path!r} is not a valid field name")
            found = list(items(value))
            for item in found:
                self._item(path, item, depth)
            if not found and not self._is_mapped(path) and self._dynamic_of(path) == "strict":
                raise ValueError(f"the mapping is strict and has no field {path!r}")

    def _is_mapped(self, path: str) -> bool:
        catalog = self.catalog
        return any(
            path in known for known in (catalog.objects, catalog.by_source, self.new, self.new_objects)
        )

    def _item(self, path: str, item: object, depth: int) -> None:
        dynamic = self.catalog.objects.get(path) or self.new_objects.get(path)
        if dynamic is not None:
            if isinstance(item, dict) and dynamic != "disabled":
                self._object(path, item, depth + 1)
            elif dynamic != "disabled":
                raise ValueError(f"object mapping for {path!r} got the value {_short(item)}")
        elif path in self.catalog.by_source:
            self.values.setdefault(path, []).append(item)
        else:
            self._visit_unmapped(path, item, depth)

    def _visit_unmapped(self, path: str, item: object, depth: int) -> None:
        dynamic = self._dynamic_of(path)
        if dynamic == "strict":
            raise ValueError(f"the mapping is strict and has no field {path!r}")
        if dynamic in ("false", "disabled"):
            return
        if isinstance(item, dict):
            if path in self.new:
                raise ValueError(f"{path!r} is new and has a value and an object; map it first")
            self.new_objects[path] = dynamic
            self._object(path, item, depth + 1)
            return
        definition = definition_for(item, bool(self.catalog.mappings.get("date_detection", True)))
        if (first := self.new.setdefault(path, definition)) != definition:
            raise ValueError(
                f"{path!r} is new and has values of the types {first['type']} and {definition['type']}; "
                "map the field first"
            )
        self.values.setdefault(path, []).append(item)

    def _dynamic_of(self, path: str) -> str:
        """Return ``dynamic`` of the nearest object above; names with dots create objects on the way."""
        above, _, name = path.rpartition(".")
        known = self.catalog.objects.get(above) or self.new_objects.get(above)
        if known is not None:
            return known
        if above in self.catalog.by_source or above in self.new:
            raise ValueError(f"{above!r} is a value, so it can't have a field {name!r}")
        self.new_objects[above] = self._dynamic_of(above)
        return self.new_objects[above]


def prepare(
    catalog: Catalog, id_: str, source: Mapping[str, Any], prepared: PreparedDocument | None = None
) -> ParsedDocument:
    """Return a document ready for ``analyse``.

    Args:
        prepared: the part of it that a worker has prepared.

    Raises:
        ValueError: a value does not fit its mapping, or the source is not JSON.
    """
    given = PreparedDocument({}) if prepared is None else prepared
    written = encode_source(id_, source, given.source_and_head)
    walk = _Walk(catalog)
    walk.run(source)
    if walk.new:
        catalog = catalog.with_fields(walk.new)
    document = tantivy.Document()
    document.add_text("_id", id_)
    names: dict[str, None] = {}
    texts: list[tuple[str, str]] = []
    for path, values in walk.values.items():
        for mapped in catalog.by_source[path]:
            # As on servers, what is only stored does not exist for searches.
            exists = bool(mapped.column) or mapped.doc_values
            if len(values) == 1 and is_short_keyword(mapped, values[0]):
                if mapped.column:
                    document.add_text(mapped.column, values[0])
                if exists:
                    names[mapped.path] = None
                continue
            count = _add(document, mapped, values, texts)
            if count and exists:
                names[mapped.path] = None
            if count > 1:
                document.add_text(NAMES, MANY + mapped.path)
    for name in _with_parents(tuple(names)):
        document.add_text(NAMES, name)
    return ParsedDocument(document, catalog, written, texts, given.words)


def analyse(documents: Sequence[ParsedDocument], analysis: Analysis) -> None:
    """Analyse the texts of documents in one batch, and add the words to the documents."""
    wanted = [(one, column, text) for one in documents for column, text in one.texts]
    words = analysis.column_texts([text for one, _, text in wanted if text not in one.words])
    for one, column, text in reversed(wanted):
        # Frees the text, which may be long; tantivy has a copy.
        one.document.add_text(column, one.words[text] if text in one.words else words.pop())
        # After an interrupt the rest is analysed again.
        one.texts.pop()


def indexed_values(field: Field, values: list[Any]) -> list[Any]:
    """Return the indexed forms of a field's values.

    Raises:
        ValueError: one does not fit its mapping.
    """
    if field.kind is FieldKind.KEYWORD and are_short_strings(field, values):
        return values
    try:
        return [found for value in values if (found := to_index(field, value)) is not None]
    except ValueError as error:
        raise ValueError(f"failed to parse field {field.path!r} of type {field.type!r}: {error}") from error


def _add(document: tantivy.Document, field: Field, values: list[Any], texts: list[tuple[str, str]]) -> int:
    """Add a field's values to its column, or to ``texts``, and return their number."""
    if field.kind is FieldKind.TEXT:
        found = [_text(field, value) for value in values]
        texts += [(field.column, text) for text in found if field.column]
        return len(found)
    converted = indexed_values(field, values)
    if field.kind is FieldKind.BINARY:
        return 1
    if field.column:
        add: Callable[[str, Any], None] = document.add_integer
        if field.kind is FieldKind.KEYWORD:
            add = document.add_text
        elif field.kind is FieldKind.DOUBLE:
            add = document.add_float
        # Sorted, because ascending sorts use the first value of a column.
        for value in sorted(set(converted)) if len(converted) > 1 else converted:
            add(field.column, value)
    return len(converted)


def _text(field: Field, value: object) -> str:
    return well_formed(value) if type(value) is str else str(*indexed_values(field, [value]))


@lru_cache(maxsize=4096)  # cached, because nearly all documents have the same few fields
def _with_parents(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths of values and of all objects above them, without duplicates."""
    above = (name[:at] for name in names for at, letter in enumerate(name) if letter == ".")
    return tuple(dict.fromkeys((*names, *above)))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


class DocumentPreparer:
    """Prepares documents for an index: the words of their texts, and their JSON.

    Args:
        kinds: the kinds of mapped fields, by the path of their values.
        objects: ``dynamic`` of objects by path; see ``Catalog``.
        words: returns the words of many texts.
    """

    def __init__(
        self,
        kinds: Mapping[str, frozenset[FieldKind]],
        objects: Mapping[str, str],
        words: Callable[[Sequence[str]], list[str]],
    ) -> None:
        self._kinds, self._objects, self._words = kinds, objects, words

    def __call__(self, documents: Sequence[Mapping[str, Any]]) -> list[PreparedDocument]:
        """Prepare documents, in order."""
        sources = [
            {name: value for name, value in one.items() if name not in _PIPELINE_METADATA}
            for one in documents
        ]
        texts = [list(dict.fromkeys(self._texts(source, "", self._objects[""]))) for source in sources]
        analysed = iter(self._words([text for several in texts for text in several]))
        prepared = []
        for several, source in zip(texts, sources, strict=True):
            words = {text: next(analysed) for text in several}
            prepared.append(PreparedDocument(words, source_and_head(source)))
        return prepared

    def _texts(self, value: Mapping[str, Any], above: str, dynamic: str) -> Iterator[str]:
        for name, item in value.items():
            yield from self._texts_in(item, f"{above}.{name}" if above else str(name), dynamic)

    def _texts_in(self, item: object, path: str, dynamic: str) -> Iterator[str]:
        if isinstance(item, str):
            if self._is_text(item, path, dynamic):
                yield item
        elif isinstance(item, Mapping):
            own = self._objects.get(path, dynamic)
            if own != "disabled":
                yield from self._texts(item, path, own)
        elif isinstance(item, list | tuple) and self._may_have_texts(path):
            for one in item:
                yield from self._texts_in(one, path, dynamic)

    def _may_have_texts(self, path: str) -> bool:
        """Return whether a path may hold texts, which it can't if it is mapped as another type."""
        kinds = self._kinds.get(path)
        return not kinds or FieldKind.TEXT in kinds

    def _is_text(self, item: str, path: str, dynamic: str) -> bool:
        if kinds := self._kinds.get(path):
            return FieldKind.TEXT in kinds
        return dynamic == "true" and definition_for(item, True)["type"] == "text"
