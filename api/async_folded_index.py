"""The asynchronous ``FoldedIndex``, and ``shinglefold.open_async``."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from shinglefold.api.documents import named_searches, text_watch, warn_of_unread
from shinglefold.api.folded_index import FoldedIndex, Wanted
from shinglefold.api.index_options import IndexOptions, match_options, similar_options
from shinglefold.api.index_recipe import words_of_index
from shinglefold.api.opening import read_recipe
from shinglefold.contracts.engine import JSON, Document, Engine, RunsInThreads
from shinglefold.engines import open_async_engine, open_blocking_twin, open_engine
from shinglefold.engines.http.connection import is_async_client
from shinglefold.errors import ShinglefoldError
from shinglefold.ingest.writing.accounting import Summary
from shinglefold.maintenance import BackfillSummary, Diagnosis
from shinglefold.model.recipe import Recipe
from shinglefold.model.values import Fingerprint
from shinglefold.rerank import AsyncFoldedSearch
from shinglefold.rerank.explanation import PairExplanation
from shinglefold.rerank.matching import AsyncMatchSearch, MatchPage
from shinglefold.rerank.similar import AsyncSimilarSearch, SimilarPage
from shinglefold.settings import Settings, load_settings

if TYPE_CHECKING:
    from shinglefold.grouping import AsyncGate, Verdict
    from shinglefold.grouping.regroup import IndexGroups

T = TypeVar("T")


async def open_async(where: Any, index: str, **options: Any) -> "AsyncFoldedIndex":  # noqa: ANN401
    """Open an index with asynchronous methods, in the running event loop.

    Args:
        where: a folder, the address of a server, a ``shinglefold.engines.Connection``, or an asynchronous
            client of opensearch-py or elasticsearch-py, which is used unchanged and stays open.
        options: the keyword arguments of ``shinglefold.open``.

    Raises:
        As ``shinglefold.open``.
    """
    chosen = IndexOptions.parse(**options)
    settings = load_settings()
    opening: Callable[[], Engine] = partial(open_engine, where)
    if is_async_client(where):
        opening = partial(open_blocking_twin, where, asyncio.get_running_loop())
    recipe, tiebreaker = await asyncio.to_thread(_read_index, opening, index, chosen)
    engine: Any = await asyncio.to_thread(open_async_engine, where, partial(words_of_index, recipe.scheme))
    opening = _blocking_of(engine) or opening
    try:
        return AsyncFoldedIndex(engine, index, recipe, chosen, settings, tiebreaker, opening)
    except BaseException:
        await engine.close()
        raise


def _read_index(
    opening: Callable[[], Engine], index: str, options: IndexOptions
) -> tuple[Recipe, str | None]:
    """Return the recipe of an index and the tiebreaker of its engine."""
    with closing(opening()) as engine:
        return read_recipe(engine, index, options), engine.tiebreaker()


def _blocking_of(engine: object) -> Callable[[], Engine] | None:
    """Return a function that opens the blocking twin of an asynchronous engine; None if there is none."""
    return (lambda: engine.blocking) if isinstance(engine, RunsInThreads) else None


class AsyncFoldedIndex:
    """An open index with asynchronous methods. Made by ``await shinglefold.open_async(…)``.

    It has the methods of ``FoldedIndex`` with the same arguments. Methods that work on many documents
    (``index``, ``groups``, ``backfill``, ``doctor``) run in a thread.
    """

    def __init__(  # noqa: PLR0917 - made by open_async
        self,
        engine: Any,  # noqa: ANN401 - an engine whose methods are awaited
        name: str,
        recipe: Recipe,
        options: IndexOptions,
        settings: Settings,
        tiebreaker: str | None,
        blocking: Callable[[], Engine],
    ) -> None:
        self.engine, self.name, self.recipe = engine, name, recipe
        self.options, self.settings = options, settings
        self.seal = options.seal(recipe, settings, name)
        self._open_blocking = blocking
        self._blocking: FoldedIndex | None = None
        self._lock = asyncio.Lock()
        self._gate: AsyncGate | None = None
        self._fold = options.fold_options(recipe)
        self._search = AsyncFoldedSearch(
            engine,
            options.scheme,
            None,
            tiebreaker,
            cursor_key=options.cursor_secret(settings, engine, name, recipe.scheme),
            seal=self.seal,
            on_trouble=options.on_trouble,
        )
        self._similar = AsyncSimilarSearch(engine, options.scheme, seal=self.seal)
        self._matches: AsyncMatchSearch | None = None

    async def __aenter__(self) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<AsyncFoldedIndex {self.name!r} of {', '.join(self.recipe.fields)}>"

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the index; a client that was handed in stays open."""
        try:
            if self._gate is not None:
                await self._gate.close()
            if self._blocking is not None:
                await asyncio.to_thread(self._blocking.close)
        finally:
            self._gate = self._blocking = None
            await self.engine.close()

    async def search(
        self,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> JSON:
        """Return a page of results, one hit a group; see ``FoldedIndex.search``."""
        return await self._search.search(self.name, body, self._fold, params=params, **parameters)

    def pages(
        self,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> AsyncIterator[JSON]:
        """Yield pages until the results end; see ``FoldedIndex.pages``."""
        return self._search.pages(self.name, body, self._fold, params=params, **parameters)

    async def msearch(self, bodies: Iterable[Mapping[str, Any]]) -> list[JSON | ShinglefoldError]:
        """Return a page for each of several requests; see ``FoldedIndex.msearch``."""
        return await self._search.msearch(named_searches(self.name, bodies), self._fold)

    async def similar(self, wanted: Wanted | Fingerprint, **options: Any) -> SimilarPage:  # noqa: ANN401
        """Return the near-duplicates of a document; see ``FoldedIndex.similar``."""
        after = options.pop("after", None)
        chosen, scopes = similar_options(self.options, **options)
        query: Any = wanted
        if isinstance(wanted, Mapping):
            query = await self._in_thread(lambda index: index.query_document(wanted, scopes))
        return await self._similar.find(self.name, query, chosen, place=after)

    async def matches(self, text: str, **options: Any) -> MatchPage:  # noqa: ANN401
        """Return the documents that contain passages of a text; see ``FoldedIndex.matches``."""
        after = options.pop("after", None)
        if self._matches is None:
            # In a thread, because its dictionaries are read from files.
            await self._in_thread(lambda index: index.canonicalizer)
            self._matches = AsyncMatchSearch(self.engine, seal=self.seal)
        return await self._matches.find(self.name, text, match_options(**options), place=after)

    async def explain(self, a: str | tuple[str, str], b: str | tuple[str, str]) -> JSON:
        """Return why two stored documents fold, or why not; see ``FoldedIndex.explain``."""
        return (await self.explained_pair(a, b)).to_json()

    async def explained_pair(self, a: str | tuple[str, str], b: str | tuple[str, str]) -> PairExplanation:
        """Return the explanation of ``explain`` with the documents; see ``FoldedIndex.explained_pair``."""
        return await self._in_thread(lambda index: index.explained_pair(a, b))

    async def index(self, documents: Iterable[Mapping[str, Any]], **options: Any) -> Summary:  # noqa: ANN401
        """Write documents with their fingerprints; see ``FoldedIndex.index``."""
        return await self._in_thread(lambda index: index.index(documents, **options))

    async def sign(self, documents: Iterable[Mapping[str, Any]], *, workers: int = 1) -> list[Document]:
        """Return documents with their fingerprints; see ``FoldedIndex.sign``."""
        return await self._in_thread(lambda index: list(index.sign(documents, workers=workers)))

    async def add(self, document: Document) -> "Verdict":
        """Write one document unless it is a near-duplicate; see ``FoldedIndex.add``."""
        gate, index = await self._open_gate(), await self._blocking_index()
        verdict = await gate.add(document)
        warn_of_unread(text_watch(index.pipeline, self.recipe, [document]), self.name)
        return verdict

    async def add_all(self, documents: Sequence[Document]) -> "list[Verdict]":
        """Write the documents that are not near-duplicates; see ``FoldedIndex.add_all``."""
        gate, index = await self._open_gate(), await self._blocking_index()
        verdicts = await gate.add_all(documents)
        warn_of_unread(text_watch(index.pipeline, self.recipe, documents), self.name)
        return verdicts

    async def delete(self, ids: Sequence[str]) -> int:
        """Delete documents by their ids; see ``FoldedIndex.delete``."""
        return await self._in_thread(lambda index: index.delete(ids))

    async def groups(self) -> "IndexGroups":
        """Return the groups of near-duplicates of the index; see ``FoldedIndex.groups``."""
        return await self._in_thread(FoldedIndex.groups)

    async def backfill(self, **options: Any) -> BackfillSummary:  # noqa: ANN401
        """Give every document the fingerprint of its text; see ``FoldedIndex.backfill``."""
        return await self._in_thread(lambda index: index.backfill(**options))

    async def doctor(self, **options: Any) -> Diagnosis:  # noqa: ANN401
        """Return whether every fingerprint is that of its text; see ``FoldedIndex.doctor``."""
        return await self._in_thread(lambda index: index.doctor(**options))

    async def _in_thread(self, work: Callable[[FoldedIndex], T]) -> T:
        index = await self._blocking_index()
        return await asyncio.to_thread(work, index)

    async def _blocking_index(self) -> FoldedIndex:
        async with self._lock:
            if self._blocking is None:
                engine = await asyncio.to_thread(self._open_blocking)
                self._blocking = FoldedIndex(engine, self.name, self.recipe, self.options, self.settings)
            return self._blocking

    async def _open_gate(self) -> "AsyncGate":
        from shinglefold.grouping import AsyncGate

        index = await self._blocking_index()
        pipeline = await asyncio.to_thread(lambda: index.pipeline)
        async with self._lock:
            if self._gate is None:
                self._gate = await AsyncGate.open(
                    self.engine,
                    self.name,
                    self.options.gate_policy(),
                    pipeline=pipeline,
                    seal=self.seal,
                    blocking=index.engine,
                )
            return self._gate
