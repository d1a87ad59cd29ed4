"""Fetches the hits of a page, by sequence number if possible, else by id, and splits off stale ones.

Engines store ids with the sources, so reading 200 ids costs more than everything else that folding reads.
Sequence numbers are doc values, and unique within a shard. The exception is an index made by ``_shrink``: its
documents keep the numbers that they had in several shards.

A hit is stale if its fingerprint was made of another text. It is shown alone.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shinglefold.contracts.engine import JSON
from shinglefold.errors import WindowTooLarge
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.fold.clustering import Group
from shinglefold.rerank.hits import (
    Hit,
    identity,
    refuse_rejected_hits,
    refuse_small_windows,
    stored_fingerprint,
)
from shinglefold.rerank.request.arguments import formatted_places, request_source_filter, sort_keys
from shinglefold.rerank.request.bodies import (
    SEQ_NO,
    chosen_body,
    hits_query,
    shown_keys,
    with_ids,
    without_unwanted_id,
)
from shinglefold.rerank.request.hit_parts import WITH_IDS, adds_to_hits, with_doc_values, without_fields
from shinglefold.rerank.request.url_parameters import KEY as PIPELINE
from shinglefold.rerank.request.url_parameters import NONE

if TYPE_CHECKING:
    from shinglefold.rerank.fold.text_verification import TextStage
    from shinglefold.rerank.page.window import WindowReader


#: The number of hits fetched with one request.
_AT_ONCE = 1000

#: Parts of a request that depend on its query, in addition to the hits and their order.
_QUERY_KEYS = ("highlight", "script_fields", "ext")
Key = tuple[Any, ...]
#: The most hits that a server returns at a time by default.
_MOST = 10_000


class AmbiguousSeqNo(Exception):
    """Sequence numbers do not identify the hits: read the hits again with ids."""


class HitsVanished(Exception):
    """Hits are missing: their documents changed, or an alias moved to another index. Read the hits again."""


def without_ids(window: JSON) -> JSON:
    """Return the body of a window with sequence numbers instead of ids.

    Unchanged if it needs sources, or has inner hits: engines find these by the ids of their hits.
    """
    if window["_source"] is not False or adds_to_hits([*window.values()], WITH_IDS):
        return window
    fields = [*window["docvalue_fields"], SEQ_NO]
    return {**window, "stored_fields": "_none_", "docvalue_fields": fields}


def are_numbered(hits: Sequence[Hit]) -> bool:
    """Return whether hits were read without ids."""
    return bool(hits) and "_id" not in hits[0]


class SeqNoFetch:
    """Fetches hits by sequence number and digest, from one shard or several."""

    def __init__(self, body: Mapping[str, Any], shards: int, dedup: str) -> None:
        self._body = body
        self._shards = shards or 2
        self._digest = f"{dedup}.digest"
        self._dropped = () if body.get("seq_no_primary_term") else (SEQ_NO, "_primary_term")

    def request(self, hits: Sequence[Hit], source: Any) -> JSON:  # noqa: ANN401 - JSON
        """Return the body that fetches hits with everything that the request returns of them.

        Raises:
            AmbiguousSeqNo: two hits have the same number and the same text.
        """
        keys = [self._key(hit, _number(hit)) for hit in hits]
        if len(set(keys)) < len(keys):
            raise AmbiguousSeqNo
        filters: list[JSON] = [{"terms": {SEQ_NO: sorted({number for _, number, _ in keys})}}]
        digests = {text for _, _, text in keys}
        if self._shards > 1 and None not in digests:
            # Other shards have documents with the same numbers; digests exclude nearly all of them.
            filters.append({"terms": {self._digest: sorted(map(str, digests))}})
        body = self._body if _needs_query(self._body) else {**self._body, "query": None}
        request = chosen_body(body, {"bool": {"filter": filters}}, self._most(hits), source)
        request["docvalue_fields"] = with_doc_values(request, [self._digest])
        return {**request, "seq_no_primary_term": True}

    def hits_in_order(self, hits: Sequence[Hit], answer: Sequence[JSON]) -> list[JSON]:
        """Return the requested hits of an answer, in their order.

        Raises:
            AmbiguousSeqNo: two hits match, or another one has the number.
            HitsVanished: a hit is missing.
        """
        if len(answer) >= self._most(hits):
            # The requested document may be among the hits that were cut off.
            raise AmbiguousSeqNo
        fetched: dict[Key, JSON] = {}
        for hit in answer:
            key = self._key(hit, hit.get(SEQ_NO))
            if key in fetched:
                raise AmbiguousSeqNo
            fetched[key] = hit
        try:
            return [self._without_added_fields(fetched[self._key(hit, _number(hit))]) for hit in hits]
        except KeyError:
            places = {key[:2] for key in fetched}
            missing = (hit for hit in hits if self._key(hit, _number(hit)) not in fetched)
            taken = any((hit.get("_index"), _number(hit)) in places for hit in missing)
            raise (AmbiguousSeqNo if taken else HitsVanished) from None

    def _most(self, hits: Sequence[Hit]) -> int:
        """Return a size above the number of documents with these numbers in all shards."""
        return min(_MOST, len(hits) * self._shards + 1)

    def _key(self, hit: Hit, number: object) -> Key:
        return hit.get("_index"), number, self._text(hit)

    def _text(self, hit: Hit) -> object:
        values = (hit.get("fields") or {}).get(self._digest)
        return values[0] if values else None

    def _without_added_fields(self, hit: JSON) -> JSON:
        """Return a hit without the fields that were added to identify it."""
        kept = dict(hit)
        for name in self._dropped:
            kept.pop(name, None)
        return without_fields(kept, self._body, [self._digest])


def _number(hit: Hit) -> int:
    try:
        number: int = hit["fields"][SEQ_NO][0]
    except (KeyError, IndexError):
        raise AmbiguousSeqNo from None
    return number


def _needs_query(body: Mapping[str, Any]) -> bool:
    return any(key in body for key in _QUERY_KEYS) or adds_to_hits(body.get("query"))


def fetch_hits(reading: "WindowReader", places: Sequence[int]) -> Steps[dict[int, JSON]]:
    """Return hits with everything that the request returns; vanished ones are left out if reading stays.

    Raises:
        HitsVanished: some are missing, and may be found by reading again.
    """
    hits, body = reading.hits, reading.body
    # A request with its own point in time also needs the tiebreaker to continue.
    whole = sort_keys(body) if "pit" in body else shown_keys(body) if "retriever" in body else ()
    keys = slice(None) if whole else slice(len(shown_keys(body))) if shown_keys(body) else None
    formatted = formatted_places(body)
    if reading.completely:
        values: dict[int, JSON] = {}
        if formatted:
            values = yield from _by_id(reading, {"sort": body["sort"]}, places, source=False)
        return {at: _as_requested(reading, hits[at], keys, formatted, values.get(at, {})) for at in places}
    found = yield from _by_id(reading, reading.body, places, source=None)
    return {at: _with_ranking(hits[at], hit, keys, formatted, hit) for at, hit in found.items()}


def _by_id(
    reading: "WindowReader",
    body: Mapping[str, Any],
    places: Sequence[int],
    *,
    source: Any,  # noqa: ANN401 - JSON
) -> Steps[dict[int, JSON]]:
    if are_numbered(reading.hits):
        return (yield from _by_seq_no(reading, body, places, source))
    found: dict[tuple[Any, ...], JSON] = {}
    done = 0
    while done < len(places):
        at_once = min(_AT_ONCE, reading.most)
        hits = [reading.hits[place] for place in places[done : done + at_once]]
        try:
            answer = yield from _search_hits(
                reading,
                chosen_body(with_ids(body), hits_query(hits, reading.shards), len(hits), source),
                source,
            )
        except WindowTooLarge:
            if len(hits) == 1:
                raise
            reading.most = len(hits) // 2
            continue
        found |= {identity(hit): hit for hit in answer["hits"]["hits"]}
        done += len(hits)
    wanted = {place: found.get(identity(reading.hits[place])) for place in places}
    if None in wanted.values() and not reading.stays:
        raise HitsVanished
    return {place: without_unwanted_id(hit, body) for place, hit in wanted.items() if hit is not None}


def _by_seq_no(
    reading: "WindowReader",
    body: Mapping[str, Any],
    places: Sequence[int],
    source: Any,  # noqa: ANN401 - JSON
) -> Steps[dict[int, JSON]]:
    found: list[JSON] = []
    numbered = SeqNoFetch(body, reading.shards, reading.field)
    for begin in range(0, len(places), _AT_ONCE):
        hits = [reading.hits[place] for place in places[begin : begin + _AT_ONCE]]
        try:
            answer = yield from _search_hits(reading, numbered.request(hits, source), source)
        except WindowTooLarge:
            # Requests by id may be smaller.
            raise AmbiguousSeqNo from None
        found += numbered.hits_in_order(hits, answer["hits"]["hits"])
    return dict(zip(places, found, strict=True))


def _search_hits(
    reading: "WindowReader",
    request: JSON,
    source: Any,  # noqa: ANN401 - JSON
) -> Steps[JSON]:
    """Fetch hits that were read before, and record what the answer lacks.

    Args:
        source: the fields to compare, as stored; None fetches what is shown, through the search pipeline.
    """
    if reading.pipeline is not None:
        request = {**request, PIPELINE: reading.pipeline.hits if source is None else NONE}
    answer: JSON = yield Call("search", reading.under_pit(request))
    refuse_small_windows(answer)
    refuse_rejected_hits(answer)
    reading.record_response(answer)
    return answer


def fetch_fields(
    reading: "WindowReader", places: Sequence[int], fields: Sequence[str]
) -> Steps[dict[int, JSON]]:
    """Fetch source fields of hits, whatever the filter of the request is."""
    found = yield from _by_id(reading, {}, places, source=list(fields))
    return {place: hit.get("_source") or {} for place, hit in found.items()}


def _as_requested(
    reading: "WindowReader", hit: Hit, keys: slice | None, formatted: Sequence[int], values: Hit
) -> JSON:
    """Return a hit of a window that was read with everything, without what folding added."""
    shown = without_fields({name: hit[name] for name in hit if name != "sort"}, reading.body, reading.fields)
    return without_unwanted_id(_with_ranking(hit, shown, keys, formatted, values), reading.body)


def _with_ranking(hit: Hit, fetched: JSON, keys: slice | None, formatted: Sequence[int], values: Hit) -> JSON:
    """Return a fetched hit with the score and sort values of the search that ranked it.

    Args:
        keys: the sort values to return; None for none.
        formatted: the places of the sort keys that have a format.
        values: a hit whose sort values are a constant and the formatted ones.
    """
    ranked = {**fetched, "_score": hit.get("_score")}
    if keys is not None and "sort" in hit:
        sort = list(hit["sort"])
        for place, value in zip(formatted, values.get("sort", ())[1:], strict=False):
            sort[place] = value
        ranked["sort"] = sort[keys]
    return ranked


def page_hits(reading: "WindowReader", page: Sequence[JSON]) -> Steps[tuple[list[JSON], int]]:
    """Return the hits shown as the search pipeline leaves them, and how many of them it has cut.

    They are found again in the order of the page, so that processors see what they see natively.
    """
    if reading.pipeline is None or reading.pipeline.page is None or not page:
        return list(page), 0
    chosen = hits_query(page, reading.shards)
    weights = [
        {"filter": hits_query([hit], reading.shards), "weight": len(page) - at} for at, hit in enumerate(page)
    ]
    ranked = {"query": chosen, "functions": weights, "score_mode": "max", "boost_mode": "replace"}
    body = {name: value for name, value in reading.body.items() if name not in ("query", *_QUERY_KEYS)}
    request = chosen_body(with_ids(body), {"function_score": ranked}, len(page))
    request[PIPELINE] = reading.pipeline.page
    answer: JSON = yield Call("search", reading.under_pit(request))
    reading.record_response(answer)
    known = {identity(hit): (len(page) - at, hit) for at, hit in enumerate(page)}
    result = []
    for hit in answer["hits"]["hits"]:
        weight, shown = known[identity(hit)]
        # A processor may change the ranking.
        score = {} if hit.get("_score") == weight else {"_score": hit.get("_score")}
        own = {name: value for name, value in hit.items() if name not in ("_score", "sort")}
        result.append({**own, **shown, **{n: own[n] for n in ("_source",) if n in own}, **score})
    return result, len(page) - len(result)


def split_stale(
    reading: "WindowReader",
    groups: Sequence[Group],
    found: dict[int, JSON],
    prefer: Callable[[Sequence[int]], Sequence[int]],
) -> Steps[tuple[Sequence[Group], set[int]]]:
    """Return the groups of a page without stale hits, these as groups of their own, and the stale hits.

    A hit that is in no group with another one is not examined. A group whose representative is stale gets
    another.

    Args:
        found: the hits fetched for the page; those of other representatives are added.
        prefer: sorts hits by preference as representatives.

    Cost: a digest of each new text; one more request if the request hides the texts, or if a representative
    was not fetched.
    """
    stage = reading.stage
    if stage is None or stage.signed is None or reading.options.verify != "text":
        return groups, set()
    stale = yield from _stale(reading, stage, _in_groups(groups, found), found)
    asked: set[int] = set()
    while stale:
        split = sorted(_split_groups(groups, stale, prefer), key=lambda group: group.members[0])
        new = [one.representative for one in split if one.representative not in found.keys() | asked]
        if not new:
            return split, stale
        asked |= set(new)
        found |= yield from fetch_hits(reading, new)
        stale |= yield from _stale(reading, stage, _in_groups(split, set(new) & found.keys()), found)
    return groups, stale


def _in_groups(groups: Sequence[Group], places: Container[int]) -> list[int]:
    """Return the hits that are in a group with another one; the others hide nothing."""
    return [at for group in groups if len(group.members) > 1 for at in group.members if at in places]


def _stale(
    reading: "WindowReader",
    stage: "TextStage",
    places: Sequence[int],
    found: Mapping[int, JSON],
) -> Steps[set[int]]:
    """Return the hits whose fingerprint was made of another text; read texts that the request hides."""
    shown = request_source_filter(reading.body.get("_source"))
    if all(map(shown.shows, stage.sources)):
        sources: Mapping[int, JSON] = {at: found[at].get("_source") or {} for at in places}
    else:
        sources = yield from fetch_fields(reading, places, stage.sources)
    digests = {at: stored_fingerprint(reading.hits[at], reading.field).get("digest") for at in sources}
    return stage.stale(
        {at: (source, str(digest[0])) for at, source in sources.items() if (digest := digests[at])}
    )


def _split_groups(
    groups: Sequence[Group], stale: set[int], prefer: Callable[[Sequence[int]], Sequence[int]]
) -> Iterator[Group]:
    for group in groups:
        rest = tuple(at for at in group.members if at not in stale)
        if rest:
            shown = group.representative
            yield Group(prefer(rest)[0] if shown in stale else shown, rest)
        for at in group.members:
            if at in stale:
                yield Group(at, (at,))
