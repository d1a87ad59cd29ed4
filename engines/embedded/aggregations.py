"""``aggs``: terms of keywords and numbers counted, and distinct values, over all that was found."""

from collections.abc import Mapping
from typing import Any

import tantivy

from shinglefold.engines.embedded.fields import Field, Kind
from shinglefold.engines.embedded.options import checked, single, unsupported, whole
from shinglefold.engines.embedded.samples import sampled, split
from shinglefold.engines.embedded.snapshot import Snapshot
from shinglefold.errors import UnsupportedQuery

_KINDS = ("terms", "cardinality", "sampler")


def aggregate(snapshot: Snapshot, query: tantivy.Query, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the aggregations of a response.

    Within the buckets of terms, distinct values may be counted too; within a sample, terms of numbers.

    Raises:
        UnsupportedQuery: it is none of these, or the field is none they take.
    """
    samples = {name: body for name, body in given.items() if isinstance(body, Mapping) and "sampler" in body}
    told = {name: sampled(snapshot, query, name, body) for name, body in samples.items()}
    wanted = {name: _read(snapshot, name, body) for name, body in given.items() if name not in samples}
    found = snapshot.searcher.aggregate(query, wanted) if wanted else {}
    return {name: told[name] if name in told else _told(given[name], found[name]) for name in given}


def _read(snapshot: Snapshot, name: str, body: object) -> dict[str, Any]:
    """Return an aggregation as tantivy takes it."""
    inner, rest = split(name, body)
    kind, options = single(f"aggregation {name!r}", rest)
    if kind == "cardinality":
        if inner:
            raise UnsupportedQuery(f"aggregation {name!r}: cardinality takes no sub-aggregations")
        return _distinct(snapshot, options)
    if kind != "terms":
        raise unsupported("aggregation", kind, _KINDS)
    checked("terms aggregation", options, ("field", "size"))
    own = _counted(snapshot, options.get("field"))
    size = whole("size of terms aggregation", options.get("size", 10), 1)
    made: dict[str, Any] = {"terms": {"field": own.column, "size": size, "segment_size": 65_000}}
    for sub, one in inner.items():
        if "cardinality" not in one:
            raise UnsupportedQuery(f"sub-aggregation {sub!r}: only cardinality is supported within terms")
        made.setdefault("aggs", {})[sub] = _read(snapshot, sub, one)
    return made


def _distinct(snapshot: Snapshot, options: Mapping[str, Any]) -> dict[str, Any]:
    # Whatever the threshold, tantivy counts by HyperLogLog++ of the size it has.
    checked("cardinality aggregation", options, ("field", "precision_threshold"))
    path = str(options.get("field"))
    own = snapshot.catalog.fields.get(path)
    if own is None or own.kind in (Kind.TEXT, Kind.BINARY) or not own.has_order:
        fields = snapshot.catalog.fields.items()
        known = [p for p, f in fields if f.kind not in (Kind.TEXT, Kind.BINARY) and f.has_order]
        raise UnsupportedQuery(str(unsupported("cardinality aggregation of the field", path, known)))
    return {"cardinality": {"field": own.column}}


def _told(body: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what tantivy found as servers tell it."""
    if "buckets" not in found:
        return {"value": round(found["value"])}
    inner, _ = split("", body)
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


def _counted(snapshot: Snapshot, path: object) -> Field:
    """Return a field whose terms can be counted: one of keywords or of whole numbers."""
    own = snapshot.catalog.fields.get(str(path))
    if own is None or not _has_terms(own):
        known = [path for path, field in snapshot.catalog.fields.items() if _has_terms(field)]
        raise UnsupportedQuery(str(unsupported("terms aggregation of the field", str(path), known)))
    return own


def _has_terms(own: Field) -> bool:
    return own.kind in (Kind.KEYWORD, Kind.LONG) and own.has_order
