"""A client of opensearch-py or elasticsearch-py that a caller hands in, to be used as it is."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shinglefold.errors import ConfigError

if TYPE_CHECKING:
    import asyncio

#: The packages of the clients, each with the product it is for.
_PACKAGES = {"opensearchpy": "opensearch", "elasticsearch": "elasticsearch"}


def product_of_client(given: object) -> str:
    """Return the product that a client is for, "" for what is no client."""
    for kind in type(given).__mro__:
        product = _PACKAGES.get(kind.__module__.partition(".")[0], "")
        if product and hasattr(given, "indices"):
            return product
    return given.product if isinstance(given, WrappedClient) else ""


def is_async_client(given: object) -> bool:
    """Return whether the methods of a client are awaited."""
    if isinstance(given, WrappedClient) or not product_of_client(given):
        return False
    # Both packages keep these clients in a module of this name; their methods are no coroutine functions.
    return any("_async" in kind.__module__.split(".") for kind in type(given).__mro__)


class WrappedClient:
    """An asynchronous client with blocking methods, for threads other than that of its running event loop.

    Attributes that are parts of the client (``indices``, ``options()``) are wrapped the same way.
    """

    def __init__(self, client: Any, loop: "asyncio.AbstractEventLoop", product: str) -> None:  # noqa: ANN401
        self._wrapped, self._loop, self.product = client, loop, product

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        found = getattr(self._wrapped, name)
        if callable(found) and not inspect.isclass(found):
            return self._blocking(found)
        return self._wrap(found)

    def _blocking(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            # Whoever opens another engine does not wait for it.
            import asyncio

            made = method(*args, **kwargs)
            if inspect.isawaitable(made):
                return asyncio.run_coroutine_threadsafe(_awaited(made), self._loop).result()
            return self._wrap(made)

        return call

    def _wrap(self, found: Any) -> Any:  # noqa: ANN401
        is_part = type(found).__module__.partition(".")[0] in _PACKAGES and hasattr(found, "transport")
        return WrappedClient(found, self._loop, self.product) if is_part else found


async def _awaited(given: Any) -> Any:  # noqa: ANN401
    return await given


def addresses_of(client: Any) -> tuple[str, ...]:  # noqa: ANN401 - the clients' own types
    """Return the addresses of a client, without credentials; for messages."""
    transport = client.transport
    if hasattr(transport, "node_pool"):
        return tuple(node.base_url for node in transport.node_pool.all())
    return tuple(_address(host) for host in transport.hosts)


def _address(host: dict[str, Any]) -> str:
    scheme = "https" if host.get("use_ssl") or host.get("scheme") == "https" else "http"
    port = f":{host['port']}" if "port" in host else ""
    prefix = str(host.get("url_prefix", "")).strip("/")
    return f"{scheme}://{host.get('host', 'localhost')}{port}" + (f"/{prefix}" if prefix else "")


def check_raises_errors(client: Any) -> None:  # noqa: ANN401 - the clients' own types
    """Refuse a client that returns the errors of a server instead of raising them.

    Raises:
        ConfigError: it does.
    """
    ignored = getattr(client, "_ignore_status", None)
    if isinstance(ignored, int | tuple | list | set) and ignored:
        raise ConfigError(
            f"the client ignores the statuses {ignored}, so errors would go unnoticed: give it without "
            "options(ignore_status=…)"
        )
