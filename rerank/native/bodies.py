"""The collapse request: which searches the engine can collapse by group number, and their bodies."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from shinglefold.contracts import JSON
from shinglefold.errors import ConfigError
from shinglefold.rerank.request.bodies import narrowable, sort_keys
from shinglefold.rerank.request.inner_hits import DUPLICATES, InnerHits
from shinglefold.rerank.request.options import FoldOptions, Preference

#: Options decided when documents were given their groups.
_DECIDED = ("min_shared", "min_resemblance", "min_length_ratio", "scope", "across_languages", "linkage")
#: What a body may not say beside a collapse, or what would make counts other than the hits.
_BESIDE = ("search_after", "rescore", "min_score", "post_filter", "slice", "terminate_after")
#: Options that need a window, and why.
_WINDOWED = {
    "cursor": "a cursor reads windows, as engines can't go on behind a collapse; page with from and size",
    "explain": "explain compares what a window has read",
    "members_from": "members from the index are looked for beside a window",
}
_DEFAULTS = {field.name: field.default for field in fields(FoldOptions)}
#: Policies that are an order: by the field they name, or by the number of shingles.
_SORTS: Mapping[str, str] = {"newest": "desc", "oldest": "asc", "longest": "desc"}
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


def obstacles(body: Mapping[str, Any], options: FoldOptions) -> list[str]:
    """Return why an engine can't answer a request by its own collapse, in words; [] where it can."""
    return list(_obstacles(body, options))


def policy_sort(options: FoldOptions, dedup: str) -> list[JSON]:
    """Return the order in which the members of a group stand so that the first is the one to show.

    Args:
        options: such as ``obstacles`` has nothing against. What stands behind ``rank`` decides nothing.
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
    """Return the field of the number of a document's group."""
    return f"{dedup}.group"


def query_parts(body: Mapping[str, Any]) -> JSON:
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


def attaches_members(options: FoldOptions, dedup: str) -> bool:
    """Tell whether members come with the hits, so that the engine counts them as well."""
    return options.members > 0 or bool(policy_sort(options, dedup))


def ungrouped_request(scheme: str, dedup: str, body: Mapping[str, Any] = _NOTHING) -> JSON:
    """Return the request that tells how many of the results of another have no group of a scheme."""
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
