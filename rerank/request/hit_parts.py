"""The parts of hits that a request wants, and which depend on the query that found the hits.

A page is fetched by the identity of its hits. Some parts of a hit come from the whole search: they are read
with the window instead, or the fetch keeps the parts of the request that make them.
"""

from base64 import b64decode
from collections.abc import Container, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from json import loads
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.rerank.request.arguments import check_levels

#: Parts of a request that contain queries.
_QUERIES = ("query", "post_filter", "rescore", "knn", "retriever", "rank", "sub_searches")
#: Keys in a query that add something to the hits that it finds.
_ADDING = frozenset({"_name", "inner_hits", "percolate", "wrapper", "template"})
#: Keys in a query for which engines need the ids of its hits.
WITH_IDS = frozenset({"inner_hits", "wrapper", "template"})
#: Parts beside the query whose queries add to hits, too.
_BESIDE = ("post_filter", "rescore")
#: Flags of a request; engines read them from text as well.
_FLAGS = ("track_total_hits", "track_scores", "version", "seq_no_primary_term", "explain", "profile")
_WORDS = {"true": True, "false": False}
_BOUNDS = ("from", "size")
#: Parts that the search for completions omits: they neither find nor show completions.
_NOT_OF_COMPLETIONS = frozenset(
    {"aggs", "aggregations", "from", "search_after", "terminate_after", "profile", "slice"}
)
#: Reads the doc values of a date of any format as ISO 8601.
ISO_DATE = "strict_date_time"
#: Queries that may request inner hits.
_WITH_INNER_HITS = {"nested", "has_child", "has_parent", "knn"}


def with_plain_values(body: JSON) -> JSON:
    """Return a request as engines understand it: numbers and flags given as text, and wrapped queries."""
    changed = {name: whole for name in _BOUNDS if (whole := _whole(body.get(name))) is not None}
    changed |= {name: _WORDS[word] for name in _FLAGS if (word := body.get(name)) in ("true", "false")}
    for name in _QUERIES:
        if name in body and any("wrapper" in part for part in objects(body[name])):
            changed[name] = _unwrap_queries(body[name])
            check_levels(changed)
    return {**body, **changed} if changed else body


def _whole(value: object) -> int | None:
    """Return a number as engines read it: from text, and without its fraction; None if it is none."""
    if not isinstance(value, str | float):
        return None
    try:
        return int(float(value))
    except (ValueError, OverflowError):
        return None


def _unwrap_queries(part: Any) -> Any:  # noqa: ANN401 - JSON
    """Return queries with those that are wrapped in Base64 decoded; anything but JSON stays wrapped."""
    if isinstance(part, list):
        return [_unwrap_queries(one) for one in part]
    if not isinstance(part, Mapping):
        return part
    wrapped = part.get("wrapper")
    if len(part) == 1 and isinstance(wrapped, Mapping) and isinstance(wrapped.get("query"), str):
        try:
            found = loads(b64decode(wrapped["query"], validate=True))
        except (ValueError, RecursionError):
            return part
        return _unwrap_queries(found) if isinstance(found, Mapping) else part
    return {name: _unwrap_queries(value) for name, value in part.items()}


def objects(query: object) -> Iterator[Mapping[Any, Any]]:
    """Yield the objects in a query, itself included."""
    waiting = [query]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def adds_to_hits(query: object, keys: frozenset[str] = _ADDING) -> bool:
    """Return whether a query adds something to its hits: names, inner hits, slots of a percolator."""
    return any(not keys.isdisjoint(part) for part in objects(query))


def has_top_hits(body: Mapping[str, Any]) -> bool:
    """Return whether an aggregation of a request returns hits."""
    return any("top_hits" in part for name in ("aggs", "aggregations") for part in objects(body.get(name)))


def kept_beside_query(body: Mapping[str, Any]) -> JSON:
    """Return the parts beside the query that add something to hits, which a fetch must keep."""
    return {name: body[name] for name in _BESIDE if name in body and adds_to_hits(body[name])}


def depends_on_search(body: Mapping[str, Any], *, nests: bool) -> bool:
    """Return whether only the search itself returns its hits as requested, not a fetch by identity.

    Args:
        nests: whether the query alone finds the hits and may be nested in another one.
    """
    if body.get("explain"):
        return True
    query = body.get("query")
    if nests:
        # The engine looks for the percolator in the query, which a highlighter's own query hides.
        return "highlight" in body and adds_to_hits(query, frozenset({"percolate"}))
    finds = [body[name] for name in _QUERIES if name in body]
    return adds_to_hits(finds) or ("highlight" in body and (query is None or "hybrid" in query))


def wants_doc_value(body: Mapping[str, Any], field: str) -> bool:
    """Return whether the request itself returns the doc values of a field."""
    return any(fnmatch(field, name) for name in _names(body.get("docvalue_fields")))


def wants_field(body: Mapping[str, Any], field: str) -> bool:
    """Return whether the request itself returns a field under ``fields``."""
    return wants_doc_value(body, field) or any(fnmatch(field, name) for name in _names(body.get("fields")))


def in_other_form(body: Mapping[str, Any], fields: Sequence[str], dates: Container[str]) -> str | None:
    """Return the first field that a request returns in a format, or computed by a script; else None.

    Args:
        dates: fields whose mappings have a format that folding can't read.
    """
    shown = [*(body.get("docvalue_fields") or ()), *(body.get("fields") or ())]
    formatted = [str(one.get("field")) for one in shown if isinstance(one, Mapping) and one.get("format")]
    made = body.get("script_fields") or ()
    changed = (
        field
        for field in fields
        if field in made
        or any(fnmatch(field, name) for name in formatted)
        or (field in dates and wants_field(body, field))
    )
    return next(changed, None)


def with_doc_values(body: Mapping[str, Any], fields: Sequence[str], dates: Container[str] = ()) -> list[Any]:
    """Return the ``docvalue_fields`` of a request with further ones that it lacks, ``dates`` as ISO 8601."""
    lacking = [field for field in fields if not wants_doc_value(body, field)]
    added = [{"field": name, "format": ISO_DATE} if name in dates else name for name in lacking]
    return [*(body.get("docvalue_fields") or ()), *added]


def without_fields(hit: JSON, body: Mapping[str, Any], added: Sequence[str]) -> JSON:
    """Return a hit without the fields that were added to its request."""
    if "fields" not in hit:
        return hit
    gone = [name for name in added if not wants_field(body, name)]
    kept = {name: value for name, value in hit["fields"].items() if name not in gone}
    rest = {name: value for name, value in hit.items() if name != "fields"}
    return rest | ({"fields": kept} if kept else {})


def _names(wanted: Sequence[Any] | None) -> Iterator[str]:
    for one in wanted or ():
        yield str(one.get("field") if isinstance(one, Mapping) else one)


def completions_body(body: Mapping[str, Any]) -> JSON | None:
    """Return the search for the completions that a request suggests; None if it suggests none.

    Completions are documents, and come with what a request returns of its hits: a window returns less.
    """
    suggest = body.get("suggest")
    named = suggest.values() if isinstance(suggest, Mapping) else ()
    if not any(isinstance(one, Mapping) and "completion" in one for one in named):
        return None
    kept = {name: value for name, value in body.items() if name not in _NOT_OF_COMPLETIONS}
    return {**kept, "size": 0, "track_total_hits": False}


def inner_hit_names(part: Any) -> set[str]:  # noqa: ANN401 - JSON
    """Return the names of the inner hits that a query, or several, request by name."""
    given = [one.get("inner_hits") for one in objects(part)]
    return {str(one["name"]) for one in given if isinstance(one, Mapping) and "name" in one}


def without_inner_hits(part: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a query, or several, without the inner hits they request; the page's hits are fetched with them.

    Servers find the inner hits of each hit by a search of its own.
    """
    if not any("inner_hits" in one for one in objects(part)):
        return part
    if isinstance(part, list):
        return [without_inner_hits(one) for one in part]
    return {
        name: without_inner_hits(_without_own(value) if name in _WITH_INNER_HITS else value)
        for name, value in part.items()
    }


def _without_own(given: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(given, list):
        return [_without_own(one) for one in given]
    if not isinstance(given, Mapping) or not isinstance(given.get("inner_hits"), Mapping):
        return given
    return {name: value for name, value in given.items() if name != "inner_hits"}
