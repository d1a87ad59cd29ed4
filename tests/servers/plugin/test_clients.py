"""Folded clients and the gateway let the plugin fold where a request says so, and tell which way."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from support.clients import Blocking, a_client, plain
from support.drop_in import BRIDGE, MAPPINGS
from support.gateway import running_gateway
from support.plugin_trials import comparable

import shinglefold
from shinglefold import fold
from shinglefold.contracts.engine import JSON
from shinglefold.errors import ConfigError
from shinglefold.examples import articles

_NAME = "shinglefold-test-plugin-clients"
#: Options of a search, and the mode of its page: what the plugin does not take is folded by the client.
WAYS: dict[str, tuple[JSON, str]] = {
    "server": ({"mode": "server"}, "server"),
    "auto": ({"mode": "auto"}, "server"),
    "auto, with options": ({"mode": "auto", "representative": "longest", "members": 1}, "server"),
    "auto, refused by the plugin": ({"mode": "auto", "explain": True}, "window"),
    "no mode": ({}, "window"),
}


@pytest.fixture(scope="module")
def site(server, engine) -> Iterator[Any]:
    engine.create_index(_NAME, MAPPINGS, {"number_of_shards": 1, "number_of_replicas": 0})
    shinglefold.setup(server.url, _NAME, text=["title", "body"], languages=[])
    with shinglefold.open(server.url, _NAME) as made:
        made.index(articles())
        engine.refresh(_NAME)
        yield made
    engine.delete_index(_NAME)


@pytest.fixture(scope="module", params=["a folded client", "an awaited folded client", "the gateway"])
def client(request, server, tmp_path_factory) -> Iterator[Any]:
    loop = asyncio.new_event_loop()
    awaited = "awaited" in request.param

    async def make(url: str) -> Any:
        return a_client("opensearch", url, awaited=awaited)

    if request.param == "the gateway":
        pytest.importorskip("uvicorn")
        with running_gateway(tmp_path_factory.mktemp("gateway") / "log", server.url) as gateway:
            yield loop.run_until_complete(make(gateway.url))
    else:
        made = loop.run_until_complete(make(server.url))
        own = fold(made)
        yield Blocking(own, loop) if awaited else own
        (Blocking(made, loop) if awaited else made).close()
    loop.close()


@pytest.mark.parametrize("way", WAYS)
def test_pages_are_the_same_by_the_plugin_and_say_so(client, site, way):
    options, mode = WAYS[way]
    body = {**BRIDGE, "ext": {"dedup": options}}
    found = plain(client.search(index=_NAME, body=body))
    expected = plain(site.search({**BRIDGE, "ext": {"dedup": {**options, "mode": "window"}}}))
    assert found["dedup"]["mode"] == mode
    assert comparable(found) == comparable(expected)
    assert found["dedup"]["folded"]
    assert ("the plugin does not take explain" in found["dedup"].get("mode_reason", "")) == ("refused" in way)


def test_what_the_plugin_does_not_take_is_an_error_where_it_must_fold(client, site):
    body = {**BRIDGE, "ext": {"dedup": {"mode": "server", "explain": True}}}
    with pytest.raises(Exception, match="the plugin does not take explain") as error:
        client.search(index=_NAME, body=body)
    assert getattr(error.value, "status_code", 400) == 400


def test_several_searches_say_which_way_each_went(client, site):
    lines = [line for options, _ in WAYS.values() for line in ({}, {**BRIDGE, "ext": {"dedup": options}})]
    answers = client.msearch(index=_NAME, body=lines)["responses"]
    assert [one["dedup"]["mode"] for one in answers] == [mode for _, mode in WAYS.values()]


def test_an_open_index_lets_the_plugin_fold(site):
    page = site.search({**BRIDGE, "ext": {"dedup": {"mode": "auto"}}})
    assert page["dedup"]["mode"] == "server"
    with pytest.raises(ConfigError, match='mode "server" is not possible here'):
        site.search({**BRIDGE, "ext": {"dedup": {"mode": "server", "linkage": "connected"}}})
