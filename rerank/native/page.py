"""A page collapsed by the engine itself, told in the shape that windows have."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shinglefold.contracts import JSON
from shinglefold.errors import ConfigError, EngineError
from shinglefold.rerank.checks import read_source_filter
from shinglefold.rerank.hits import identity, with_source
from shinglefold.rerank.inner_hits import DUPLICATES
from shinglefold.rerank.native.bodies import (
    PRECISION,
    TOTAL,
    count_request,
    group_field,
    members_come,
    page_request,
    ungrouped_request,
)
from shinglefold.rerank.native.plan import obstacles, policy_sort
from shinglefold.rerank.native.ready import Grouped
from shinglefold.rerank.options import FoldOptions
from shinglefold.rerank.partial import Partial
from shinglefold.rerank.request_bodies import page_bounds, sort_keys
from shinglefold.rerank.steps import Call, Steps
from shinglefold.scheme import Scheme

#: The key of the counters, as of windows.
_KEY = "dedup"
_METHOD = "distinct numbers of groups, counted by the engine's cardinality"


class Target(NamedTuple):
    """What is searched: scheme and field of the fingerprints, what is known of groups, mappings by index."""

    scheme: Scheme
    dedup: str
    grouped: Grouped
    mappings: Mapping[str, Mapping[str, Any]]


def native_page(index: str | None, body: JSON, options: FoldOptions, target: Target) -> Steps[JSON | str]:
    """Return a page of groups as the engine collapses them, or why it can't, in words.

    Raises:
        ConfigError: ``native`` was asked for, and it can't.
    """
    reasons = obstacles(body, options)
    if not reasons and (lacking := (yield from target.grouped.obstacle(index, target.mappings))):
        reasons = [lacking]
    if not reasons:
        page = yield from _Page(index, body, options, target).answer()
        if page is not None:
            return page
        target.grouped.doubt(index)
        reasons = ["documents that this query finds have no group yet"]
    if options.mode == "native":
        raise ConfigError(
            f'mode "native": {"; ".join(reasons)}. Leave that out, or give mode "auto", which folds a window '
            "where it must"
        )
    if options.facets == "groups":
        raise ConfigError(f'facets "groups" are counted natively, and here {"; ".join(reasons)}')
    return "; ".join(reasons)


class _Page:
    """A page while it is put together."""

    def __init__(self, index: str | None, body: JSON, options: FoldOptions, target: Target) -> None:
        dedup = target.dedup
        self._index = index
        self._body = body
        self._options = options
        self._scheme = target.scheme
        self._dedup = dedup
        self._field = group_field(dedup)
        self._policies = len(policy_sort(options, dedup))
        self._attached = members_come(options, dedup)
        self._partial = Partial()

    def answer(self) -> Steps[JSON | None]:
        """Return the answer; None where some of the results have no group and would be shown as one."""
        answer, lacking = yield from self._asked()
        hits = answer["hits"]["hits"]
        numbers = [self._number(hit) for hit in hits]
        if lacking or None in numbers:
            return None
        self._partial.note(answer)
        counts = yield from self._counts([number for number in numbers if number is not None])
        page = [self._hit(hit, counts.get(number)) for hit, number in zip(hits, numbers, strict=True)]
        return self._told(answer, page)

    def _asked(self) -> Steps[tuple[JSON, int]]:
        """Return the answer, and how many of the results before this page or on it have no group.

        On the first page they would be seen; further down they may stand before it.
        """
        request = page_request(self._body, self._options, self._dedup)
        if not page_bounds(self._body)[0]:
            return (yield Call("search", (self._index, request))), 0
        count = ungrouped_request(self._scheme.id, self._dedup, self._body.get("query"))
        both = yield Call("msearch", ([(self._index, request), (self._index, count)],))
        for one in both:
            if isinstance(one, EngineError):
                raise one
        answer, lacking = both
        return answer, lacking["hits"]["total"]["value"]

    def _number(self, hit: JSON) -> int | None:
        values = (hit.get("fields") or {}).get(self._field) or [None]
        number: int | None = values[0]
        return number

    def _counts(self, numbers: Sequence[int]) -> Steps[dict[int | None, int]]:
        """Return how many results each group has, where the engine has not counted them already."""
        if self._attached or not numbers:
            return {}
        answer = yield Call("search", (self._index, count_request(self._body, numbers, self._dedup)))
        self._partial.note(answer)
        buckets = answer["aggregations"][TOTAL]["buckets"]
        return {bucket["key"]: bucket["doc_count"] for bucket in buckets}

    def _hit(self, head: JSON, count: int | None) -> JSON:
        """Return the hit of a group as windows show it."""
        inner = dict(head.get("inner_hits") or {})
        told = inner.pop(DUPLICATES, None)
        own = self._stripped(head)
        if told is None:
            members = {"total": {"value": count or 1, "relation": "eq"}, "max_score": head.get("_score")}
            return own | {"inner_hits": {**inner, DUPLICATES: {"hits": {**members, "hits": [own]}}}}
        members = told["hits"]
        hits = [self._member(hit) for hit in members["hits"]]
        shown = hits[0] if self._policies else own
        others = [hit for hit in hits if identity(hit) != identity(shown)][: self._options.members]
        wanted = read_source_filter(self._options.member_source)
        listed = [with_source(hit, wanted) for hit in (shown, *others)]
        scores = [score for hit in (own, *listed) if (score := hit.get("_score")) is not None]
        told = {"total": members["total"], "max_score": max(scores, default=None), "hits": listed}
        return shown | {"inner_hits": {**inner, DUPLICATES: {"hits": told}}}

    def _stripped(self, hit: JSON) -> JSON:
        """Return a hit without what collapsing added to it."""
        rest = {name: value for name, value in hit.items() if name != "inner_hits"}
        fields = {name: value for name, value in (hit.get("fields") or {}).items() if name != self._field}
        if fields:
            return {**rest, "fields": fields}
        rest.pop("fields", None)
        return rest

    def _member(self, hit: JSON) -> JSON:
        """Return a member with the sort values that it has among the results."""
        keys = hit.get("sort", [])[self._policies :]
        rest = {name: value for name, value in hit.items() if name != "sort"}
        return {**rest, "sort": keys} if sort_keys(self._body) else rest

    def _told(self, answer: JSON, page: list[JSON]) -> JSON:
        aggregations = dict(answer.get("aggregations") or {})
        distinct: int | None = aggregations.pop(TOTAL, {}).get("value")
        told = {name: value for name, value in answer.items() if name != "aggregations"}
        if aggregations:
            told["aggregations"] = aggregations
        told |= {**self._partial.header, "hits": {**answer["hits"], "hits": page}}
        return told | {_KEY: self._counters(page, distinct)}

    def _counters(self, page: Sequence[JSON], distinct: int | None) -> JSON:
        start, size = page_bounds(self._body)
        members = [hit["inner_hits"][DUPLICATES]["hits"]["total"]["value"] for hit in page]
        ended = len(page) < size
        counters = {
            "scheme": self._scheme.id,
            "mode": "native",
            "window": None,
            "stopped_by": "end_of_results" if ended else "page_full",
            "order": "engine",
            "groups": len(page),
            "groups_total": self._total(start + len(page), distinct, ended=ended and bool(page or not start)),
            "folded": sum(members) - len(members),
            "unsigned": None,
            "unreadable": None,
            "other_schemes": {},
            "languages": {},
            "vanished": 0,
        }
        if self._partial:
            counters |= {"stopped_by": "partial_answer", "partial": dict(self._partial.lacks)}
        return counters

    def _total(self, seen: int, distinct: int | None, *, ended: bool) -> JSON:
        """Return the number of groups: counted where this page is the last, else as the engine tells it."""
        if ended and not self._partial:
            return {"value": seen, "relation": "eq"}
        if distinct is None or self._partial:
            return {"value": max(seen, distinct or 0), "relation": "gte"}
        return {
            "value": max(seen, distinct),
            "relation": "estimate",
            "method": _METHOD,
            "precision_threshold": PRECISION,
        }
