"""The search for documents that contain passages of a text, blocking and awaited."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, overload

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON, AsyncEngine, Engine
from shinglefold.errors import (
    ConfigError,
    InputError,
    ShinglefoldError,
    UnknownLanguage,
    chain,
    quote,
    suggest,
)
from shinglefold.model.recipe import PASSAGES
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.options.validation import check_options, check_str
from shinglefold.rerank.engine_calls import Steps
from shinglefold.rerank.index_knowledge import IndexRecipe, IndexRecipes
from shinglefold.rerank.matching.candidate_texts import PassageQuery
from shinglefold.rerank.matching.query_text import MatchOptions, QueryText, TextMatch
from shinglefold.rerank.msearch import run_side_by_side
from shinglefold.rerank.request.arguments import check_means, check_several
from shinglefold.rerank.request.field_check import mapped_at
from shinglefold.rerank.similar.candidates import CandidateBlocks, CandidateSearch
from shinglefold.rerank.similar.paging import AsyncPagedSearch, SyncPagedSearch
from shinglefold.rerank.similar.results import FoundPage, PageReader

Driven = TypeVar("Driven", Engine, AsyncEngine)


@dataclass(frozen=True, slots=True)
class MatchPage(FoundPage[TextMatch]):
    """The documents that have passages of a text, the largest share first.

    ``unreadable`` candidates show no text, or none of the elements that nominated them: the text was changed
    without its elements, or is hidden from the caller.
    """


def read_matches(asked: QueryText, by: PassageQuery, place: str | None) -> Steps[MatchPage]:
    """Return a page of the documents that have passages of a text.

    Blocks of candidates are in the order of the stored elements they share; within a block documents are in
    the order of their share. Usually there is one block.

    Raises:
        ConfigError: the place belongs to another search.
    """
    queries = asked.queries(by.elements, by.options)
    if queries is None:
        return MatchPage(stopped_by="nothing_to_compare")

    def decide(blocks: CandidateBlocks) -> Steps[tuple[list[TextMatch], int]]:
        # The texts came with the candidates.
        yield from ()
        return by.matching(asked, blocks.hits)

    query = {"query": queries.ordered, "min_share": by.options.min_share}
    reader = PageReader(by.candidates, queries, decide, place, query)
    yield from reader.fill()
    return reader.page(MatchPage)


class MatchSteps(Generic[Driven]):
    """The generators of a search for passages.

    Args:
        engine: any ``Engine``, or for ``AsyncMatchSearch`` one whose methods are awaited.
        canonicalizer: of the scheme of the index; None creates one, which takes longer than a search.
        language: of the query texts; None detects it word by word.
        seal: of the key the index is sealed with.
    """

    _awaited = False

    def __init__(
        self,
        engine: Driven,
        canonicalizer: Canonicalizer | None = None,
        *,
        language: str | None = None,
        seal: Seal | None = None,
    ) -> None:
        check_means(engine, canonicalizer, seal, awaited=self._awaited)
        if language is not None:
            check_str("language", language)
        self._engine: Driven = engine
        self._canonicalizers = {} if canonicalizer is None else {canonicalizer.references: canonicalizer}
        self._language = language
        self._recipes = IndexRecipes(None, None, seal)

    def _page(
        self, index: str, wanted: str, options: MatchOptions | None, place: str | None
    ) -> Steps[MatchPage]:
        by = yield from self._query(index, options)
        return (yield from read_matches(self._query_text(wanted, by), by, place))

    def _batch(
        self, index: str, several: Sequence[str], options: MatchOptions | None
    ) -> Steps[list[MatchPage | ShinglefoldError]]:
        check_several("texts", several, "texts")
        by = yield from self._query(index, options)
        asked = [self._query_text(text, by) for text in several]
        return (yield from run_side_by_side([read_matches(one, by, None) for one in asked]))

    def _query_text(self, text: str, by: PassageQuery) -> QueryText:
        if not isinstance(text, str):
            raise InputError(f"expected a text, got {quote(text)}")
        return QueryText.of(text, by.canonicalizer, self._language)

    def _query(self, index: str, options: MatchOptions | None) -> Steps[PassageQuery]:
        check_options(options, MatchOptions)
        known: IndexRecipe = yield from self._recipes.read(index)
        _check_stored(known)
        made = self._canonicalizer(known.scheme)
        chosen = options or MatchOptions()
        texts = [*known.fields, "lang"]
        fetched: JSON = {"_source": texts if chosen.source is False else True}
        numbers = self._engine.can.seq_no
        candidates = CandidateSearch(index, chosen.size, chosen.window, chosen.max_window, numbers, fetched)
        return PassageQuery(candidates, known, known.fields_by_index, chosen, made)

    def _canonicalizer(self, scheme: Scheme) -> Canonicalizer:
        if scheme.languages not in self._canonicalizers:
            self._canonicalizers[scheme.languages] = Canonicalizer.of(scheme)
        made = self._canonicalizers[scheme.languages]
        if self._language is not None and self._language not in made.codes:
            raise UnknownLanguage.unknown("language", self._language, made.codes)
        return made


def _check_stored(known: IndexRecipe) -> None:
    """Refuse an index that stores no elements of passages.

    Raises:
        ConfigError: no document could be found.
    """
    for name, mappings in known.mappings.items():
        if mapped_at(mappings, f"{known.field}.{PASSAGES}") is None:
            commands = chain([suggest("setup", name, passages=True), suggest("backfill", name)])
            raise ConfigError(f"index {name!r} stores no elements of passages: {commands}")


class MatchSearch(MatchSteps[Engine], SyncPagedSearch[str, MatchOptions, MatchPage]):
    """Finds documents that contain passages of a text; reads the recipe of each index once.

    ``wanted`` is a text. An index that stores no elements of passages raises ``ConfigError``. Beside the
    request it takes about .5 µs for each word of the candidates' texts. Arguments: ``MatchSteps``.
    """


class AsyncMatchSearch(MatchSteps[AsyncEngine], AsyncPagedSearch[str, MatchOptions, MatchPage]):
    """``MatchSearch`` for an engine whose methods are awaited; made with the same arguments."""

    _awaited = True


@overload
def find_matches(
    engine: Engine,
    index: str,
    text: str,
    options: MatchOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,  # noqa: ANN401 - each option has its own type
) -> MatchPage: ...
@overload
def find_matches(
    engine: Engine,
    index: str,
    text: list[str],
    options: MatchOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,  # noqa: ANN401 - each option has its own type
) -> list[MatchPage | ShinglefoldError]: ...
def find_matches(
    engine: Engine,
    index: str,
    text: str | list[str],
    options: MatchOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,
) -> MatchPage | list[MatchPage | ShinglefoldError]:
    """Return the documents of an index that have passages of a text, or of each of a list, best first.

    Args:
        more: single options by name, such as ``min_share=0.2``.

    For several calls keep a ``MatchSearch``, which reads the recipe and the dictionaries once.
    """
    check_options(options, MatchOptions, more)
    search, chosen = MatchSearch(engine, seal=seal), replace(options or MatchOptions(), **more)
    if isinstance(text, list):
        return search.find_each(index, text, chosen)
    return search.find(index, text, chosen)


async def find_matches_async(
    engine: AsyncEngine,
    index: str,
    text: str | list[str],
    options: MatchOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,  # noqa: ANN401 - each option has its own type
) -> MatchPage | list[MatchPage | ShinglefoldError]:
    """Return the documents of an index that have passages of a text, or of each; see ``find_matches``."""
    check_options(options, MatchOptions, more)
    search, chosen = AsyncMatchSearch(engine, seal=seal), replace(options or MatchOptions(), **more)
    if isinstance(text, list):
        return await search.find_each(index, text, chosen)
    return await search.find(index, text, chosen)
