"""Group hits by the values of a field: ``collapse`` and ``aggs``."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import tantivy

from shinglefold.engines.embedded.schema.field_types import Field, FieldKind
from shinglefold.engines.embedded.schema.requests import (
    check_options,
    int_option,
    single_entry,
    unsupported_error,
)
from shinglefold.engines.embedded.schema.tantivy_schema import search_top
from shinglefold.engines.embedded.search.request import is_multivalued
from shinglefold.engines.embedded.store.snapshots import Snapshot
from shinglefold.errors import UnsupportedQuery

#: How many hits are read at first for each group of the page; the factor by which more are read if they are
#: too few.
_AHEAD, _MORE = 4, 4

Hit = TypeVar("Hit")


def collapse_field(snapshot: Snapshot, path: str) -> Field:
    """Return the field to collapse by.

    Raises:
        UnsupportedQuery: it is not an integer field, or documents have several values.
    """
    found = snapshot.catalog.fields.get(path)
    if found is None or found.kind is not FieldKind.LONG or not found.column:
        fields = snapshot.catalog.fields.items()
        known = [name for name, field in fields if field.kind is FieldKind.LONG and field.column]
        raise unsupported_error("field of whole numbers to collapse by", path, known)
    if is_multivalued(found, snapshot):
        raise UnsupportedQuery(f"collapse by {path!r}: some documents have several values; one is needed")
    return found


def first_of_each(
    ranked: Callable[[int], tuple[int, float | None, list[Hit]]],
    values: Callable[[Sequence[Hit]], Sequence[int | None]],
    wanted: int,
) -> tuple[int, float | None, list[tuple[Hit, int | None]]]:
    """Return the number of hits, the best score, and the first hit of each group with its value.

    As on servers, hits without a value are one group.

    Args:
        ranked: returns the number of hits, the best score and the given number of hits.
        values: returns the values of hits.
        wanted: the number of groups to return.

    Cost: reads as many hits as needed, and one value of each.
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


def group_query(query: object, path: str, value: int | None) -> dict[str, Any]:
    """Return the query for the documents of one group that match a query, with the same scores."""
    without = {"bool": {"must_not": [{"exists": {"field": path}}]}}
    clause = without if value is None else {"term": {path: {"value": value}}}
    return {"bool": {"must": [query], "filter": [clause]}}


def column_values(snapshot: Snapshot, field: Field, addresses: list[tantivy.DocAddress]) -> list[int | None]:
    """Return the value of a field for each address."""
    found = snapshot.searcher.fast_field_values(field.column, addresses)
    return [None if value is None else int(value) for value in found]


_KINDS = ("terms", "cardinality", "sampler")


def aggregate(snapshot: Snapshot, query: tantivy.Query, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the aggregations of a response.

    Supported are ``terms`` with ``cardinality`` inside, ``cardinality``, and ``sampler`` with ``terms``
    inside.

    Raises:
        UnsupportedQuery: another aggregation is requested, or a field that it does not support.
    """
    samples = {name: body for name, body in given.items() if isinstance(body, Mapping) and "sampler" in body}
    done = {name: _sampler(snapshot, query, name, body) for name, body in samples.items()}
    wanted = {name: _read(snapshot, name, body) for name, body in given.items() if name not in samples}
    found = snapshot.searcher.aggregate(query, wanted) if wanted else {}
    return {name: done[name] if name in done else _response(given[name], found[name]) for name in given}


def _read(snapshot: Snapshot, name: str, body: object) -> dict[str, Any]:
    """Return an aggregation in the form that tantivy needs."""
    inner, rest = _split_inner(name, body)
    kind, options = single_entry(f"aggregation {name!r}", rest)
    if kind == "cardinality":
        if inner:
            raise UnsupportedQuery(f"aggregation {name!r}: cardinality takes no sub-aggregations")
        return _cardinality(snapshot, options)
    if kind != "terms":
        raise unsupported_error("aggregation", kind, _KINDS)
    check_options("terms aggregation", options, ("field", "size"))
    field = _terms_field(snapshot, options.get("field"))
    size = int_option("size of terms aggregation", options.get("size", 10), 1)
    made: dict[str, Any] = {"terms": {"field": field.column, "size": size, "segment_size": 65_000}}
    for sub, one in inner.items():
        if "cardinality" not in one:
            raise UnsupportedQuery(f"sub-aggregation {sub!r}: only cardinality is supported within terms")
        made.setdefault("aggs", {})[sub] = _read(snapshot, sub, one)
    return made


def _cardinality(snapshot: Snapshot, options: Mapping[str, Any]) -> dict[str, Any]:
    # The threshold has no effect: tantivy counts with a HyperLogLog++ of fixed size.
    check_options("cardinality aggregation", options, ("field", "precision_threshold"))
    path = str(options.get("field"))
    field = snapshot.catalog.fields.get(path)
    if field is None or field.kind in (FieldKind.TEXT, FieldKind.BINARY) or not field.has_order:
        fields = snapshot.catalog.fields.items()
        known = [p for p, f in fields if f.kind not in (FieldKind.TEXT, FieldKind.BINARY) and f.has_order]
        raise unsupported_error("cardinality aggregation of the field", path, known)
    return {"cardinality": {"field": field.column}}


def _response(body: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of tantivy in the servers' shape."""
    if "buckets" not in found:
        return {"value": round(found["value"])}
    inner, _ = _split_inner("", body)
    buckets = sorted(found["buckets"], key=lambda bucket: (-bucket["doc_count"], bucket["key"]))
    return {
        "doc_count_error_upper_bound": found.get("doc_count_error_upper_bound", 0),
        "sum_other_doc_count": found.get("sum_other_doc_count", 0),
        "buckets": [
            {"key": bucket["key"], "doc_count": bucket["doc_count"]}
            | {name: {"value": round(bucket[name]["value"])} for name in inner}
            for bucket in buckets
        ],
    }


def _terms_field(snapshot: Snapshot, path: object) -> Field:
    """Return a keyword or integer field whose terms can be counted."""
    found = snapshot.catalog.fields.get(str(path))
    if found is None or not _has_terms(found):
        known = [path for path, field in snapshot.catalog.fields.items() if _has_terms(field)]
        raise unsupported_error("terms aggregation of the field", str(path), known)
    return found


def _has_terms(field: Field) -> bool:
    return field.kind in (FieldKind.KEYWORD, FieldKind.LONG) and field.has_order


_TERMS = ("field", "size", "shard_size", "min_doc_count")


def _sampler(snapshot: Snapshot, query: tantivy.Query, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of integers among the best hits.

    Raises:
        UnsupportedQuery: the inner aggregation is not ``terms`` of a single-valued integer field.

    Cost: one pass over the hits, and 0.5 µs for each one sampled.
    """
    inner, rest = _split_inner(name, body)
    _, options = single_entry(f"aggregation {name!r}", rest)
    check_options("sampler aggregation", options, ("shard_size",))
    _, hits = search_top(
        snapshot.searcher, query, int_option("shard_size", options.get("shard_size", 100), 1)
    )
    addresses = [address for _, address in hits]
    response: dict[str, Any] = {"doc_count": len(addresses)}
    for sub, one in inner.items():
        response[sub] = _sampler_terms(snapshot, addresses, sub, one)
    return response


def _sampler_terms(
    snapshot: Snapshot, addresses: list[tantivy.DocAddress], name: str, body: Mapping[str, Any]
) -> dict[str, Any]:
    kind, options = single_entry(f"aggregation {name!r}", body)
    if kind != "terms":
        raise unsupported_error("aggregation within a sample", kind, ("terms",))
    check_options("terms aggregation", options, _TERMS)
    field = collapse_field(snapshot, str(options.get("field")))
    least = int_option("min_doc_count", options.get("min_doc_count", 1), 1)
    size = int_option("size of terms aggregation", options.get("size", 10), 1)
    found = Counter(value for value in column_values(snapshot, field, addresses) if value is not None)
    several = [(value, count) for value, count in found.items() if count >= least]
    several.sort(key=lambda one: (-one[1], one[0]))
    shown = several[:size]
    return {
        "doc_count_error_upper_bound": 0,
        "sum_other_doc_count": found.total() - sum(count for _, count in shown),
        "buckets": [{"key": value, "doc_count": count} for value, count in shown],
    }


def _split_inner(name: str, body: object) -> tuple[Mapping[str, Any], object]:
    """Return the sub-aggregations of an aggregation, and the rest of it."""
    if not isinstance(body, Mapping):
        return {}, body
    inner = body.get("aggs", body.get("aggregations")) or {}
    if not isinstance(inner, Mapping) or not all(isinstance(one, Mapping) for one in inner.values()):
        raise UnsupportedQuery(f"sub-aggregations of {name!r}: expected objects, got {inner!r}")
    return inner, {key: value for key, value in body.items() if key not in ("aggs", "aggregations")}
