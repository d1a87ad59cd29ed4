"""A server that is too busy for a moment is asked again where nobody waits for a page, and not for ever."""

from contextlib import closing

import pytest
from support.servers.faulty import relay

from shinglefold.engines import Connection, open_engine
from shinglefold.errors import EngineUnavailable
from shinglefold.runtime.backoff import Backoff

pytestmark = pytest.mark.newest

LOOKS = {
    "mappings": lambda engine, index: engine.mappings(index),
    "all mappings": lambda engine, index: engine.all_mappings(index),
    "settings": lambda engine, index: engine.index_settings(index),
    "indices": lambda engine, index: engine.indices(index),
    "exists": lambda engine, index: engine.index_exists(index),
    "refresh": lambda engine, index: engine.refresh(index),
    "get": lambda engine, index: engine.get(index, "1"),
    "templates": lambda engine, _: engine.index_templates(),
    "legacy templates": lambda engine, _: engine.legacy_templates(),
    "writes to": lambda engine, index: engine.writes_to(index),
    "put mappings": lambda engine, index: engine.put_mappings(index, {"properties": {}}),
}


@pytest.fixture
def busy(server):
    """A relay that spoils what it is told to, and an engine that asks through it."""
    with relay(server.url, of="") as proxy:
        given = Connection((proxy.url,), timeout=20, retries=2)
        with closing(open_engine(given)) as engine:
            # How often it asks again is what is tested, not for how long it waits before.
            engine.backoff = Backoff(given.retries, first=0.01)
            yield proxy, engine


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_waits_while_a_server_is_busy(busy, new_index, look):
    proxy, engine = busy
    index = new_index()
    LOOKS[look](engine, index)
    proxy.faults = [429, 503]
    LOOKS[look](engine, index)
    assert proxy.faults == []
    proxy.faults = [429] * 3
    with pytest.raises(EngineUnavailable, match="Try again later"):
        LOOKS[look](engine, index)


def test_a_search_is_not_asked_again(busy, new_index):
    proxy, engine = busy
    index = new_index()
    proxy.faults = [429, 429]
    with pytest.raises(EngineUnavailable, match="Try again later"):
        engine.search(index, {})
    assert proxy.faults == [429]
