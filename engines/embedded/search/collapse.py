"""``collapse``: of all hits with one value of a field the first, and the others beside it on request."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import tantivy

from shinglefold.engines.embedded.schema.body_options import checked, unsupported
from shinglefold.engines.embedded.schema.field_types import Field, FieldKind
from shinglefold.engines.embedded.search.sorting import has_many
from shinglefold.engines.embedded.store.snapshots import Snapshot
from shinglefold.errors import UnsupportedQuery

_INNER = (
    "name", "from", "size", "sort", "_source", "docvalue_fields", "highlight", "stored_fields",
    "track_scores",
)  # fmt: skip
#: Hits looked through at first for each group wanted, and how many times more where these do not do.
_AHEAD, _MORE = 4, 4

Hit = TypeVar("Hit")


@dataclass(frozen=True, slots=True)
class Collapse:
    """What a request collapses by: the name of a field, and what it wants of the others of each group."""

    path: str
    inner: tuple[Mapping[str, Any], ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the lists of others."""
        return [str(one.get("name", self.path)) for one in self.inner]


def read_collapse(given: object) -> Collapse:
    """Read ``collapse`` of a search body.

    Raises:
        UnsupportedQuery: it is not valid, or two lists of others have one name.
    """
    options = checked("collapse", given, ("field", "inner_hits", "max_concurrent_group_searches"))
    if not isinstance(options.get("field"), str):
        raise UnsupportedQuery(f"collapse: expected the name of a field, got {options.get('field')!r}")
    inner = options.get("inner_hits", ())
    each = inner if isinstance(inner, list | tuple) else [inner]
    found = Collapse(options["field"], tuple(checked("inner_hits", one, _INNER) for one in each))
    if len(set(found.names)) < len(found.names):
        raise UnsupportedQuery("collapse: each of several inner_hits needs a name of its own")
    return found


def collapse_field(snapshot: Snapshot, path: str) -> Field:
    """Return the field to collapse by.

    Raises:
        UnsupportedQuery: it holds no whole numbers, or documents have several.
    """
    own = snapshot.catalog.fields.get(path)
    if own is None or own.kind is not FieldKind.LONG or not own.column:
        fields = snapshot.catalog.fields.items()
        known = [name for name, field in fields if field.kind is FieldKind.LONG and field.column]
        raise unsupported("field of whole numbers to collapse by", path, known)
    if has_many(own, snapshot):
        raise UnsupportedQuery(f"collapse by {path!r}: some documents have several values; one is needed")
    return own


def first_of_each(
    ranked: Callable[[int], tuple[int, float | None, list[Hit]]],
    values: Callable[[Sequence[Hit]], Sequence[int | None]],
    wanted: int,
) -> tuple[int, float | None, list[tuple[Hit, int | None]]]:
    """Return how many hits there are, the best score, and the first hit of so many groups, with its value.

    As on servers, hits without a value are one group.

    Args:
        ranked: returns count, best score and the first so many hits.
        values: returns the values of hits.

    Cost: reads as many hits as it takes, and one value of each.
    """
    size = max(_AHEAD * wanted, 1)
    while True:
        count, best, hits = ranked(size)
        firsts: dict[int | None, Hit] = {}
        for hit, value in zip(hits, values(hits), strict=True):
            firsts.setdefault(value, hit)
        if len(firsts) >= wanted or len(hits) >= count:
            found = [(hit, value) for value, hit in firsts.items()]
            return count, best, found[:wanted]
        size = min(size * _MORE, count)


def narrowed(query: object, path: str, value: int | None) -> dict[str, Any]:
    """Return a query for the documents of one group that another query finds, scores left as they are."""
    without = {"bool": {"must_not": [{"exists": {"field": path}}]}}
    own = without if value is None else {"term": {path: {"value": value}}}
    return {"bool": {"must": [query], "filter": [own]}}


def column_values(snapshot: Snapshot, own: Field, addresses: list[tantivy.DocAddress]) -> list[int | None]:
    """Return the value of a field for each of some places."""
    found = snapshot.searcher.fast_field_values(own.column, addresses)
    return [None if value is None else int(value) for value in found]
