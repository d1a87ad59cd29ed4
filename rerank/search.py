"""The folded search: folds what a search finds and returns pages of representatives."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from shinglefold.contracts.engine import JSON, AsyncEngine, Engine, Search
from shinglefold.errors import ShinglefoldError
from shinglefold.rerank.engine_calls import run, run_async
from shinglefold.rerank.page.response import KEY
from shinglefold.rerank.request.bodies import split_request
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.rerank.request.url_parameters import together
from shinglefold.rerank.search_steps import SearchSteps


class FoldedSearch(SearchSteps[Engine]):
    """Searches an engine and folds what it finds.

    Args:
        engine: any ``Engine``.
        scheme: the scheme the index was made with.
        field: the object field of the fingerprints.
        tiebreaker: the sort key that makes an order total under a point in time: ``_shard_doc``, or a field
            of its own value in each document where the engine has none (OpenSearch 2). None reads a longer
            window from the start instead of going on where the last one ended.
        keep_alive: how long a point in time may wait for the next request.
        cursor_key: seals cursors; processes that serve the same searches need the same one. None makes one.
        canonicalizer: makes the tokens that matching passages are found by; None makes that of the scheme
            when passages are asked for.
        seal: of the key the index is sealed with; fingerprints without that seal are unreadable.
    """

    def search(
        self,
        index: str | None,
        body: Mapping[str, Any],
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> JSON:
        """Return a page of representatives in the engine's own shape.

        Each hit carries its group under ``inner_hits.duplicates``, as after a native collapse: the total
        counts the hit itself, and the hits attached begin with it. ``dedup`` holds the counters.
        ``hits.total``, aggregations and all else are the engine's.

        Args:
            index: one name or several with commas; None where the body names a point in time.
            body: a search request; ``from`` and ``size`` count representatives; ``ext.dedup`` has options.
            options: for what ``ext.dedup`` leaves open.
            params: what the engines take in the address (``routing``, ``preference``, ``search_type`` …), in
                an object, or each as a keyword.

        Raises:
            ConfigError: the options or the body are not valid, or name a field that the index lacks; or the
                index is sealed with another key than the one given.
            SchemeMismatch: an index was made with another scheme.
            RecipeMismatch: an index has its fingerprints in another field.
            EngineError: as the engine raises.

        Cost: two requests where the first window fills the page, and none of a point in time. Passages take
        one more, and the alignment of each member's text: some ms a thousand words.
        """
        return run(
            self._engine, self._search_with_parameters(index, body, options, together(params, parameters))
        )

    def msearch(
        self,
        searches: Iterable[Search],
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> list[JSON | ShinglefoldError]:
        """Return a page for each of several searches, their windows read with one request, then their hits.

        Args:
            searches: index and body of each, as for ``search``, and its parameters where it has its own.
            params: parameters of all of them.

        Returns:
            the answers in order; what one of them raises stands in its place.

        Cost: as many requests as the longest of them takes, in most cases two; points in time add to it.
        """
        return run(self._engine, self._msearch_steps(searches, options, together(params, parameters)))

    def pages(
        self,
        index: str,
        body: Mapping[str, Any],
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> Iterator[JSON]:
        """Yield page after page until the results end; no group is on two of them.

        A point in time that is not read to its end ends with ``keep_alive``.
        """
        rest, chosen = _opened(body, options)
        while chosen.cursor:
            answer = self.search(index, rest, chosen, params=params, **parameters)
            yield answer
            chosen = replace(chosen, cursor=answer[KEY]["cursor"] or False)


class AsyncFoldedSearch(SearchSteps[AsyncEngine]):
    """``FoldedSearch`` for an engine whose methods are awaited; made with the same arguments."""

    _awaited = True

    async def search(
        self,
        index: str | None,
        body: Mapping[str, Any],
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> JSON:
        """Return a page of representatives; see ``FoldedSearch.search``."""
        return await run_async(
            self._engine, self._search_with_parameters(index, body, options, together(params, parameters))
        )

    async def msearch(
        self,
        searches: Iterable[Search],
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> list[JSON | ShinglefoldError]:
        """Return a page for each of several searches; see ``FoldedSearch.msearch``."""
        return await run_async(
            self._engine, self._msearch_steps(searches, options, together(params, parameters))
        )

    async def pages(
        self,
        index: str,
        body: Mapping[str, Any],
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> AsyncIterator[JSON]:
        """Yield page after page until the results end; see ``FoldedSearch.pages``."""
        rest, chosen = _opened(body, options)
        while chosen.cursor:
            answer = await self.search(index, rest, chosen, params=params, **parameters)
            yield answer
            chosen = replace(chosen, cursor=answer[KEY]["cursor"] or False)


def _opened(body: Mapping[str, Any], options: FoldOptions | None) -> tuple[JSON, FoldOptions]:
    """Return a request without our options, and these with a cursor to begin with."""
    rest, given = split_request(body)
    return rest, FoldOptions.parse({"cursor": True, **given}, options)
