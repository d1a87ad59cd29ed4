"""The hits of groups in orders of their own: all groups of a page in one request, as natively."""

from collections.abc import Mapping, Sequence

from shinglefold.contracts import JSON
from shinglefold.rerank.fold.folding import Group
from shinglefold.rerank.hits import Hit, identity, with_source
from shinglefold.rerank.request.bodies import narrowable, these
from shinglefold.rerank.request.inner_hits import InnerHits
from shinglefold.rerank.steps import Call, Steps
from shinglefold.rerank.window.reading import Reading

#: Searches sent at a time.
_AT_ONCE = 100


def inner_hits_of(reading: Reading, groups: Sequence[Group], index: str | None) -> Steps[list[JSON]]:
    """Return for each group the hits of every ``inner_hits`` asked for, by name, as engines answer them."""
    asked = reading.options.inner_hits
    found: list[JSON] = [{} for _ in groups]
    wanted = [(place, group, one) for place, group in enumerate(groups) for one in asked]
    for begin in range(0, len(wanted), _AT_ONCE):
        part = wanted[begin : begin + _AT_ONCE]
        where = None if reading.pit is not None else index
        bodies = [_body(reading, group, one) for _, group, one in part]
        answers = yield Call("msearch", ([(where, body) for body in bodies],))
        for (place, group, one), answer in zip(part, answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            reading.heard(answer)
            found[place][one.name] = {"hits": _told(reading, group, one, answer["hits"])}
    return found


def _body(reading: Reading, group: Group, one: InnerHits) -> JSON:
    body = one.body(_query(reading, _chosen(reading, group, one)), reading.body.get("_source"))
    if _ranked_here(reading, one):
        body |= {"from": 0, "size": len(_slice(group, one))}
    if reading.pit is not None:
        body["pit"] = {**reading.keep, "id": reading.pit}
    return body


def _chosen(reading: Reading, group: Group, one: InnerHits) -> list[Hit]:
    places = _slice(group, one) if _ranked_here(reading, one) else group.members
    return [reading.hits[place] for place in places]


def _slice(group: Group, one: InnerHits) -> Sequence[int]:
    return group.members[one.start : one.start + one.size]


def _ranked_here(reading: Reading, one: InnerHits) -> bool:
    """Tell whether the order is that of the results and no query of this group alone could give it."""
    return one.by_rank and not narrowable(reading.body)


def _query(reading: Reading, hits: Sequence[Hit]) -> JSON:
    """Return the request's query narrowed to some hits, so that scores and highlights are its own."""
    chosen = these(hits, reading.shards)
    query = reading.body.get("query")
    if query is None or not narrowable(reading.body):
        return {"bool": {"filter": [chosen]}}
    return {"bool": {"must": [query], "filter": [chosen]}}


def _told(reading: Reading, group: Group, one: InnerHits, answered: Mapping[str, object]) -> JSON:
    """Return the hits of a group as an engine tells inner hits, their number that of the whole group."""
    hits: list[JSON] = list(answered["hits"])  # type: ignore[call-overload]
    if _ranked_here(reading, one):
        hits = _in_rank(reading, _slice(group, one), hits)
    if "sort" not in (one.search or {}):
        # A point in time adds the key that makes an order total.
        hits = [{name: value for name, value in hit.items() if name != "sort"} for hit in hits]
    wanted = one.source_filter()
    relation = "eq" if reading.complete else "gte"
    return {
        "total": {"value": len(group.members), "relation": relation},
        "max_score": answered.get("max_score"),
        "hits": [with_source(hit, wanted) for hit in hits],
    }


def _in_rank(reading: Reading, places: Sequence[int], hits: Sequence[JSON]) -> list[JSON]:
    """Return fetched hits in the order of the results, with the scores they have there."""
    by_name = {identity(hit): hit for hit in hits}
    ranked = [reading.hits[place] for place in places]
    return [
        {**by_name[identity(hit)], "_score": hit.get("_score")} for hit in ranked if identity(hit) in by_name
    ]
