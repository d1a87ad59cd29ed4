"""Where documents are kept: one ``Engine`` contract, and the engines that fulfil it."""

from typing import Any

from shinglefold.contracts.engine import Engine
from shinglefold.engines.http import (
    Connection,
    each_with_scheme,
    is_server,
    load_connection,
    looks_like_server,
    shown,
)
from shinglefold.engines.http.connection import is_async_client, product_of_client
from shinglefold.errors import ConfigError
from shinglefold.options.validation import check_path

__all__ = ["Connection", "folder_of", "is_server", "load_connection", "open_engine"]

_EMBEDDED = "embedded:"


def open_engine(where: Any, canonicalizer: Any = None) -> Engine:  # noqa: ANN401
    """Return the engine that an address names.

    Args:
        where: a folder, as a path or as ``embedded:PATH``, which is made when the first index is; or a
            server: a ``Connection``, or an address such as ``https://localhost:9200``. What is behind an
            address is asked for, unless it says so: ``opensearch+https://…``, ``elasticsearch+https://…``.
            Credentials come with the ``Connection``, or from the environment (see ``load_connection``). Or a
            client of opensearch-py or elasticsearch-py that blocks: it is used as it is, and stays open.
        canonicalizer: what the embedded engine makes tokens of text with: a ``Canonicalizer`` or a callable
            ``text -> list[Token]``; None will do for mappings. Servers have analyzers of their own and need
            none.

    Raises:
        ConfigError: the address or the credentials are not valid.
        EngineError: the server does not answer, or is of another kind.
        MissingExtra: the engine's library is not installed.
    """
    if isinstance(where, Connection):
        return _open_server(where)
    if product := product_of_client(where):
        if is_async_client(where):
            raise ConfigError(
                f"the methods of {type(where).__name__} are awaited; give a client that blocks, or use "
                "shinglefold.open_async"
            )
        made: Engine = _server_engine(product).of_client(where)
        return made
    # An empty one is what an unset variable makes; its path would be this folder.
    check_path("address", where)
    address = str(where)
    if is_server(address):
        return _open_server(load_connection(address))
    if looks_like_server(address) and not address.startswith(_EMBEDDED):
        meant = each_with_scheme(address)
        several = f", several each with its scheme ({shown(meant)})" if meant else ""
        raise ConfigError(
            f"{shown(address)!r} looks like a server, but names none: write http://HOST:PORT or "
            f"https://HOST:PORT{several}; a folder of such a name is ./NAME or embedded:NAME"
        )
    from shinglefold.engines.embedded import EmbeddedEngine

    return EmbeddedEngine(address.removeprefix(_EMBEDDED), canonicalizer)


def folder_of(where: str) -> str | None:
    """Return the folder that an address names, None where it names a server."""
    return None if is_server(where) else where.removeprefix(_EMBEDDED)


def _open_server(connection: Connection) -> Engine:
    from shinglefold.engines.http.product_detection import product_of

    made: Engine = _server_engine(product_of(connection))(connection)
    return made


def _server_engine(product: str) -> Any:  # noqa: ANN401
    if product == "opensearch":
        from shinglefold.engines.opensearch import OpenSearchEngine

        return OpenSearchEngine
    from shinglefold.engines.elasticsearch import ElasticsearchEngine

    return ElasticsearchEngine
