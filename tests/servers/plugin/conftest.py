"""A server with our plugin, and an index of documents that match more or less."""

from collections.abc import Iterator

import pytest
from support.plugin_trials import documents, properties
from support.servers.kinds import kind
from support.servers.local import LocalServer

from shinglefold.contracts.engine import Engine
from shinglefold.engines import open_engine

INDEX = "shinglefold-test-plugin"


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
    engine.create_index(INDEX, properties(), {"number_of_shards": 2, "number_of_replicas": 0})
    engine.bulk({"_index": INDEX, "_id": str(one["number"]), "_source": one} for one in documents())
    engine.refresh(INDEX)
    yield INDEX
    engine.delete_index(INDEX)
