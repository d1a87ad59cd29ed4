"""Pages that the engine makes, in our shape: collapsed by group numbers, or not folded."""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError, EngineError, chain, counted, suggest
from shinglefold.rerank.engine_calls import Call, Steps, search_all
from shinglefold.rerank.hits import (
    CUT,
    PartialAnswer,
    field_values,
    identity,
    lost_hits,
    missing_parts,
    with_source,
)
from shinglefold.rerank.index_knowledge import IndexFacts
from shinglefold.rerank.page.collapse_request import (
    PRECISION,
    SAMPLE,
    TOTAL,
    GroupCounter,
    GroupCounts,
    ResultSizes,
    attaches_members,
    group_field,
    is_called,
    obstacles,
    page_request,
    policy_sort,
    ungrouped_request,
)
from shinglefold.rerank.page.response import KEY, check_not_taken
from shinglefold.rerank.page.window import StoppedBy
from shinglefold.rerank.request.arguments import (
    DUPLICATES,
    key_name,
    read_source_filter,
    rises_by_score,
    sort_keys,
)
from shinglefold.rerank.request.bodies import (
    limit_of,
    narrowable,
    page_bounds,
    rank_window,
    without_unwanted_id,
)
from shinglefold.rerank.request.fold_options import SearchRequest
from shinglefold.rerank.request.hit_parts import inner_hit_names, without_fields
from shinglefold.runtime.recent import RecentlyUsed

#: Seconds after which coverage is counted again; at once if a page shows a document without a group number.
_VALID_SECONDS = 30.0
#: How often the engine is asked for a page with members from one index.
_MOST_TRIES = 3
_METHOD = "distinct numbers of groups, counted by the engine's cardinality"


class GroupCoverage:
    """Coverage of indices by group numbers, by index name; counted again every half minute.

    Attributes:
        sizes: predicts how many results searches have.
    """

    def __init__(self) -> None:
        self._checked: RecentlyUsed[str | None, tuple[float, str]] = RecentlyUsed()
        self.sizes = ResultSizes()

    def obstacle(self, index: str | None, facts: IndexFacts) -> Steps[str]:
        """Return why an index can't be searched by group number, counted every half minute; else ""."""
        if facts.uses is None:
            return f"the mappings of {index!r} can't be read"
        if name := facts.groupless:
            remedy = suggest("setup", name, groups=True)
            field = group_field(facts.dedup)
            return f"index {name!r} has no group numbers ({field}, a long); add them: {remedy}"
        when, reason = self._checked.get(index) or (-_VALID_SECONDS, "")
        if monotonic() - when < _VALID_SECONDS:
            return reason
        reason = yield from _lacking_groups(index, facts.scheme.id, facts.dedup)
        self._checked.put(index, (monotonic(), reason))
        return reason

    def doubt(self, index: str | None) -> None:
        """Count the coverage of an index again at the next search."""
        self._checked.drop(index)


def _lacking_groups(index: str | None, scheme: str, dedup: str) -> Steps[str]:
    answer = yield Call("search", (index, ungrouped_request(scheme, dedup)))
    count: int = answer["hits"]["total"]["value"]
    if not count:
        return ""
    documents = counted(count, f"document of {index!r} has", f"documents of {index!r} have")
    commands = [suggest(command, index or "") for command in ("backfill", "regroup")]
    return f"{documents} no group number of the scheme {scheme}; number them: {chain(commands)}"


def native_page(
    request: SearchRequest, facts: IndexFacts, grouped: GroupCoverage, *, samples: bool
) -> Steps[JSON | str]:
    """Return a page of groups that the engine collapsed, or the reason why it can't.

    Args:
        samples: whether the engine can count within a sample of the results.
    """
    body, options = request.body, request.options
    check_not_taken(inner_hit_names(body.get("query")), options)
    reasons = list(obstacles(body, options))
    texts = sorted(facts.keywords & options.date_fields)
    reasons += [f"{name!r} is a keyword, which engines do not sort by date" for name in texts]
    if not reasons and (lacking := (yield from grouped.obstacle(request.index, facts))):
        reasons = [lacking]
    if not reasons:
        for _ in range(_MOST_TRIES):
            made = _Page(request, facts, grouped.sizes, samples=samples)
            page = yield from made.answer()
            if page is None:
                grouped.doubt(request.index)
                reasons = ["documents that this query finds have no group number yet"]
                break
            if not made.torn:
                return page
        else:
            reason = (
                f"in each of {_MOST_TRIES} searches of {request.index!r} the engine's members of a group "
                "lacked its hit, as while an alias moves or documents are deleted"
            )
            if options.mode == "native" or options.facets == "groups":
                raise EngineError(f"{reason}; search again")
            reasons = [reason]
    if options.mode == "native":
        raise ConfigError(
            'mode "native" is not possible here; change the request, or give mode "auto", which folds a '
            f"window instead: {'; '.join(reasons)}"
        )
    if options.facets == "groups":
        raise ConfigError(f'facets "groups" are counted natively, and here {"; ".join(reasons)}')
    return "; ".join(reasons)


class _Page:
    """Builds one page."""

    def __init__(
        self, request: SearchRequest, facts: IndexFacts, sizes: ResultSizes, *, samples: bool
    ) -> None:
        dedup, body, options = facts.dedup, request.body, request.options
        self._index, self._body, self._options = request.index, body, options
        self._facts, self._scheme, self._dedup = facts, facts.scheme, dedup
        self._field = group_field(dedup)
        self._policies = len(policy_sort(options, dedup))
        keys = [str(key_name(key)) for key in sort_keys(body)]
        #: Whether the hits of a group are in the order of values that no request changes.
        self._by_fields = not self._policies and bool(keys) and not any(key.startswith("_") for key in keys)
        self._partial = PartialAnswer()
        #: Whether members of a group lack its hit: the engine searches them later, maybe in another index.
        self.torn = False
        self._total_wanted = body.get("track_total_hits") is not False
        self._counting = GroupCounter(
            request.index,
            body,
            dedup,
            self._partial,
            sizes=sizes,
            attached=attaches_members(options, dedup),
            samples=samples,
        )

    def answer(self) -> Steps[JSON | None]:
        """Return the response; None if results lack a group number, which would make them one group."""
        start = page_bounds(self._body)[0]
        request = page_request(self._body, self._options, self._dedup, self._counting.aggregations)
        bodies = [request, *self._counting.extra]
        if start:
            # The first page shows results without a group number; later pages may begin after them.
            bodies.append(ungrouped_request(self._scheme.id, self._dedup, self._body))
        answer, *extra = yield from search_all(self._index, bodies)
        lacking = extra.pop()["hits"]["total"]["value"] if start else 0
        hits = answer["hits"]["hits"]
        self._facts.check(hits)
        numbers = [number for hit in hits if (number := self._number(hit)) is not None]
        if lacking or len(numbers) < len(hits):
            return None
        self._partial.note(answer)
        counted = yield from self._counting.count_groups(answer, extra, numbers)
        page = [
            self._hit(hit, counted.members.get(number, 1)) for hit, number in zip(hits, numbers, strict=True)
        ]
        return self._response(answer, page, counted)

    def _number(self, hit: JSON) -> int | None:
        return next(iter(field_values(hit, self._field)), None)

    def _hit(self, head: JSON, count: int) -> JSON:
        """Return the hit of a group in the shape of a page folded by window."""
        inner = dict(head.get("inner_hits") or {})
        attached = inner.pop(DUPLICATES, None)
        named = {one.name for one in self._options.inner_hits}
        of_group = {name: found for name, found in inner.items() if name in named}
        nested = {name: found for name, found in inner.items() if name not in named}
        own: JSON = self._without_group(head) | ({"inner_hits": nested} if nested else {})
        if attached is None:
            own = without_unwanted_id(own, self._body)
            members = {"total": {"value": count, "relation": "eq"}, "max_score": head.get("_score")}
            return own | {"inner_hits": {**inner, DUPLICATES: {"hits": {**members, "hits": [own]}}}}
        members = attached["hits"]
        hits = [self._member(hit) for hit in members["hits"]]
        if identity(own) not in map(identity, hits):
            # If the sort is by fields, the first member comes from the index of the hit.
            elsewhere = self._by_fields and any(hit["_index"] != own["_index"] for hit in hits[:1])
            self.torn |= elsewhere or len(hits) >= members["total"]["value"]
        shown = hits[0] if self._policies and hits else own
        others = [hit for hit in hits if identity(hit) != identity(shown)][: self._options.members]
        wanted = read_source_filter(self._options.member_source)
        shown, *others = (without_unwanted_id(hit, self._body) for hit in (shown, *others))
        listed = [with_source(hit, wanted) for hit in (shown, *others)]
        scores = [score for hit in (own, *listed) if (score := hit.get("_score")) is not None]
        attached = {"total": members["total"], "max_score": max(scores, default=None), "hits": listed}
        inner = {**shown.get("inner_hits", {}), **of_group}
        return shown | {"inner_hits": {**inner, DUPLICATES: {"hits": attached}}}

    def _without_group(self, hit: JSON) -> JSON:
        """Return a hit as without collapsing, which adds a field and inner hits."""
        rest = {name: value for name, value in hit.items() if name != "inner_hits"}
        if rises_by_score(self._body):
            rest["sort"] = [hit["_score"]]
        return without_fields(rest, self._body, [self._field])

    def _member(self, hit: JSON) -> JSON:
        """Return a member with the sort values of the request, without those of the policies."""
        keys = hit.get("sort", [])[self._policies :]
        rest = {name: value for name, value in hit.items() if name != "sort"}
        return {**rest, "sort": keys} if sort_keys(self._body) else rest

    def _response(self, answer: JSON, page: list[JSON], counted: GroupCounts) -> JSON:
        given = (answer.get("aggregations") or {}).items()
        aggregations = {
            name: found for name, found in given if not any(is_called(name, ours) for ours in (TOTAL, SAMPLE))
        }
        result = {name: value for name, value in answer.items() if name != "aggregations"}
        if aggregations:
            result["aggregations"] = aggregations
        result |= {**self._partial.header, "hits": {**answer["hits"], "hits": page}}
        return result | {KEY: self._counters(page, counted)}

    def _counters(self, page: Sequence[JSON], counted: GroupCounts) -> JSON:
        start, size = page_bounds(self._body)
        members = [hit["inner_hits"][DUPLICATES]["hits"]["total"]["value"] for hit in page]
        ended = len(page) < size
        counters = _counters(
            {"scheme": self._scheme.id, "mode": "native"},
            "end_of_results" if ended else "page_full",
            len(page),
            self._total(start + len(page), counted, ended=ended and bool(page or not start)),
            sum(members) - len(members),
        )
        if self._partial:
            counters |= {"stopped_by": "partial_answer", "partial": dict(self._partial.lacks)}
        return counters

    def _total(self, seen: int, counted: GroupCounts, *, ended: bool) -> JSON:
        """Return ``groups_total``: exact if it was counted, else the engine's estimate."""
        if ended and not self._partial:
            return {"value": seen, "relation": "eq"}
        groups = counted.groups if self._total_wanted else None
        if groups is None or self._partial:
            return {"value": max(seen, groups or 0), "relation": "gte"}
        if counted.exact:
            return {"value": groups, "relation": "eq"}
        return {
            "value": max(seen, groups),
            "relation": "estimate",
            "method": _METHOD,
            "precision_threshold": PRECISION,
        }


def unfolded_page(answer: JSON, body: Mapping[str, Any] | None, scheme: str, reason: str) -> JSON:
    """Return an engine's answer with each hit as a group of its own, and the reason in ``dedup``.

    A program that reads folded pages can read this one: no key is missing.

    Args:
        body: of the request, with ``from`` and ``size`` of its URL; None if it is not known.
    """
    hits = [_alone(hit) for hit in answer["hits"]["hits"]]
    start, size = 0, len(hits)
    if body is not None:
        # The engine accepted these numbers, also as text or with a fraction.
        start, size = int(float(body.get("from", 0))), int(float(body.get("size", 10)))
    cut = 0 if body is None else _lost_count(answer, body, start, size)
    lacks = missing_parts(answer) | ({CUT: cut} if cut else {})
    counters = _counters(
        {"scheme": scheme, "mode": "unfolded", "mode_reason": reason},
        _stopped_by(answer, body, start, size, lacks),
        len(hits),
        # The number of groups is unknown: all hits may be near-duplicates.
        {"value": min(1, start + len(hits)), "relation": "gte"},
    )
    if lacks:
        counters["partial"] = lacks
    return {**answer, "hits": {**answer["hits"], "hits": hits}, KEY: counters}


def _counters(mode: JSON, stopped_by: StoppedBy, groups: int, total: JSON, folded: int = 0) -> JSON:
    """Return the counters of a page whose hits the engine chose, after the keys of its mode."""
    return {
        **mode,
        "window": None,
        "stopped_by": stopped_by,
        "order": "engine",
        "groups": groups,
        "groups_total": total,
        "folded": folded,
        "repeated": 0,
        "unsigned": None,
        "unreadable": None,
        "other_schemes": {},
        "languages": {},
        "vanished": 0,
    }


def _stopped_by(
    answer: JSON, body: Mapping[str, Any] | None, start: int, size: int, lacks: JSON
) -> StoppedBy:
    """Return why a page has no more hits. A page of unknown size counts as full, unless it shows all hits."""
    count, total = len(answer["hits"]["hits"]), answer["hits"].get("total")
    if body is None and total == {"value": count, "relation": "eq"} and not lacks:
        return "end_of_results"
    if count >= size:
        return "page_full"
    if lacks:
        return "partial_answer"
    if body is not None and limit_of(body) == "k":
        return "k_reached"
    window = None if body is None else rank_window(body)
    return "end_of_results" if window is None or start + count < window else "rank_window_reached"


def _lost_count(answer: JSON, body: Mapping[str, Any], start: int, size: int) -> int:
    """Return the least number of hits that were counted, and are missing."""
    if "search_after" in body or "collapse" in body or not narrowable(body):
        # Totals do not bound the hits.
        return 0
    return lost_hits(answer, size, answer["hits"].get("total"), start)


def _alone(hit: JSON) -> JSON:
    own = {"total": {"value": 1, "relation": "gte"}, "max_score": hit.get("_score"), "hits": [hit]}
    return {**hit, "inner_hits": {**hit.get("inner_hits", {}), DUPLICATES: {"hits": own}}}
