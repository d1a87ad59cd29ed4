"""Reads candidates: block by block for pages, the best first, or all at once for a look-up."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError, WindowTooLarge
from shinglefold.model.scheme import Verify
from shinglefold.model.seal import Seal
from shinglefold.rerank.engine_calls import Call, Steps, search_all
from shinglefold.rerank.hits import PartialAnswer, missing_parts, refuse_small_windows
from shinglefold.rerank.index_recipes import IndexRecipe
from shinglefold.rerank.request.bodies import SEQ_NO, complete_tie_groups
from shinglefold.rerank.similar.decision import CandidateDecision, TextSource, decide_by_texts
from shinglefold.rerank.similar.query_document import (
    CandidateQueries,
    Match,
    QueryDocument,
    SimilarOptions,
    candidate_queries,
    in_total_order,
)

_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class PagePosition:
    """Where a page begins: its block, and the last match of that block on the page before.

    ``after``: sort values of the candidate before the block, None for the first block. ``last``: the
    ``Match.place`` of that match, None at the start of the block.
    """

    after: tuple[Any, ...] | None = None
    last: tuple[float, str, str, str] | None = None

    def to_text(self, query: Mapping[str, Any]) -> str:
        """Return the position as text that is valid for this query only."""
        encoded = json.dumps([_name(query), self.after, self.last], separators=(",", ":"))
        return urlsafe_b64encode(encoded.encode()).decode("ascii")

    @classmethod
    def parse(cls, text: str, query: Mapping[str, Any]) -> "PagePosition":
        """Parse the text that ``to_text`` returns; refuse that of another document, or of other options."""
        try:
            if not isinstance(text, str) or len(text) > _LONGEST:
                raise ValueError
            name, after, last = json.loads(urlsafe_b64decode(text.encode("ascii")))
            if last is not None:
                resemblance, index, id_, routing = last
                last = float(resemblance), str(index), str(id_), str(routing)
            place = cls(None if after is None else tuple(after), last)
        except (ValueError, TypeError, OverflowError, RecursionError):
            raise ConfigError("not a place in a list of copies; pass `next` of a page unchanged") from None
        if name != _name(query):
            raise ConfigError(
                "this place belongs to the copies of another document, or to other options; "
                "begin with the first page"
            )
        return place


def _name(query: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(query, sort_keys=True, default=repr).encode(), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class CandidateSearch:
    """How a search for copies or for passages reads its candidates.

    ``size``: the number of documents on a page; 0 only counts them. ``window``, ``max_window``: candidates
    read at a time, and at most for a page. ``numbers``: whether hits have their ``_seq_no``, for ties.
    ``fetched``: the parts of the body that choose the fields of hits.
    """

    index: str
    size: int
    window: int
    max_window: int
    numbers: bool
    fetched: JSON

    def body(self, query: JSON) -> JSON:
        """Return the body that reads a window of candidates."""
        body = {"query": query, "size": self.window, "track_total_hits": False, **self.fetched}
        return body | ({"seq_no_primary_term": True} if self.numbers else {})


class CandidateBlocks:
    """Reads the candidates of one document.

    The first block is read in any order, and is usually the only one. If there are more candidates, it is
    read again in the order of shared supershingles. Ties are broken by sequence number, or by index order on
    an engine without these, so that blocks neither overlap nor leave a gap.

    Attributes:
        hits: the hits of the block read last; ``read``: how many candidates were read.
        after: the sort values after which the next block begins, None if there is none.
        size: candidates requested at a time; ``shards``: the number of shards searched.
    """

    def __init__(
        self, search: CandidateSearch, queries: CandidateQueries, after: Sequence[Any] | None
    ) -> None:
        self.partial = PartialAnswer()
        self.hits: list[JSON] = []
        self.after = after
        self.read = 0
        self.shards = 1
        self.size = search.window
        self._index = search.index
        self._quick, self._ordered = search.body(queries.quick), search.body(queries.ordered)
        self._tie = SEQ_NO if search.numbers else "_doc"

    def next(self) -> Steps[None]:
        """Read the next block: the first one, or the block that begins at ``after``."""
        begin, self.after = self.after, None
        if begin is None:
            whole = yield from self._first()
            if whole:
                return
        yield from self._block(begin)

    def _first(self) -> Steps[bool]:
        """Read the first block and return whether it has all candidates."""
        try:
            self.hits = yield from self._hits(self._quick)
        except WindowTooLarge:
            self._narrow()
            return False
        self.read = len(self.hits)
        return self.read < self.size or bool(self.partial)

    def _block(self, begin: Sequence[Any] | None) -> Steps[None]:
        hits: list[JSON] = []
        taken, more = 0, 1
        while not taken:
            hits, most = yield from self._in_order(begin, more)
            taken = complete_tie_groups(hits, most)
            if not hits:
                break
            # At most as many hits in a row have equal values as there are shards.
            more *= 2
        self.hits = hits[:taken]
        self.read += 0 if begin is None and self.read else taken
        if taken < len(hits):
            self.after = hits[taken - 1]["sort"]

    def _in_order(self, begin: Sequence[Any] | None, more: int) -> Steps[tuple[list[JSON], int]]:
        """Return the candidates of a block and some more in total order; all but one may be used."""
        while True:
            size = self.size + more
            try:
                hits = yield from self._hits(
                    {**in_total_order(self._ordered, self._tie, begin), "size": size}
                )
            except WindowTooLarge:
                self._narrow()
            else:
                return hits, size - 1

    def _hits(self, body: JSON) -> Steps[list[JSON]]:
        answer = yield Call("search", (self._index, body))
        refuse_small_windows(answer)
        self.partial.note(answer)
        self.shards = answer.get("_shards", {}).get("total", 1)
        return answer["hits"]["hits"]  # type: ignore[no-any-return]

    def _narrow(self) -> None:
        """Go on with smaller blocks; raise the error being handled if a block has one candidate."""
        if self.size == 1:
            raise  # noqa: PLE0704 - the engine's own error, being handled
        self.size = max(1, self.size // 2)


@dataclass(frozen=True, slots=True)
class SimilarQuery:
    """How to find the copies of documents in an index: how to read candidates, and how to decide."""

    candidates: CandidateSearch
    recipe: IndexRecipe
    options: SimilarOptions
    decision: CandidateDecision
    seal: Seal | None
    verify: Verify = "signature"

    def queries(self, document: QueryDocument) -> CandidateQueries | None:
        """Return the queries for the candidates of a document; None if it can have none."""
        return candidate_queries(
            document,
            self.recipe.scheme,
            self.recipe.field,
            self.decision.min_shared,
            seal=self.seal,
            scopes=self.options.scope,
            filters=self.options.filters,
        )


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The stored documents that match one query document.

    ``matches``: the most similar first. ``candidates``: how many documents were compared. ``complete``:
    whether these are all candidates; if not, they are those that share most supershingles. ``lacks``: what
    the answer lacks (failed shards, a timeout); {} if it is complete.
    """

    matches: tuple[Match, ...] = ()
    candidates: int = 0
    complete: bool = True
    lacks: JSON = field(default_factory=dict)


def look_up(documents: Sequence[QueryDocument], query: SimilarQuery) -> Steps[list[LookupResult]]:
    """Return the stored copies of documents with one ``_msearch``, and a second if windows are too small.

    Cost: the engine reads the postings of some 20 keywords a document and two doc values a candidate;
    deciding takes about 30 µs a document.
    """
    each = {place: query.queries(one) for place, one in enumerate(documents)}
    # Documents without keywords can have no candidates.
    queries = {place: one for place, one in each.items() if one is not None}
    places = list(queries)
    answers = yield from _answers(query, [one.quick for one in queries.values()])
    full = [at for at, answer in enumerate(answers) if len(answer["hits"]["hits"]) >= query.candidates.window]
    # There are more candidates than fit: read those that share most.
    better = yield from _answers(query, [queries[places[at]].ordered for at in full])
    for at, answer in zip(full, better, strict=True):
        answers[at] = answer
    hits: list[list[JSON]] = [[] for _ in documents]
    lacks: list[JSON] = [{} for _ in documents]
    for place, answer in zip(places, answers, strict=True):
        hits[place], lacks[place] = answer["hits"]["hits"], missing_parts(answer)
    nominees, _ = query.decision.nominate(documents, hits)
    partial = PartialAnswer()
    source = TextSource(
        query.decision.stage, query.candidates.index, _shards(answers), partial, query.recipe.field
    )
    matches = yield from decide_by_texts(documents, nominees, source)
    return [
        LookupResult(tuple(found), len(read), len(read) < query.candidates.window, {**lack, **partial.lacks})
        for found, read, lack in zip(matches, hits, lacks, strict=True)
    ]


def _shards(answers: Sequence[JSON]) -> int:
    return max((answer.get("_shards", {}).get("total", 1) for answer in answers), default=1)


def _answers(query: SimilarQuery, queries: Sequence[JSON]) -> Steps[list[JSON]]:
    bodies = [query.candidates.body(one) for one in queries]
    answers = yield from search_all(query.candidates.index, bodies)
    for answer in answers:
        refuse_small_windows(answer)
    return answers
