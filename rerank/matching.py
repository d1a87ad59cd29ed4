"""Passages found anywhere: the documents of an index that contain a part of a text, best first.

::

    search = MatchSearch(engine)                           # reads recipe and dictionaries once
    search.find("site", text).matches                      # who has at least 5 % of it, and where
    search.find("site", text, MatchOptions(min_share=0.2))

The index stores a sample of each document's elements (``index --passages``), by which candidates are found.
Their texts decide.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from shinglefold.canon import Canonicalizer
from shinglefold.contracts.engine import JSON, AsyncEngine, Engine
from shinglefold.documents import FORMAT
from shinglefold.errors import (
    ConfigError,
    InputError,
    UnknownLanguage,
    chain,
    quote,
    suggest,
)
from shinglefold.model.recipe import LANGUAGE, PASSAGES
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.options.validation import check_options, check_str
from shinglefold.passages.alignment import covered_share, passages_between
from shinglefold.passages.shingle_positions import WIDTH, Elements, elements_of, keywords, winnow
from shinglefold.rerank.engine_calls import Steps
from shinglefold.rerank.explanation import StoredText, passage_json, stored_text
from shinglefold.rerank.index_fields import hit_language, languages_of, mapped_at
from shinglefold.rerank.index_recipes import IndexRecipe, IndexRecipes
from shinglefold.rerank.request.arguments import check_search_arguments, read_source_filter
from shinglefold.rerank.similar.candidates import CandidateBlocks, CandidateSearch
from shinglefold.rerank.similar.query_document import CandidateQueries, FoundDocument, check_candidate_options
from shinglefold.rerank.similar.results import AsyncPagedSearch, FoundPage, PageReader, SyncPagedSearch

#: The most elements of a text in a query: servers accept 1,024 clauses.
_MOST_ELEMENTS = 1_000
#: A query has all elements of a text with at most this many; they find shorter passages than a sample.
_ALL_ELEMENTS = 250


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """The options of a search for passages.

    ``min_share``: the share of the text's words that a document must have, five in a row, above 0 to 1.
    ``filters``: queries that a document must match, too.
    ``size``: documents on a page. ``window``: candidates whose texts are read at a time; within it the best
    come first. ``max_window``: the most candidates read for a page.
    ``source``: the ``_source`` filter of documents in the engines' own forms; False returns none.
    """

    min_share: float = 0.05
    filters: tuple[Mapping[str, Any], ...] = ()
    size: int = 10
    window: int = 100
    max_window: int = 1_000
    source: Any = False

    def __post_init__(self) -> None:
        share = self.min_share
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise ConfigError(f"min_share: expected a share above 0 and up to 1, got {quote(share)}")
        check_candidate_options(
            size=self.size,
            smallest=1,
            window=self.window,
            max_window=self.max_window,
            source=self.source,
            filters=self.filters,
        )


@dataclass(frozen=True, slots=True)
class QueryText:
    """A text to find passages of: its elements, and the keywords by which candidates are found.

    ``sampled``: how many of its elements a document with the whole text would share.
    """

    text: StoredText
    elements: Elements
    keywords: tuple[str, ...]
    sampled: int

    @classmethod
    def of(cls, text: str, canonicalizer: Canonicalizer, language: str | None = None) -> "QueryText":
        """Return a text with the keywords of its query; a long text is sampled."""
        own = stored_text({"text": text}, ["text"], canonicalizer.placed, language)
        elements = elements_of(own.tokens("a"), WIDTH)
        sample = winnow(elements.hashes)
        if len(sample) > _MOST_ELEMENTS:
            sample = sample[np.linspace(0, len(sample) - 1, _MOST_ELEMENTS).astype(np.int64)]
        chosen = elements.hashes if len(elements) <= _ALL_ELEMENTS else sample
        return cls(own, elements, tuple(keywords(chosen)), len(sample))

    def queries(self, field: str, options: MatchOptions) -> CandidateQueries | None:
        """Return the queries for documents that may have passages; None if none can.

        A shared element covers five words, and an edit destroys the elements around it. So half of the
        expected number of shared elements is required.
        """
        if not self.keywords:
            return None
        least = max(1, int(self.sampled * options.min_share / WIDTH / 2))
        return CandidateQueries.for_shared_values(field, self.keywords, least, options.filters)


@dataclass(frozen=True, slots=True)
class TextMatch(FoundDocument):
    """A document that has passages of a text.

    ``share``: the share of the text's words that are, five in a row, in the document. ``of_document``: the
    share of the document's words that are, five in a row, in the text. ``passages``: in the order of the
    text, each with ``equal_tokens`` and, under ``text`` and ``document``, ``field``, ``start`` and ``end`` in
    characters, ``text`` and ``differing``.
    """

    share: float
    of_document: float
    passages: tuple[JSON, ...]
    source: Mapping[str, Any] | None = None

    @property
    def score(self) -> float:
        """The share."""
        return self.share

    def to_json(self) -> JSON:
        """Return the match as JSON, with ``_source`` if it was requested."""
        result = FoundDocument.to_json(self) | {
            "share": round(self.share, 4),
            "of_document": round(self.of_document, 4),
        }
        if self.source is not None:
            result["_source"] = self.source
        return result | {"passages": list(self.passages)}


@dataclass(frozen=True, slots=True)
class PassageQuery:
    """How to find documents with passages of a text: how to read candidates, and how to decide.

    ``fields``: the fields from whose texts the elements of each index were made, by index name.
    ``languages``: what determines the languages of these texts, see ``languages_of``.
    """

    candidates: CandidateSearch
    recipe: IndexRecipe
    fields: Mapping[str, tuple[str, ...]]
    languages: Mapping[str, tuple[str, str]]
    options: MatchOptions
    canonicalizer: Canonicalizer

    @property
    def elements(self) -> str:
        """The field of the stored elements."""
        return f"{self.recipe.field}.{PASSAGES}"

    def matches_in(self, text: QueryText, hits: Iterable[Mapping[str, Any]]) -> tuple[list[TextMatch], int]:
        """Return the candidates with enough of a text, best first, and how many are unreadable."""
        found, unreadable = [], 0
        for hit in hits:
            stored = self._stored_text(hit)
            elements = elements_of(stored.tokens("b"), WIDTH)
            share = _share(text.elements, elements)
            if not share:
                unreadable += 1
            elif share >= self.options.min_share:
                found.append(self._match(text, hit, stored, elements, share))
        return sorted(found, key=lambda match: match.place), unreadable

    def _stored_text(self, hit: Mapping[str, Any]) -> StoredText:
        source = hit.get("_source") or {}
        language = hit_language(self.recipe.scheme, hit, source, self.languages)
        fields = self.fields.get(hit["_index"]) or self.recipe.fields
        return stored_text(source, fields, self.canonicalizer.placed, language)

    def _match(
        self, text: QueryText, hit: Mapping[str, Any], stored: StoredText, elements: Elements, share: float
    ) -> TextMatch:
        whole = elements.tokens / max(1, elements.tokens - stored.borders)
        return TextMatch(
            hit["_index"],
            hit["_id"],
            hit.get("_routing"),
            share,
            _share(elements, text.elements) * whole,
            tuple(
                passage_json(passage, text=text.text, document=stored)
                for passage in passages_between(text.elements, elements).passages
            ),
            None
            if self.options.source is False
            else read_source_filter(self.options.source).apply(hit["_source"]),
        )


def _share(of: Elements, other: Elements) -> float:
    return covered_share(np.flatnonzero(np.isin(of.hashes, other.hashes)), of)


Driven = TypeVar("Driven", Engine, AsyncEngine)


@dataclass(frozen=True, slots=True)
class MatchPage(FoundPage[TextMatch]):
    """The documents that have passages of a text, the largest share first.

    ``unreadable`` candidates show no text, or a text without the elements by which they were found. The text
    was changed without its elements, or is hidden from the caller.
    """


def read_matches(text: QueryText, query: PassageQuery, place: str | None) -> Steps[MatchPage]:
    """Return a page of the documents that have passages of a text.

    Blocks of candidates are in the order of the stored elements they share; within a block documents are in
    the order of their share. Usually there is one block.
    """
    queries = text.queries(query.elements, query.options)
    if queries is None:
        return MatchPage(stopped_by="nothing_to_compare")

    def decide(blocks: CandidateBlocks) -> Steps[tuple[list[TextMatch], int]]:
        # The texts came with the candidates.
        yield from ()
        return query.matches_in(text, blocks.hits)

    identifying = {"query": queries.ordered, "min_share": query.options.min_share}
    reader = PageReader(query.candidates, queries, decide, place, identifying)
    yield from reader.fill()
    return reader.page(MatchPage)


class MatchSteps(Generic[Driven]):
    """The generators of a search for passages.

    Args:
        engine: any ``Engine``, or for ``AsyncMatchSearch`` one whose methods are awaited.
        language: the language of the query texts; None detects it word by word.
        seal: the seal with the key of the index.
    """

    _awaited = False

    def __init__(
        self,
        engine: Driven,
        *,
        language: str | None = None,
        seal: Seal | None = None,
    ) -> None:
        check_search_arguments(engine, seal, awaited=self._awaited)
        if language is not None:
            check_str("language", language)
        self._engine: Driven = engine
        self._language = language
        self._recipes = IndexRecipes(None, None, seal)

    def _page(
        self, index: str, wanted: str, options: MatchOptions | None, place: str | None
    ) -> Steps[MatchPage]:
        query = yield from self._query(index, options)
        return (yield from read_matches(self._query_text(wanted, query), query, place))

    def _query_text(self, text: str, query: PassageQuery) -> QueryText:
        if not isinstance(text, str):
            raise InputError(f"expected a text, got {quote(text)}")
        # A text without a declaration is read as the documents of indices that declare one language for all.
        fixed = {language for _, language in query.languages.values()}
        language = self._language or (fixed.pop() if len(fixed) == 1 else None)
        return QueryText.of(text, query.canonicalizer, language or None)

    def _query(self, index: str, options: MatchOptions | None) -> Steps[PassageQuery]:
        check_options(options, MatchOptions)
        recipe: IndexRecipe = yield from self._recipes.read(index)
        _check_stored(recipe)
        made = self._canonicalizer(recipe.scheme)
        chosen = options or MatchOptions()
        languages: dict[str, tuple[str, str]] = languages_of(recipe.mappings, recipe.field)
        texts = [*recipe.fields, FORMAT, LANGUAGE, *filter(None, (one for one, _ in languages.values()))]
        fetched: JSON = {"_source": texts if chosen.source is False else True}
        numbers = self._engine.can.seq_no
        candidates = CandidateSearch(index, chosen.size, chosen.window, chosen.max_window, numbers, fetched)
        return PassageQuery(candidates, recipe, recipe.fields_by_index, languages, chosen, made)

    def _canonicalizer(self, scheme: Scheme) -> Canonicalizer:
        made = Canonicalizer.of(scheme)
        if self._language is not None and self._language not in made.codes:
            raise UnknownLanguage.unknown("language", self._language, made.codes)
        return made


def _check_stored(recipe: IndexRecipe) -> None:
    """Raise ``ConfigError`` if an index stores no elements of passages."""
    for name, mappings in recipe.mappings.items():
        if mapped_at(mappings, f"{recipe.field}.{PASSAGES}") is None:
            commands = chain([suggest("setup", name, passages=True), suggest("backfill", name)])
            raise ConfigError(
                f"index {name!r} stores no elements of passages: {commands}; "
                "in Python: setup(…, passages=True), then backfill()"
            )


class MatchSearch(MatchSteps[Engine], SyncPagedSearch[str, MatchOptions, MatchPage]):
    """Finds documents that contain passages of a text; reads the recipe of each index once.

    ``wanted`` is a text. An index that stores no elements of passages raises ``ConfigError``. In addition
    to the request it takes about 0.5 µs for each word of the candidates' texts. Arguments: ``MatchSteps``.
    """


class AsyncMatchSearch(MatchSteps[AsyncEngine], AsyncPagedSearch[str, MatchOptions, MatchPage]):
    """``MatchSearch`` for an engine whose methods are awaited; made with the same arguments."""

    _awaited = True
