"""The bodies of a folded search: what the request said, cut into a window to fold and a page to fetch."""

from collections.abc import Mapping, Sequence
from typing import Any

from shinglefold.contracts import JSON
from shinglefold.errors import ConfigError
from shinglefold.quoted import quoted
from shinglefold.rerank.checks import check_levels, check_whole
from shinglefold.rerank.options import FoldOptions
from shinglefold.rerank.policies import load_policies

#: What only the hits shown need.
_PAGE_ONLY = {"_source", "highlight", "fields", "docvalue_fields", "stored_fields", "script_fields"}
_PAGE_ONLY |= {"explain", "version", "seq_no_primary_term"}
#: What describes the whole result; asked for once.
_ONCE = {"aggs", "aggregations", "suggest", "profile"}
#: What decides which hits there are and in which order: settled when the page is fetched by id.
_BESIDE_QUERY = {"knn", "retriever", "rank", "sub_searches"}
_SETTLED = {"query", "rescore", "post_filter", "min_score", "sort", "search_after", "pit", "track_scores"}
_SETTLED |= {"track_total_hits", "indices_boost", "terminate_after", "from", "size"} | _BESIDE_QUERY
_KEYWORDS = ".supershingles"
#: The greatest whole number engines count hits with.
_MOST_HITS = 2**31 - 1
#: Queries that may stand only at the top of a body.
_TOP_ONLY = {"hybrid"}


def split_request(body: Mapping[str, Any]) -> tuple[JSON, Mapping[str, Any]]:
    """Return the body without ``ext.dedup``, which every engine would refuse, and what stood there.

    Raises:
        ConfigError: ``ext`` or ``ext.dedup`` is no object, or the body is too large to be meant.
    """
    if not isinstance(body, Mapping):
        raise ConfigError(f"expected a search request, an object, got {quoted(body)}")
    check_levels(body)
    rest = dict(body)
    given = rest.pop("ext", None)
    if not (given is None or isinstance(given, Mapping)):
        raise ConfigError(f'ext: expected an object, such as {{"dedup": {{…}}}}, got {quoted(given)}')
    ext = dict(given or {})
    ours = ext.pop("dedup", {})
    if ext:
        rest["ext"] = ext
    if isinstance(ours, bool):
        ours = {"fold": ours}
    if not isinstance(ours, Mapping):
        raise ConfigError(f"ext.dedup: expected an object of options, got {quoted(ours)}")
    return rest, ours


def refuse_collapse(body: Mapping[str, Any]) -> None:
    """Raise ``ConfigError`` where a request collapses hits itself."""
    if "collapse" in body:
        raise ConfigError(
            '"collapse" and folding exclude each other: remove it, or say "fold": false in ext.dedup'
        )


def page_bounds(body: Mapping[str, Any]) -> tuple[int, int]:
    """Return ``from`` and ``size`` of a request.

    Raises:
        ConfigError: one is no whole number from 0, or above what any engine takes.
    """
    bounds = body.get("from", 0), body.get("size", 10)
    for name, value in zip(("from", "size"), bounds, strict=True):
        check_whole(name, value, 0, _MOST_HITS)
    return bounds


def window_fields(options: FoldOptions, dedup: str, shared: bool) -> list[str]:
    """Return the fields folding reads of every hit; the supershingles only where they are ``shared``."""
    # A stored digest tells scheme, language and shingles as well.
    parts = ["digest", "signature"]
    if shared or options.explain:
        parts.append(_KEYWORDS.removeprefix("."))
    policies = load_policies(options.representative)
    extra = [field for policy in policies for field in policy.fields] + [
        scope.field for scope in options.scope
    ]
    return list(dict.fromkeys([*(f"{dedup}.{part}" for part in parts), *extra]))


def window_body(body: Mapping[str, Any], size: int, fields: Sequence[str], first: bool = True) -> JSON:
    """Return the body that reads a window: the request's own hits in its own order, ``fields`` of each."""
    left_out = _PAGE_ONLY if first else _PAGE_ONLY | _ONCE
    window = {key: value for key, value in body.items() if key not in left_out and key != "from"}
    if not first:
        window["track_total_hits"] = False
    # Keywords have no doc values: they would cost a quarter of the whole fingerprint on disk, and few ask.
    stored = [name for name in fields if name.endswith(_KEYWORDS)]
    doc_values = [name for name in fields if name not in stored]
    return {**window, "size": size, "_source": stored or False, "docvalue_fields": doc_values}


def narrowable(body: Mapping[str, Any]) -> bool:
    """Tell whether the query alone finds the hits and may stand inside another one."""
    return not (_BESIDE_QUERY & body.keys() or _TOP_ONLY & (body.get("query") or {}).keys())


def resumable(body: Mapping[str, Any]) -> bool:
    """Tell whether a search can go on from a hit: what is ranked by more than a sort can only give more."""
    return narrowable(body) and "rescore" not in body


def sort_keys(body: Mapping[str, Any]) -> list[Any]:
    """Return the keys of a request's sort, one by one: a name, or an object with one name."""
    sort = body.get("sort") or []
    keys = sort if isinstance(sort, list) else [sort]
    return [
        one
        for key in keys
        for one in ([{name: order} for name, order in key.items()] if isinstance(key, Mapping) else [key])
    ]


def total_order(body: Mapping[str, Any], tiebreaker: str) -> list[Any]:
    """Return the request's sort made total by a last key, so that reading on neither repeats nor skips."""
    keys = sort_keys(body) or [{"_score": "desc"}]
    named = {key if isinstance(key, str) else next(iter(key)) for key in keys}
    return keys if tiebreaker in named else [*keys, {tiebreaker: "asc"}]


def page_body(
    body: Mapping[str, Any],
    hits: Sequence[Mapping[str, Any]],
    source: Any = None,  # noqa: ANN401 - JSON
) -> JSON:
    """Return the body that fetches the hits of a page, by id, with everything the request wants of them.

    Args:
        source: a ``_source`` filter instead of the request's.
    """
    ids = {"ids": {"values": [hit["_id"] for hit in hits]}}
    # Several indices may have the same id; what was not asked for is sorted out afterwards.
    indices = len({hit.get("_index") for hit in hits})
    return chosen_body(body, ids, len(hits) * max(1, indices), source)


def chosen_body(
    body: Mapping[str, Any],
    chosen: JSON,
    size: int,
    source: Any = None,  # noqa: ANN401 - JSON
) -> JSON:
    """Return the body that fetches the hits a filter chooses with everything the request wants of them.

    The query stays, so that highlights and explanations are its own; where it can't be narrowed it stays as
    the highlighter's query.
    """
    page = {
        key: value
        for key, value in body.items()
        if key not in _SETTLED | _ONCE and key not in ("from", "size")
    }
    query = body.get("query")
    if query is None or not narrowable(body):
        page["query"] = chosen
        if query is not None and "highlight" in page and narrowable({"query": query}):
            page["highlight"] = {"highlight_query": query, **page["highlight"]}
    else:
        page["query"] = {"bool": {"must": [query], "filter": [chosen]}}
    if source is not None:
        page["_source"] = source
    return {**page, "size": min(10_000, size), "track_total_hits": False}
