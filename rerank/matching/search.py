"""Searches for passages, blocking and awaited."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Any, overload

from shinglefold.contracts import Engine
from shinglefold.errors import ShinglefoldError
from shinglefold.rerank.matching.options import MatchOptions
from shinglefold.rerank.matching.pages import MatchPage
from shinglefold.rerank.matching.steps import MatchSteps
from shinglefold.rerank.steps import AsyncEngine, drive, drive_async
from shinglefold.seal import Seal


class MatchSearch(MatchSteps[Engine]):
    """Finds documents that have passages of texts; knows the recipes of the indices it has searched.

    For what is made with it: ``MatchSteps``.
    """

    def find(
        self, index: str, text: str, options: MatchOptions | None = None, *, place: str | None = None
    ) -> MatchPage:
        """Return a page of the documents that have passages of a text.

        Args:
            index: one name or several with commas.
            place: ``next`` of the page before.

        Raises:
            ConfigError: the index stores no elements of passages; an option is not valid.
            EngineError: as the engine raises.

        Cost: one request where the candidates fit into one window, and 2 µs a word of their texts.
        """
        return drive(self._engine, self._page(index, text, options, place))

    def pages(self, index: str, text: str, options: MatchOptions | None = None) -> Iterator[MatchPage]:
        """Yield page after page until there are no more documents."""
        page = self.find(index, text, options)
        yield page
        while page.next is not None:
            page = self.find(index, text, options, place=page.next)
            yield page

    def find_each(
        self, index: str, texts: Sequence[str], options: MatchOptions | None = None
    ) -> list[MatchPage | ShinglefoldError]:
        """Return the first page of each of several texts, or what it alone raised.

        Cost: the requests of one, as ``_msearch``.
        """
        return drive(self._engine, self._batch(index, texts, options))


class AsyncMatchSearch(MatchSteps[AsyncEngine]):
    """``MatchSearch`` for an engine whose methods are awaited; made with the same arguments."""

    async def find(
        self, index: str, text: str, options: MatchOptions | None = None, *, place: str | None = None
    ) -> MatchPage:
        """Return a page of the documents that have passages of a text; see ``MatchSearch.find``."""
        return await drive_async(self._engine, self._page(index, text, options, place))

    async def pages(
        self, index: str, text: str, options: MatchOptions | None = None
    ) -> AsyncIterator[MatchPage]:
        """Yield page after page until there are no more documents."""
        page = await self.find(index, text, options)
        yield page
        while page.next is not None:
            page = await self.find(index, text, options, place=page.next)
            yield page

    async def find_each(
        self, index: str, texts: Sequence[str], options: MatchOptions | None = None
    ) -> list[MatchPage | ShinglefoldError]:
        """Return the first page of each of several texts; see ``MatchSearch.find_each``."""
        return await drive_async(self._engine, self._batch(index, texts, options))


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

    Who asks more than once keeps a ``MatchSearch``, which reads the recipe and the dictionaries once.
    """
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
    search, chosen = AsyncMatchSearch(engine, seal=seal), replace(options or MatchOptions(), **more)
    if isinstance(text, list):
        return await search.find_each(index, text, chosen)
    return await search.find(index, text, chosen)
