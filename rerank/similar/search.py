"""The search for the copies of a document anywhere in an index, blocking and awaited."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeVar

from shinglefold.contracts.engine import JSON, AsyncEngine, Engine
from shinglefold.errors import ConfigError, InputError, SchemeMismatch, quote
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.model.values import Fingerprint
from shinglefold.options.validation import check_options, check_str, expected
from shinglefold.rerank.engine_calls import Call, Steps, run, run_async
from shinglefold.rerank.fold.text_verification import TextStages
from shinglefold.rerank.index_fields import (
    SchemeOf,
    check_dates,
    check_fields,
    check_values,
    unreadable_dates,
)
from shinglefold.rerank.index_recipes import IndexRecipes
from shinglefold.rerank.request.arguments import check_search_arguments
from shinglefold.rerank.request.hit_parts import with_doc_values
from shinglefold.rerank.similar.candidates import (
    CandidateSearch,
    LookupResult,
    SimilarQuery,
    look_up,
)
from shinglefold.rerank.similar.decision import CandidateDecision
from shinglefold.rerank.similar.query_document import QueryDocument, SimilarOptions, decisive_fields
from shinglefold.rerank.similar.results import AsyncPagedSearch, SimilarPage, SyncPagedSearch, read_page

if TYPE_CHECKING:
    pass


#: A stored document by its id, or index and id; or a fingerprint; or a query document.
Wanted = str | tuple[str, str] | Fingerprint | QueryDocument
Driven = TypeVar("Driven", Engine, AsyncEngine)
#: The most documents fetched for an id: if several indices may have it, and from one named index.
_SAME_ID, _ALL = 10, 1000


class SimilarSteps(Generic[Driven]):
    """The generators of a search for copies.

    Args:
        engine: any ``Engine``, or for ``AsyncSimilarSearch`` one whose methods are awaited.
        scheme: the scheme of the index, or a function that takes it from the recipe of the index; by default
            that of the recipe.
        field: the object field of the fingerprints; by default it is read from the index.
        seal: the seal with the key of the index.
    """

    _awaited = False

    def __init__(
        self,
        engine: Driven,
        scheme: Scheme | SchemeOf | None = None,
        field: str | None = None,
        *,
        seal: Seal | None = None,
    ) -> None:
        check_search_arguments(engine, seal, awaited=self._awaited)
        if field is not None:
            check_str("field", field)
        self._engine: Driven = engine
        self._seal = seal
        self._recipes = IndexRecipes(scheme, field, seal)
        self._stages = TextStages()

    def _page(
        self, index: str, wanted: Wanted, options: SimilarOptions | None, place: str | None
    ) -> Steps[SimilarPage]:
        query = yield from self._query(index, options)
        try:
            document = yield from self._query_document(wanted, query)
        except SchemeMismatch:
            # The index may have another scheme since its recipe was read.
            query = yield from self._query(index, options, renew=True)
            document = yield from self._query_document(wanted, query)
        return (yield from read_page(document, query, place))

    def _look_up(
        self, index: str, several: Sequence[Fingerprint | QueryDocument], options: SimilarOptions | None
    ) -> Steps[list[LookupResult]]:
        if not isinstance(several, list | tuple):
            raise expected("what is wanted", "a list of fingerprints", several)
        query = yield from self._query(index, options)
        documents = [self._check_comparable(_as_query_document(one), query) for one in several]
        return (yield from look_up(documents, query))

    def _query(
        self, index: str, options: SimilarOptions | None, *, renew: bool = False
    ) -> Steps[SimilarQuery]:
        check_options(options, SimilarOptions)
        recipe = yield from self._recipes.read(index, renew=renew)
        chosen = options or SimilarOptions()
        scopes = [scope.field for scope in chosen.scope]
        near = [scope.field for scope in chosen.scope if scope.within is not None]
        if scopes and recipe.mappings:
            try:
                check_fields(recipe.mappings.values(), index, scopes, "scope")
                check_values(recipe.mappings, scopes)
                check_dates(recipe.mappings, near)
            except ConfigError:
                if renew:
                    raise
                # A field may have come with a document since.
                return (yield from self._query(index, options, renew=True))
        scheme = chosen.with_verification(recipe.scheme)
        verify = scheme.decision.verify
        stage = None
        if verify == "text":
            wanted = "text" in (chosen.verify, None if chosen.min_similarity is None else "text")
            each = recipe.fields_by_index
            stage = self._stages.stage(
                scheme,
                recipe.fields,
                wanted=wanted,
                by_index=each if len(set(each.values())) > 1 else {},
                mappings=recipe.mappings.values(),
            )
        decision = CandidateDecision(scheme, chosen.as_fold_options(verify), recipe.field, self._seal, stage)
        read = decisive_fields(recipe.field, chosen.scope)
        dates = unreadable_dates(recipe.mappings.values(), near)
        fetched = {"_source": False, "docvalue_fields": with_doc_values({}, read, dates)}
        numbers = self._engine.can.seq_no
        candidates = CandidateSearch(index, chosen.size, chosen.window, chosen.max_window, numbers, fetched)
        return SimilarQuery(candidates, recipe, chosen, decision, self._seal, verify)

    def _query_document(self, wanted: Wanted, query: SimilarQuery) -> Steps[QueryDocument]:
        if isinstance(wanted, Fingerprint | QueryDocument):
            return self._check_comparable(_as_query_document(wanted), query)
        field, decision = query.recipe.field, query.decision
        sources = [f"{field}.supershingles"]
        sources += () if decision.stage is None else decision.stage.sources
        values = query.candidates.fetched["docvalue_fields"]
        shown: JSON = {"_source": sources, "docvalue_fields": values}
        expects = "an id as text, (index, id), or a document with its text"
        stored = yield from stored_document(query.candidates.index, wanted, shown, expects)
        document = QueryDocument.of_hit(stored, field, query.options.scope)
        stage = decision.stage
        text = "" if stage is None else stage.text_of(stored)
        own = stored.get("_source") or {}, document.print.stored_digest
        if stage is not None and stage.stale({"": own}):
            raise InputError(
                f"the fingerprint of document {stored['_id']!r} is of another text than it has now: "
                "backfill the index, or index the document again"
            )
        return self._check_comparable(replace(document, text=text), query)

    def _check_comparable(self, document: QueryDocument, query: SimilarQuery) -> QueryDocument:
        """Return the document with a fingerprint that can be compared with those of the index.

        Raises:
            SchemeMismatch: it was made with another scheme.
            InputError: it lacks supershingles, or the seal of the index.
        """
        made, scheme = document.print, query.recipe.scheme
        what = f"document {document.own[1]!r}" if document.own else "a fingerprint given"
        if made.scheme != scheme.id:
            raise SchemeMismatch(made.scheme, scheme.id, what, "Make it with the scheme of the index.")
        if made.signature and not made.supershingles:
            raise InputError(
                f"{what} has no supershingles (its _source leaves them out): give the fingerprint of its text"
            )
        if self._seal is None:
            return document
        # A stored fingerprint must have the seal already; that of a caller is sealed here.
        if (made.seal or document.own) and not self._seal.fits(made):
            raise InputError(f"{what} does not have the seal of the index: backfill it, or index it again")
        return replace(document, print=self._seal.sealed(made))


def _as_query_document(wanted: object) -> QueryDocument:
    if isinstance(wanted, QueryDocument):
        return wanted
    if not isinstance(wanted, Fingerprint):
        raise ConfigError(f"expected a Fingerprint or a QueryDocument, got {quote(wanted)}")
    return QueryDocument(wanted)


def stored_document(
    name: str,
    wanted: str | tuple[str, str],
    shown: JSON,
    expects: str = "an id as text, or (index, id)",
) -> Steps[JSON]:
    """Return the hit of a stored document of an index, with ``shown`` of it.

    It is fetched by a search, so that the caller sees no more than a search would show.

    Raises:
        InputError: there is none, or there are several.
    """
    if not isinstance(wanted, str | list | tuple) or (
        not isinstance(wanted, str) and [*map(type, wanted)] != [str, str]
    ):
        raise expected("wanted", expects, wanted)
    index, id_ = (None, wanted) if isinstance(wanted, str) else wanted
    size = _SAME_ID if index is None else _ALL
    answer = yield Call("search", (name, {"query": {"ids": {"values": [id_]}}, "size": size, **shown}))
    hits = [hit for hit in answer["hits"]["hits"] if index is None or hit["_index"] == index]
    if not hits:
        where = name if index is None else index
        words = '; for a text that is not stored give a document, such as {"body": …}' if " " in id_ else ""
        raise InputError(f"no document {id_!r} in the index {where!r}, or searches do not see it yet{words}")
    if len(hits) > 1:
        raise _ambiguous(id_, hits)
    return hits[0]  # type: ignore[no-any-return]


def _ambiguous(id_: str, hits: Sequence[JSON]) -> InputError:
    names = sorted(repr(hit["_index"]) for hit in hits)
    if len(set(names)) < len(names):
        return InputError(
            f"there are several documents {id_!r} in one index, under several routings: give the fingerprint "
            "of the right one"
        )
    return InputError(
        f"there are several documents {id_!r}, in {', '.join(names)}: name one of these indices"
    )


class SimilarSearch(SimilarSteps[Engine], SyncPagedSearch[Wanted, SimilarOptions, SimilarPage]):
    """Finds the copies of documents in an index; reads the recipe of each index once.

    ``wanted`` is the id of a stored document, or (index, id) if several indices have it. It may also be a
    fingerprint, or a ``QueryDocument``, which has the values of scopes. A document that is missing or can't
    be compared raises ``InputError``. An id costs one more request, and so do sources. Arguments:
    ``SimilarSteps``.
    """

    def look_up(
        self, index: str, prints: Sequence[Fingerprint | QueryDocument], options: SimilarOptions | None = None
    ) -> list[LookupResult]:
        """Return for each fingerprint the stored documents that match it, with one request for all.

        Like ``find`` without sources and pages, for callers that decide on many documents a second.
        ``options.window`` bounds the candidates of each; ``LookupResult.complete`` says whether it cut them.
        Each match has its group number and, on servers, ``seq_no`` and ``primary_term``, which guard writes.

        Raises:
            as ``find``; an error of one search is raised for all.
        """
        return run(self._engine, self._look_up(index, prints, options))


class AsyncSimilarSearch(SimilarSteps[AsyncEngine], AsyncPagedSearch[Wanted, SimilarOptions, SimilarPage]):
    """``SimilarSearch`` for an engine whose methods are awaited; made with the same arguments."""

    _awaited = True

    async def look_up(
        self, index: str, prints: Sequence[Fingerprint | QueryDocument], options: SimilarOptions | None = None
    ) -> list[LookupResult]:
        """Return for each fingerprint the stored documents that match; see ``SimilarSearch.look_up``."""
        return await run_async(self._engine, self._look_up(index, prints, options))
