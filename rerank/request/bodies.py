"""The bodies of a search's requests: the window to fold, the page to fetch, their order and their depth."""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Literal

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError, nearest, quote
from shinglefold.options.validation import check_int
from shinglefold.rerank.representatives import load_policies
from shinglefold.rerank.request.arguments import (
    check_levels,
    formatted_sort,
    has_format,
    key_name,
    sort_keys,
    window_keys,
    with_lists,
)
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.rerank.request.hit_parts import (
    completions_body,
    depends_on_search,
    has_top_hits,
    kept_beside_query,
    objects,
    with_doc_values,
    with_plain_values,
    without_inner_hits,
)

#: The greatest ``k`` and number of candidates that engines take.
_MOST = 10_000
_NEAREST = ("knn", "neural")
#: Retrievers that fuse or rerank lists; each reads ``rank_window_size`` hits of a list.
_FUSING = ("rrf", "linear", "text_similarity_reranker", "pinned", "rule", "diversify")
#: Parts of a body, other than the query, that find hits.
_BESIDE_QUERY = {"knn", "retriever", "rank", "sub_searches"}
Limit = Literal["k", "rank_window_size"]


def limit_of(body: Mapping[str, Any]) -> Limit | None:
    """Return which number of a request limits its hits; None if none does."""
    if rank_window(body) is not None:
        return "rank_window_size"
    retriever = body.get("retriever")
    searches_vectors = body.get("knn") or (isinstance(retriever, Mapping) and retriever.get("knn"))
    return "k" if searches_vectors or has_nearest(body.get("query")) else None


def has_nearest(query: object) -> bool:
    """Return whether a query contains a search for nearest neighbours."""
    return any(
        _knn_spec(part[name]) is not None for part in objects(query) for name in _NEAREST if name in part
    )


def has_random_order(query: object) -> bool:
    """Return whether each request ranks hits differently: a ``random_score`` has no seed."""
    scores = (part["random_score"] for part in objects(query) if "random_score" in part)
    return any(isinstance(score, Mapping) and score.get("seed") is None for score in scores)


def raisable_k(body: Mapping[str, Any]) -> int | None:
    """Return the ``k`` that may be raised: of a search for nearest neighbours alone; else None.

    Together with a query, a greater ``k`` gives more hits a score and so changes the order of the first ones.
    """
    found = _only_knn(body)
    k = (found or {}).get("k")
    return k if isinstance(k, int) else None


def with_greater_k(body: Mapping[str, Any], size: int) -> Mapping[str, Any]:
    """Return a request with ``k`` raised to ``size``, if ``raisable_k`` allows it."""
    if raisable_k(body) is not None:
        return {name: _with_k(name, value, min(size, _MOST)) for name, value in body.items()}
    return body


def with_rank_window(body: Mapping[str, Any], size: int) -> Mapping[str, Any]:
    """Return a request with ``size`` as its ``rank_window_size``, if it names none."""
    for name in ("retriever", "rank"):
        ((kind, spec),) = (body.get(name) or {"": {}}).items()
        if kind in _FUSING and "rank_window_size" not in spec:
            return {**body, name: {kind: {**spec, "rank_window_size": size}}}
    return body


def rank_window(body: Mapping[str, Any]) -> int | None:
    """Return the ``rank_window_size`` of a request; None if it names none."""
    for name in ("retriever", "rank"):
        for spec in (body.get(name) or {}).values():
            sizes = _rank_windows(spec) if isinstance(spec, Mapping) else ()
            if whole := [size for size in sizes if isinstance(size, int)]:
                return min(whole)
    return None


def _rank_windows(spec: Mapping[str, Any]) -> Iterator[object]:
    """Yield the numbers that limit the hits of a retriever."""
    yield spec.get("rank_window_size")
    rescores = spec.get("rescore") or ()
    for one in [rescores] if isinstance(rescores, Mapping) else rescores:
        yield one.get("window_size") if isinstance(one, Mapping) else None


def _only_knn(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the search for nearest neighbours of a request; None if something else finds hits, too."""
    if len(({"query"} | _BESIDE_QUERY) & body.keys()) != 1:
        return None
    if "knn" in body:
        return body["knn"] if isinstance(body["knn"], Mapping) else None
    for where in (_only_clause(body.get("query")), body.get("retriever")):
        if isinstance(where, Mapping) and len(where) == 1:
            ((name, given),) = where.items()
            if name in _NEAREST:
                return _knn_spec(given)
    return None


def _only_clause(query: object) -> object:
    """Return the query that a ``bool`` has as its only clause; another query itself."""
    while isinstance(query, Mapping) and query.keys() == {"bool"}:
        spec = query["bool"]
        if not isinstance(spec, Mapping) or not {"must"} <= spec.keys() <= {"must", "boost"}:
            return query
        clauses = spec["must"] if isinstance(spec["must"], list) else [spec["must"]]
        if len(clauses) != 1:
            return query
        query = clauses[0]
    return query


def _knn_spec(given: object) -> Mapping[str, Any] | None:
    """Return the part with ``k``: OpenSearch has it below the field, Elasticsearch next to it."""
    if not isinstance(given, Mapping):
        return None
    if "field" in given:
        return given
    inside = next(iter(given.values()), None)
    named = isinstance(inside, Mapping) and {"vector", "query_text", "query_image", "k"} & inside.keys()
    return inside if named and isinstance(inside, Mapping) else None


def _with_k(name: str, value: Any, k: int) -> Any:  # noqa: ANN401 - JSON
    if name == "knn":
        return _raise_k(value, k)
    if name not in ("query", "retriever"):
        return value
    ((kind, given),) = value.items()
    if kind == "bool":
        must = given["must"]
        raised = [_with_k(name, one, k) for one in must] if isinstance(must, list) else _with_k(name, must, k)
        return {kind: {**given, "must": raised}}
    if "field" in given:
        return {kind: _raise_k(given, k)}
    return {kind: {field: _raise_k(spec, k) for field, spec in given.items()}}


def _raise_k(spec: Any, k: int) -> Any:  # noqa: ANN401 - JSON
    raised = {**spec, "k": max(k, spec["k"])}
    if isinstance(spec.get("num_candidates"), int):
        raised["num_candidates"] = max(raised["k"], spec["num_candidates"])
    return raised


#: The number of a document's last change. As last sort key it makes an order total: servers number the
#: changes of each shard, so at most as many hits are equal as there are shards. Every copy of a shard has the
#: same numbers; they survive refreshes and merges. ``_shard_doc`` does not replace it: OpenSearch 2 has none,
#: and that of OpenSearch 3.8 is the same for hits of different indices.
SEQ_NO = "_seq_no"


def complete_tie_groups(hits: Sequence[Mapping[str, Any]], most: int) -> int:
    """Return how many hits of an answer to take, so that ``search_after`` the last of them skips none.

    Args:
        hits: in order, with their ``sort`` values; ``most + 1`` were requested.

    Returns:
        all if there are at most ``most``: the results end. Else at most ``most``: the next hit's sort
        values differ from those of the last one taken. 0 if all are equal: request more.
    """
    if len(hits) <= most:
        return len(hits)
    taken = most
    while taken and hits[taken]["sort"] == hits[taken - 1]["sort"]:
        taken -= 1
    return taken


#: Parts that shape the hits of a page and their members.
PAGE_ONLY = {"_source", "highlight", "fields", "docvalue_fields", "stored_fields", "script_fields"}
PAGE_ONLY |= {"explain", "version", "seq_no_primary_term"}
#: Parts that describe the whole result; requested once.
_ONCE = {"aggs", "aggregations", "suggest", "profile"}
#: Parts that decide hits and order; left out when the page is fetched by id.
_QUERY_PARTS = {"query", "rescore", "post_filter", "min_score", "sort", "search_after", "pit", "track_scores"}
_QUERY_PARTS |= {"track_total_hits", "indices_boost", "terminate_after", "from", "size"} | _BESIDE_QUERY
#: Parts that contain queries.
_FINDING = {"query", "post_filter"} | _BESIDE_QUERY
_KEYWORDS = ".supershingles"
#: The greatest number of hits that engines count.
_MOST_HITS = 2**31 - 1
#: A number above every sequence number.
_GREATEST = 2**63 - 1
#: Sort keys that hold under one point in time.
_PLACES = ("_doc", "_shard_doc")
#: The least similarity of a mistyped ``dedup``.
_ALIKE = 0.8
#: Queries that are allowed only at the top of a body.
_TOP_ONLY = {"hybrid"}


def split_request(body: Mapping[str, Any] | None) -> tuple[JSON, Mapping[str, Any]]:
    """Return the body without ``ext.dedup``, which engines would refuse, and the options in it.

    A body of None searches for all documents.

    Numbers and flags given as text are parsed as engines parse them.
    """
    body = {} if body is None else body
    if not isinstance(body, Mapping):
        raise ConfigError(f"expected a search request, an object, got {quote(body)}")
    rest = with_lists(body) if check_levels(body) else dict(body)
    given = rest.pop("ext", None)
    if not (given is None or isinstance(given, Mapping)):
        raise ConfigError(f'ext: expected an object, such as {{"dedup": {{…}}}}, got {quote(given)}')
    ext = dict(given or {})
    ours = ext.pop("dedup", {})
    if "dedup" in rest or any(nearest(str(name), ["dedup"], _ALIKE) for name in ext):
        raise ConfigError('options of folding are in ext.dedup: {"ext": {"dedup": {…}}}')
    if ext:
        rest["ext"] = ext
    if isinstance(ours, bool):
        ours = {"fold": ours}
    if not isinstance(ours, Mapping):
        raise ConfigError(f"ext.dedup: expected an object of options, got {quote(ours)}")
    return with_plain_values(rest), ours


def refuse_unfoldable(body: Mapping[str, Any], options: FoldOptions) -> None:
    """Raise ``ConfigError`` if a request has a ``collapse``, or a ``search_after`` that would miss groups."""
    if "collapse" in body:
        raise ConfigError(
            '"collapse" and folding exclude each other: remove it, or set "fold": false in ext.dedup'
        )
    if "search_after" in body and options.representative and options.representative[0].name != "rank":
        # The hit shown may rank far behind the first of its group; groups between them would be on no page.
        raise ConfigError(
            "search_after the last hit shown misses groups with representative "
            f"{quote(options.representative[0].name)}: leave it out and ask for "
            '{"cursor": true} in ext.dedup, or set "representative": "rank" or "fold": false'
        )


def page_bounds(body: Mapping[str, Any]) -> tuple[int, int]:
    """Return ``from`` and ``size`` of a request; refuse what no engine takes."""
    bounds = body.get("from", 0), body.get("size", 10)
    for name, value in zip(("from", "size"), bounds, strict=True):
        check_int(name, value, 0, _MOST_HITS)
    return bounds


def window_fields(options: FoldOptions, dedup: str, shared: bool) -> list[str]:
    """Return the fields that folding reads of every hit; supershingles only if ``shared``."""
    # A stored digest includes scheme, language and number of shingles.
    parts = ["digest", "signature"]
    if shared or options.explain:
        parts.append(_KEYWORDS.removeprefix("."))
    policies = load_policies(options.representative)
    extra = [field for policy in policies for field in policy.fields] + [
        scope.field for scope in options.scope
    ]
    return list(dict.fromkeys([*(f"{dedup}.{part}" for part in parts), *extra]))


def window_body(
    body: Mapping[str, Any],
    size: int,
    fields: Sequence[str],
    first: bool = True,
    dates: Container[str] = (),
) -> JSON:
    """Return the body that reads a window: the request's own hits in its own order, ``fields`` of each.

    If hits can't be fetched later as requested, they come with everything that the request returns of them.
    ``dates``: fields that are read as ISO 8601.
    """
    complete = read_completely(body)
    left_out = (set() if complete else PAGE_ONLY) | (set() if first else _ONCE)
    window = {key: value for key, value in body.items() if key not in left_out and key != "from"}
    # Engines search nothing for suggestions alone.
    if (
        completions_body(body) is not None
        and ({"query", "aggs", "aggregations"} | _BESIDE_QUERY) & body.keys()
    ):
        window.pop("suggest", None)
    # The hits of a top_hits aggregation have the inner hits of the query, too.
    if not complete and not (first and has_top_hits(body)):
        window |= without_inner_hits({key: value for key, value in window.items() if key in _FINDING})
    if keys := window_keys(body):
        window["sort"] = keys
    if not first:
        window["track_total_hits"] = False
    # Supershingles have no doc values, which would add a quarter to a fingerprint on disk.
    stored = [name for name in fields if name.endswith(_KEYWORDS)]
    doc_values = [name for name in fields if name not in stored]
    if complete:
        added = {"fields": [*(body.get("fields") or ()), *stored]} if stored else {}
        return {
            **with_ids(window),
            **added,
            "size": size,
            "docvalue_fields": with_doc_values(body, doc_values, dates),
        }
    read = with_doc_values({}, doc_values, dates)
    return {**window, "size": size, "_source": stored or False, "docvalue_fields": read}


def read_completely(body: Mapping[str, Any]) -> bool:
    """Return whether a window is read with everything that the request returns of its hits."""
    return depends_on_search(body, nests=narrowable(body))


def narrowable(body: Mapping[str, Any]) -> bool:
    """Return whether the query alone finds the hits and may be nested in another one."""
    query = body.get("query")
    # A filtered kNN query finds other hits: it searches for k neighbours first.
    top_only = isinstance(query, Mapping) and _TOP_ONLY & query.keys()
    return not (_BESIDE_QUERY & body.keys() or top_only or has_nearest(query))


def resumable(body: Mapping[str, Any]) -> bool:
    """Return whether ``search_after`` can continue a search: its order is one sort, equal in each request."""
    return narrowable(body) and not body.get("rescore") and not has_random_order(body.get("query"))


def place_key(body: Mapping[str, Any]) -> str | None:
    """Return the sort key that is a position in segments, which changes when segments merge; else None."""
    return next((name for key in sort_keys(body) if (name := str(key_name(key))) in _PLACES), None)


def shown_keys(body: Mapping[str, Any]) -> list[Any]:
    """Return the sort keys whose values hits show: none if the only key is the score, the best first."""
    standard = (body.get("retriever") or {}).get("standard")
    keys = sort_keys(standard if isinstance(standard, Mapping) else body)
    if len(keys) == 1 and key_name(keys[0]) == "_score":
        given = keys[0]["_score"] if isinstance(keys[0], Mapping) else "desc"
        order = given.get("order", "desc") if isinstance(given, Mapping) else given
        return [] if str(order).lower() == "desc" else keys
    return keys


def total_order(body: Mapping[str, Any], tie: str) -> list[Any]:
    """Return the request's sort with a tiebreaker, so that reading on repeats no hit."""
    keys = window_keys(body) or [{"_score": "desc"}]
    named = {key_name(key) for key in keys}
    return [*keys, *([] if tie in named else [{tie: "asc"}])]


def after_hit(body: Mapping[str, Any], tie: str) -> JSON:
    """Return the request's own ``search_after`` for the total order, past all hits with equal values."""
    after = body.get("search_after")
    keys = total_order(body, tie)
    if after is None:
        return {}
    return {"search_after": after if len(after) == len(keys) else [*after, _GREATEST]}


def can_continue(body: Mapping[str, Any], tie: str) -> bool:
    """Return whether reading can continue from a hit; the request's own ``search_after`` must fit."""
    after = body.get("search_after")
    # Formatted values in ``search_after`` don't determine where reading ended.
    if not resumable(body) or (after is not None and has_format(body)):
        return False
    total = len(total_order(body, tie))
    return after is None or len(after) == total or (tie == SEQ_NO and len(after) == total - 1)


#: Stored fields that hits have, whatever a request names.
_STORED = ("_id", "_routing", "_ignored")


def with_ids(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a body whose hits have ids; one that servers refuse stays as it is."""
    if not _bare(body) or body.get("_source") not in (None, False):
        return body
    return {**{key: value for key, value in body.items() if key != "stored_fields"}, "_source": False}


def without_unwanted_id(hit: JSON, body: Mapping[str, Any]) -> JSON:
    """Return a hit without the id and other stored fields if the request wants none."""
    return {key: hit[key] for key in hit if key not in _STORED} if _bare(body) else hit


def _bare(body: Mapping[str, Any]) -> bool:
    return body.get("stored_fields") in ("_none_", ["_none_"])


def hits_query(hits: Sequence[Mapping[str, Any]], shards: int) -> JSON:
    """Return a query that finds these hits: by id, with several shards also by index and routing."""
    if shards <= 1:
        return {"ids": {"values": [hit["_id"] for hit in hits]}}
    names: dict[tuple[Any, Any], list[Any]] = {}
    for hit in hits:
        names.setdefault((hit.get("_index"), hit.get("_routing")), []).append(hit["_id"])
    ways = [_ids_in_index(*place, ids) for place, ids in names.items()]
    return ways[0] if len(ways) == 1 else {"bool": {"should": ways, "minimum_should_match": 1}}


def _ids_in_index(index: object, routing: object, ids: Sequence[Any]) -> JSON:
    places = {"_index": index, "_routing": routing}
    filters = [{"term": {name: value}} for name, value in places.items() if value is not None]
    # A document without routing is not the one of the same id with a routing.
    clause = {"must_not": [{"exists": {"field": "_routing"}}]} if routing is None else {}
    return {"bool": {"filter": [{"ids": {"values": list(ids)}}, *filters], **clause}}


def chosen_body(
    body: Mapping[str, Any],
    chosen: JSON,
    size: int,
    source: Any = None,  # noqa: ANN401 - JSON
) -> JSON:
    """Return the body that fetches the hits a filter chooses with everything the request wants of them.

    The query stays, for names and inner hits. Highlights are those of the query alone, not of the filter.
    """
    page = {key: value for key, value in body.items() if key not in _QUERY_PARTS | _ONCE}
    page |= kept_beside_query(body)
    query = body.get("query")
    nests = query is not None and narrowable(body)
    shows_filter = "ids" not in chosen or not (nests or query is None)
    if shows_filter and isinstance(page.get("highlight"), Mapping):
        page["highlight"] = {"highlight_query": query or {"match_all": {}}, **page["highlight"]}
    if not nests:
        page["query"] = chosen
    else:
        page["query"] = {"bool": {"must": [query], "filter": [chosen]}}
    if source is not None:
        page["_source"] = source
    if keys := formatted_sort(body):
        page["sort"] = keys
    return {**page, "size": min(10_000, size), "track_total_hits": False}
