"""OpenSearch for ``AsyncFoldedSearch``, through opensearch-py's asynchronous client.

Needs the extras ``opensearch`` and ``async``.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from opensearchpy.exceptions import NotFoundError, RequestError

from shinglefold.contracts.engine import JSON, Capabilities, Parameters
from shinglefold.engines.http.async_engine import AsyncHttpEngine
from shinglefold.engines.http.connection import Connection
from shinglefold.engines.http.errors import ClientErrors
from shinglefold.engines.http.responses import check_given, in_address
from shinglefold.engines.opensearch.engine import (
    ERRORS,
    UNALTERED,
    WHOLE_PIT,
    aws_credentials,
    client_options,
)
from shinglefold.errors import EngineError, MissingExtra

try:
    from opensearchpy import AsyncOpenSearch, AWSV4SignerAsyncAuth
except ImportError as _error:
    raise MissingExtra("async", "the asynchronous adapter for OpenSearch") from _error


class AsyncOpenSearchEngine(AsyncHttpEngine):
    """An OpenSearch cluster whose methods are awaited."""

    product: ClassVar[str] = "OpenSearch"
    client_errors: ClassVar[ClientErrors] = ERRORS
    can: Capabilities = replace(AsyncHttpEngine.can, unaltered=UNALTERED)

    async def open_pit(self, index: str, keep_alive: str = "1m", parameters: Parameters | None = None) -> str:
        """Open a point in time and return its id."""
        check_given(index)
        given = {"keep_alive": keep_alive, **WHOLE_PIT, **in_address(parameters or {})}
        with self._asking():
            answer = await self._client.create_pit(index=index, params=given)
        return str(answer["pit_id"])

    async def close_pit(self, pit: str) -> None:
        """Close a point in time; one that is gone already is no error."""
        try:
            with self._asking():
                await self._client.delete_pit(body={"pit_id": [pit]})
        except EngineError as error:
            if not isinstance(error.__cause__, NotFoundError | RequestError):
                raise

    @property
    def newest(self) -> Parameters:
        """Return what asks the primaries; see ``OpenSearchEngine``."""
        return {"preference": "_primary"}

    async def _bulk_once(self, lines: Sequence[JSON], *, refresh: bool) -> Any:  # noqa: ANN401 - see the base
        return await self._client.bulk(body=list(lines), params={"refresh": "true"} if refresh else {})

    async def _search_with(self, index: str | None, body: JSON, parameters: dict[str, str]) -> Any:  # noqa: ANN401
        return await self._client.search(index=index, body=body, params=parameters)

    async def _msearch(self, lines: Sequence[JSON]) -> Any:  # noqa: ANN401 - see the base
        return await self._client.msearch(body=list(lines))

    def _connect(self, connection: Connection) -> Any:  # noqa: ANN401 - see the base
        options = client_options(connection)
        if connection.aws_region:
            credentials = aws_credentials(connection)
            options["http_auth"] = AWSV4SignerAsyncAuth(
                credentials, connection.aws_region, connection.aws_service
            )
        return AsyncOpenSearch(**options)
