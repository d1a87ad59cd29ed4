"""Engines: where documents are kept, behind one ``Engine`` contract."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shinglefold.contracts.engine import Engine
from shinglefold.engines.http.connection import (
    Connection,
    WrappedClient,
    each_with_scheme,
    is_async_client,
    is_server,
    load_connection,
    looks_like_server,
    plain_client,
    printable_address,
    product_of_client,
)
from shinglefold.errors import ConfigError
from shinglefold.options.validation import check_path

if TYPE_CHECKING:
    import asyncio

__all__ = [
    "Connection",
    "folder_of",
    "is_server",
    "load_connection",
    "open_async_engine",
    "open_blocking_twin",
    "open_engine",
]

_EMBEDDED = "embedded:"


def open_engine(where: Any, canonicalizer: Any = None) -> Engine:  # noqa: ANN401
    """Return the engine that an address names.

    Args:
        where: one of

            - a folder, as a path or as ``embedded:PATH``; it is created with the first index,
            - an address such as ``https://localhost:9200``. ``opensearch+https://…`` and
              ``elasticsearch+https://…`` name the product; otherwise it is detected. Credentials come
              from the environment (see ``load_connection``),
            - a ``Connection``,
            - a blocking client of opensearch-py or elasticsearch-py, which is used unchanged and stays open.
        canonicalizer: makes the tokens of text for the embedded engine: a ``Canonicalizer`` or a callable
            ``text -> list[Token]``. None is enough to read mappings. Servers need none.

    Raises:
        ConfigError: the address or the credentials are not valid.
        EngineError: the server does not answer, or is neither OpenSearch nor Elasticsearch.
        MissingExtra: the engine's library is not installed.
    """
    if isinstance(where, Connection):
        return _open_server(where)
    where = plain_client(where)
    if product := product_of_client(where):
        if is_async_client(where):
            raise ConfigError(
                f"the methods of {type(where).__name__} are awaited; give a client that blocks, or use "
                "shinglefold.open_async"
            )
        made: Engine = _server_engine(product).of_client(where)
        return made
    if callable(getattr(where, "search", None)):
        raise ConfigError(
            "expected an address, a folder, a Connection or a client, got an engine, which only "
            "shinglefold.open takes"
        )
    # An unset variable makes an empty address, and as a path that is the current folder.
    check_path("address", where)
    address = str(where)
    if is_server(address):
        return _open_server(load_connection(address))
    if looks_like_server(address) and not address.startswith(_EMBEDDED):
        meant = each_with_scheme(address)
        several = f", several each with its scheme ({printable_address(meant)})" if meant else ""
        raise ConfigError(
            f"{printable_address(address)!r} looks like a server, but names none: write http://HOST:PORT or "
            f"https://HOST:PORT{several}; a folder of such a name is ./NAME or embedded:NAME"
        )
    from shinglefold.engines.embedded import EmbeddedEngine

    return EmbeddedEngine(address.removeprefix(_EMBEDDED), canonicalizer)


def open_async_engine(where: Any, canonicalizer: Callable[[], Any] | None = None) -> Any:  # noqa: ANN401
    """Return an engine whose methods are awaited.

    Args:
        where: a folder, an address, a ``Connection``, or an asynchronous client, which stays open.
        canonicalizer: returns the canonicalizer of the embedded engine; servers need none.

    Raises:
        ConfigError: the address is not valid, or the client blocks.
        EngineError: the server does not answer.
        MissingExtra: the engine's library is not installed.
    """
    where = plain_client(where)
    if product := product_of_client(where):
        if not is_async_client(where):
            raise ConfigError(f"{type(where).__name__} blocks: give its asynchronous variant, or use open")
        return _server_engine(product, awaited=True).of_client(where)
    if not isinstance(where, Connection) and (folder := folder_of(str(where))) is not None:
        from shinglefold.engines.embedded.async_engine import AsyncEmbeddedEngine

        return AsyncEmbeddedEngine(folder, None if canonicalizer is None else canonicalizer())
    from shinglefold.engines.http.product_detection import product_of

    connection = where if isinstance(where, Connection) else load_connection(str(where))
    return _server_engine(product_of(connection), awaited=True)(connection)


def open_blocking_twin(client: Any, loop: "asyncio.AbstractEventLoop") -> Any:  # noqa: ANN401
    """Return a blocking engine that sends its requests through an asynchronous client.

    Use it in threads other than that of the event loop, which must be running.
    """
    client = plain_client(client)
    return open_engine(WrappedClient(client, loop, product_of_client(client)))


def folder_of(where: str) -> str | None:
    """Return the folder that an address names, None if it names a server."""
    return None if is_server(where) else where.removeprefix(_EMBEDDED)


def _open_server(connection: Connection) -> Engine:
    from shinglefold.engines.http.product_detection import product_of

    made: Engine = _server_engine(product_of(connection))(connection)
    return made


def _server_engine(product: str, *, awaited: bool = False) -> Any:  # noqa: ANN401
    if product == "opensearch":
        from shinglefold.engines.opensearch import AsyncOpenSearchEngine, OpenSearchEngine

        return AsyncOpenSearchEngine if awaited else OpenSearchEngine
    from shinglefold.engines.elasticsearch import AsyncElasticsearchEngine, ElasticsearchEngine

    return AsyncElasticsearchEngine if awaited else ElasticsearchEngine
