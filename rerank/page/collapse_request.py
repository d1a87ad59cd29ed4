"""Requests of native pages: what the engine can collapse by group number, and how groups are counted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError
from shinglefold.rerank.engine_calls import Steps, search_all
from shinglefold.rerank.hits import PartialAnswer
from shinglefold.rerank.request.arguments import DUPLICATES, InnerHits, sort_keys
from shinglefold.rerank.request.bodies import PAGE_ONLY, narrowable, with_ids
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.rerank.request.hit_parts import completions_body
from shinglefold.runtime.recent import RecentlyUsed

#: Options that were applied when documents got their group numbers.
_FIXED_OPTIONS = ("min_shared", "min_resemblance", "min_length_ratio", "scope", "linkage")
#: Parts of a body that engines refuse together with a collapse, or that make counts differ from the hits.
_EXCLUDED = ("search_after", "rescore", "min_score", "post_filter", "slice", "terminate_after")
#: Options that need a window, and why.
_WINDOW_OPTIONS = {
    "cursor": "a cursor reads windows, as engines can't continue after a collapse; page with from and size",
    "explain": "explain compares the hits of a window",
    "members_from": "members from the index are attached to a window",
}
_DEFAULTS = {field.name: field.default for field in fields(FoldOptions)}
#: Policies that engines can apply by sorting: by the field that they name, or the number of shingles.
_SORTS: Mapping[str, str] = {"newest": "desc", "oldest": "asc", "longest": "desc"}
#: Names of the aggregations added to a request; removed from its answer, except ``groups`` in buckets.
TOTAL, SAMPLE, FACET = "shinglefold_groups", "shinglefold_sample", "groups"
#: Engines count this many groups almost exactly; above, HyperLogLog++ is within a few per cent.
PRECISION = 3000
#: Parts of a request that decide which documents it finds.
_FINDS = ("query", "runtime_mappings", "derived")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_AGGREGATIONS = ("aggs", "aggregations")


def policy_sort(options: FoldOptions, dedup: str) -> list[JSON]:
    """Return the sort of the members of a group by which the first one is the representative.

    Args:
        options: without ``obstacles``. Policies after ``rank`` have no effect.
    """
    names = [preference.name for preference in options.representative]
    before = options.representative[: names.index("rank")] if "rank" in names else options.representative
    keys = ((f"{dedup}.shingles" if one.name == "longest" else one.field, _SORTS[one.name]) for one in before)
    return [{field: {"order": order, "missing": "_last"}} for field, order in keys]


def obstacles(body: Mapping[str, Any], options: FoldOptions) -> Iterator[str]:
    """Yield the reasons why an engine can't answer a request by its ``collapse``."""
    chosen = {name for name, default in _DEFAULTS.items() if getattr(options, name) != default}
    yield from (
        f"{name} was applied when documents got their group numbers"
        for name in _FIXED_OPTIONS
        if name in chosen
    )
    yield from (reason for name, reason in _WINDOW_OPTIONS.items() if name in chosen)
    if options.verify == "text":
        yield "texts are compared in a window"
    for preference in options.representative:
        if preference.name not in ("rank", *_SORTS):
            yield f"representative {preference.name!r} can't be expressed as an engine's sort"
    if any(one.name == DUPLICATES for one in options.inner_hits):
        yield f"the inner_hits name {DUPLICATES!r} is taken by the members of each group"
    yield from (f"{name} can't be combined with a collapse" for name in _EXCLUDED if name in body)
    if not narrowable(body):
        yield "nearest neighbours and fused rankings are folded by window"
    if completions_body(body) is not None:
        yield "completion suggestions would bring group numbers along"
    if "pit" in body:
        yield "the index of a point in time is unknown"
    if body.get("derived") and (options.members or chosen & {"representative", "inner_hits"}):
        yield "the engine searches the members of a group without the request's derived fields"


def group_field(dedup: str) -> str:
    """Return the field of the group number."""
    return f"{dedup}.group"


def query_parts(body: Mapping[str, Any]) -> JSON:
    """Return the parts of a request that decide which documents it finds."""
    return {name: body[name] for name in _FINDS if body.get(name) is not None}


def page_request(body: Mapping[str, Any], options: FoldOptions, dedup: str, counting: JSON) -> JSON:
    """Return a request that lets the engine collapse by group number, with aggregations that count groups."""
    field = group_field(dedup)
    request = {key: value for key, value in with_ids(body).items() if key not in _AGGREGATIONS}
    aggregations = _aggregations(body)
    if options.facets == "groups":
        distinct = {"cardinality": {"field": field, "precision_threshold": PRECISION}}
        aggregations = {name: _with_groups(name, one, distinct) for name, one in aggregations.items()}
    collapse: JSON = {"field": field}
    if inner := _inner_hits(body, options, dedup):
        collapse["inner_hits"] = inner
    aggregations = {**aggregations, **counting}
    return {**request, "collapse": collapse} | ({"aggs": aggregations} if aggregations else {})


def attaches_members(options: FoldOptions, dedup: str) -> bool:
    """Return whether hits come with their members, whose numbers the engine then returns, too."""
    return options.members > 0 or bool(policy_sort(options, dedup))


def ungrouped_request(scheme: str, dedup: str, body: Mapping[str, Any] = _NOTHING) -> JSON:
    """Return the request that counts the results of another request that lack a group number of a scheme."""
    grouped = [{"exists": {"field": group_field(dedup)}}, {"term": {f"{dedup}.scheme": scheme}}]
    lacking: JSON = {"must_not": [{"bool": {"filter": grouped}}]}
    finds = query_parts(body)
    if "query" in finds:
        lacking["filter"] = [finds["query"]]
    return {**finds, "query": {"bool": lacking}, "size": 0, "track_total_hits": True}


def _inner_hits(body: Mapping[str, Any], options: FoldOptions, dedup: str) -> list[JSON]:
    own = {one.name: _engine_inner_hits(one, body) for one in options.inner_hits}
    if attaches_members(options, dedup):
        own[DUPLICATES] = _members(with_ids(body), options, dedup)
    return [{"name": name, **one} for name, one in own.items()]


def _members(body: Mapping[str, Any], options: FoldOptions, dedup: str) -> JSON:
    keys, policies = sort_keys(body), policy_sort(options, dedup)
    shown = {name: value for name, value in body.items() if name in PAGE_ONLY}
    request = {**shown, "size": options.members + 1, "track_scores": body.get("track_scores", not keys)}
    ranked = keys or ([{"_score": "desc"}] if policies else [])
    return request | ({"sort": [*policies, *ranked]} if policies or keys else {})


def _engine_inner_hits(one: InnerHits, body: Mapping[str, Any]) -> JSON:
    """Return the ``inner_hits`` of the request in the shape that engines take."""
    request = {"from": one.start, "size": one.size, **one.search}
    return request | ({"_source": body["_source"]} if "_source" in body else {})


def _aggregations(body: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next((body[name] for name in _AGGREGATIONS if name in body), {})
    for name in (TOTAL, SAMPLE):
        if name in found:
            raise ConfigError(f"aggs: the name {name!r} is used by folding; choose another")
    return found


def _with_groups(name: str, one: Any, distinct: JSON) -> Any:  # noqa: ANN401 - JSON
    """Return an aggregation with the groups counted in each bucket of terms, at any depth."""
    if not isinstance(one, Mapping):
        return one
    inner: Mapping[str, Any] = next((one[key] for key in _AGGREGATIONS if key in one), {})
    below = {sub: _with_groups(sub, part, distinct) for sub, part in inner.items()}
    if "terms" in one:
        if FACET in below:
            raise ConfigError(
                f"aggs: {name!r} has a sub-aggregation {FACET!r}, a name that folding uses; choose another"
            )
        below[FACET] = distinct
    rest = {key: value for key, value in one.items() if key not in _AGGREGATIONS}
    return {**rest, "aggs": below} if below else rest


#: If a shard has fewer results, the request for the page also counts their groups. A sampler allocates this
#: many entries in advance, and a bucket of the answer takes some 40 bytes.
SAMPLE_SIZE = 2000
_SHARED = "shared"
#: Wrong predictions in a row after which the prediction changes.
_CHANGE_AFTER = 3


class GroupCounts(NamedTuple):
    """Results by group number, and the number of groups of all results.

    A group missing in ``members`` has one result. ``groups`` is None if they were not counted; ``exact``:
    whether it is exact, not an estimate.
    """

    members: Mapping[int, int]
    groups: int | None
    exact: bool = False


class ResultSizes:
    """Predicts from earlier searches whether the next one has few results, like a branch predictor.

    A wrong prediction costs time and changes no answer.
    """

    def __init__(self) -> None:
        self._leaning: RecentlyUsed[str | None, int] = RecentlyUsed()

    def few(self, index: str | None) -> bool:
        """Return whether few results are likely."""
        return (self._leaning.get(index) or 0) >= 0

    def note(self, index: str | None, *, few: bool) -> None:
        """Record whether a search of an index had few results."""
        leaning = (self._leaning.get(index) or 0) + (1 if few else -1)
        self._leaning.put(index, max(-_CHANGE_AFTER, min(_CHANGE_AFTER - 1, leaning)))


@dataclass(eq=False)
class GroupCounter:
    """Counts the groups of a page, with as few requests as possible.

    If members are attached, the engine returns their counts. Otherwise, for few results, a sampler
    aggregation in the request of the page counts their groups. For many results an aggregation takes as long
    as the page or longer, because without it the engine skips most of them. Then one more request counts all
    groups, which servers cache, and another one the members of the groups on the page.

    Args:
        partial: records what answers lack.
        sizes: predicts whether there are few results.
        attached: whether members come with the hits.
        samples: whether the engine can take samples.

    Attributes:
        aggregations: the aggregations of the request for the page.
        extra: requests to send together with it. With ``track_total_hits`` false groups are not counted
            either: the engine would visit every hit.
    """

    index: str | None
    body: Mapping[str, Any]
    dedup: str
    partial: PartialAnswer
    sizes: ResultSizes
    attached: bool
    samples: bool

    def __post_init__(self) -> None:
        few = self.samples and self.sizes.few(self.index)
        self._sampled = few and not self.attached
        self.aggregations: JSON = {}
        self.extra: list[JSON] = []
        if self._sampled:
            self.aggregations = _sample(self.dedup)
        elif self.body.get("track_total_hits") is not False:
            if few:
                self.aggregations = _distinct(self.dedup)
            else:
                self.extra.append(self._total_request())

    def count_groups(self, answer: JSON, extra: Sequence[JSON], groups: Sequence[int]) -> Steps[GroupCounts]:
        """Return the counts of a page from its answers, with further requests if necessary."""
        for one in extra:
            self.partial.note(one)
        if self._sampled:
            return (yield from self._by_sample(answer, groups))
        few = self.samples and _is_few(answer)
        # If the answer has no total, the result counts as small, so that the next search tries a sample.
        self.sizes.note(self.index, few=few is not False)
        total = _read_distinct(extra[0] if extra else answer)
        if self.attached or not groups:
            return GroupCounts({}, total)
        if few:
            (counts,) = yield from self._search([count_request(self.body, _sample(self.dedup))])
            if (found := _read_sample(counts)) is not None:
                return found
        (counts,) = yield from self._search([self._members_request(groups)])
        return GroupCounts(_counts(aggregation(counts["aggregations"], _SHARED)), total)

    def _by_sample(self, answer: JSON, groups: Sequence[int]) -> Steps[GroupCounts]:
        found = _read_sample(answer)
        self.sizes.note(self.index, few=found is not None)
        if found is not None:
            return found
        bodies = [] if self.body.get("track_total_hits") is False else [self._total_request()]
        if groups:
            bodies.append(self._members_request(groups))
        answers = yield from self._search(bodies)
        members = _counts(aggregation(answers[-1]["aggregations"], _SHARED)) if groups else {}
        return GroupCounts(members, _read_distinct(answers[0]) if answers else None)

    def _search(self, bodies: Sequence[JSON]) -> Steps[list[JSON]]:
        answers = yield from search_all(self.index, bodies)
        for answer in answers:
            self.partial.note(answer)
        return answers

    def _total_request(self) -> JSON:
        return count_request(self.body, _distinct(self.dedup))

    def _members_request(self, groups: Sequence[int]) -> JSON:
        """Return the request that counts the results in these groups, which have few documents."""
        field = group_field(self.dedup)
        chosen = {"terms": {field: list(groups)}}
        query = query_parts(self.body).get("query")
        within = {"bool": {"filter": [chosen] if query is None else [query, chosen]}}
        counted = {_SHARED: {"terms": {"field": field, "size": len(groups)}}}
        return count_request({**self.body, "query": within}, counted)


def aggregation(aggregations: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """Return an aggregation by its name, which the URL parameter ``typed_keys`` prefixes with its type."""
    found = aggregations or {}
    return next((one for key, one in found.items() if is_called(key, name)), _NOTHING)


def is_called(key: str, name: str) -> bool:
    """Return whether the key of an aggregation in an answer is a name, with or without its type."""
    return key == name or key.endswith(f"#{name}")


def _sample(dedup: str) -> JSON:
    """Return the aggregation that counts the groups of few results, and of the best ones of many.

    Groups with one result are left out to keep the answer short.
    """
    shared = {
        "field": group_field(dedup),
        "min_doc_count": 2,
        "size": SAMPLE_SIZE // 2,
        "shard_size": SAMPLE_SIZE,
    }
    return {SAMPLE: {"sampler": {"shard_size": SAMPLE_SIZE}, "aggs": {_SHARED: {"terms": shared}}}}


def _read_sample(answer: Mapping[str, Any]) -> GroupCounts | None:
    """Return the counts of a sample; None if there may be more results than it has."""
    found = aggregation(answer["aggregations"], SAMPLE)
    results: int = found["doc_count"]
    if results >= SAMPLE_SIZE:
        return None
    members = _counts(aggregation(found, _SHARED))
    return GroupCounts(members, results - sum(members.values()) + len(members), exact=True)


def _distinct(dedup: str) -> JSON:
    """Return the aggregation that counts all groups, almost exactly up to ``PRECISION``."""
    return {TOTAL: {"cardinality": {"field": group_field(dedup), "precision_threshold": PRECISION}}}


def _read_distinct(answer: Mapping[str, Any]) -> int | None:
    """Return the number of groups; None if it was not requested."""
    found: int | None = aggregation(answer.get("aggregations"), TOTAL).get("value")
    return found


def _is_few(answer: Mapping[str, Any]) -> bool | None:
    """Return whether a sample holds all results of an answer; None if the answer has no total."""
    total = answer["hits"].get("total")
    return None if total is None else total["relation"] == "eq" and total["value"] < SAMPLE_SIZE


def count_request(body: Mapping[str, Any], aggregations: JSON) -> JSON:
    """Return the request that counts among the results of another request.

    Without a total OpenSearch reports early termination although aggregations saw all results.
    """
    return {**query_parts(body), "size": 0, "track_total_hits": True, "aggs": aggregations}


def _counts(terms: Mapping[str, Any]) -> dict[int, int]:
    return {bucket["key"]: bucket["doc_count"] for bucket in terms["buckets"]}
