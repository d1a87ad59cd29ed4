"""Pages that the engine collapses by stored group numbers, in the shape of pages folded by window."""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError, chain, suggest
from shinglefold.model.scheme import Scheme
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.hits import identity, with_source
from shinglefold.rerank.index_knowledge import index_names, mapped_at
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
    search_all,
    ungrouped_request,
)
from shinglefold.rerank.page.partial_answer import PartialAnswer
from shinglefold.rerank.page.response import KEY
from shinglefold.rerank.request.arguments import DUPLICATES, read_source_filter
from shinglefold.rerank.request.bodies import page_bounds
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.rerank.request.sort_order import sort_keys

#: Seconds after which coverage is counted again; at once if a page shows a document without a group number.
_VALID_SECONDS = 30.0


class GroupCoverage:
    """Coverage of indices by group numbers, by index name; counted again every half minute.

    Args:
        scheme: the id of the scheme that groups must be of.
        dedup: the object field of the fingerprints.

    Attributes:
        sizes: predicts how many results searches have.
    """

    def __init__(self, scheme: str, dedup: str) -> None:
        self._scheme = scheme
        self._dedup = dedup
        self._checked: dict[str | None, tuple[float, str]] = {}
        self.sizes = ResultSizes()

    def obstacle(self, index: str | None, mappings: Mapping[str, Mapping[str, Any]]) -> Steps[str]:
        """Return why an index can't be searched by group number; empty if it can.

        Args:
            mappings: the mappings by each name in the index expression.

        Cost: one count every half minute.
        """
        when, reason = self._checked.get(index, (0.0, ""))
        if index in self._checked and monotonic() - when < _VALID_SECONDS:
            return reason
        reason = self._lacking_field(index, mappings) or (yield from self._lacking_groups(index))
        self._checked[index] = monotonic(), reason
        return reason

    def doubt(self, index: str | None) -> None:
        """Count the coverage of an index again at the next search."""
        self._checked.pop(index, None)

    def _lacking_field(self, index: str | None, mappings: Mapping[str, Mapping[str, Any]]) -> str:
        names = index_names(index)
        if not names:
            return f"the mappings of {index!r} can't be read"
        for name in names:
            field = group_field(self._dedup)
            if (mapped_at(mappings.get(name, {}), field) or {}).get("type") != "long":
                remedy = suggest("setup", name, groups=True)
                return f"index {name!r} has no group numbers ({field}, a long); add them: {remedy}"
        return ""

    def _lacking_groups(self, index: str | None) -> Steps[str]:
        answer = yield Call("search", (index, ungrouped_request(self._scheme, self._dedup)))
        count: int = answer["hits"]["total"]["value"]
        if not count:
            return ""
        documents = f"1 document of {index!r} has" if count == 1 else f"{count:,} documents of {index!r} have"
        commands = [suggest(command, index or "") for command in ("backfill", "regroup")]
        return f"{documents} no group number of the scheme {self._scheme}; number them: {chain(commands)}"


_METHOD = "distinct numbers of groups, counted by the engine's cardinality"


class NativeTarget(NamedTuple):
    """What a native search needs: scheme and field of the fingerprints, group coverage, mappings by index.

    ``samples``: whether the engine can count within a sample of the results.
    """

    scheme: Scheme
    dedup: str
    grouped: GroupCoverage
    mappings: Mapping[str, Mapping[str, Any]]
    samples: bool


def native_page(
    index: str | None, body: JSON, options: FoldOptions, target: NativeTarget
) -> Steps[JSON | str]:
    """Return a page of groups that the engine collapsed, or the reason why it can't.

    Raises:
        ConfigError: the mode is ``native``, and the engine can't.
    """
    reasons = list(obstacles(body, options))
    if not reasons and (lacking := (yield from target.grouped.obstacle(index, target.mappings))):
        reasons = [lacking]
    if not reasons:
        page = yield from _Page(index, body, options, target).answer()
        if page is not None:
            return page
        target.grouped.doubt(index)
        reasons = ["documents that this query finds have no group number yet"]
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

    def __init__(self, index: str | None, body: JSON, options: FoldOptions, target: NativeTarget) -> None:
        dedup = target.dedup
        self._index = index
        self._body = body
        self._options = options
        self._scheme = target.scheme
        self._dedup = dedup
        self._field = group_field(dedup)
        self._policies = len(policy_sort(options, dedup))
        self._partial = PartialAnswer()
        self._total_wanted = body.get("track_total_hits") is not False
        self._counting = GroupCounter(
            index,
            body,
            dedup,
            self._partial,
            sizes=target.grouped.sizes,
            attached=attaches_members(options, dedup),
            samples=target.samples,
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
        numbers = [number for hit in hits if (number := self._number(hit)) is not None]
        if lacking or len(numbers) < len(hits):
            return None
        self._partial.note(answer)
        counted = yield from self._counting.counted(answer, extra, numbers)
        page = [
            self._hit(hit, counted.members.get(number, 1)) for hit, number in zip(hits, numbers, strict=True)
        ]
        return self._response(answer, page, counted)

    def _number(self, hit: JSON) -> int | None:
        values = (hit.get("fields") or {}).get(self._field) or [None]
        number: int | None = values[0]
        return number

    def _hit(self, head: JSON, count: int) -> JSON:
        """Return the hit of a group in the shape of a page folded by window."""
        inner = dict(head.get("inner_hits") or {})
        attached = inner.pop(DUPLICATES, None)
        own = self._without_group(head)
        if attached is None:
            members = {"total": {"value": count, "relation": "eq"}, "max_score": head.get("_score")}
            return own | {"inner_hits": {**inner, DUPLICATES: {"hits": {**members, "hits": [own]}}}}
        members = attached["hits"]
        hits = [self._member(hit) for hit in members["hits"]]
        shown = hits[0] if self._policies else own
        others = [hit for hit in hits if identity(hit) != identity(shown)][: self._options.members]
        wanted = read_source_filter(self._options.member_source)
        listed = [with_source(hit, wanted) for hit in (shown, *others)]
        scores = [score for hit in (own, *listed) if (score := hit.get("_score")) is not None]
        attached = {"total": members["total"], "max_score": max(scores, default=None), "hits": listed}
        return shown | {"inner_hits": {**inner, DUPLICATES: {"hits": attached}}}

    def _without_group(self, hit: JSON) -> JSON:
        """Return a hit without the field and inner hits that collapsing added."""
        rest = {name: value for name, value in hit.items() if name != "inner_hits"}
        fields = {name: value for name, value in (hit.get("fields") or {}).items() if name != self._field}
        if fields:
            return {**rest, "fields": fields}
        rest.pop("fields", None)
        return rest

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
        counters = {
            "scheme": self._scheme.id,
            "mode": "native",
            "window": None,
            "stopped_by": "end_of_results" if ended else "page_full",
            "order": "engine",
            "groups": len(page),
            "groups_total": self._total(start + len(page), counted, ended=ended and bool(page or not start)),
            "folded": sum(members) - len(members),
            "repeated": 0,
            "unsigned": None,
            "unreadable": None,
            "other_schemes": {},
            "languages": {},
            "vanished": 0,
        }
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
