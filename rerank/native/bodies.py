"""The requests of a search by groups."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from shinglefold.contracts import JSON
from shinglefold.errors import ConfigError
from shinglefold.rerank.native.plan import policy_sort
from shinglefold.rerank.request.bodies import sort_keys
from shinglefold.rerank.request.inner_hits import DUPLICATES, InnerHits
from shinglefold.rerank.request.options import FoldOptions

#: The names of what is added to a request; taken out of its answer again, but for ``groups`` in buckets.
TOTAL, SAMPLE, FACET = "shinglefold_groups", "shinglefold_sample", "groups"
#: Groups up to which engines count all but exactly; above, by HyperLogLog++ within a few per cent.
PRECISION = 3000
#: What a request says of its hits, and its members show as well.
_SHOWN = (
    "_source", "highlight", "fields", "docvalue_fields", "stored_fields", "script_fields", "explain",
    "version", "seq_no_primary_term",
)  # fmt: skip
#: What of a request decides which documents it finds.
_FINDS = ("query", "runtime_mappings", "derived")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_AGGREGATIONS = ("aggs", "aggregations")


def group_field(dedup: str) -> str:
    """Return the field of the number of a document's group."""
    return f"{dedup}.group"


def finding(body: Mapping[str, Any]) -> JSON:
    """Return the parts of a request that decide which documents it finds."""
    return {name: body[name] for name in _FINDS if body.get(name) is not None}


def page_request(body: Mapping[str, Any], options: FoldOptions, dedup: str, counting: JSON) -> JSON:
    """Return a request with the engine's own collapse for folding.

    Args:
        counting: aggregations that count groups.
    """
    field = group_field(dedup)
    asked = {key: value for key, value in body.items() if key not in _AGGREGATIONS}
    aggregations = _aggregations(body)
    if options.facets == "groups":
        distinct = {"cardinality": {"field": field, "precision_threshold": PRECISION}}
        aggregations = {name: _with_groups(name, one, distinct) for name, one in aggregations.items()}
    collapse: JSON = {"field": field}
    if inner := _inner_hits(body, options, dedup):
        collapse["inner_hits"] = inner
    aggregations = {**aggregations, **counting}
    return {**asked, "collapse": collapse} | ({"aggs": aggregations} if aggregations else {})


def members_come(options: FoldOptions, dedup: str) -> bool:
    """Tell whether members come with the hits, so that the engine counts them as well."""
    return options.members > 0 or bool(policy_sort(options, dedup))


def ungrouped_request(scheme: str, dedup: str, body: Mapping[str, Any] = _NOTHING) -> JSON:
    """Return the request that tells how many of the results of another have no group of a scheme."""
    grouped = [{"exists": {"field": group_field(dedup)}}, {"term": {f"{dedup}.scheme": scheme}}]
    lacking: JSON = {"must_not": [{"bool": {"filter": grouped}}]}
    finds = finding(body)
    if "query" in finds:
        lacking["filter"] = [finds["query"]]
    return {**finds, "query": {"bool": lacking}, "size": 0, "track_total_hits": True}


def _inner_hits(body: Mapping[str, Any], options: FoldOptions, dedup: str) -> list[JSON]:
    own = {one.name: _own(one, body) for one in options.inner_hits}
    if members_come(options, dedup):
        own[DUPLICATES] = _members(body, options, dedup)
    return [{"name": name, **one} for name, one in own.items()]


def _members(body: Mapping[str, Any], options: FoldOptions, dedup: str) -> JSON:
    keys, policies = sort_keys(body), policy_sort(options, dedup)
    shown = {name: body[name] for name in _SHOWN if name in body}
    asked = {**shown, "size": options.members + 1, "track_scores": body.get("track_scores", not keys)}
    ranked = keys or ([{"_score": "desc"}] if policies else [])
    return asked | ({"sort": [*policies, *ranked]} if policies or keys else {})


def _own(one: InnerHits, body: Mapping[str, Any]) -> JSON:
    """Return inner hits that a request names itself, as engines take them."""
    asked = {"from": one.start, "size": one.size, **dict(one.search or {})}
    return asked | ({"_source": body["_source"]} if "_source" in body else {})


def _aggregations(body: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next((body[name] for name in _AGGREGATIONS if name in body), {})
    for name in (TOTAL, SAMPLE):
        if name in found:
            raise ConfigError(f"aggs: {name!r} is the name of what folding adds; give yours another")
    return found


def _with_groups(name: str, one: Any, distinct: JSON) -> Any:  # noqa: ANN401 - JSON
    """Return an aggregation with the groups counted in each bucket of terms, at any depth."""
    if not isinstance(one, Mapping):
        return one
    inner: Mapping[str, Any] = next((one[key] for key in _AGGREGATIONS if key in one), {})
    below = {sub: _with_groups(sub, part, distinct) for sub, part in inner.items()}
    if "terms" in one:
        if FACET in below:
            raise ConfigError(f"aggs: {name!r} has a {FACET!r} of its own; give it another name")
        below[FACET] = distinct
    rest = {key: value for key, value in one.items() if key not in _AGGREGATIONS}
    return {**rest, "aggs": below} if below else rest
