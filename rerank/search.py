"""The folded search: searches an engine, folds the hits and returns pages of representatives."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from shinglefold.contracts.engine import JSON, AsyncEngine, Engine, Search
from shinglefold.errors import ShinglefoldError
from shinglefold.options.validation import check_object
from shinglefold.rerank.engine_calls import run, run_async
from shinglefold.rerank.page.response import KEY
from shinglefold.rerank.request.bodies import split_request
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.rerank.search_steps import SearchSteps


class FoldedSearch(SearchSteps[Engine]):
    """Searches an engine and folds the hits.

    Args:
        engine: any ``Engine``.
        scheme: the scheme the index was made with; or a function that takes it from the recipe of the index
            (``lambda recipe: recipe.scheme``), so that the search follows an index that changes.
        field: the object field of the fingerprints; None takes it from the recipe of the index.
        tiebreaker: the sort key that makes an order total under a point in time: ``_shard_doc``, or for
            OpenSearch 2, which lacks it, a field with a unique value in each document. None reads longer
            windows from the start instead of continuing after the last hit.
        keep_alive: how long a point in time may wait for the next request.
        cursor_key: encrypts cursors; processes that serve the same searches need the same key. None creates
            one.
        seal: the seal with the key of the index; fingerprints without that seal are unreadable.
        on_trouble: if no fingerprint can be read, ``unfolded`` returns the engine's own page with the reason
            in ``dedup``, and logs a warning; ``raise`` raises an error.
    """

    def search(
        self,
        index: str | None,
        body: Mapping[str, Any] | None = None,
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> JSON:
        """Return a page of representatives in the engine's own shape.

        Each hit carries its group under ``inner_hits.duplicates``, as after a native collapse: the total
        counts the hit itself, and the attached hits begin with it. ``dedup`` holds the counters. Everything
        else, such as ``hits.total`` and aggregations, is the engine's.

        Args:
            index: one name or several with commas; None if the body names a point in time.
            body: a search request; ``from`` and ``size`` count representatives; ``ext.dedup`` has options.
                Without one all documents are found.
            options: the options that ``ext.dedup`` does not set.
            params: URL parameters of the engines (``routing``, ``preference``, ``search_type`` …), in an
                object, or each as a keyword.

        Raises:
            ConfigError: the options or the body are not valid, or name a field that the index lacks.
            EngineError: as the engine raises.
            SchemeMismatch, RecipeMismatch: with ``on_trouble`` ``raise``, an index was made with another
                scheme, or has its fingerprints in another field.

        Cost: two requests if the first window fills the page. Passages take one more, and some ms for each
        thousand words of the members' texts.
        """
        return run(
            self._engine,
            self.search_with_parameters(index, body, options, _merge_parameters(params, parameters)),
        )

    def msearch(
        self,
        searches: Iterable[Search],
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> list[JSON | ShinglefoldError]:
        """Return a page for each of several searches, whose requests are sent together.

        Args:
            searches: index and body of each, as for ``search``, and optionally its own URL parameters.
            params: URL parameters of all of them.

        Returns:
            the answers in order; for a search that failed its error.

        Cost: as many requests as the longest of them takes, in most cases two.
        """
        return run(
            self._engine, self._msearch_steps(searches, options, _merge_parameters(params, parameters))
        )

    def pages(
        self,
        index: str,
        body: Mapping[str, Any] | None = None,
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> Iterator[JSON]:
        """Yield page after page until the results end; no group is on two of them.

        A point in time that is not read to the end expires after ``keep_alive``.
        """
        rest, chosen = _begin_paging(body, options)
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
        body: Mapping[str, Any] | None = None,
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> JSON:
        """Return a page of representatives; see ``FoldedSearch.search``."""
        return await run_async(
            self._engine,
            self.search_with_parameters(index, body, options, _merge_parameters(params, parameters)),
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
            self._engine, self._msearch_steps(searches, options, _merge_parameters(params, parameters))
        )

    async def pages(
        self,
        index: str,
        body: Mapping[str, Any] | None = None,
        options: FoldOptions | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        **parameters: Any,  # noqa: ANN401 - as the clients take them
    ) -> AsyncIterator[JSON]:
        """Yield page after page until the results end; see ``FoldedSearch.pages``."""
        rest, chosen = _begin_paging(body, options)
        while chosen.cursor:
            answer = await self.search(index, rest, chosen, params=params, **parameters)
            yield answer
            chosen = replace(chosen, cursor=answer[KEY]["cursor"] or False)


def _begin_paging(body: Mapping[str, Any] | None, options: FoldOptions | None) -> tuple[JSON, FoldOptions]:
    """Return a request without our options, and the options with a new cursor."""
    rest, given = split_request(body)
    return rest, FoldOptions.parse({"cursor": True, **given}, options)


def _merge_parameters(params: Mapping[str, Any] | None, more: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters that a caller gave in an object and as keywords."""
    if params is None:
        return more
    return {**check_object("params", params, 'an object, such as {"routing": "a"}'), **more}
