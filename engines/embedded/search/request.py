"""Read and check the body of a search, ignoring nothing in it, and order hits by its sort keys."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import tantivy

from shinglefold.documents import SourceFilter, values_at
from shinglefold.engines.embedded.schema.field_types import TYPES, Field, FieldKind, parse_date, to_index
from shinglefold.engines.embedded.schema.requests import (
    bool_option,
    check_options,
    int_option,
    single_entry,
    strings_option,
    unsupported_error,
)
from shinglefold.engines.embedded.schema.tantivy_schema import MANY, NAMES, ScoredAddress, search_top
from shinglefold.engines.embedded.search.highlight import HighlightOptions, read_highlight
from shinglefold.engines.embedded.search.queries import constant
from shinglefold.engines.embedded.store.document_encoder import indexed_values, stored_source
from shinglefold.engines.embedded.store.snapshots import GAP, Places, Snapshot, SortColumn, shown_value
from shinglefold.errors import UnsupportedQuery

_OPTIONS = ("order", "missing", "unmapped_type")
_PLACES = ("_doc", "_shard_doc")
_KNOWN = (
    "query", "from", "size", "sort", "search_after", "_source", "docvalue_fields", "stored_fields",
    "highlight", "track_total_hits", "track_scores", "pit", "aggs", "aggregations", "collapse",
)  # fmt: skip
_INNER_HITS = (
    "name", "from", "size", "sort", "_source", "docvalue_fields", "highlight", "stored_fields",
    "track_scores",
)  # fmt: skip
_NO_AGGREGATIONS: Mapping[str, Any] = MappingProxyType({})
_NUMBERS = (FieldKind.LONG, FieldKind.DATE, FieldKind.BOOLEAN, FieldKind.DOUBLE)
#: The wider types in which servers compare values of these types.
_COMPARED_AS = {"half_float": "float", "byte": "integer", "short": "integer"}
#: The precision of these comparisons by type; other types are compared as 64-bit integers.
_PRECISION = {"double": np.float64, "float": np.float32, "half_float": np.float32}
_INFINITE = {"Infinity": inf, "-Infinity": -inf}
_TIES = ([("_shard_doc", False)], [("_doc", False)])


@dataclass(frozen=True, slots=True)
class SortKey:
    """A sort key; ``missing`` is ``_last``, ``_first`` or a value to sort by instead."""

    name: str
    descending: bool
    missing: Any = "_last"
    unmapped_type: str = ""


def read_sort(given: object, under_pit: bool) -> tuple[SortKey, ...]:
    """Read the ``sort`` of a search body. Under a point in time the position in the index is the last key.

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
    """Return a hit's position, unique in a snapshot: the value of ``_doc`` and ``_shard_doc``."""
    return (address.segment_ord << 32) | address.doc


def address_at(number: int) -> tantivy.DocAddress:
    """Return the address of the document at a position."""
    return tantivy.DocAddress(number >> 32, number & 0xFFFFFFFF)


def make_column(
    key: SortKey, snapshot: Snapshot, query: tantivy.Query, found: Sequence[ScoredAddress]
) -> SortColumn:
    """Return a sort key's values for every hit.

    Raises:
        UnsupportedQuery: the field can't be sorted by.
    """
    if key.name == "_score":
        return _column(key, np.array([score for score, _ in found], np.float64), _as_float)
    if key.name in _PLACES:
        sign = _sign(key)
        return SortColumn(sign * places(found), None, sign, _gap(key), lambda value: int(_as_float(value)))
    field = _sort_field(key, snapshot)
    if not field.column:
        return _field_column(key, field, [None] * len(found))
    if field.kind is FieldKind.KEYWORD:
        values: list[Any] = _strings(field, snapshot, query, found)
    else:
        values = snapshot.searcher.fast_field_values(field.column, [address for _, address in found])
    if key.descending and is_multivalued(field, snapshot):
        values = _with_greatest(field, snapshot, query, found, values)
    return _field_column(key, field, values)


def tantivy_orders(keys: Sequence[SortKey], snapshot: Snapshot) -> tuple[Field | None, bool] | None:
    """Return the field (None for positions) and direction if tantivy can sort by itself, else None.

    tantivy sorts by the first values of one column, then by position, with missing values last.
    """
    first, *rest = keys
    if any(key.name not in _PLACES or key.descending for key in rest):
        return None
    if first.name in _PLACES:
        return None if first.descending else (None, False)
    if first.name == "_score" or first.missing != "_last":
        return None
    field = _sort_field(first, snapshot)
    if not field.column or (first.descending and is_multivalued(field, snapshot)):
        return None
    return field, first.descending


def is_multivalued(field: Field, snapshot: Snapshot) -> bool:
    """Return whether any document has several values for a field."""
    return snapshot.searcher.doc_freq(NAMES, MANY + field.path) > 0


def places(found: Sequence[ScoredAddress]) -> Places:
    """Return the positions of hits in the index."""
    return np.fromiter((place(address) for _, address in found), np.int64, len(found))


def _read_key(item: object) -> SortKey:
    name, options = (item, {}) if isinstance(item, str) else single_entry("sort", item)
    assert isinstance(name, str)
    if isinstance(options, str):
        options = {"order": options}
    check_options(f"sort by {name}", options, _OPTIONS if name not in ("_score", *_PLACES) else ("order",))
    order = options.get("order", "desc" if name == "_score" else "asc")
    if order not in ("asc", "desc"):
        raise unsupported_error(f"order of sort by {name}", str(order), ("asc", "desc"))
    if options.get("unmapped_type", "long") not in TYPES:
        raise unsupported_error("unmapped_type", str(options["unmapped_type"]), TYPES)
    return SortKey(name, order == "desc", options.get("missing", "_last"), options.get("unmapped_type", ""))


def _sort_field(key: SortKey, snapshot: Snapshot) -> Field:
    """Return the field of a sort key; one without a column if it is not mapped, so no document has it."""
    found = snapshot.catalog.fields.get(key.name)
    if found is None and key.unmapped_type:
        return Field(key.name, key.name, key.unmapped_type, TYPES[key.unmapped_type], "")
    if found is None:
        fields = snapshot.catalog.fields.items()
        names = [path for path, field in fields if field.kind.pool not in ("t", "") and field.has_order]
        raise unsupported_error("field to sort by", key.name, names)
    if found.kind is FieldKind.TEXT:
        keyword = f"{key.name}.keyword"
        how = "it has no keyword multi-field, sort by another field"
        if keyword in snapshot.catalog.fields:
            how = f"sort by a keyword, such as {keyword}"
        raise UnsupportedQuery(f"sort by the text field {key.name!r}: {how}")
    if found.searched_only:
        raise UnsupportedQuery(
            f"sort by {key.name!r}: it was mapped with doc_values: false, so it can only be searched"
        )
    if not found.has_order or found.kind is FieldKind.BINARY:
        raise UnsupportedQuery(f"sort by {key.name!r}: it is only stored; sort by another field")
    return found


def _strings(
    field: Field, snapshot: Snapshot, query: tantivy.Query, found: Sequence[ScoredAddress]
) -> list[str | None]:
    """Return the string of a keyword field for every hit.

    tantivy reads the numbers of given documents, but returns strings only if it sorts by them.
    """
    if not found:
        return []
    ordered = snapshot.searcher.search(
        constant(query), len(found), count=False, order_by_field=field.column, order=tantivy.Order.Asc
    ).hits
    by_place = {place(address): value for value, address in ordered}
    return [by_place.get(place(address)) for _, address in found]


def _with_greatest(
    field: Field, snapshot: Snapshot, query: tantivy.Query, found: Sequence[ScoredAddress], values: list[Any]
) -> list[Any]:
    """Return the values, with the greatest instead of the least for documents with several.

    Cost: reads these documents, because a column returns its first value only.
    """
    many = tantivy.Query.term_query(snapshot.schema, NAMES, MANY + field.path, "basic")
    both = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, many)])
    greatest = {}
    for _, address in search_top(snapshot.searcher, both, len(found))[1]:
        source = stored_source(snapshot.searcher, snapshot.heads, address).load()
        greatest[place(address)] = max(indexed_values(field, values_at(source, field.source)))
    return [greatest.get(place(hit[1]), value) for hit, value in zip(found, values, strict=True)]


def _field_column(key: SortKey, field: Field, values: Sequence[Any]) -> SortColumn:
    instead = missing_value(key, field)
    values = [instead if value is None else value for value in values]
    if field.kind not in _NUMBERS:
        there = np.fromiter((value is not None for value in values), bool, len(values))
        known = [value for value in values if value is not None]
        distinct = sorted(set(known))
        rank_of = {value: number for number, value in enumerate(distinct)}
        ranks = np.full(len(values), _gap(key))
        ranks[there] = _sign(key) * np.fromiter((rank_of[value] for value in known), np.int64, len(known))
        return SortColumn(ranks, distinct, _sign(key), _gap(key), str)
    return _column(key, np.array(values, _PRECISION.get(field.type, np.int64)), _cursor_parser(key, field))


def _column(key: SortKey, known: npt.NDArray[Any], number: Callable[[Any], Any]) -> SortColumn:
    """Return the sort column of numbers."""
    distinct, inverse = np.unique(known, return_inverse=True)
    ranks = _sign(key) * inverse.astype(np.int64)
    return SortColumn(ranks, cast(Sequence[Any], distinct), _sign(key), _gap(key), number)


def field_value(value: Any, field: Field) -> Any:  # noqa: ANN401 - what the field holds
    """Return a value of a field as a sort value of the response."""
    return shown_value(_PRECISION[field.type](value) if field.type in _PRECISION else value)


def _cursor_parser(key: SortKey, field: Field) -> Callable[[Any], Any]:
    def number(value: object) -> Any:  # noqa: ANN401
        if value is None:
            value = missing_value(key, field)
        if field.kind is FieldKind.DOUBLE:
            with np.errstate(over="ignore"):
                return _PRECISION[field.type](_INFINITE.get(str(value)) or _as_float(value))
        if field.kind is FieldKind.DATE and isinstance(value, str):
            try:
                return parse_date(value, field.format).first
            except ValueError as error:
                raise UnsupportedQuery(f"search_after: {error}") from error
        return value if isinstance(value, int | float) else _as_float(value)

    return number


def missing_value(key: SortKey, field: Field) -> Any:  # noqa: ANN401 - what the field holds
    """Return the sort value of documents without a value, as on servers; None for strings.

    Raises:
        UnsupportedQuery: the given value is not of the field's type.
    """
    if key.missing not in ("_last", "_first"):
        try:
            return to_index(replace(field, type=_COMPARED_AS.get(field.type, field.type)), key.missing)
        except ValueError as error:
            raise UnsupportedQuery(f"sort by {key.name!r}: missing: {error}") from error
    greatest = (key.missing == "_last") != key.descending
    if field.kind not in _NUMBERS:
        return None
    if field.kind is FieldKind.DOUBLE:
        return inf if greatest else -inf
    limit = 2 ** (31 if field.type in ("byte", "short", "integer") else 63)
    return limit - 1 if greatest else -limit


def _gap(key: SortKey) -> int:
    return -GAP if key.missing == "_first" else GAP


def _sign(key: SortKey) -> int:
    return -1 if key.descending else 1


def _as_float(value: object) -> float:
    try:
        if isfinite(number := float(str(value))):
            return number
    except ValueError:
        pass
    raise UnsupportedQuery(f"search_after: expected a number, got {value!r}")


def read_source_filter(given: object) -> SourceFilter:
    """Read the ``_source`` of a search body.

    Raises:
        UnsupportedQuery: it is not valid.
    """
    if isinstance(given, bool):
        return SourceFilter(wanted=given)
    if not isinstance(given, Mapping):
        return SourceFilter(includes=strings_option("_source", given))
    check_options("_source", given, ("includes", "excludes"))
    includes, excludes = (
        strings_option(f"_source {name}", given.get(name, ())) for name in ("includes", "excludes")
    )
    return SourceFilter(True, includes, excludes)


@dataclass(frozen=True, slots=True)
class Collapse:
    """``collapse`` of a request: the name of a field, and the ``inner_hits`` of each group."""

    path: str
    inner: tuple[Mapping[str, Any], ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the ``inner_hits``."""
        return [str(one.get("name", self.path)) for one in self.inner]


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a search.

    ``after`` is the cursor of ``search_after``. ``total`` is True for an exact total, False for none, or the
    number up to which it is exact. ``bare`` leaves out ``_id`` and source (``stored_fields: "_none_"``).
    """

    query: Any
    start: int
    size: int
    sort: tuple[SortKey, ...]
    after: tuple[Any, ...] | None
    source: SourceFilter
    docvalues: tuple[str, ...]
    bare: bool
    highlight: HighlightOptions | None
    total: bool | int
    track_scores: bool
    aggregations: Mapping[str, Any]
    collapse: Collapse | None = None

    @property
    def scored(self) -> bool:
        """Whether hits have scores: not if they are sorted only by other keys."""
        return not self.sort or self.track_scores or any(key.name == "_score" for key in self.sort)

    @property
    def by_rank(self) -> bool:
        """Whether the order is that of tantivy: by score, then by position in the index."""
        names = [(key.name, key.descending) for key in self.sort]
        return not names or (names[0] == ("_score", True) and names[1:] in ([], *_TIES))


def read_request(body: Mapping[str, Any], under_pit: bool) -> Request:
    """Read a search body.

    Raises:
        UnsupportedQuery: something in it is not supported, or not valid.
    """
    check_options("search", body, _KNOWN)
    sort = read_sort(body.get("sort"), under_pit)
    after = _after(body, sort)
    start = int_option("from", body.get("from", 0))
    if after is not None and start:
        raise UnsupportedQuery("from can't be used with search_after; leave it out")
    bare = _bare(body)
    return Request(
        query=body.get("query", {"match_all": {}}),
        start=start,
        size=int_option("size", body.get("size", 10)),
        sort=sort,
        after=after,
        source=read_source_filter(body.get("_source", not bare)),
        docvalues=_docvalues(body.get("docvalue_fields", ())),
        bare=bare,
        highlight=read_highlight(body["highlight"]) if "highlight" in body else None,
        total=_total(body.get("track_total_hits", True)),
        track_scores=bool_option("track_scores", body.get("track_scores", False)),
        aggregations=_aggregations(body),
        collapse=_collapse(body),
    )


def _after(body: Mapping[str, Any], sort: tuple[SortKey, ...]) -> tuple[Any, ...] | None:
    given = body.get("search_after")
    if given is None:
        return None
    if not isinstance(given, list | tuple) or len(given) != len(sort) or not sort:
        raise UnsupportedQuery(
            f"search_after: expected the last hit's sort values, one for each of the {len(sort)} sort keys, "
            f"got {given!r}"
        )
    return tuple(given)


def _collapse(body: Mapping[str, Any]) -> Collapse | None:
    if "collapse" not in body:
        return None
    if body.get("search_after") is not None:
        raise UnsupportedQuery("collapse can't be used with search_after; page with from and size")
    options = check_options(
        "collapse", body["collapse"], ("field", "inner_hits", "max_concurrent_group_searches")
    )
    if not isinstance(options.get("field"), str):
        raise UnsupportedQuery(f"collapse: expected the name of a field, got {options.get('field')!r}")
    inner = options.get("inner_hits", ())
    each = inner if isinstance(inner, list | tuple) else [inner]
    found = Collapse(options["field"], tuple(check_options("inner_hits", one, _INNER_HITS) for one in each))
    if len(set(found.names)) < len(found.names):
        raise UnsupportedQuery("collapse: each of several inner_hits needs a name of its own")
    return found


def _bare(body: Mapping[str, Any]) -> bool:
    if "stored_fields" not in body:
        return False
    if strings_option("stored_fields", body["stored_fields"]) != ("_none_",):
        raise UnsupportedQuery('stored_fields: only "_none_" is supported; take fields from _source instead')
    if body.get("_source"):
        raise UnsupportedQuery(
            'stored_fields "_none_" leaves out the source; leave out _source, or give false'
        )
    return True


def _docvalues(given: object) -> tuple[str, ...]:
    items = given if isinstance(given, list | tuple) else [given]
    names: list[str] = []
    for item in items:
        if isinstance(item, Mapping):
            names.extend(
                strings_option(
                    "docvalue_fields", check_options("docvalue_fields", item, ("field",)).get("field")
                )
            )
        else:
            names.extend(strings_option("docvalue_fields", item))
    return tuple(names)


def _total(given: object) -> bool | int:
    return given if isinstance(given, bool) else int_option("track_total_hits", given)


def _aggregations(body: Mapping[str, Any]) -> Mapping[str, Any]:
    given = body.get("aggs", body.get("aggregations", _NO_AGGREGATIONS))
    if not isinstance(given, Mapping):
        raise UnsupportedQuery(f"aggs: expected an object, got {given!r}")
    return given
