"""The collapse request: which searches the engine can collapse by group number, and their bodies."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError
from shinglefold.rerank.request.bodies import narrowable, sort_keys
from shinglefold.rerank.request.fold_options import FoldOptions, Preference
from shinglefold.rerank.request.inner_hits import DUPLICATES, InnerHits

#: Options that took effect when documents got their group numbers.
_DECIDED = ("min_shared", "min_resemblance", "min_length_ratio", "scope", "across_languages", "linkage")
#: Parts of a body that engines refuse beside a collapse, or that make counts differ from the hits.
_BESIDE = ("search_after", "rescore", "min_score", "post_filter", "slice", "terminate_after")
#: Options that need a window, and why.
_WINDOWED = {
    "cursor": "a cursor reads windows, as engines can't go on behind a collapse; page with from and size",
    "explain": "explain compares what a window has read",
    "members_from": "members from the index are looked for beside a window",
}
_DEFAULTS = {field.name: field.default for field in fields(FoldOptions)}
#: Policies that engines can sort by: the field they name, or the number of shingles.
_SORTS: Mapping[str, str] = {"newest": "desc", "oldest": "asc", "longest": "desc"}
#: Names of the aggregations added to a request; removed from its answer, except ``groups`` in buckets.
TOTAL, SAMPLE, FACET = "shinglefold_groups", "shinglefold_sample", "groups"
#: Groups up to which engines count almost exactly; above, HyperLogLog++ is within a few per cent.
PRECISION = 3000
#: Parts of a request that shape its hits, and its members as well.
_SHOWN = (
    "_source", "highlight", "fields", "docvalue_fields", "stored_fields", "script_fields", "explain",
    "version", "seq_no_primary_term",
)  # fmt: skip
#: Parts of a request that decide which documents it finds.
_FINDS = ("query", "runtime_mappings", "derived")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_AGGREGATIONS = ("aggs", "aggregations")


def obstacles(body: Mapping[str, Any], options: FoldOptions) -> list[str]:
    """Return the reasons why an engine can't answer a request by its own collapse; [] where it can."""
    return list(_obstacles(body, options))


def policy_sort(options: FoldOptions, dedup: str) -> list[JSON]:
    """Return the sort of the members of a group by which the first one is the representative.

    Args:
        options: for which ``obstacles`` is empty. Policies after ``rank`` have no effect.
    """
    names = [preference.name for preference in options.representative]
    before = options.representative[: names.index("rank")] if "rank" in names else options.representative
    return [_key(preference, dedup) for preference in before]


def _obstacles(body: Mapping[str, Any], options: FoldOptions) -> Iterator[str]:
    chosen = {name for name, default in _DEFAULTS.items() if getattr(options, name) != default}
    yield from (f"{name} was decided when documents were given groups" for name in _DECIDED if name in chosen)
    yield from (reason for name, reason in _WINDOWED.items() if name in chosen)
    if options.verify == "text":
        yield "texts are asked beside a window"
    for preference in options.representative:
        if preference.name not in ("rank", *_SORTS):
            yield f"representative {preference.name!r} can't be said as an engine's sort"
    if any(one.name == DUPLICATES for one in options.inner_hits):
        yield f"inner_hits of the name {DUPLICATES!r} would be those that every group has"
    yield from (f"{name} can't stand beside a collapse" for name in _BESIDE if name in body)
    if not narrowable(body):
        yield "nearest neighbours and fused rankings are folded by window"
    if "pit" in body:
        yield "under a point in time of the request's own nobody can tell its index"


def _key(preference: Preference, dedup: str) -> JSON:
    field = preference.field if preference.name != "longest" else f"{dedup}.shingles"
    return {field: {"order": _SORTS[preference.name], "missing": "_last"}}


def group_field(dedup: str) -> str:
    """Return the field of the group number."""
    return f"{dedup}.group"


def query_parts(body: Mapping[str, Any]) -> JSON:
    """Return the parts of a request that decide which documents it finds."""
    return {name: body[name] for name in _FINDS if body.get(name) is not None}


def page_request(body: Mapping[str, Any], options: FoldOptions, dedup: str, counting: JSON) -> JSON:
    """Return a request that lets the engine collapse by group number.

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


def attaches_members(options: FoldOptions, dedup: str) -> bool:
    """Return whether the hits carry their members, so that the engine counts these too."""
    return options.members > 0 or bool(policy_sort(options, dedup))


def ungrouped_request(scheme: str, dedup: str, body: Mapping[str, Any] = _NOTHING) -> JSON:
    """Return the request that counts the results of another without a group number of a scheme."""
    grouped = [{"exists": {"field": group_field(dedup)}}, {"term": {f"{dedup}.scheme": scheme}}]
    lacking: JSON = {"must_not": [{"bool": {"filter": grouped}}]}
    finds = query_parts(body)
    if "query" in finds:
        lacking["filter"] = [finds["query"]]
    return {**finds, "query": {"bool": lacking}, "size": 0, "track_total_hits": True}


def _inner_hits(body: Mapping[str, Any], options: FoldOptions, dedup: str) -> list[JSON]:
    own = {one.name: _own(one, body) for one in options.inner_hits}
    if attaches_members(options, dedup):
        own[DUPLICATES] = _members(body, options, dedup)
    return [{"name": name, **one} for name, one in own.items()]


def _members(body: Mapping[str, Any], options: FoldOptions, dedup: str) -> JSON:
    keys, policies = sort_keys(body), policy_sort(options, dedup)
    shown = {name: body[name] for name in _SHOWN if name in body}
    asked = {**shown, "size": options.members + 1, "track_scores": body.get("track_scores", not keys)}
    ranked = keys or ([{"_score": "desc"}] if policies else [])
    return asked | ({"sort": [*policies, *ranked]} if policies or keys else {})


def _own(one: InnerHits, body: Mapping[str, Any]) -> JSON:
    """Return the ``inner_hits`` of the request in the shape that engines take."""
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
