"""A JSON document as tantivy keeps it: columns to search, and the source to give back."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import tantivy

from shinglefold.engines.embedded.analysis import Analysis
from shinglefold.engines.embedded.catalog import Catalog
from shinglefold.engines.embedded.fields import Field, Indexed, Kind, are_short_strings, to_index
from shinglefold.engines.embedded.heads import Heads, read_head
from shinglefold.engines.embedded.mapping import definition_for
from shinglefold.engines.embedded.schema import MANY, NAMES, SOURCE
from shinglefold.source_values import items

_DEEPEST = 20
#: What the engine itself calls so.
_METADATA = frozenset({"_id", "_index", "_source"})
_SCALARS = frozenset({str, int, float, bool})
_NO_WORDS: Mapping[str, str] = MappingProxyType({})


class Source(NamedTuple):
    """A document as JSON: without the objects at its top level (null in their places), and its head."""

    main: bytes
    head: bytes

    def load(self) -> dict[str, Any]:
        """Return the document as it was given."""
        source: dict[str, Any] = json.loads(self.main.decode("utf-8", "surrogatepass"))
        return source | read_head(self.head).parts


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document ready to be written but for head and ``texts``, and the catalog grown by what was new in it.

    ``texts``: columns, and the text each is to have the words of, none once it has. ``words``: of some of
    them, by text.
    """

    document: tantivy.Document
    catalog: Catalog
    source: Source
    texts: list[tuple[str, str]]
    words: Mapping[str, str]

    @property
    def characters(self) -> int:
        """How much there is to be held until it is written."""
        return sum(len(text) for _, text in self.texts)


@dataclass(slots=True)
class _Walk:
    """The values of a document by path, and the definitions of fields seen for the first time."""

    catalog: Catalog
    values: dict[str, list[Any]] = field(default_factory=dict)
    new: dict[str, dict[str, Any]] = field(default_factory=dict)
    new_objects: dict[str, str] = field(default_factory=dict)

    def run(self, source: Mapping[str, Any]) -> None:
        self._object("", source, 0)

    def _object(self, prefix: str, source: Mapping[str, Any], depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError(f"{prefix}: objects nested deeper than {_DEEPEST}")
        for name, value in source.items():
            if not isinstance(name, str) or not name.strip(".") or ".." in name:
                raise ValueError(f"{name!r} is no name for a field")
            path = f"{prefix}.{name}" if prefix else name
            # The usual case first, as each document has some dozens of values.
            if path in self.catalog.by_source and (plain := _plain(value)):
                self.values.setdefault(path, []).extend(plain)
                continue
            for item in items(value):
                self._item(path, item, depth)

    def _item(self, path: str, item: object, depth: int) -> None:
        manner = self.catalog.objects.get(path) or self.new_objects.get(path)
        if manner is not None:
            if isinstance(item, dict) and manner != "disabled":
                self._object(path, item, depth + 1)
            elif manner != "disabled":
                raise ValueError(f"object mapping for {path!r} got the value {_short(item)}")
        elif path in self.catalog.by_source or path in self.new:
            self.values.setdefault(path, []).append(item)
        else:
            self._unmapped(path, item, depth)

    def _unmapped(self, path: str, item: object, depth: int) -> None:
        if path in _METADATA:
            raise ValueError(f"{path!r} is no field of a document: it stands beside it")
        dynamic = self._manner(path)
        if dynamic == "strict":
            raise ValueError(f"mapping is strict, and there is no field {path!r} in it")
        if dynamic == "false":
            return
        if isinstance(item, dict):
            self.new_objects[path] = dynamic
            self._object(path, item, depth + 1)
            return
        self.new[path] = definition_for(item, bool(self.catalog.mappings.get("date_detection", True)))
        self.values.setdefault(path, []).append(item)

    def _manner(self, path: str) -> str:
        """Return how the nearest object above takes new fields; names with dots make objects on the way."""
        above, _, name = path.rpartition(".")
        known = self.catalog.objects.get(above) or self.new_objects.get(above)
        if known is not None:
            return known
        if above in self.catalog.by_source or above in self.new:
            raise ValueError(f"{above!r} is a value, so it can't have a field {name!r}")
        self.new_objects[above] = self._manner(above)
        return self.new_objects[above]


def prepare(
    catalog: Catalog,
    id: str,  # noqa: A002
    source: Mapping[str, Any],
    words: Mapping[str, str] = _NO_WORDS,
) -> Prepared:
    """Return a document ready for ``analyse``.

    Args:
        words: of texts in it, by text, as far as they are made.

    Raises:
        ValueError: a value does not fit its mapping, or the source is no JSON.
    """
    written = _split(id, source)
    walk = _Walk(catalog)
    walk.run(source)
    if walk.new:
        catalog = catalog.grown(walk.new)
    document = tantivy.Document()
    document.add_text("_id", id)
    document.add_bytes(SOURCE, written.main)
    names: set[str] = set()
    texts: list[tuple[str, str]] = []
    for path, values in walk.values.items():
        for own in catalog.by_source[path]:
            count = _add(document, own, values, texts)
            if count:
                names.add(own.path)
            if count > 1:
                document.add_text(NAMES, MANY + own.path)
    for name in names.union(*map(_parents, names)):
        document.add_text(NAMES, name)
    return Prepared(document, catalog, written, texts, words)


def analyse(documents: Iterable[Prepared], analysis: Analysis) -> None:
    """Give documents the words of their texts: of many at once, as each alone has numpy's cost a call."""
    wanted = [(one, column, text) for one in documents for column, text in one.texts]
    words = analysis.column_texts([text for one, _, text in wanted if text not in one.words])
    for one, column, text in reversed(wanted):
        made = one.words.get(text)
        # Let go of at once: tantivy has a copy, and a long text weighs as much in each.
        one.document.add_text(column, words.pop() if made is None else made)
        # Whoever is interrupted begins again with the rest.
        one.texts.pop()


def stored_main(searcher: tantivy.Searcher, address: tantivy.DocAddress) -> bytes:
    """Return the stored source of a document without the objects at its top level."""
    main = searcher.doc(address).get_first(SOURCE)
    return bytes(main or b"{}")


def stored_source(searcher: tantivy.Searcher, heads: Heads, address: tantivy.DocAddress) -> Source:
    """Return the source of a stored document."""
    (source,) = stored_sources(searcher, heads, [address])
    return source


def stored_sources(
    searcher: tantivy.Searcher, heads: Heads, addresses: Sequence[tantivy.DocAddress]
) -> list[Source]:
    """Return the sources of stored documents. Cost: some 20 µs each."""
    mains = [stored_main(searcher, address) for address in addresses]
    return [Source(*parts) for parts in zip(mains, heads.load(searcher, addresses), strict=True)]


def indexed_values(own: Field, values: list[Any]) -> list[Indexed]:
    """Return what is indexed of a document's values for a field.

    Raises:
        ValueError: one does not fit its mapping.
    """
    if own.kind is Kind.KEYWORD and are_short_strings(own, values):
        return values
    try:
        return [found for value in values if (found := to_index(own, value)) is not None]
    except ValueError as error:
        raise ValueError(f"failed to parse field {own.path!r} of type {own.type!r}: {error}") from error


def _split(id: str, source: Mapping[str, Any]) -> Source:  # noqa: A002
    # Whatever a path with a dot may lead to.
    try:
        parts = {name: value for name, value in source.items() if "." in str(name) or _has_object(value)}
    except RecursionError as error:
        raise ValueError("the source is no JSON: lists nested too deeply") from error
    return Source(_json({**source, **dict.fromkeys(parts)}), _json([id, parts]))


def _has_object(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list | tuple) and any(map(_has_object, value)))


def _json(value: object) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the source is no JSON: {error}") from error
    return text.encode("utf-8", "surrogatepass")


def _add(document: tantivy.Document, own: Field, values: list[Any], texts: list[tuple[str, str]]) -> int:
    """Add a field's values to its column, or to ``texts`` if they want analysis; return their number."""
    converted = indexed_values(own, values)
    if own.kind is Kind.BINARY:
        return 1
    if own.column and own.kind is Kind.TEXT:
        texts += [(own.column, str(value)) for value in converted]
    elif own.column:
        # In order, so that the first value of a column is the least: what ascending sorts go by.
        for value in sorted(set(converted)):
            _add_value(document, own, value)
    return len(converted)


def _add_value(document: tantivy.Document, own: Field, value: Indexed) -> None:
    if isinstance(value, str):
        document.add_text(own.column, value)
    elif isinstance(value, float):
        document.add_float(own.column, value)
    else:
        document.add_integer(own.column, value)


def _plain(value: object) -> Sequence[Any]:
    """Return the values of a field that are strings and numbers; none where others are among them."""
    if type(value) is list:
        return value if all(type(item) is str for item in value) else ()
    return (value,) if type(value) in _SCALARS else ()


@lru_cache(maxsize=4096)  # the same few fields in every document
def _parents(name: str) -> tuple[str, ...]:
    parts = name.split(".")
    return tuple(".".join(parts[:count]) for count in range(1, len(parts)))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
