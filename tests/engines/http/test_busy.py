"""What a server is too busy for is sent again after waiting, nothing else is; and data streams are found."""

import asyncio
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest
from support.serving import Answer, Request, answering, as_json

from shinglefold.engines import Connection, open_async_engine, open_engine
from shinglefold.engines.http.engine import retry_when_busy
from shinglefold.engines.http.errors import ClientErrors, NotRefreshed
from shinglefold.engines.opensearch import OpenSearchEngine
from shinglefold.errors import ConfigError, EngineError, EngineUnavailable, IndexMissing
from shinglefold.runtime.backoff import Backoff


class Answered(Exception):
    """What a client raises for a status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Asking:
    """Asks a server whose answers are given: errors, one after the other, and then what was asked for."""

    client_errors = ClientErrors(
        (Answered,), lambda error, who: EngineUnavailable(who), lambda error: getattr(error, "status", 0)
    )

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.waits: list[float] = []
        self.backoff = Backoff(3, first=0.25, wait=lambda seconds, _: not self.waits.append(seconds))

    @retry_when_busy
    def ask(self, what: str) -> str:
        """Return what was asked for."""
        if self.errors:
            raise self.errors.pop(0)
        return what


def told(status: int) -> EngineUnavailable:
    """Return an error as it is made of a server's answer."""
    error = EngineUnavailable("not now")
    error.__cause__ = Answered(status)
    return error


@pytest.mark.parametrize("error", [told(429), told(503), NotRefreshed("some copies")])
def test_a_busy_server_is_asked_again_and_again(error):
    asking = Asking(error, error, error)
    assert asking.ask("this") == "this"
    assert asking.waits == [0.25, 0.5, 1.0]


@pytest.mark.parametrize("error", [told(429), NotRefreshed("some copies")])
def test_one_that_stays_busy_is_given_up(error):
    asking = Asking(*[error] * 9)
    with pytest.raises(type(error), match=str(error)):
        asking.ask("this")
    assert (len(asking.errors), len(asking.waits)) == (5, 3)


@pytest.mark.parametrize("error", [told(502), told(0), EngineUnavailable("gone"), IndexMissing("none")])
def test_where_nobody_knows_what_was_done_or_waiting_helps_nothing_the_error_is_told_at_once(error):
    asking = Asking(error)
    with pytest.raises(type(error)):
        asking.ask("this")
    assert asking.waits == []


_BUSY = {"error": {"type": "circuit_breaking_exception", "reason": "too much"}, "status": 503}
_MISSING = {"error": {"type": "index_not_found_exception", "reason": "no such index [logs]"}, "status": 404}


class _Server:
    """A server that gives answers one after the other, the last one ever after, and keeps the requests."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.asked: list[str] = []
        self.waits: list[float] = []
        self.engine: OpenSearchEngine

    def answer(self, request: Request) -> Answer:
        self.asked.append(f"{request.method} {request.path.partition('?')[0]}")
        status, told = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return as_json(told, status)


@pytest.fixture
def server():
    made = _Server()
    backoff = Backoff(3, wait=lambda seconds, _: not made.waits.append(seconds))
    with answering(made.answer) as url:
        made.engine = OpenSearchEngine(Connection((url,), product="opensearch"), backoff)
        with closing(made.engine):
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


_PRODUCTS = ["opensearch", "elasticsearch"]
_ALL_BUSY = r"all 1 connections were busy for 0.05 s.*SHINGLEFOLD_ENGINE_MAX_CONNECTIONS"


def connection(product: str) -> Connection:
    # Nobody answers there, which would be another error.
    return Connection(("http://127.0.0.1:1",), product=product, timeout=0.05, max_connections=1)


@pytest.mark.parametrize("product", _PRODUCTS)
def test_a_thread_waits_for_a_connection(product):
    with closing(open_engine(connection(product))) as engine:
        with engine._turn():
            for request in (
                lambda: engine.search("pages", {}),
                lambda: engine.get("pages", "1"),
                lambda: list(engine._send([{"_index": "pages", "_source": {}}])),
            ):
                with pytest.raises(EngineUnavailable, match=_ALL_BUSY):
                    request()
        with pytest.raises(EngineUnavailable, match="does not answer"):
            engine.search("pages", {})


@pytest.mark.parametrize("product", _PRODUCTS)
def test_a_task_waits_for_a_connection(product):
    async def search() -> None:
        async with open_async_engine(connection(product)) as engine:
            await engine._turns.acquire()
            with pytest.raises(EngineUnavailable, match=_ALL_BUSY):
                await engine.search("pages", {})
            if product == "opensearch":
                with pytest.raises(EngineUnavailable, match=_ALL_BUSY):
                    await engine.search_pipeline("pages", None)
            engine._turns.release()
            with pytest.raises(EngineUnavailable, match="does not answer"):
                await engine.search("pages", {})

    asyncio.run(search())


def test_there_is_at_least_one():
    with pytest.raises(ConfigError, match=r"max_connections.*at least 1, got 0"):
        Connection(("http://127.0.0.1:1",), max_connections=0)
