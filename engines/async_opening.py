"""Open an engine whose methods are awaited."""

import asyncio
from collections.abc import Callable
from typing import Any

from shinglefold.engines import folder_of, open_engine
from shinglefold.engines.http import Connection, load_connection
from shinglefold.engines.http.connection import WrappedClient, is_async_client, product_of_client
from shinglefold.errors import ConfigError


def open_async_engine(where: Any, canonicalizer: Callable[[], Any] | None = None) -> Any:  # noqa: ANN401
    """Return an engine whose methods are awaited.

    Args:
        where: a folder, an address, a ``Connection``, or an asynchronous client, which stays open.
        canonicalizer: makes the canonicalizer of the embedded engine; servers need none.

    Raises:
        ConfigError: the address is not valid, or the client blocks.
        EngineError: the server does not answer.
        MissingExtra: the engine's library is not installed.
    """
    if product := product_of_client(where):
        if not is_async_client(where):
            raise ConfigError(f"{type(where).__name__} blocks: give its asynchronous variant, or use open")
        return _async_engine(product).of_client(where)
    if not isinstance(where, Connection) and (folder := folder_of(str(where))) is not None:
        from shinglefold.engines.embedded.async_engine import AsyncEmbeddedEngine

        return AsyncEmbeddedEngine(folder, None if canonicalizer is None else canonicalizer())
    from shinglefold.engines.http.product_detection import product_of

    connection = where if isinstance(where, Connection) else load_connection(str(where))
    return _async_engine(product_of(connection))(connection)


def open_blocking_twin(client: Any, loop: asyncio.AbstractEventLoop) -> Any:  # noqa: ANN401
    """Return a blocking engine that sends its requests by an asynchronous client.

    For threads other than that of the event loop, which must be running.
    """
    return open_engine(WrappedClient(client, loop, product_of_client(client)))


def _async_engine(product: str) -> Any:  # noqa: ANN401
    if product == "opensearch":
        from shinglefold.engines.opensearch.async_engine import AsyncOpenSearchEngine

        return AsyncOpenSearchEngine
    from shinglefold.engines.elasticsearch.async_engine import AsyncElasticsearchEngine

    return AsyncElasticsearchEngine
