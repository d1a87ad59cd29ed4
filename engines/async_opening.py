"""Open an engine whose methods are awaited, and use an asynchronous client from other threads."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from shinglefold.engines import folder_of, open_engine
from shinglefold.engines.http import Connection, load_connection
from shinglefold.errors import ConfigError

#: The packages of the clients, each with the product it is for.
_CLIENTS = {"opensearchpy": "opensearch", "elasticsearch": "elasticsearch"}


def product_of_client(given: object) -> str:
    """Return the product that a client is for, "" for what is no client."""
    for kind in type(given).__mro__:
        product = _CLIENTS.get(kind.__module__.partition(".")[0])
        if product is not None and hasattr(given, "indices"):
            return product
    return ""


def is_async_client(given: object) -> bool:
    """Return whether this is a client whose methods are awaited."""
    return bool(product_of_client(given)) and inspect.iscoroutinefunction(getattr(given, "info", None))


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
    return open_engine(LoopClient(client, loop))


def _async_engine(product: str) -> Any:  # noqa: ANN401
    if product == "opensearch":
        from shinglefold.engines.opensearch.async_engine import AsyncOpenSearchEngine

        return AsyncOpenSearchEngine
    from shinglefold.engines.elasticsearch.async_engine import AsyncElasticsearchEngine

    return AsyncElasticsearchEngine


class LoopClient:
    """An asynchronous client with blocking methods: each runs in the event loop of the client.

    Attributes that are clients of their own (``indices``, ``options()``) are wrapped the same way.
    """

    def __init__(self, client: Any, loop: asyncio.AbstractEventLoop) -> None:  # noqa: ANN401
        self._wrapped, self._loop = client, loop

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        found = getattr(self._wrapped, name)
        if callable(found) and not inspect.isclass(found):
            return self._blocking(found)
        return LoopClient(found, self._loop) if _is_client_part(found) else found

    def _blocking(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            made = method(*args, **kwargs)
            if inspect.isawaitable(made):
                return asyncio.run_coroutine_threadsafe(_awaited(made), self._loop).result()
            return LoopClient(made, self._loop) if _is_client_part(made) else made

        return call


async def _awaited(given: Any) -> Any:  # noqa: ANN401
    return await given


def _is_client_part(given: object) -> bool:
    return type(given).__module__.partition(".")[0] in _CLIENTS and hasattr(given, "transport")
