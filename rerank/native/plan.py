"""What of a request the engine's own collapse can do, and why the rest takes a window."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from shinglefold.contracts import JSON
from shinglefold.rerank.request.bodies import narrowable
from shinglefold.rerank.request.inner_hits import DUPLICATES
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


#: Policies that are an order: by the field they name, or by the number of shingles.
_SORTS: Mapping[str, str] = {"newest": "desc", "oldest": "asc", "longest": "desc"}
