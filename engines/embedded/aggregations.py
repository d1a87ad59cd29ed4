"""``aggs``: the terms of a keyword field, counted over all that was found."""

from collections.abc import Mapping
from typing import Any

import tantivy

from shinglefold.engines.embedded.fields import Field, Kind
from shinglefold.engines.embedded.index import Snapshot
from shinglefold.engines.embedded.options import checked, single, unsupported, whole
from shinglefold.errors import UnsupportedQuery


def aggregate(snapshot: Snapshot, query: tantivy.Query, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the aggregations of a response.

    Raises:
        UnsupportedQuery: it is no terms aggregation of a keyword field.
    """
    return {name: _terms(snapshot, query, name, body) for name, body in given.items()}


def _terms(snapshot: Snapshot, query: tantivy.Query, name: str, body: object) -> dict[str, Any]:
    kind, options = single(f"aggregation {name!r} (sub-aggregations are not supported)", body)
    if kind != "terms":
        raise unsupported("aggregation", kind, ("terms",))
    checked("terms aggregation", options, ("field", "size"))
    own = _keyword(snapshot, options.get("field"))
    size = whole("size of terms aggregation", options.get("size", 10), 1)
    request = {"it": {"terms": {"field": own.column, "size": size, "segment_size": 65_000}}}
    found = snapshot.searcher.aggregate(query, request)["it"]
    buckets = sorted(found["buckets"], key=lambda bucket: (-bucket["doc_count"], bucket["key"]))
    return {
        "doc_count_error_upper_bound": found.get("doc_count_error_upper_bound", 0),
        "sum_other_doc_count": found.get("sum_other_doc_count", 0),
        "buckets": [{"key": bucket["key"], "doc_count": bucket["doc_count"]} for bucket in buckets],
    }


def _keyword(snapshot: Snapshot, path: object) -> Field:
    own = snapshot.catalog.fields.get(str(path))
    if own is None or own.kind is not Kind.KEYWORD or not own.column or own.column == "_id":
        known = [p for p, f in snapshot.catalog.fields.items() if f.kind is Kind.KEYWORD and p != "_id"]
        raise UnsupportedQuery(str(unsupported("terms aggregation of the field", str(path), known)))
    return own
