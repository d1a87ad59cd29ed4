"""``sort`` and ``search_after``: a total order over what was found."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tantivy

from shinglefold.engines.embedded.context import constant
from shinglefold.engines.embedded.dates import parse_date
from shinglefold.engines.embedded.documents import indexed_values, stored_source, values_at
from shinglefold.engines.embedded.fields import TYPES, Field, Kind, to_index
from shinglefold.engines.embedded.index import Snapshot
from shinglefold.engines.embedded.options import checked, single, unsupported
from shinglefold.engines.embedded.schema import MANY, NAMES, Found, find
from shinglefold.errors import UnsupportedQuery

_OPTIONS = ("order", "missing", "unmapped_type")
_PLACES = ("_doc", "_shard_doc")


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of an order; ``missing`` is ``_last``, ``_first`` or a value to sort by instead."""

    name: str
    descending: bool
    missing: Any = "_last"
    unmapped: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One key of every hit: ``values`` as the response shows them, ``keys`` to sort by.

    ``key_of`` turns a value of a cursor into such a key.
    """

    values: Sequence[Any]
    keys: Sequence[Any]
    key_of: Callable[[Any], Any]


def read_sort(given: object, under_pit: bool) -> tuple[SortKey, ...]:
    """Read the ``sort`` of a search body; under a point in time the place in the index is the last key.

    Raises:
        UnsupportedQuery: a key or an option is not supported.
    """
    if given is None:
        return ()
    keys = [_read_key(item) for item in (given if isinstance(given, list | tuple) else [given])]
    if any(key.name == "_shard_doc" for key in keys) and not under_pit:
        raise UnsupportedQuery("sort by _shard_doc needs a point in time: open one and name it in pit")
    if under_pit and keys and not any(key.name in _PLACES for key in keys):
        keys.append(SortKey("_shard_doc", descending=False))
    return tuple(keys)


def place(address: tantivy.DocAddress) -> int:
    """Return a hit's place in the index, unique in a snapshot: what ``_doc`` and ``_shard_doc`` sort by."""
    return (address.segment_ord << 32) | address.doc


def make_column(key: SortKey, snapshot: Snapshot, query: tantivy.Query, found: Sequence[Found]) -> Column:
    """Return one key of an order for every hit.

    Raises:
        UnsupportedQuery: the field can't be sorted by.
    """
    sign = -1 if key.descending else 1
    if key.name == "_score":
        scores = [score for score, _ in found]
        return Column(scores, [sign * score for score in scores], lambda value: sign * _as_float(value))
    if key.name in _PLACES:
        places = [place(address) for _, address in found]
        return Column(
            places, [sign * number for number in places], lambda value: sign * int(_as_float(value))
        )
    own = _sortable(key, snapshot)
    if own is None:
        return Column([None] * len(found), [0] * len(found), lambda _: 0)
    if own.kind is Kind.KEYWORD:
        values: list[Any] = _strings(own, snapshot, query, found)
    else:
        values = snapshot.searcher.fast_field_values(own.column, [address for _, address in found])
    if key.descending:
        values = _with_greatest(own, snapshot, query, found, values)
    return (_keyword_column if own.kind is Kind.KEYWORD else _number_column)(key, sign, own, values)


def _read_key(item: object) -> SortKey:
    name, options = (item, {}) if isinstance(item, str) else single("sort", item)
    assert isinstance(name, str)
    if isinstance(options, str):
        options = {"order": options}
    checked(f"sort by {name}", options, _OPTIONS if name not in ("_score", *_PLACES) else ("order",))
    order = options.get("order", "desc" if name == "_score" else "asc")
    if order not in ("asc", "desc"):
        raise unsupported(f"order of sort by {name}", str(order), ("asc", "desc"))
    if options.get("unmapped_type", "long") not in TYPES:
        raise unsupported("unmapped_type", str(options["unmapped_type"]), TYPES)
    return SortKey(name, order == "desc", options.get("missing", "_last"), "unmapped_type" in options)


def _sortable(key: SortKey, snapshot: Snapshot) -> Field | None:
    own = snapshot.catalog.fields.get(key.name)
    if own is None and key.unmapped:
        return None
    if own is None:
        fields = snapshot.catalog.fields.items()
        names = [path for path, field in fields if field.kind.pool not in ("t", "") and field.column != "_id"]
        raise unsupported("field to sort by", key.name, names)
    if own.kind is Kind.TEXT:
        raise UnsupportedQuery(
            f"sort by the text field {key.name!r}: sort by a keyword, such as {key.name}.keyword"
        )
    if not own.column or own.column == "_id" or own.kind is Kind.BINARY:
        raise UnsupportedQuery(f"sort by {key.name!r}: it is only stored; sort by another field")
    return own


def _strings(
    own: Field, snapshot: Snapshot, query: tantivy.Query, found: Sequence[Found]
) -> list[str | None]:
    """Return the strings of a keyword field for every hit.

    tantivy reads numbers of given documents, but strings only while it orders by them.
    """
    if not found:
        return []
    ordered = snapshot.searcher.search(
        constant(query), len(found), count=False, order_by_field=own.column, order=tantivy.Order.Asc
    ).hits
    by_place = {place(address): value for value, address in ordered}
    return [by_place.get(place(address)) for _, address in found]


def _with_greatest(
    own: Field, snapshot: Snapshot, query: tantivy.Query, found: Sequence[Found], values: list[Any]
) -> list[Any]:
    """Return the values with the greatest instead of the least where a document has several.

    Cost: reads these documents; a column gives its first value only.
    """
    many = tantivy.Query.term_query(snapshot.schema, NAMES, MANY + own.path, "basic")
    both = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, many)])
    greatest = {}
    for _, address in find(snapshot.searcher, both, len(found))[1]:
        source = stored_source(snapshot.searcher, address).load()
        greatest[place(address)] = max(indexed_values(own, values_at(source, own.source)))
    return [greatest.get(place(hit[1]), value) for hit, value in zip(found, values, strict=True)]


def _keyword_column(key: SortKey, sign: int, own: Field, values: Sequence[str | None]) -> Column:
    filled = _filled(key, values, own)
    ranks = sorted({value for value in filled if value is not None})
    rank_of = {value: number for number, value in enumerate(ranks)}
    gap = _gap(key)

    def key_of(value: object) -> tuple[int, float]:
        if value is None:
            return gap
        text = str(value)
        # A cursor's string that no hit has stands between its neighbours.
        rank = rank_of.get(text)
        return (0, sign * (bisect_left(ranks, text) - 0.5 if rank is None else rank))

    return Column(filled, [gap if value is None else (0, sign * rank_of[value]) for value in filled], key_of)


def _number_column(key: SortKey, sign: int, own: Field, values: Sequence[Any]) -> Column:
    filled = _filled(key, values, own)
    gap = _gap(key)

    def key_of(value: object) -> tuple[int, float]:
        if value is None:
            return gap
        if own.kind is Kind.DATE and isinstance(value, str):
            return (0, sign * parse_date(value).first)
        return (0, sign * (value if isinstance(value, int | float) else _as_float(value)))

    keys = [gap if value is None else (0, sign * value) for value in filled]
    return Column(filled, keys, key_of)


def _filled(key: SortKey, values: Sequence[Any], own: Field) -> Sequence[Any]:
    if key.missing in ("_last", "_first"):
        return values
    try:
        instead = to_index(own, key.missing)
    except ValueError as error:
        raise UnsupportedQuery(f"sort by {key.name!r}: missing: {error}") from error
    return [instead if value is None else value for value in values]


def _gap(key: SortKey) -> tuple[int, float]:
    return (-1, 0) if key.missing == "_first" else (1, 0)


def _as_float(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise UnsupportedQuery(f"search_after: expected a number, got {value!r}") from None


def sort_rows(columns: Sequence[Column], found: Sequence[Found]) -> list[tuple[tuple[Any, ...], int]]:
    """Return keys and number of every hit, unsorted; the place in the index makes each row different."""
    places = [place(address) for _, address in found]
    return [(row, number) for number, row in enumerate(zip(*(c.keys for c in columns), places, strict=True))]


def cursor_keys(columns: Sequence[Column], after: Sequence[Any]) -> tuple[Any, ...]:
    """Return the keys of a cursor, to compare with those of hits."""
    return tuple(column.key_of(value) for column, value in zip(columns, after, strict=True))
