"""Members of groups that take further searches: ``inner_hits``, and copies from the index."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON
from shinglefold.errors import InputError
from shinglefold.rerank.engine_calls import Call, Steps, search_all
from shinglefold.rerank.fold.clustering import Group
from shinglefold.rerank.hits import Hit, identity, refuse_small_windows, with_source
from shinglefold.rerank.page.fetch import HitsVanished
from shinglefold.rerank.page.window import WindowReader
from shinglefold.rerank.request.arguments import DUPLICATES, InnerHits, read_source_filter
from shinglefold.rerank.request.bodies import hits_query, narrowable, without_unwanted_id
from shinglefold.rerank.request.hit_parts import wants_field, with_doc_values
from shinglefold.rerank.request.url_parameters import KEY as PIPELINE
from shinglefold.rerank.request.url_parameters import NONE
from shinglefold.rerank.similar.decision import CandidateDecision, TextSource, decide_by_texts
from shinglefold.rerank.similar.query_document import QueryDocument, candidate_queries, decisive_fields

#: The most searches sent at a time.
_AT_ONCE = 100
#: The most candidates compared for each representative.
_CANDIDATES = 100
#: Parts of a request that shape its hits and do not depend on its query.
_SHOWN = ("_source", "fields", "version", "seq_no_primary_term")


def inner_hits_of(reading: WindowReader, groups: Sequence[Group]) -> Steps[list[JSON]]:
    """Return for each group the hits of every ``inner_hits`` of the request, by name."""
    found: list[JSON] = [{} for _ in groups]
    wanted = [(place, group, one) for place, group in enumerate(groups) for one in reading.options.inner_hits]
    for begin in range(0, len(wanted), _AT_ONCE):
        part = wanted[begin : begin + _AT_ONCE]
        name, pit = reading.under_pit({})
        bodies = [_body(reading, group, one) | pit for _, group, one in part]
        answers = yield from search_all(name, bodies)
        for (place, group, one), answer in zip(part, answers, strict=True):
            reading.record_response(answer)
            whole = "collapse" in one.search or len(answer["hits"]["hits"]) >= len(_slice(group, one))
            if not whole and not reading.stays:
                raise HitsVanished
            found[place][one.name] = {"hits": _inner_hits_answer(reading, group, one, answer["hits"])}
    return found


def _body(reading: WindowReader, group: Group, one: InnerHits) -> JSON:
    places = _slice(group, one) if _ranked_here(reading, one) else group.members
    query = _query(reading, [reading.hits[place] for place in places])
    body = one.body(query, reading.body.get("_source"))
    if reading.pipeline is not None:
        body[PIPELINE] = reading.pipeline.hits
    if _ranked_here(reading, one):
        body |= {"from": 0, "size": len(_slice(group, one))}
    return body


def _slice(group: Group, one: InnerHits) -> Sequence[int]:
    return group.members[one.start : one.start + one.size]


def _ranked_here(reading: WindowReader, one: InnerHits) -> bool:
    """Return whether hits keep the order of the results, which a query for one group can't produce."""
    return one.by_rank and not narrowable(reading.body)


def _query(reading: WindowReader, hits: Sequence[Hit]) -> JSON:
    """Return the request's query narrowed to these hits, with its scores and highlights."""
    chosen = hits_query(hits, reading.shards)
    query = reading.body.get("query")
    if query is None or not narrowable(reading.body):
        return {"bool": {"filter": [chosen]}}
    return {"bool": {"must": [query], "filter": [chosen]}}


def _inner_hits_answer(
    reading: WindowReader, group: Group, one: InnerHits, answer: Mapping[str, object]
) -> JSON:
    """Return the hits of a group in the shape of ``inner_hits``; the total is that of the whole group."""
    hits: list[JSON] = list(answer["hits"])  # type: ignore[call-overload]
    if _ranked_here(reading, one):
        hits = _in_rank(reading, _slice(group, one), hits)
    if "sort" not in one.search:
        # Under a point in time a tiebreaker was added.
        hits = [{name: value for name, value in hit.items() if name != "sort"} for hit in hits]
    wanted = one.source_filter()
    relation = "eq" if reading.complete else "gte"
    return {
        "total": {"value": len(group.members), "relation": relation},
        "max_score": answer.get("max_score"),
        "hits": [with_source(hit, wanted) for hit in hits],
    }


def _in_rank(reading: WindowReader, places: Sequence[int], hits: Sequence[JSON]) -> list[JSON]:
    """Return fetched hits in the order of the results, with the scores of the results."""
    by_name = {identity(hit): hit for hit in hits}
    ranked = [reading.hits[place] for place in places]
    return [
        {**by_name[identity(hit)], "_score": hit.get("_score")} for hit in ranked if identity(hit) in by_name
    ]


class _Copies(NamedTuple):
    """Copies of a representative that were not among the results, and whether these are all."""

    hits: list[JSON]
    complete: bool


def with_copies(
    reading: WindowReader, groups: Sequence[Group], page: Sequence[JSON]
) -> Steps[tuple[list[JSON], JSON]]:
    """Return the hits of a page with copies attached that the query did not find.

    The copies are searched under the same index name, so the filters of an alias or a role apply; the query
    does not. A copy of several representatives is attached to the best-ranked one.

    Returns:
        the hits; and how many copies were added, and how many hits may have more.

    Cost: two requests: the keywords of the representatives, and one ``_msearch`` for the copies; one more for
    every 100 copies shown if the request returns a field that decides, as ``fields: ["*"]`` does.
    """
    documents = yield from _query_documents(reading, groups)
    found = yield from _find_copies(reading, documents)
    known = {identity(hit) for hit in reading.hits}
    new: list[list[JSON]] = []
    for copies in found:
        new.append([one for one in copies.hits if identity(one) not in known])
        known |= {identity(one) for one in new[-1]}
    rooms = [reading.options.members + 1 - len(hit["inner_hits"][DUPLICATES]["hits"]["hits"]) for hit in page]
    listed = [copies[:room] for copies, room in zip(new, rooms, strict=True)]
    if _is_read_twice(reading):
        fields = yield from _shown_fields(reading, [one for several in listed for one in several])
        listed = [
            [one | {"fields": fields[identity(one)]} for one in several if identity(one) in fields]
            for several in listed
        ]
    result = [
        _attach(reading, hit, several, shown, complete=copies.complete)
        for hit, several, shown, copies in zip(page, new, listed, found, strict=True)
    ]
    incomplete = sum(not copies.complete for copies in found)
    return result, {"members": sum(map(len, new)), "incomplete": incomplete}


def _query_documents(reading: WindowReader, groups: Sequence[Group]) -> Steps[list[QueryDocument | None]]:
    """Return each representative as query document; None if it can have no copies."""
    shown = [reading.hits[group.representative] for group in groups]
    if not shown:
        return []
    texts = () if reading.stage is None else reading.stage.sources
    wanted = [f"{reading.field}.supershingles", *texts]
    body = {"query": hits_query(shown, reading.shards), "size": len(shown), "track_total_hits": False}
    body |= {} if reading.pipeline is None else {PIPELINE: NONE}
    answer = yield Call("search", reading.under_pit({**body, "_source": wanted}))
    refuse_small_windows(answer)
    reading.partial.note(answer)
    sources = {identity(hit): hit.get("_source", {}) for hit in answer["hits"]["hits"]}
    if any(identity(hit) not in sources for hit in shown) and not reading.stays:
        raise HitsVanished
    return [_query_document(reading, {**hit, "_source": sources.get(identity(hit), {})}) for hit in shown]


def _query_document(reading: WindowReader, hit: Hit) -> QueryDocument | None:
    try:
        document = QueryDocument.of_hit(hit, reading.field, reading.options.scope)
    except InputError:
        return None
    if reading.stage is not None:
        document = replace(document, text=reading.stage.text_of(hit))
    made, seal = document.print, reading.seal
    fits = not made.seal if seal is None else seal.fits(made)
    return document if fits and made.scheme == reading.scheme.id else None


def _find_copies(reading: WindowReader, documents: Sequence[QueryDocument | None]) -> Steps[list[_Copies]]:
    options = reading.options
    decision = CandidateDecision(reading.scheme, options, reading.field, reading.seal, reading.stage)
    filters = () if options.member_filter is None else (options.member_filter,)
    name, pit = reading.under_pit({})
    searches = []
    for one in documents:
        queries = one and candidate_queries(
            one, reading.scheme, reading.field, decision.min_shared,
            seal=reading.seal, scopes=options.scope, filters=filters,
        )  # fmt: skip
        if one and queries:
            searches.append((one, _copies_body(reading, queries.ordered) | pit))
    answers = yield from search_all(name, [body for _, body in searches])
    for answer in answers:
        refuse_small_windows(answer)
        reading.record_response(answer)
    searched = [one for one, _ in searches]
    nominees, _ = decision.nominate(searched, [answer["hits"]["hits"] for answer in answers])
    name, pit = reading.under_pit({})
    source = TextSource(reading.stage, name, reading.shards, reading.partial, reading.field, pit)
    matches = yield from decide_by_texts(searched, nominees, source)
    found = iter(
        _Copies([dict(match.hit) for match in own], len(answer["hits"]["hits"]) < _CANDIDATES)
        for own, answer in zip(matches, answers, strict=True)
    )
    known = set(map(id, searched))
    return [next(found) if id(one) in known else _Copies([], complete=True) for one in documents]


def _copies_body(reading: WindowReader, query: JSON) -> JSON:
    """Return the search for copies; they have the parts that the request returns of its hits."""
    shown = {name: reading.body[name] for name in _SHOWN if name in reading.body}
    decisive = decisive_fields(reading.field, reading.options.scope)
    if _is_read_twice(reading):
        # Engines return the values of both reads as one list.
        shown = {name: value for name, value in shown.items() if name != "fields"}
        fields = with_doc_values({}, decisive, reading.dates)
    else:
        fields = with_doc_values(reading.body, decisive, reading.dates)
    return {
        "query": query,
        "size": _CANDIDATES,
        "track_total_hits": False,
        "_source": "stored_fields" not in reading.body,
        **shown,
        "docvalue_fields": fields,
        # A copy is shown only if the pipeline would find it.
        **({} if reading.pipeline is None else {PIPELINE: reading.pipeline.window}),
    }


def _is_read_twice(reading: WindowReader) -> bool:
    """Return whether the request returns a field by which copies are decided."""
    decisive = decisive_fields(reading.field, reading.options.scope)
    return any(wants_field(reading.body, name) for name in decisive)


def _shown_fields(reading: WindowReader, copies: Sequence[Hit]) -> Steps[dict[object, JSON]]:
    """Fetch the fields that the request returns of copies a second time, as the request returns them."""
    parts = ("fields", "docvalue_fields")
    wanted = {name: reading.body[name] for name in parts if name in reading.body}
    fields: dict[object, JSON] = {}
    for begin in range(0, len(copies), _AT_ONCE):
        part = copies[begin : begin + _AT_ONCE]
        body = {"query": hits_query(part, reading.shards), "size": len(part), "track_total_hits": False}
        body |= {} if reading.pipeline is None else {PIPELINE: NONE}
        answer = yield Call("search", reading.under_pit({**body, **wanted, "_source": False}))
        refuse_small_windows(answer)
        reading.record_response(answer)
        fields |= {identity(hit): hit.get("fields", {}) for hit in answer["hits"]["hits"]}
    if len(fields) < len(copies) and not reading.stays:
        raise HitsVanished
    return fields


def _attach(
    reading: WindowReader, hit: JSON, copies: Sequence[Hit], shown: Sequence[JSON], *, complete: bool
) -> JSON:
    """Return a hit with its copies: all of them count, and those that have not vanished are shown."""
    inner = hit["inner_hits"][DUPLICATES]["hits"]
    total = {"value": inner["total"]["value"] + len(copies)}
    total["relation"] = inner["total"]["relation"] if complete else "gte"
    wanted = read_source_filter(reading.options.member_source)
    listed = [*inner["hits"], *(with_source(_as_member(reading, one), wanted) for one in shown)]
    inner = {**inner, "total": total, "hits": listed}
    return {**hit, "inner_hits": {**hit["inner_hits"], DUPLICATES: {"hits": inner}}}


def _as_member(reading: WindowReader, copy: JSON) -> JSON:
    """Return a copy in the shape of a member: with the fields of the request, and without a score."""
    patterns = [
        str(one["field"] if isinstance(one, Mapping) else one)
        for one in (*(reading.body.get("docvalue_fields") or ()), *(reading.body.get("fields") or ()))
    ]
    fields = {
        name: value
        for name, value in (copy.get("fields") or {}).items()
        if any(fnmatch(name, pattern) for pattern in patterns)
    }
    kept: dict[str, Any] = {name: value for name, value in copy.items() if name not in ("fields", "_score")}
    kept |= {"_score": None, "found_by_query": False}
    return without_unwanted_id(kept | ({"fields": fields} if fields else {}), reading.body)
