"""A JSON document as tantivy keeps it: columns to search, and the source to give back.

``DocumentPreparer`` runs in the ingest workers: it analyses the texts and serializes the source of each
document, so that the single writer of an index does neither.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import tantivy

from shinglefold.contracts.exclusive_writes import PreparedDocument, WordsOf
from shinglefold.documents import items
from shinglefold.engines.embedded.schema.analysis import Analysis
from shinglefold.engines.embedded.schema.catalog import Catalog
from shinglefold.engines.embedded.schema.field_types import (
    Field,
    FieldKind,
    are_short_strings,
    is_short_keyword,
    to_index,
    well_formed,
)
from shinglefold.engines.embedded.schema.mapping import definition_for
from shinglefold.engines.embedded.schema.tantivy_schema import MANY, NAMES
from shinglefold.engines.embedded.store.source_codec import StoredSource, make_source, source_and_head

_DEEPEST = 20
#: Metadata of the engine; no field may have such a name.
_METADATA = frozenset({"_id", "_index", "_source"})
_SCALARS, _TEXTS = frozenset({str, int, float, bool}), frozenset({str})


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document to be written, without its source and ``texts``, and the catalog with its new fields.

    ``texts``: columns and the texts still to be analysed for them. ``words``: the words of some texts, by
    text.
    """

    document: tantivy.Document
    catalog: Catalog
    source: StoredSource
    texts: list[tuple[str, str]]
    words: WordsOf

    @property
    def characters(self) -> int:
        """The characters of all texts still to be analysed."""
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
        by_source, values = self.catalog.by_source, self.values
        for name, value in source.items():
            # The usual case first: a document has dozens of values.
            if type(name) is str and (path := f"{prefix}.{name}" if prefix else name) in by_source:
                if type(value) in _SCALARS:
                    values.setdefault(path, []).append(value)
                    continue
                if type(value) is list and set(map(type, value)) == _TEXTS:
                    values.setdefault(path, []).extend(value)
                    continue
            if not isinstance(name, str) or not name.strip(".") or ".." in name:
                raise ValueError(f"{name!r} is no name for a field")
            path = f"{prefix}.{name}" if prefix else name
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
        """Return ``dynamic`` of the nearest object above; names with dots create objects on the way."""
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
    made: PreparedDocument | None = None,
) -> Prepared:
    """Return a document ready for ``analyse``.

    Args:
        made: of it already.

    Raises:
        ValueError: a value does not fit its mapping, or the source is no JSON.
    """
    ready = PreparedDocument({}) if made is None else made
    written = make_source(id, source, ready.source_and_head)
    walk = _Walk(catalog)
    walk.run(source)
    if walk.new:
        catalog = catalog.grown(walk.new)
    document = tantivy.Document()
    document.add_text("_id", id)
    names: dict[str, None] = {}
    texts: list[tuple[str, str]] = []
    for path, values in walk.values.items():
        for own in catalog.by_source[path]:
            if len(values) == 1 and is_short_keyword(own, values[0]):
                if own.column:
                    document.add_text(own.column, values[0])
                names[own.path] = None
                continue
            count = _add(document, own, values, texts)
            if count:
                names[own.path] = None
            if count > 1:
                document.add_text(NAMES, MANY + own.path)
    for name in _with_parents(tuple(names)):
        document.add_text(NAMES, name)
    return Prepared(document, catalog, written, texts, ready.words)


def analyse(documents: Sequence[Prepared], analysis: Analysis) -> None:
    """Add the words of their texts to documents, in one batch to share numpy's cost per call."""
    wanted = [(one, column, text) for one in documents for column, text in one.texts]
    words = analysis.column_texts([text for one, _, text in wanted if text not in one.words])
    for one, column, text in reversed(wanted):
        # Released at once: tantivy has a copy, and the text may be long.
        one.document.add_text(column, one.words[text] if text in one.words else words.pop())
        # After an interrupt the rest is analysed again.
        one.texts.pop()


def indexed_values(own: Field, values: list[Any]) -> list[Any]:
    """Return the values to index for a field, all of the type of its column.

    Raises:
        ValueError: one does not fit its mapping.
    """
    if own.kind is FieldKind.KEYWORD and are_short_strings(own, values):
        return values
    try:
        return [found for value in values if (found := to_index(own, value)) is not None]
    except ValueError as error:
        raise ValueError(f"failed to parse field {own.path!r} of type {own.type!r}: {error}") from error


def _add(document: tantivy.Document, own: Field, values: list[Any], texts: list[tuple[str, str]]) -> int:
    """Add a field's values to its column, or to ``texts`` for analysis; return their number."""
    if own.kind is FieldKind.TEXT:
        found = [_text(own, value) for value in values]
        texts += [(own.column, text) for text in found if own.column]
        return len(found)
    converted = indexed_values(own, values)
    if own.kind is FieldKind.BINARY:
        return 1
    if own.column:
        add: Callable[[str, Any], None] = document.add_integer
        if own.kind is FieldKind.KEYWORD:
            add = document.add_text
        elif own.kind is FieldKind.DOUBLE:
            add = document.add_float
        # Sorted, because ascending sorts use the first value of a column.
        for value in sorted(set(converted)) if len(converted) > 1 else converted:
            add(own.column, value)
    return len(converted)


def _text(own: Field, value: object) -> str:
    return well_formed(value) if type(value) is str else str(*indexed_values(own, [value]))


@lru_cache(maxsize=4096)  # the same few fields in nearly every document
def _with_parents(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths of values and of all objects above them, without duplicates."""
    above = (name[:at] for name in names for at, letter in enumerate(name) if letter == ".")
    return tuple(dict.fromkeys((*names, *above)))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


#: Metadata beside the fields of a document from the pipeline.
_BESIDE = ("_id", "_index")


class DocumentPreparer:
    """Makes the words of the texts that an index searches, and the JSON that it stores.

    Args:
        kinds: the kinds of the fields by the path of their values, as far as they are mapped.
        objects: how objects take new fields, by path; see ``Catalog``.
        words: makes the words of many texts at once.
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
        fields = [{name: value for name, value in one.items() if name not in _BESIDE} for one in documents]
        texts = [list(dict.fromkeys(self._texts(own, "", self._objects[""]))) for own in fields]
        made = iter(self._words([text for several in texts for text in several]))
        words: Iterator[WordsOf] = ({text: next(made) for text in several} for several in texts)
        return [PreparedDocument(said, source_and_head(own)) for said, own in zip(words, fields, strict=True)]

    def _texts(self, value: Mapping[str, Any], above: str, manner: str) -> Iterator[str]:
        for name, item in value.items():
            yield from self._of(item, f"{above}.{name}" if above else str(name), manner)

    def _of(self, item: object, path: str, manner: str) -> Iterator[str]:
        if isinstance(item, str):
            if self._is_text(item, path, manner):
                yield item
        elif isinstance(item, Mapping):
            own = self._objects.get(path, manner)
            if own != "disabled":
                yield from self._texts(item, path, own)
        elif isinstance(item, list | tuple) and self._may_have_texts(path):
            for one in item:
                yield from self._of(one, path, manner)

    def _may_have_texts(self, path: str) -> bool:
        """Return whether a path may hold texts: it does not if it is mapped as something else."""
        kinds = self._kinds.get(path)
        return not kinds or FieldKind.TEXT in kinds

    def _is_text(self, item: str, path: str, manner: str) -> bool:
        if kinds := self._kinds.get(path):
            return FieldKind.TEXT in kinds
        return manner == "true" and definition_for(item, True)["type"] == "text"
