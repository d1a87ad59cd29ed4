"""Elasticsearch for ``AsyncFoldedSearch``, through its asynchronous client.

Needs the extras ``elasticsearch`` and ``async``.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, ClassVar

from elasticsearch import AsyncElasticsearch, BadRequestError, NotFoundError

from shinglefold.contracts.engine import JSON, Parameters
from shinglefold.engines.elasticsearch.engine import ERRORS, client_options
from shinglefold.engines.http.async_engine import AsyncHttpEngine
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.errors import ClientErrors
from shinglefold.engines.http.responses import check_given, in_address, search_path
from shinglefold.errors import EngineError, MissingExtra


class AsyncElasticsearchEngine(AsyncHttpEngine):
    """An Elasticsearch cluster whose methods are awaited."""

    product: ClassVar[str] = "Elasticsearch"
    client_errors: ClassVar[ClientErrors] = ERRORS

    async def open_pit(self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None) -> str:
        """Open a point in time and return its id."""
        check_given(index)
        given = {"keep_alive": keep_alive, **in_address(parameters or {})}
        with self._asking():
            answer = await self._post(search_path(index, "_pit"), given)
        return str(answer["id"])

    async def close_pit(self, pit: str) -> None:
        """Close a point in time; one that is gone already is no error."""
        try:
            with self._asking():
                await self._client.close_point_in_time(id=pit)
        except EngineError as error:
            if not isinstance(error.__cause__, NotFoundError | BadRequestError):
                raise

    async def _bulk_once(self, lines: Sequence[JSON], *, refresh: bool) -> Any:  # noqa: ANN401 - see the base
        return await self._client.bulk(operations=list(lines), refresh=refresh or None)

    async def _search_with(self, index: str | None, body: JSON, parameters: dict[str, str]) -> Any:  # noqa: ANN401
        return await self._post(search_path(index, "_search"), parameters, body)

    async def _post(self, path: str, parameters: dict[str, str], body: JSON | None = None) -> Any:  # noqa: ANN401
        # The client's own methods refuse parameters that servers of other versions have.
        headers = {"accept": "application/json"} | (
            {} if body is None else {"content-type": "application/json"}
        )
        return await self._client.perform_request("POST", path, params=parameters, headers=headers, body=body)

    async def _msearch(self, lines: Sequence[JSON]) -> Any:  # noqa: ANN401 - see the base
        return await self._client.msearch(searches=list(lines))

    def _connect(self, connection: Connection) -> Any:  # noqa: ANN401 - see the base
        if find_spec("aiohttp") is None:
            raise MissingExtra("async", "the asynchronous adapter for Elasticsearch")
        return AsyncElasticsearch(**client_options(connection))
