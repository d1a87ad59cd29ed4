"""Candidate search: one search for a whole batch, by all of its supershingles and text digests."""

import operator
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from shinglefold.contracts.engine import JSON, AsyncEngine, Engine, Parameters
from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.grouping.similarity import Pair, SimilarityModel
from shinglefold.maintenance.reconcile import ids_query
from shinglefold.rerank.hits import identity
from shinglefold.rerank.page.window import missing
from shinglefold.rerank.similar import QueryDocument
from shinglefold.rerank.similar.query_document import candidate_queries, stored_digests
from shinglefold.runtime.sans_io import run

Result = TypeVar("Result")
#: Yields calls of the engine, is sent what they return, or what that is when awaited, and returns the result.
Steps = Generator[Callable[[], Any], Any, Result]
Hit = Mapping[str, Any]
#: Hits read for a batch: for each document, and in addition. Where there are more, each has its own search.
_FOR_EACH, _BESIDE = 4, 100
#: Hits read for a document with its own search, and where those did not decide.
_SHORT, _WINDOW = 60, 1000
#: Searches sent as one request.
_SEARCHES = 50
#: Documents read for numbers of groups that are taken.
_NUMBERS = 100
#: Documents whose texts are read at once.
_TEXTS = 100
#: Documents searched at once: some 22 values each, and servers take 65,536 in a query.
BATCH = 1000


class Candidates(NamedTuple):
    """The stored documents that a search found, and the pairs that match or are in doubt.

    ``cut``: positions of documents with more candidates than were read; those that share most were read.
    """

    hits: list[JSON]
    pairs: list[Pair]
    cut: frozenset[int] = frozenset()


class _Nominated(NamedTuple):
    """The stored documents that a search found, not compared yet; ``cut`` as in ``Candidates``."""

    hits: list[JSON]
    cut: frozenset[int] = frozenset()


class CandidateLookup:
    """Finds the stored documents of one index that may match given ones.

    Args:
        engine: blocking or awaited; an awaited one serves only the methods that return steps.
        beside: fields of the found documents to read, beside those that decide.
        first: the sort of the found documents, before how much they share.
        parameters: of the searches.
    """

    def __init__(
        self,
        engine: Engine | AsyncEngine,
        index: str,
        likeness: SimilarityModel,
        *,
        beside: Sequence[str] = (),
        first: Sequence[JSON] = (),
        parameters: Parameters | None = None,
    ) -> None:
        self._engine, self._index, self._likeness = engine, index, likeness
        self._fields = list(dict.fromkeys([*likeness.doc_values, *beside]))
        self._first = first
        self._parameters = parameters

    def find(
        self, asked: Sequence[QueryDocument], filters: Sequence[JSON], field: str, numbers: Sequence[int]
    ) -> tuple[list[JSON], set[int]]:
        """Return all documents that may match, and which of some numbers are taken.

        Args:
            filters: clauses that documents must meet.
            field: the number field; a number is taken where any document has it.

        Raises:
            EngineError: a search was not answered whole.
        """
        nominated, taken = run(self._with_numbers(asked, filters, field, numbers), operator.call)
        if nominated.cut:
            nominated = run(self._each(asked, filters, _WINDOW), operator.call)
        return nominated.hits, taken

    def find_candidates(self, asked: Sequence[QueryDocument], *, far: bool = False) -> Steps[Candidates]:
        """Return the documents that may match, as steps that yield calls of the engine.

        Args:
            far: read as many as possible for each document.
        """
        nominated = yield from (self._each(asked, (), _WINDOW) if far else self._near(asked, ()))
        return self._paired(asked, nominated)

    def find_candidates_and_numbers(
        self, asked: Sequence[QueryDocument], field: str, numbers: Sequence[int]
    ) -> Steps[tuple[Candidates, set[int]]]:
        """Return what ``find_candidates`` does and which of some numbers are taken, by one request."""
        nominated, taken = yield from self._with_numbers(asked, (), field, numbers)
        return self._paired(asked, nominated), taken

    def _paired(self, asked: Sequence[QueryDocument], nominated: _Nominated) -> Candidates:
        pairs = self._likeness.possible(self._likeness.batch(asked), nominated.hits) if nominated.hits else []
        return Candidates(nominated.hits, pairs, nominated.cut)

    def _with_numbers(
        self, asked: Sequence[QueryDocument], filters: Sequence[JSON], field: str, numbers: Sequence[int]
    ) -> Steps[tuple[_Nominated, set[int]]]:
        if not numbers:
            return (yield from self._near(asked, filters)), set()
        query = self._any_of(asked)
        taken = self._body({"bool": {"filter": [{"terms": {field: list(numbers)}}]}}, _NUMBERS, [field])
        if query is None:
            told = yield from self._search(taken)
            return _Nominated([]), (yield from self._numbers(field, numbers, told))
        size = _room(asked)
        body = self._body({"bool": {"filter": [query, *filters]}}, size)
        hits, told = yield from self._several([body, taken])
        nominated = yield from self._enough(asked, hits, filters, size)
        return nominated, (yield from self._numbers(field, numbers, told))

    def _numbers(self, field: str, numbers: Sequence[int], hits: Sequence[Hit]) -> Steps[set[int]]:
        """Return the numbers that are taken, given some hits that have one of them."""
        found = {value for hit in hits for value in (hit.get("fields") or {}).get(field, ())}
        rest = sorted(set(numbers) - found)
        if len(hits) < _NUMBERS or not rest:
            return found
        # A number that many documents have hides the others: read one document of each group.
        body = self._body({"bool": {"filter": [{"terms": {field: rest}}]}}, len(rest), [field])
        more = yield from self._search({**body, "collapse": {"field": field}})
        return found | {value for hit in more for value in (hit.get("fields") or {}).get(field, ())}

    def with_texts(self, hits: Sequence[JSON], places: Iterable[int]) -> list[JSON]:
        """Return all hits, those at some positions with the texts of their sources.

        Cost: one request for each hundred positions.
        """
        wanted: dict[tuple[Any, Any], dict[Any, int]] = {}
        for place in places:
            index, id_, routing = identity(hits[place])
            wanted.setdefault((index, routing), {})[id_] = place
        told = list(hits)
        for (index, routing), by_id in wanted.items():
            ids = list(by_id)
            for begin in range(0, len(ids), _TEXTS):
                body = self._texts(routing, ids[begin : begin + _TEXTS])
                for hit in run(self._search(body, index), operator.call):
                    place = by_id[hit["_id"]]
                    told[place] = {**told[place], "_source": hit.get("_source") or {}}
        return told

    def groups(self, several: Sequence[Sequence[JSON]], most: int) -> Steps[list[list[JSON]]]:
        """Return up to ``most`` documents for each of several clauses, by one request."""
        return self._several([self._body({"bool": {"filter": list(clauses)}}, most) for clauses in several])

    def counts(self, several: Sequence[Sequence[JSON]], most: int) -> Steps[list[int]]:
        """Return how many documents meet each of several clauses, up to ``most``, by one request."""
        bodies = [
            {"query": {"bool": {"filter": list(clauses)}}, "size": 0, "track_total_hits": most}
            | self._engine.can.unaltered
            for clauses in several
        ]
        answers = yield from self._answers(bodies)
        return [answer["hits"]["total"]["value"] for answer in answers]

    def _near(self, asked: Sequence[QueryDocument], filters: Sequence[JSON]) -> Steps[_Nominated]:
        """Return what one search for the batch finds, or where that is too much, one search a document."""
        query = self._any_of(asked)
        if query is None:
            return _Nominated([])
        size = _room(asked)
        hits = yield from self._search(self._body({"bool": {"filter": [query, *filters]}}, size))
        return (yield from self._enough(asked, hits, filters, size))

    def _enough(
        self, asked: Sequence[QueryDocument], hits: list[JSON], filters: Sequence[JSON], size: int
    ) -> Steps[_Nominated]:
        if len(hits) == size:
            return (yield from self._each(asked, filters, _SHORT))
        return _Nominated(hits)

    def nominating(self, asked: Sequence[QueryDocument]) -> dict[str, list[str]]:
        """Return the values by field of which every matching document has one."""
        field, likeness = self._likeness.field, self._likeness
        words = sorted({word for one in asked for word in one.print.supershingles})
        texts = sorted(
            {text for one in asked for text in stored_digests(one.print, likeness.scheme, likeness.seal)}
        )
        return {f"{field}.supershingles": words, f"{field}.digest": texts}

    def _any_of(self, asked: Sequence[QueryDocument]) -> JSON | None:
        ways = [{"terms": {path: values}} for path, values in self.nominating(asked).items() if values]
        return {"bool": {"should": ways, "minimum_should_match": 1}} if ways else None

    def _each(self, asked: Sequence[QueryDocument], filters: Sequence[JSON], size: int) -> Steps[_Nominated]:
        """Return what a search for each document finds, the hits that share most first."""
        likeness = self._likeness
        places, bodies = list[int](), list[JSON]()
        for place, one in enumerate(asked):
            queries = candidate_queries(
                one,
                likeness.scheme,
                likeness.field,
                1,
                seal=likeness.seal,
                scopes=likeness.scopes,
                filters=filters,
            )
            if queries is not None:
                places.append(place)
                bodies.append(self._body(queries.ordered, size) | {"sort": [*self._first, "_score"]})
        found: dict[tuple[Any, Any, Any], JSON] = {}
        cut: set[int] = set()
        for begin in range(0, len(bodies), _SEARCHES):
            several = yield from self._several(bodies[begin : begin + _SEARCHES])
            for place, hits in zip(places[begin:], several, strict=False):
                found |= {identity(hit): hit for hit in hits}
                cut |= {place} if len(hits) == size else set()
        return _Nominated(list(found.values()), frozenset(cut))

    def _body(self, query: JSON, size: int, fields: Sequence[str] | None = None) -> JSON:
        body: JSON = {
            "query": query,
            "size": size,
            "_source": self._likeness.source,
            "docvalue_fields": list(self._fields if fields is None else fields),
            "track_total_hits": False,
            **self._engine.can.unaltered,
        }
        return body | ({"sort": list(self._first)} if self._first else {})

    def _texts(self, routing: str | None, ids: Sequence[str]) -> JSON:
        query, fields = ids_query(routing, ids), list(self._likeness.texts)
        body = {"query": query, "size": len(ids), "_source": fields, "track_total_hits": False}
        return {**body, **self._engine.can.unaltered}

    def _search(self, body: JSON, index: str | None = None) -> Steps[list[JSON]]:
        return self._hits((yield lambda: self._engine.search(index or self._index, body, self._parameters)))

    def _several(self, bodies: Sequence[JSON]) -> Steps[list[list[JSON]]]:
        """Return the hits of several searches, sent as one request."""
        answers = yield from self._answers(bodies)
        return [self._hits(answer) for answer in answers]

    def _answers(self, bodies: Sequence[JSON]) -> Steps[list[JSON]]:
        searches = [(self._index, body, self._parameters or {}) for body in bodies]
        answers: list[JSON | EngineError] = yield lambda: self._engine.msearch(searches)
        told: list[JSON] = []
        for answer in answers:
            if isinstance(answer, EngineError):
                raise answer
            told.append(self._whole(answer))
        return told

    def _hits(self, answer: JSON) -> list[JSON]:
        hits: list[JSON] = self._whole(answer)["hits"]["hits"]
        return hits

    def _whole(self, answer: JSON) -> JSON:
        if lacks := missing(answer):
            raise EngineUnavailable(f"{self._index}: a search was not answered whole ({lacks}); try again")
        return answer


def _room(asked: Sequence[QueryDocument]) -> int:
    """Return how many hits one search for a batch reads; mostly there are one or two for each document."""
    return min(_WINDOW, _BESIDE + _FOR_EACH * len(asked))
