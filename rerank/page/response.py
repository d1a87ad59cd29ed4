"""Builds the response: the engine's own, with representatives as hits, their members, and our counters."""

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shinglefold.contracts.engine import JSON
from shinglefold.documents import FORMAT
from shinglefold.errors import ConfigError, EngineError, EngineUnavailable, quote
from shinglefold.options.validation import expected
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.fold.clustering import Collapsed, Group
from shinglefold.rerank.fold.matcher import UncertaintyBand
from shinglefold.rerank.hits import identity, refuse_small_windows, stored_texts, with_source
from shinglefold.rerank.page.fetch import (
    AmbiguousSeqNo,
    HitsVanished,
    fetch_fields,
    fetch_hits,
    page_hits,
    split_stale,
)
from shinglefold.rerank.page.window import WindowReader
from shinglefold.rerank.representatives import Candidate, choose, load_policies
from shinglefold.rerank.request.arguments import DUPLICATES, read_source_filter, request_source_filter
from shinglefold.rerank.request.bodies import shown_keys
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.rerank.request.hit_parts import completions_body

if TYPE_CHECKING:
    from shinglefold.rerank.fold.text_verification import TextStage, TextVerdict
    from shinglefold.rerank.fold.uncertain_pairs import DecidedGroups, Pair


#: The key of our counters in a response.
KEY = "dedup"
METHOD = "groups seen + hits not read × share of hits that begin a group in the second half of the window"
METHOD_BY_TEXT = "groups by text on this page, by signature on the others"


def duplicates(hit: Mapping[str, Any]) -> list[JSON]:
    """Return the folded hits attached to a hit of a response, without the hit itself.

    Raises:
        ConfigError: it is not a hit, or the whole response.
    """
    if not isinstance(hit, Mapping) or "hits" in hit:
        raise expected("hit", 'one hit of an answer, such as page["hits"]["hits"][0]', hit)
    own = identity(hit)
    inner = hit.get("inner_hits", {}).get(DUPLICATES, {}).get("hits", {}).get("hits", ())
    if own[1] is None:
        # Hits without ids can't be compared, but the hit itself comes first.
        return list(inner[1:])
    return [other for other in inner if identity(other) != own]


def answer_page(reading: WindowReader) -> Steps[JSON]:
    """Fetch the hits of the page and their members, and return the response."""
    while True:
        reading.check_facts()
        try:
            return (yield from _answer_page(reading))
        except AmbiguousSeqNo:
            if not reading.numbers:
                raise EngineUnavailable(
                    "the hits of a search have no [_id], though the request asks for it: something else "
                    "answers than the engine, such as a proxy. Try again, and check the address"
                ) from None
            yield from reading.read_again()
        except HitsVanished:
            yield from _stay(reading)
            yield from reading.read_again()


def _stay(reading: WindowReader) -> Steps[None]:
    """Read under a point in time from now on, if the engine opens one.

    Then all requests of the page see the same documents, even if the index is replaced meanwhile.
    """
    if reading.stays or not reading.keep_alive:
        return
    try:
        pit = yield Call("open_pit", (reading.index, reading.keep_alive))
    except EngineError:
        # A role may not open one, or too many are open.
        return
    reading.use_pit(pit, {"keep_alive": reading.keep_alive})
    reading.owns_pit = True


def _answer_page(reading: WindowReader) -> Steps[JSON]:
    collapsed = reading.collapsed()
    groups: Sequence[Group] = collapsed.groups[reading.start : reading.needed]
    attached = [_first_members(group, reading.options.members) for group in groups]
    found = yield from fetch_hits(reading, [place for places in attached for place in places])
    before = len(groups)
    groups, stale = yield from split_stale(
        reading, groups, found, lambda places: _sort_by_preference(reading, places)
    )
    attached = [_first_members(group, reading.options.members) for group in groups] if stale else attached
    added = len(groups) - before
    decided, text_verdicts = yield from _decide_by_text(reading, groups, attached, found, stale=stale)
    if decided is not None:
        decided = decided._replace(parted=decided.parted + added)
        groups = tuple(decided.groups)
        attached = [_first_members(group, reading.options.members) for group in groups]
    inner = _as_members(found, reading.options.member_source)
    page = [
        found[group.representative] | _inner_hits(reading, group, [inner[at] for at in places if at in inner])
        for group, places in zip(groups, attached, strict=True)
        if group.representative in found
    ]
    if reading.options.inner_hits:
        from shinglefold.rerank.page.members import inner_hits_of

        shown = [group for group in groups if group.representative in found]
        named = yield from inner_hits_of(reading, shown)
        page = [hit | {"inner_hits": hit["inner_hits"] | own} for hit, own in zip(page, named, strict=True)]
    counters = _counters(reading, collapsed, decided) | {"vanished": len(groups) - len(page)}
    if decided is not None:
        counters["by_text"] = {"joined": decided.joined, "parted": decided.parted}
        counters["stale"] = len(stale)
    if reading.options.members_from == "index":
        from shinglefold.rerank.page.members import with_copies

        shown = [group for group in groups if group.representative in found]
        page, counters["from_index"] = yield from with_copies(reading, shown, page)
    page, cut = yield from page_hits(reading, page)
    if cut:
        reading.partial.note({}, cut)
    if reading.options.explain:
        texts, shown_places = reading.texts, sorted({place for places in attached for place in places})
        sources = (yield from fetch_fields(reading, shown_places, texts.sources)) if texts is not None else {}
        counters["explain"] = [_explain_group(reading, places, sources, text_verdicts) for places in attached]
    if reading.partial:
        # Fetching texts may have been the first request with a partial answer.
        counters["groups_total"] = _groups_total(reading, collapsed, decided)
        counters["partial"] = dict(reading.partial.lacks)
    suggested = yield from _completions(reading)
    return _answer(reading, page) | suggested | {KEY: counters}


def _completions(reading: WindowReader) -> Steps[JSON]:
    """Return the suggesters of a request that has completions, which a window can't return; else {}."""
    body = completions_body(reading.body)
    if body is None or not (reading.cursor is None or reading.cursor.fresh):
        return {}
    answer: JSON = yield Call("search", reading.under_pit(body))
    refuse_small_windows(answer)
    reading.record_response(answer)
    return {"suggest": answer["suggest"]} if "suggest" in answer else {}


def _first_members(group: Group, members: int) -> list[int]:
    """Return the representative and up to ``members`` other members, in rank order."""
    others = [place for place in group.members if place != group.representative]
    return [group.representative, *others[:members]]


def _decide_by_text(
    reading: WindowReader,
    groups: Sequence[Group],
    attached: Sequence[Sequence[int]],
    found: Mapping[int, JSON],
    *,
    stale: Container[int],
) -> "Steps[tuple[DecidedGroups | None, Mapping[Pair, TextVerdict]]]":
    """Return the groups of the page after the texts decided its uncertain pairs, and the verdicts by pair.

    The groups are None if texts do not decide.
    """
    stage = reading.stage
    if stage is None or reading.options.verify != "text":
        return None, {}
    from shinglefold.rerank.fold.uncertain_pairs import (
        Signatures,
        apply_text_verdicts,
        chained_members,
        pairs_of,
        pairs_of_leavers,
    )

    places = [place for place in sorted(found) if place not in stale]
    signatures = Signatures(stage.scheme, reading.options, places, reading.columns(places))
    of_page = pairs_of(groups, attached)
    pairs, sure, as_bags = signatures.classify(of_page)
    texts: dict[int, str] = {}
    yield from _add_texts(reading, found, stage, pairs, texts)
    text_verdicts = stage.decide_texts(pairs, texts, as_bags)
    verdicts = {pair: one.alike for pair, one in text_verdicts.items()}
    if stale and UncertaintyBand.of(stage.scheme, reading.options) is not None:
        # Members of a group whose representative was stale need not match the new one.
        verdicts = dict.fromkeys(set(of_page) - set(pairs) - sure, False) | verdicts
    # Members that leave their group may match each other, or another representative.
    # With connected linkage a member need not match the representative.
    chains = reading.options.linkage == "connected"
    leavers = pairs_of_leavers(groups, verdicts, attached if chains else ())
    more, certain, hopes = signatures.classify(leavers)
    new = [pair for pair in more if pair not in verdicts]
    yield from _add_texts(reading, found, stage, new, texts)
    text_verdicts |= stage.decide_texts(new, texts, hopes)
    verdicts |= {pair: one.alike for pair, one in text_verdicts.items()}
    sure |= certain
    verdicts = dict.fromkeys(sure, True) | verdicts
    chained = chained_members(groups, attached, verdicts) if chains else ()
    decided = apply_text_verdicts(groups, verdicts, chained, lambda gone: _sort_by_preference(reading, gone))
    return decided, text_verdicts


def _sort_by_preference(reading: WindowReader, places: Sequence[int]) -> list[int]:
    """Return hits in the order in which the policies of the request prefer them."""
    policies = load_policies(reading.options.representative)
    counts = reading.columns(places).shingles
    left = [Candidate(at, int(counts[row]), reading.hits[at]) for row, at in enumerate(places)]
    ordered = []
    while policies and left:
        best = choose(policies, left)
        ordered.append(best.rank)
        left.remove(best)
    return ordered or list(places)


def _add_texts(
    reading: WindowReader,
    found: Mapping[int, JSON],
    stage: "TextStage",
    pairs: "Sequence[Pair]",
    texts: dict[int, str],
) -> "Steps[None]":
    """Add the texts of the hits in these pairs; fetch those that the request does not return."""
    places = sorted({at for pair in pairs for at in pair} - texts.keys())
    shown = request_source_filter(reading.body.get("_source"))
    sources: dict[int, JSON] = {}
    if all(map(shown.shows, stage.fields)):
        sources = {place: found[place].get("_source") or {} for place in places}
    # Only the format tells whether a text with these characters is HTML.
    plain = shown.shows(FORMAT)
    unknown = [
        at for at in places if at not in sources or not (plain or _is_plain(sources[at], stage.fields))
    ]
    if unknown:
        sources |= yield from fetch_fields(reading, unknown, stage.sources)
    texts.update({at: stage.text(source, str(reading.hits[at]["_index"])) for at, source in sources.items()})


def _is_plain(source: JSON, fields: Sequence[str]) -> bool:
    return not any(mark in text for name in fields for _, text in stored_texts(source, name) for mark in "<&")


def _as_members(found: Mapping[int, JSON], source: object) -> Mapping[int, JSON]:
    """Return hits with their sources filtered for members.

    The request's own filter was applied before; this one can only narrow it.
    """
    if source is None:
        return found
    wanted = read_source_filter(source)
    return {place: with_source(hit, wanted) for place, hit in found.items()}


def _inner_hits(reading: WindowReader, group: Group, hits: Sequence[JSON]) -> JSON:
    scores = [score for place in group.members if (score := reading.hits[place].get("_score")) is not None]
    inner = {
        "total": {"value": len(group.members), "relation": "eq" if reading.complete else "gte"},
        "max_score": max(scores, default=None),
        "hits": list(hits),
    }
    own = hits[0].get("inner_hits", {}) if hits else {}
    check_not_taken(own, reading.options)
    return {"inner_hits": {**own, DUPLICATES: {"hits": inner}}}


def check_not_taken(own: Container[str], options: FoldOptions) -> None:
    """Raise ``ConfigError`` if inner hits of the query have a name that the members of groups have."""
    for name in (DUPLICATES, *(one.name for one in options.inner_hits)):
        if name in own:
            raise ConfigError(
                f"inner_hits: the members of each group are called {quote(name)}; give those of the query "
                'another name: "inner_hits": {"name": …}'
            )


def _explain_group(
    reading: WindowReader,
    places: Sequence[int],
    sources: Mapping[int, JSON],
    text_verdicts: "Mapping[Pair, TextVerdict]",
) -> JSON:
    from shinglefold.rerank.explanation import explain

    shown = reading.hits[places[0]]
    members = []
    for place in places[1:]:
        explanation = explain(shown, reading.hits[place], reading.scheme, reading.field, reading.options)
        pair = min(places[0], place), max(places[0], place)
        if reading.stage is not None and (verdict := text_verdicts.get(pair)) is not None:
            explanation["text"] = verdict.to_json(reading.stage.needed)
            explanation["decided_by"] = verdict.decided_by(reading.stage.needed) if verdict.alike else "chain"
        if reading.texts is not None:
            sides = [(reading.hits[at], sources.get(at, {})) for at in (places[0], place)]
            explanation["passages"] = reading.texts.passages(*sides)
        members.append(explanation)
    return {"_index": shown.get("_index"), "_id": shown.get("_id"), "members": members}


def _counters(reading: WindowReader, collapsed: Collapsed, decided: "DecidedGroups | None") -> JSON:
    """Return the counters; ``groups``, ``folded`` and ``repeated`` add up to ``window``."""
    counts = collapsed.counts
    more = 0 if decided is None else decided.more
    return {
        "scheme": reading.scheme.id,
        "mode": "window",
        "window": counts.hits,
        "stopped_by": reading.stopped_by,
        "order": reading.order,
        "groups": len(collapsed.groups) + more,
        "groups_total": _groups_total(reading, collapsed, decided),
        "folded": collapsed.folded + counts.earlier - more,
        "repeated": counts.repeated,
        "unsigned": counts.unsigned,
        "unreadable": counts.unreadable,
        "other_schemes": dict(counts.other_schemes),
        "languages": dict(counts.languages),
    }


def _groups_total(reading: WindowReader, collapsed: Collapsed, decided: "DecidedGroups | None") -> JSON:
    cursor, ended = reading.cursor, reading.complete
    before = 0 if cursor is None else cursor.count
    if cursor is not None and not cursor.fresh:
        total = later_groups_total(cursor.total, before + len(collapsed.groups), ended=ended)
    else:
        # The total also counts the hits before a ``search_after``.
        known = "search_after" not in reading.body and not (reading.partial or reading.k_raised)
        hits = (reading.first or {}).get("hits", {}).get("total") if known else None
        first = [members[0] for _, members in collapsed.groups]
        total = groups_total(first, len(reading.hits), hits, ended=ended)
    if decided is None:
        return total
    all_on_page = not reading.start and len(collapsed.groups) <= reading.needed
    return groups_total_by_text(total, before + len(decided.groups), decided.more, all_on_page=all_on_page)


def _answer(reading: WindowReader, page: list[JSON]) -> JSON:
    """Return the first answer with the page as its hits; everything else is unchanged."""
    first = dict(reading.first or {})
    hits = {**first.get("hits", {}), "hits": page}
    if "pit" not in reading.body:
        first.pop("pit_id", None)
    elif "pit_id" in first:
        first["pit_id"] = reading.pit
    if hits.get("max_score") is None and reading.tie and not shown_keys(reading.body) and reading.hits:
        # A sort made the order total, and engines leave max_score out of sorted answers.
        hits["max_score"] = reading.hits[0].get("_score")
    return {**first, **reading.partial.header, "hits": hits}


def groups_total(first: Sequence[int], read: int, total: object, *, ended: bool) -> JSON:
    """Return the number of groups of all hits.

    Args:
        first: for each group seen, the rank of its best-ranked member, from 0.
        read: how many hits were read, from the first one on.
        total: ``hits.total`` of the answer; None if it does not count these hits.
        ended: whether these are all hits.

    Returns:
        ``value`` and ``relation``: ``eq``; ``gte`` (groups seen; the rest is unknown); or
        ``estimate``, with its ``method``, the ``window`` it is based on, and ``of``, the total it is
        extrapolated to.

    The estimate extrapolates the share of new groups in the second half of the window. If copies rank near
    each other, as when scored by their text, the mean of many estimates is 0.85 to 1.15 of the truth.
    If copies are scattered at random over a much longer list it is too high, at worst by the mean size of
    a group. It is never below the groups seen and never above the total.
    """
    seen = len(first)
    hits, exact = _hits(total)
    if ended or (exact and hits is not None and 0 <= hits <= read):
        return {"value": seen, "relation": "eq"}
    if hits is None or hits <= read or not read:
        return {"value": seen, "relation": "gte"}
    half = read // 2
    share = sum(map(half.__le__, first)) / (read - half)
    value = seen + round((hits - read) * share)
    of = {"value": hits, "relation": "eq" if exact else "gte"}
    return {"value": value, "relation": "estimate", "method": METHOD, "window": read, "of": of}


def later_groups_total(first: Mapping[str, Any] | None, seen: int, *, ended: bool) -> JSON:
    """Return the number of groups for a later page of a cursor: exact on the last page, else as on the first.

    Args:
        first: ``groups_total`` of the first page.
        seen: groups on the pages so far, and in the hits read beyond them.
    """
    if ended:
        return {"value": seen, "relation": "eq"}
    if first is None or first["relation"] != "estimate":
        return {"value": seen, "relation": "gte"}
    return {**first, "value": max(seen, first["value"])}


def groups_total_by_text(total: Mapping[str, Any], shown: int, more: int, *, all_on_page: bool) -> JSON:
    """Return ``groups_total`` after the texts decided the groups of a page, but not those of other pages.

    Args:
        total: the number by signature.
        shown: groups on this page and on the earlier pages of a cursor.
        more: how many more groups this page has by text than by signature.
        all_on_page: whether no later page follows among the hits read, and none came before without a cursor.
    """
    if total["relation"] == "gte":
        return {"value": shown, "relation": "gte"}
    value = max(shown, total["value"] + more)
    if total["relation"] == "estimate" or all_on_page:
        return {**total, "value": value}
    return {"value": value, "relation": "estimate", "method": METHOD_BY_TEXT}


def _hits(total: object) -> tuple[int | None, bool]:
    """Return the value of ``hits.total``, and whether it is exact."""
    if isinstance(total, Mapping) and isinstance(total.get("value"), int):
        return total["value"], total.get("relation") == "eq"
    return None, False
