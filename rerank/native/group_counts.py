"""Counts the members of the groups of a page, and all groups, with as few requests as possible."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON
from shinglefold.errors import EngineError
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.native.collapse_request import PRECISION, SAMPLE, TOTAL, group_field, query_parts
from shinglefold.rerank.window.window import PartialAnswer

#: Results of a shard below which the request of a page counts their groups itself. A sampler allocates as
#: many places in advance, and a bucket of the answer takes some 40 bytes.
MOST = 2000
_SHARED = "shared"
#: Contrary outcomes in a row after which the prediction changes.
_SURE = 3


class GroupCounts(NamedTuple):
    """Results by group number, 1 for a group that is missing, and the number of groups of all results.

    ``groups`` is None where they were not counted; ``exact``: whether it is no estimate.
    """

    members: Mapping[int, int]
    groups: int | None
    exact: bool = False


class ResultSizes:
    """Predicts from earlier searches whether the next one has few results, like a branch predictor.

    A wrong prediction costs time and changes no answer.
    """

    def __init__(self) -> None:
        self._leaning: dict[str | None, int] = {}

    def few(self, index: str | None) -> bool:
        """Return whether few results are likely."""
        return self._leaning.get(index, 0) >= 0

    def note(self, index: str | None, *, few: bool) -> None:
        """Record whether a search of an index had few results."""
        leaning = self._leaning.get(index, 0) + (1 if few else -1)
        self._leaning[index] = max(-_SURE, min(_SURE - 1, leaning))


class GroupCounter:
    """Counts the groups of a page, with as few requests as possible.

    Where members are attached, the engine returns their counts. Otherwise a sampler aggregation in the
    request of the page counts the groups of few results. For many results an aggregation takes as long as
    the page or longer, because the engine otherwise skips most of them. Then a request beside the page
    counts all groups, which servers answer from their cache the next time, and another one counts the
    members of the groups on the page.

    Args:
        partial: records what answers lack.
        sizes: predicts whether there are few results.
        attached: whether members come with the hits.
        samples: whether the engine can take samples.

    Attributes:
        aggregations: of the request of the page.
        beside: requests to send together with it. Without ``track_total_hits`` groups are not counted either:
            the engine would visit every hit.
    """

    def __init__(
        self,
        index: str | None,
        body: Mapping[str, Any],
        dedup: str,
        partial: PartialAnswer,
        *,
        sizes: ResultSizes,
        attached: bool,
        samples: bool,
    ) -> None:
        self._index, self._body, self._dedup = index, body, dedup
        self._partial = partial
        self._sizes = sizes
        self._attached = attached
        self._samples = samples
        few = samples and sizes.few(index)
        self._sampled = few and not attached
        self.aggregations: JSON = {}
        self.beside: list[JSON] = []
        if self._sampled:
            self.aggregations = _sample(dedup)
        elif body.get("track_total_hits") is not False:
            if few:
                self.aggregations = _distinct(dedup)
            else:
                self.beside.append(self._total_request())

    def counted(self, answer: JSON, beside: Sequence[JSON], groups: Sequence[int]) -> Steps[GroupCounts]:
        """Return the counts of a page from its answers, with further requests where they are needed."""
        for one in beside:
            self._partial.note(one)
        if self._sampled:
            return (yield from self._by_sample(answer, groups))
        few = self._samples and _is_few(answer)
        # Without a total, the next search tries a sample again.
        self._sizes.note(self._index, few=few is not False)
        total = _read_distinct(beside[0] if beside else answer)
        if self._attached or not groups:
            return GroupCounts({}, total)
        if few:
            (told,) = yield from self._search([count_request(self._body, _sample(self._dedup))])
            if (found := _read_sample(told)) is not None:
                return found
        (told,) = yield from self._search([self._members_request(groups)])
        return GroupCounts(_read_members(told), total)

    def _by_sample(self, answer: JSON, groups: Sequence[int]) -> Steps[GroupCounts]:
        found = _read_sample(answer)
        self._sizes.note(self._index, few=found is not None)
        if found is not None:
            return found
        bodies = [] if self._body.get("track_total_hits") is False else [self._total_request()]
        if groups:
            bodies.append(self._members_request(groups))
        answers = yield from self._search(bodies)
        members = _read_members(answers[-1]) if groups else {}
        return GroupCounts(members, _read_distinct(answers[0]) if answers else None)

    def _search(self, bodies: Sequence[JSON]) -> Steps[list[JSON]]:
        answers = yield from together(self._index, bodies)
        for answer in answers:
            self._partial.note(answer)
        return answers

    def _total_request(self) -> JSON:
        return count_request(self._body, _distinct(self._dedup))

    def _members_request(self, groups: Sequence[int]) -> JSON:
        """Return the request that counts the results of some groups, which are few documents."""
        field = group_field(self._dedup)
        chosen = {"terms": {field: list(groups)}}
        query = query_parts(self._body).get("query")
        within = {"bool": {"filter": [chosen] if query is None else [query, chosen]}}
        counted = {_SHARED: {"terms": {"field": field, "size": len(groups)}}}
        return count_request({**self._body, "query": within}, counted)


def together(index: str | None, bodies: Sequence[JSON]) -> Steps[list[JSON]]:
    """Return the answers to several searches, sent as one request.

    Raises:
        EngineError: the first error among them.
    """
    if not bodies:
        return []
    if len(bodies) == 1:
        return [(yield Call("search", (index, bodies[0])))]
    answers: list[JSON | EngineError] = yield Call("msearch", ([(index, body) for body in bodies],))
    whole = []
    for one in answers:
        if isinstance(one, EngineError):
            raise one
        whole.append(one)
    return whole


def _sample(dedup: str) -> JSON:
    """Return the aggregation that counts the groups of few results; of many it samples the best.

    Groups with one result are left out, which keeps the answer short.
    """
    shared = {"field": group_field(dedup), "min_doc_count": 2, "size": MOST // 2, "shard_size": MOST}
    return {SAMPLE: {"sampler": {"shard_size": MOST}, "aggs": {_SHARED: {"terms": shared}}}}


def _read_sample(answer: Mapping[str, Any]) -> GroupCounts | None:
    """Return the counts of a sample; None where there may be more results than it has."""
    found = answer["aggregations"][SAMPLE]
    results: int = found["doc_count"]
    if results >= MOST:
        return None
    members = _counts(found[_SHARED])
    return GroupCounts(members, results - sum(members.values()) + len(members), exact=True)


def _distinct(dedup: str) -> JSON:
    """Return the aggregation that counts all groups: practically exact for some thousands."""
    return {TOTAL: {"cardinality": {"field": group_field(dedup), "precision_threshold": PRECISION}}}


def _read_distinct(answer: Mapping[str, Any]) -> int | None:
    """Return the number of groups; None where it was not requested."""
    found: int | None = (answer.get("aggregations") or {}).get(TOTAL, {}).get("value")
    return found


def _is_few(answer: Mapping[str, Any]) -> bool | None:
    """Return whether a sample has all results of an answer; None where the answer has no total."""
    total = answer["hits"].get("total")
    return None if total is None else total["relation"] == "eq" and total["value"] < MOST


def count_request(body: Mapping[str, Any], aggregations: JSON) -> JSON:
    """Return the request that counts among the results of another.

    Without the total OpenSearch reports early termination although aggregations saw all results.
    """
    return {**query_parts(body), "size": 0, "track_total_hits": True, "aggs": aggregations}


def _read_members(answer: Mapping[str, Any]) -> Mapping[int, int]:
    """Return the results by group from the answer to ``_members_request``."""
    return _counts(answer["aggregations"][_SHARED])


def _counts(terms: Mapping[str, Any]) -> dict[int, int]:
    return {bucket["key"]: bucket["doc_count"] for bucket in terms["buckets"]}
