"""Copies found anywhere in an index, wherever they rank."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Any, overload

from shinglefold.contracts import Engine, Parameters
from shinglefold.errors import ShinglefoldError
from shinglefold.model import Fingerprint
from shinglefold.rerank.similar.asked import Asked
from shinglefold.rerank.similar.lookup import Found
from shinglefold.rerank.similar.options import SimilarOptions
from shinglefold.rerank.similar.pages import SimilarPage
from shinglefold.rerank.similar.steps import SimilarSteps, Wanted
from shinglefold.rerank.steps import AsyncEngine, drive, drive_async
from shinglefold.seal import Seal


class SimilarSearch(SimilarSteps[Engine]):
    """Finds the copies of documents in an index; knows the recipes of the indices it has searched.

    For what is made with it: ``SimilarSteps``.
    """

    def find(
        self,
        index: str,
        wanted: Wanted,
        options: SimilarOptions | None = None,
        *,
        place: str | None = None,
    ) -> SimilarPage:
        """Return a page of the copies of one document.

        Args:
            index: one name or several with commas.
            wanted: the id of a stored document, index and id where several indices have it, a fingerprint, or
                an ``Asked``, which has the values of scopes as well.
            place: ``next`` of the page before.

        Raises:
            InputError: there is no such document, or it can't be compared.
            ConfigError: the index was not made for fingerprints; an option is not valid.
            SchemeMismatch: the fingerprint was made with another scheme.
            EngineError: as the engine raises.

        Cost: one request where a document's candidates fit into one window, another for an id, another for
        sources.
        """
        return drive(self._engine, self._page(index, wanted, options, place))

    def pages(
        self, index: str, wanted: Wanted, options: SimilarOptions | None = None
    ) -> Iterator[SimilarPage]:
        """Yield page after page until there are no more copies."""
        page = self.find(index, wanted, options)
        yield page
        while page.next is not None:
            page = self.find(index, wanted, options, place=page.next)
            yield page

    def find_each(
        self, index: str, several: Sequence[Wanted], options: SimilarOptions | None = None
    ) -> list[SimilarPage | ShinglefoldError]:
        """Return the first page of each of several documents, which are also compared with each other.

        Returns:
            for each its page, or what it alone raised. ``among`` has the others of the batch that match.

        Cost: the requests of one, as ``_msearch``.
        """
        return drive(self._engine, self._batch(index, several, options))

    def look_up(
        self,
        index: str,
        prints: Sequence[Fingerprint | Asked],
        options: SimilarOptions | None = None,
        *,
        parameters: Parameters | None = None,
    ) -> list[Found]:
        """Return for each fingerprint the stored documents that match it, with one request for all.

        The plain part of ``find``, for who decides about many documents a second: no sources, no pages.
        ``options.window`` bounds the candidates of each; ``Found.complete`` tells whether it did. Each match
        tells the number of its group and, on servers, what guards a write (``seq_no``, ``primary_term``).

        Args:
            parameters: what the engine takes in the address, such as ``preference``.

        Raises:
            as ``find``; an error of one search is raised for all.
        """
        return drive(self._engine, self._look_up(index, prints, options, parameters))


class AsyncSimilarSearch(SimilarSteps[AsyncEngine]):
    """``SimilarSearch`` for an engine whose methods are awaited; made with the same arguments."""

    async def find(
        self,
        index: str,
        wanted: Wanted,
        options: SimilarOptions | None = None,
        *,
        place: str | None = None,
    ) -> SimilarPage:
        """Return a page of the copies of one document; see ``SimilarSearch.find``."""
        return await drive_async(self._engine, self._page(index, wanted, options, place))

    async def pages(
        self, index: str, wanted: Wanted, options: SimilarOptions | None = None
    ) -> AsyncIterator[SimilarPage]:
        """Yield page after page until there are no more copies."""
        page = await self.find(index, wanted, options)
        yield page
        while page.next is not None:
            page = await self.find(index, wanted, options, place=page.next)
            yield page

    async def find_each(
        self, index: str, several: Sequence[Wanted], options: SimilarOptions | None = None
    ) -> list[SimilarPage | ShinglefoldError]:
        """Return the first page of each of several documents; see ``SimilarSearch.find_each``."""
        return await drive_async(self._engine, self._batch(index, several, options))

    async def look_up(
        self,
        index: str,
        prints: Sequence[Fingerprint | Asked],
        options: SimilarOptions | None = None,
        *,
        parameters: Parameters | None = None,
    ) -> list[Found]:
        """Return for each fingerprint the stored documents that match; see ``SimilarSearch.look_up``."""
        return await drive_async(self._engine, self._look_up(index, prints, options, parameters))


@overload
def find_similar(
    engine: Engine,
    index: str,
    wanted: Wanted,
    options: SimilarOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,  # noqa: ANN401 - each option has its own type
) -> SimilarPage: ...
@overload
def find_similar(
    engine: Engine,
    index: str,
    wanted: list[Wanted],
    options: SimilarOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,  # noqa: ANN401 - each option has its own type
) -> list[SimilarPage | ShinglefoldError]: ...
def find_similar(
    engine: Engine,
    index: str,
    wanted: Wanted | list[Wanted],
    options: SimilarOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,
) -> SimilarPage | list[SimilarPage | ShinglefoldError]:
    """Return the copies of a document of an index, or of each of a list, wherever they rank.

    Args:
        wanted: an id, index and id, a fingerprint, an ``Asked``, or a list of those.
        more: single options by name, such as ``min_resemblance=0.8``.

    Who asks more than once keeps a ``SimilarSearch``, which reads the recipe of an index once.
    """
    search, chosen = SimilarSearch(engine, seal=seal), replace(options or SimilarOptions(), **more)
    if isinstance(wanted, list):
        return search.find_each(index, wanted, chosen)
    return search.find(index, wanted, chosen)


async def find_similar_async(
    engine: AsyncEngine,
    index: str,
    wanted: Wanted | list[Wanted],
    options: SimilarOptions | None = None,
    *,
    seal: Seal | None = None,
    **more: Any,  # noqa: ANN401 - each option has its own type
) -> SimilarPage | list[SimilarPage | ShinglefoldError]:
    """Return the copies of a document of an index, or of each of a list; see ``find_similar``."""
    search, chosen = AsyncSimilarSearch(engine, seal=seal), replace(options or SimilarOptions(), **more)
    if isinstance(wanted, list):
        return await search.find_each(index, wanted, chosen)
    return await search.find(index, wanted, chosen)
