"""The search parameters of copies, and the look-up: many fingerprints with one request."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shinglefold.contracts.engine import JSON, Parameters
from shinglefold.contracts.shard_failures import refuse_small_windows
from shinglefold.errors import EngineError
from shinglefold.model.scheme import Verify
from shinglefold.model.seal import Seal
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.index_knowledge import IndexRecipe
from shinglefold.rerank.similar.candidate_queries import CandidateQueries, candidate_queries
from shinglefold.rerank.similar.candidates import CandidateSearch
from shinglefold.rerank.similar.decision import CandidateDecision
from shinglefold.rerank.similar.options import SimilarOptions
from shinglefold.rerank.similar.query_document import Match, QueryDocument
from shinglefold.rerank.similar.text_verification import TextSource, decide_by_texts
from shinglefold.rerank.window.window import PartialAnswer, missing


@dataclass(frozen=True, slots=True)
class SimilarQuery:
    """How the copies of documents are found in an index: how candidates are read, and what decides."""

    candidates: CandidateSearch
    known: IndexRecipe
    options: SimilarOptions
    decision: CandidateDecision
    seal: Seal | None
    verify: Verify = "signature"

    def queries(self, asked: QueryDocument) -> CandidateQueries | None:
        """Return the queries for the candidates of a document, None where it can have none."""
        return candidate_queries(
            asked,
            self.known.scheme,
            self.known.field,
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
    the answer lacks (failed shards, a timeout); {} where it is complete.
    """

    matches: tuple[Match, ...] = ()
    candidates: int = 0
    complete: bool = True
    lacks: JSON = field(default_factory=dict)


def look_up(
    asked: Sequence[QueryDocument], by: SimilarQuery, parameters: Parameters | None = None
) -> Steps[list[LookupResult]]:
    """Find the stored copies of documents with one ``_msearch``, and a second where windows are too small.

    Raises:
        EngineError: one of the searches failed.

    Cost: the engine reads the postings of some 20 keywords a document and two doc values a candidate;
    deciding takes about 30 µs a document.
    """
    places, queries = _askable(asked, by)
    answers = yield from _answers(by, [query.quick for query in queries], parameters)
    full = [at for at, answer in enumerate(answers) if len(answer["hits"]["hits"]) >= by.candidates.window]
    # There are more than fit: read those that share most.
    better = yield from _answers(by, [queries[at].ordered for at in full], parameters)
    for at, answer in zip(full, better, strict=True):
        answers[at] = answer
    hits: list[list[JSON]] = [[] for _ in asked]
    lacks: list[JSON] = [{} for _ in asked]
    for place, answer in zip(places, answers, strict=True):
        hits[place], lacks[place] = answer["hits"]["hits"], missing(answer)
    nominees, _ = by.decision.nominate(asked, hits)
    source = TextSource(by.decision.stage, by.candidates.index, _shards(answers), partial := PartialAnswer())
    matches = yield from decide_by_texts(asked, nominees, source)
    return [
        LookupResult(tuple(found), len(read), len(read) < by.candidates.window, {**lack, **partial.lacks})
        for found, read, lack in zip(matches, hits, lacks, strict=True)
    ]


def _shards(answers: Sequence[JSON]) -> int:
    return max((answer.get("_shards", {}).get("total", 1) for answer in answers), default=1)


def _askable(asked: Sequence[QueryDocument], by: SimilarQuery) -> tuple[list[int], list[CandidateQueries]]:
    """Return the places of documents that can have candidates, and their queries."""
    found = [(place, queries) for place, one in enumerate(asked) if (queries := by.queries(one)) is not None]
    return [place for place, _ in found], [queries for _, queries in found]


def _answers(by: SimilarQuery, queries: Sequence[JSON], parameters: Parameters | None) -> Steps[list[Any]]:
    more = () if parameters is None else (parameters,)
    bodies = [by.candidates.body(query) for query in queries]
    if not bodies:
        return []
    if len(bodies) == 1:
        answers = [(yield Call("search", (by.candidates.index, bodies[0], *more)))]
    else:
        answers = yield Call("msearch", ([(by.candidates.index, body, *more) for body in bodies],))
    for answer in answers:
        if isinstance(answer, EngineError):
            raise answer
        refuse_small_windows(answer)
    return answers
