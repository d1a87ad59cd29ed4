"""Searches whose results come page by page: find one, find each of several, iterate over pages."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Generic, TypeVar

from shinglefold.contracts.engine import AsyncEngine, Engine
from shinglefold.errors import ShinglefoldError
from shinglefold.rerank.engine_calls import Steps, run, run_async
from shinglefold.rerank.similar.results import FoundPage

Wanted = TypeVar("Wanted")
Options = TypeVar("Options")
Page = TypeVar("Page", bound=FoundPage[Any])


class PagedSearch(ABC, Generic[Wanted, Options, Page]):
    """A search whose results come page by page, for one thing wanted or for several."""

    @abstractmethod
    def _page(self, index: str, wanted: Wanted, options: Options | None, place: str | None) -> Steps[Page]:
        """Return a page of what is found for one."""

    @abstractmethod
    def _batch(
        self, index: str, several: Sequence[Wanted], options: Options | None
    ) -> Steps[list[Page | ShinglefoldError]]:
        """Return the first page of each of several."""


class SyncPagedSearch(PagedSearch[Wanted, Options, Page]):
    """``PagedSearch`` on an engine that blocks."""

    _engine: Engine

    def find(
        self, index: str, wanted: Wanted, options: Options | None = None, *, place: str | None = None
    ) -> Page:
        """Return a page of what is found for one.

        Args:
            index: one name or several with commas.
            wanted: what the class says.
            place: ``next`` of the page before.

        Raises:
            ConfigError: the index was not made for this; an option is not valid.
            EngineError: as the engine raises; and what the class says.

        Cost: one request where the candidates fit into one window, and what the class says.
        """
        return run(self._engine, self._page(index, wanted, options, place))

    def pages(self, index: str, wanted: Wanted, options: Options | None = None) -> Iterator[Page]:
        """Yield page after page until there is nothing more."""
        page = self.find(index, wanted, options)
        yield page
        while page.next is not None:
            page = self.find(index, wanted, options, place=page.next)
            yield page

    def find_each(
        self, index: str, several: Sequence[Wanted], options: Options | None = None
    ) -> list[Page | ShinglefoldError]:
        """Return the first page of each of several, or what it alone raised.

        Cost: the requests of one, as ``_msearch``.
        """
        return run(self._engine, self._batch(index, several, options))


class AsyncPagedSearch(PagedSearch[Wanted, Options, Page]):
    """``PagedSearch`` on an engine whose methods are awaited; same methods as ``SyncPagedSearch``."""

    _engine: AsyncEngine

    async def find(
        self, index: str, wanted: Wanted, options: Options | None = None, *, place: str | None = None
    ) -> Page:
        """Return a page of what is found for one; see ``SyncPagedSearch.find``."""
        return await run_async(self._engine, self._page(index, wanted, options, place))

    async def pages(self, index: str, wanted: Wanted, options: Options | None = None) -> AsyncIterator[Page]:
        """Yield page after page until there is nothing more."""
        page = await self.find(index, wanted, options)
        yield page
        while page.next is not None:
            page = await self.find(index, wanted, options, place=page.next)
            yield page

    async def find_each(
        self, index: str, several: Sequence[Wanted], options: Options | None = None
    ) -> list[Page | ShinglefoldError]:
        """Return the first page of each of several; see ``SyncPagedSearch.find_each``."""
        return await run_async(self._engine, self._batch(index, several, options))
