"""Candidate search: one search for a whole batch, by all of its supershingles and text digests.

``StoredDocuments`` uses it to answer the searches of the gate's protocol.
"""

import operator
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

from shinglefold.contracts.engine import JSON, AsyncEngine, Engine, Parameters
from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.grouping.gate.protocol.pending_document import (
    GROUP,
    LEADER,
    CountGroups,
    FindGroups,
    GateFields,
    PendingDocument,
    SearchHits,
    document_key,
)
from shinglefold.grouping.similarity import Pair, SimilarityModel
from shinglefold.maintenance.guarded_updates import read_documents
from shinglefold.maintenance.reconcile import key_of
from shinglefold.rerank.hits import identity, missing_parts
from shinglefold.rerank.similar import QueryDocument
from shinglefold.rerank.similar.query_document import candidate_queries, stored_digests
from shinglefold.runtime.backoff import Backoff
from shinglefold.runtime.sans_io import run

Result = TypeVar("Result")
#: A generator that yields calls of the engine, is sent their (awaited) answers, and returns the result.
Steps = Generator[Callable[[], Any], Any, Result]
Hit = Mapping[str, Any]
#: A search for a batch reads ``_FOR_EACH`` hits for each document, and ``_EXTRA`` more. If it finds more than
#: that, each document gets a separate search.
_FOR_EACH, _EXTRA = 4, 100
#: The most hits of a search for a single document: at first, and if those do not decide.
_FEW, _MANY = 60, 1000
#: The most searches sent as one request.
_SEARCHES = 50
#: The number of documents read to find out which group numbers are taken.
_NUMBERS = 100
#: The number of documents whose texts are read at once.
_TEXTS = 100


class Candidates(NamedTuple):
    """The stored documents that a search found.

    Attributes:
        truncated: positions of documents with more candidates than were read; those that share most were
            read.
        pairs: the pairs that match or are uncertain, if documents were compared.
    """

    hits: list[JSON]
    truncated: frozenset[int] = frozenset()
    pairs: Sequence[Pair] = ()


class CandidateLookup:
    """Finds the stored documents of one index that may match given ones.

    Args:
        engine: blocking or awaited; an awaited one serves only the methods that return steps.
        doc_values: fields of the found documents to read in addition to those that decide.
        sort: sort keys of the found documents, which come before the number of shared values.
        parameters: the URL parameters of the searches.
    """

    def __init__(
        self,
        engine: Engine | AsyncEngine,
        index: str,
        model: SimilarityModel,
        *,
        doc_values: Sequence[str] = (),
        sort: Sequence[JSON] = (),
        parameters: Parameters | None = None,
    ) -> None:
        self._engine, self._index, self._model = engine, index, model
        self._fields = list(dict.fromkeys([*model.doc_values, *doc_values]))
        self._sort = sort
        self._parameters = parameters

    def find(
        self, documents: Sequence[QueryDocument], filters: Sequence[JSON], field: str, numbers: Sequence[int]
    ) -> tuple[list[JSON], set[int]]:
        """Return all documents that may match, and which of the group numbers are taken.

        Args:
            filters: clauses that documents must meet.
            field: the field of group numbers; a number is taken if any document has it.
        """
        found, taken = run(self._with_numbers(documents, filters, field, numbers), operator.call)
        if found.truncated:
            found = run(self._own_searches(documents, filters, _MANY), operator.call)
        return found.hits, taken

    def find_deep(self, documents: Sequence[QueryDocument]) -> Steps[Candidates]:
        """Return as many candidates for each document as possible."""
        return self._with_pairs(documents, (yield from self._own_searches(documents, (), _MANY)))

    def find_candidates(
        self, documents: Sequence[QueryDocument], field: str, numbers: Sequence[int]
    ) -> Steps[tuple[Candidates, set[int]]]:
        """Return the documents that may match, and which group numbers are taken, by one request."""
        found, taken = yield from self._with_numbers(documents, (), field, numbers)
        return self._with_pairs(documents, found), taken

    def _with_pairs(self, documents: Sequence[QueryDocument], found: Candidates) -> Candidates:
        if not found.hits:
            return found
        pairs = self._model.candidate_pairs(self._model.batch(documents), found.hits)
        return found._replace(pairs=pairs)

    def _with_numbers(
        self, documents: Sequence[QueryDocument], filters: Sequence[JSON], field: str, numbers: Sequence[int]
    ) -> Steps[tuple[Candidates, set[int]]]:
        if not numbers:
            return (yield from self._batch_search(documents, filters)), set()
        query = self._any_of(documents)
        taken = self._body({"bool": {"filter": [{"terms": {field: list(numbers)}}]}}, _NUMBERS, [field])
        if query is None:
            numbered = yield from self._search(taken)
            return Candidates([]), (yield from self._numbers(field, numbers, numbered))
        size = _batch_size(documents)
        body = self._body({"bool": {"filter": [query, *filters]}}, size)
        hits, numbered = yield from self._multi_search([body, taken])
        found = yield from self._unless_truncated(documents, hits, filters, size)
        return found, (yield from self._numbers(field, numbers, numbered))

    def _numbers(self, field: str, numbers: Sequence[int], hits: Sequence[Hit]) -> Steps[set[int]]:
        """Return which numbers are group numbers already; ``hits``: some documents with one of them."""
        found = {value for hit in hits for value in (hit.get("fields") or {}).get(field, ())}
        rest = sorted(set(numbers) - found)
        if len(hits) < _NUMBERS or not rest:
            return found
        # A number that many documents have hides the others: read one document of each group.
        body = self._body({"bool": {"filter": [{"terms": {field: rest}}]}}, len(rest), [field])
        more = yield from self._search({**body, "collapse": {"field": field}})
        return found | {value for hit in more for value in (hit.get("fields") or {}).get(field, ())}

    def with_texts(self, hits: Sequence[JSON], places: Iterable[int]) -> list[JSON]:
        """Return all hits; add the texts of their sources to those at the given positions.

        Cost: one request for each hundred positions of an index and routing.
        """
        wanted = {key_of(hits[place]): place for place in places}
        completed, engine = list(hits), cast("Engine", self._engine)
        more = {"_source": list(self._model.texts)}
        for found in read_documents(engine, wanted, Backoff(retries=0), _TEXTS, more):
            for hit in found:
                place = wanted[key_of(hit)]
                completed[place] = {**completed[place], "_source": hit.get("_source") or {}}
        return completed

    def groups(self, filters: Sequence[Sequence[JSON]], limit: int) -> Steps[list[list[JSON]]]:
        """Return up to ``limit`` documents for each of several filters, by one request."""
        return self._multi_search([self._body({"bool": {"filter": list(one)}}, limit) for one in filters])

    def counts(self, filters: Sequence[Sequence[JSON]], limit: int) -> Steps[list[int]]:
        """Return how many documents meet each of several filters, up to ``limit``, by one request."""
        bodies = [
            {"query": {"bool": {"filter": list(one)}}, "size": 0, "track_total_hits": limit}
            | self._engine.can.unaltered
            for one in filters
        ]
        answers = yield from self._answers(bodies)
        return [answer["hits"]["total"]["value"] for answer in answers]

    def _batch_search(self, documents: Sequence[QueryDocument], filters: Sequence[JSON]) -> Steps[Candidates]:
        """Return the hits of one search for the batch; if there are too many, search for each document."""
        query = self._any_of(documents)
        if query is None:
            return Candidates([])
        size = _batch_size(documents)
        hits = yield from self._search(self._body({"bool": {"filter": [query, *filters]}}, size))
        return (yield from self._unless_truncated(documents, hits, filters, size))

    def _unless_truncated(
        self, documents: Sequence[QueryDocument], hits: list[JSON], filters: Sequence[JSON], size: int
    ) -> Steps[Candidates]:
        if len(hits) == size:
            return (yield from self._own_searches(documents, filters, _FEW))
        return Candidates(hits)

    def nominating_values(self, documents: Sequence[QueryDocument]) -> dict[str, list[str]]:
        """Return values by field; every matching document has at least one of them."""
        field, model = self._model.field, self._model
        words = sorted({word for one in documents for word in one.print.supershingles})
        texts = sorted(
            {text for one in documents for text in stored_digests(one.print, model.scheme, model.seal)}
        )
        return {f"{field}.supershingles": words, f"{field}.digest": texts}

    def _any_of(self, documents: Sequence[QueryDocument]) -> JSON | None:
        by_path = self.nominating_values(documents)
        terms = [{"terms": {path: values}} for path, values in by_path.items() if values]
        return {"bool": {"should": terms, "minimum_should_match": 1}} if terms else None

    def _own_searches(
        self, documents: Sequence[QueryDocument], filters: Sequence[JSON], size: int
    ) -> Steps[Candidates]:
        """Return the hits of a separate search for each document, those that share most first."""
        model = self._model
        places, bodies = list[int](), list[JSON]()
        for place, one in enumerate(documents):
            queries = candidate_queries(
                one,
                model.scheme,
                model.field,
                1,
                seal=model.seal,
                scopes=model.scopes,
                filters=filters,
            )
            if queries is not None:
                places.append(place)
                bodies.append(self._body(queries.ordered, size) | {"sort": [*self._sort, "_score"]})
        found: dict[tuple[Any, Any, Any], JSON] = {}
        truncated: set[int] = set()
        for begin in range(0, len(bodies), _SEARCHES):
            several = yield from self._multi_search(bodies[begin : begin + _SEARCHES])
            for place, hits in zip(places[begin:], several, strict=False):
                found |= {identity(hit): hit for hit in hits}
                truncated |= {place} if len(hits) == size else set()
        return Candidates(list(found.values()), frozenset(truncated))

    def _body(self, query: JSON, size: int, fields: Sequence[str] | None = None) -> JSON:
        body: JSON = {
            "query": query,
            "size": size,
            "_source": self._model.source,
            "docvalue_fields": list(self._fields if fields is None else fields),
            "track_total_hits": False,
            **self._engine.can.unaltered,
        }
        return body | ({"sort": list(self._sort)} if self._sort else {})

    def _search(self, body: JSON) -> Steps[list[JSON]]:
        return self._hits((yield lambda: self._engine.search(self._index, body, self._parameters)))

    def _multi_search(self, bodies: Sequence[JSON]) -> Steps[list[list[JSON]]]:
        """Return the hits of several searches, sent as one request."""
        answers = yield from self._answers(bodies)
        return [self._hits(answer) for answer in answers]

    def _answers(self, bodies: Sequence[JSON]) -> Steps[list[JSON]]:
        searches = [(self._index, body, self._parameters or {}) for body in bodies]
        answers: list[JSON | EngineError] = yield lambda: self._engine.msearch(searches)
        complete: list[JSON] = []
        for answer in answers:
            if isinstance(answer, EngineError):
                raise answer
            complete.append(self._complete(answer))
        return complete

    def _hits(self, answer: JSON) -> list[JSON]:
        hits: list[JSON] = self._complete(answer)["hits"]["hits"]
        return hits

    def _complete(self, answer: JSON) -> JSON:
        if lacks := missing_parts(answer):
            raise EngineUnavailable(
                f"{self._index}: the answer to a search was incomplete ({lacks}); try again"
            )
        return answer


def _batch_size(documents: Sequence[QueryDocument]) -> int:
    """Return how many hits one search for a batch reads; mostly it finds one or two for each document."""
    return min(_MANY, _EXTRA + _FOR_EACH * len(documents))


def _key_of(hit: Mapping[str, Any]) -> str:
    return document_key(hit["_id"], hit.get("_routing"))


def _role(hit: Mapping[str, Any], field: str) -> tuple[bool, bool]:
    """Return whether a hit leads a group, and whether it has a number."""
    values = hit.get("fields") or {}
    leads = any(value in (True, "true") for value in values.get(f"{field}.{LEADER}", ()))
    return leads, bool(values.get(f"{field}.{GROUP}"))


@dataclass(slots=True)
class StoredDocuments:
    """The searches of the user's index, as steps that yield calls of the engine.

    Attributes:
        groups: whether documents get numbers.
        limited: whether the size of groups is limited.
    """

    lookup: CandidateLookup
    gate_fields: GateFields
    groups: bool
    limited: bool = False

    def search(self, items: Sequence[PendingDocument], deep: bool) -> Steps[list[SearchHits]]:
        """Return what a search finds for each document."""
        documents = [item.print for item in items]
        if deep:
            found = yield from self.lookup.find_deep(documents)
            return self._hits(items, found, set())
        numbers = sorted({number for item in items for number in item.numbers}) if self.groups else ()
        found, taken = yield from self.lookup.find_candidates(
            documents, f"{self.gate_fields.field}.{GROUP}", numbers
        )
        return self._hits(items, found, taken)

    def _hits(self, items: Sequence[PendingDocument], found: Candidates, taken: set[int]) -> list[SearchHits]:
        ranked: list[list[tuple[bool, float, str]]] = [[] for _ in items]
        roles = [_role(hit, self.gate_fields.field) for hit in found.hits]
        for pair in found.pairs:
            leads, _ = roles[pair.other]
            ranked[pair.one].append((not leads, -pair.likeness, _key_of(found.hits[pair.other])))
        ids = [tuple(dict.fromkeys(id_ for *_, id_ in sorted(candidates))) for candidates in ranked]
        keys = [_key_of(hit) for hit in found.hits] if self.limited else []
        ungrouped = {id_ for id_, (_, grouped) in zip(keys, roles, strict=False) if not grouped}
        # The hits are sorted: leaders, documents without a number, followers. So once a follower was read,
        # all documents without a number were read, too.
        followers = {id_ for id_, (leads, grouped) in zip(keys, roles, strict=False) if grouped > leads}
        return [
            SearchHits(
                own,
                frozenset(taken.intersection(item.numbers)),
                frozenset(ungrouped.intersection(own)),
                place in found.truncated,
                self.limited and place in found.truncated and followers.isdisjoint(own),
            )
            for place, (own, item) in enumerate(zip(ids, items, strict=True))
        ]

    def in_groups(self, request: FindGroups) -> Steps[list[tuple[str, ...]]]:
        """Return the ids of documents of each group."""
        leading = [{"term": {f"{self.gate_fields.field}.{LEADER}": True}}] if request.leaders else []
        clauses = [[self._in_group(group), *leading] for group in request.groups]
        found = yield from self.lookup.groups(clauses, request.limit)
        return [tuple(_key_of(hit) for hit in hits) for hits in found]

    def counts(self, request: CountGroups) -> Steps[list[int]]:
        """Return how many documents of each group searches see."""
        return self.lookup.counts([[self._in_group(group)] for group in request.groups], request.limit)

    def _in_group(self, group: int) -> JSON:
        return {"term": {f"{self.gate_fields.field}.{GROUP}": group}}
