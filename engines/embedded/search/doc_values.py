"""``docvalue_fields``: single fields of a hit, every value a list, without the page they belong to."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from shinglefold.documents import values_at
from shinglefold.engines.embedded.schema.catalog import Catalog
from shinglefold.engines.embedded.schema.field_types import (
    Field,
    FieldKind,
    format_date,
    parse_date,
    to_index,
)
from shinglefold.errors import UnsupportedQuery


@dataclass(frozen=True, slots=True)
class Selection:
    """The fields to give back, those inside objects at the top level apart: they need not parse the rest."""

    in_parts: tuple[Field, ...]
    in_main: tuple[Field, ...]

    def read(self, parts: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return the values of one document by path; paths without a value are left out.

        Args:
            parts: the objects at its top level.
            source: the document; may be empty when nothing is taken ``in_main``.
        """
        found: dict[str, list[Any]] = {}
        _gather(self.in_parts, parts, found)
        _gather(self.in_main, source, found)
        return found


def select(catalog: Catalog, names: Sequence[str]) -> Selection:
    """Return the fields that names and patterns with ``*`` mean.

    Raises:
        UnsupportedQuery: a field named in full has no doc values.
    """
    chosen: dict[str, Field] = {}
    for name in names:
        if "*" in name:
            chosen |= {
                path: own
                for path, own in catalog.fields.items()
                if own.doc_values and fnmatchcase(path, name)
            }
        elif name in catalog.fields:
            chosen[name] = _with_doc_values(catalog.fields[name])
    apart = [path for path, own in chosen.items() if own.source.partition(".")[0] in catalog.objects]
    return Selection(
        tuple(chosen[path] for path in apart),
        tuple(own for path, own in chosen.items() if path not in apart),
    )


def _with_doc_values(own: Field) -> Field:
    if not own.doc_values:
        raise UnsupportedQuery(
            f"docvalue_fields: {own.path!r} ({own.type}) has no doc values; take it from _source, or map it "
            "with doc_values: true"
        )
    return own


def _gather(fields: Sequence[Field], source: Mapping[str, Any], found: dict[str, list[Any]]) -> None:
    for own in fields:
        values = values_at(source, own.source)
        if values and (shown := _shown(own, values)):
            found[own.path] = shown


def _shown(own: Field, values: list[Any]) -> list[Any]:
    """Return values as the servers show doc values: keywords once each, all in order."""
    if own.kind is FieldKind.BINARY:
        return values
    if own.kind is FieldKind.KEYWORD:
        texts = {value if type(value) is str else json.dumps(value) for value in values}
        return sorted(text for text in texts if len(text) <= own.ignore_above)
    if own.kind is FieldKind.DATE:
        return [format_date(moment) for moment in sorted(parse_date(value).first for value in values)]
    numbers = sorted(number for value in values if (number := to_index(own, value)) is not None)
    return [number == 1 for number in numbers] if own.kind is FieldKind.BOOLEAN else numbers
