"""A server with our plugin, and an index of documents that match more or less."""

from collections.abc import Iterator

import pytest
from support.plugin_trials import documents, indexed
from support.servers.kinds import kind
from support.servers.local import LocalServer

from shinglefold.contracts.engine import Engine
from shinglefold.engines import open_engine


@pytest.fixture(scope="module")
def plugin_server(apart) -> LocalServer:
    """What tests share that run in one process, so that it is started once (``tests/conftest.py``)."""
    made: LocalServer = apart.running("opensearch-plugin", lambda: LocalServer(kind("opensearch-plugin")))
    return made


@pytest.fixture(scope="module")
def server(plugin_server) -> LocalServer:
    return plugin_server


@pytest.fixture(scope="module")
def engine(server) -> Iterator[Engine]:
    with open_engine(server.url) as made:
        yield made


@pytest.fixture(scope="module")
def index(engine) -> Iterator[str]:
    with indexed(engine, "shinglefold-test-plugin", documents()) as name:
        yield name
