"""Requests that may be made twice are made again while a server is busy, and data streams are found, too."""

import asyncio
import json
from collections.abc import Callable
from contextlib import closing, suppress
from http.server import ThreadingHTTPServer
from typing import Any

import pytest
from support.serving import Quiet, serving

from shinglefold.engines import Connection, open_async_engine
from shinglefold.engines.opensearch import OpenSearchEngine
from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.runtime.backoff import Backoff

_BUSY = {"error": {"type": "circuit_breaking_exception", "reason": "too much"}, "status": 503}
_MISSING = {"error": {"type": "index_not_found_exception", "reason": "no such index [logs]"}, "status": 404}


class _Server:
    """A server that gives answers one after the other, the last one ever after, and keeps the requests."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.asked: list[str] = []
        self.waits: list[float] = []
        server = self

        class Handler(Quiet):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                server.asked.append(f"{self.command} {self.path.partition('?')[0]}")
                status, told = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
                body = json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_HEAD = do_PUT = do_POST = do_GET  # noqa: N815 - the library's names

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        connection = Connection((f"http://127.0.0.1:{self.http.server_port}",), product="opensearch")
        self.engine = OpenSearchEngine(
            connection, Backoff(3, wait=lambda seconds, _: not self.waits.append(seconds))
        )


@pytest.fixture
def server():
    made = _Server()
    with serving(made.http), closing(made.engine):
        yield made


_ASKS: dict[str, Callable[[OpenSearchEngine], object]] = {
    "mappings of an index": lambda engine: engine.put_mappings("pages", {"properties": {}}),
    "a component": lambda engine: engine.put_component_template("t", {"template": {}}),
    "a template": lambda engine: engine.put_index_template("t", {"index_patterns": ["x"]}),
    "refresh": lambda engine: engine.refresh("pages"),
    "settings": lambda engine: engine.index_settings("pages"),
    "mappings": lambda engine: engine.mappings("pages"),
    "all mappings": lambda engine: engine.all_mappings("pages"),
    "exists": lambda engine: engine.index_exists("pages"),
    "get": lambda engine: engine.get("pages", "1"),
    "templates": lambda engine: engine.index_templates(),
    "legacy templates": lambda engine: engine.legacy_templates(),
    "writes to": lambda engine: engine.writes_to("pages"),
}


@pytest.mark.parametrize("ask", _ASKS.values(), ids=_ASKS)
def test_a_busy_server_is_asked_again(server: _Server, ask: Callable[[OpenSearchEngine], object]):
    server.answers = [(503, _BUSY), (429, _BUSY), (404, _MISSING)]
    with suppress(EngineError):
        ask(server.engine)
    assert len(server.asked) == 3
    assert len({*server.asked}) == 1
    assert len(server.waits) == 2


_AWAITED: dict[str, Callable[[Any], Any]] = {
    "refresh": lambda engine: engine.refresh("pages"),
    "mappings": lambda engine: engine.mappings("pages"),
    "all mappings": lambda engine: engine.all_mappings("pages"),
    "get": lambda engine: engine.get("pages", "1"),
}


@pytest.mark.parametrize("ask", _AWAITED.values(), ids=_AWAITED)
def test_a_busy_server_is_asked_again_by_the_asynchronous_engine(server: _Server, ask: Callable[[Any], Any]):
    async def asked() -> None:
        async with open_async_engine(server.engine.connection) as engine:
            engine.backoff = Backoff(3, first=0)
            with suppress(EngineError):
                await ask(engine)
            assert len(server.asked) == 3
            # A search is not asked again: only its caller knows how long an answer is worth waiting for.
            server.answers = [(503, _BUSY), (200, {})]
            with pytest.raises(EngineUnavailable):
                await engine.search("pages", {})
            assert len(server.asked) == 4

    server.answers = [(503, _BUSY), (429, _BUSY), (404, _MISSING)]
    asyncio.run(asked())


def test_a_search_is_not_asked_again(server: _Server):
    server.answers = [(503, _BUSY), (200, {})]
    with pytest.raises(EngineUnavailable, match="Try again later"):
        server.engine.search("pages", {})
    assert len(server.asked) == 1


def test_a_data_stream_is_found_by_what_is_behind_it(server: _Server):
    settings = {".ds-logs-1": {"settings": {"index": {"uuid": "u"}}}}
    server.answers = [(404, _MISSING), (200, settings), (200, {"indices": {}})]
    found = server.engine.indices("logs")
    assert [one.name for one in found] == [".ds-logs-1"]
    assert "GET /logs/_settings" in server.asked


def test_a_document_of_an_index_without_sources_is_empty(server: _Server):
    server.answers = [(200, {"_index": "pages", "_id": "1", "found": True, "_seq_no": 0, "_primary_term": 1})]
    assert server.engine.get("pages", "1") == {"_index": "pages", "_id": "1", "_source": {}}
