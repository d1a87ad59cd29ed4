"""Answers of proxies, redirects, and names that no server has: alike for all four engines."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from http.server import ThreadingHTTPServer
from typing import Any

import pytest
from opensearchpy import AsyncOpenSearch, OpenSearch
from support.serving import Quiet, serving

from shinglefold.engines import Connection, open_async_engine, open_engine
from shinglefold.engines.http.errors import refusal
from shinglefold.engines.http.requests import addresses_of
from shinglefold.errors import (
    EngineError,
    EngineUnavailable,
    IndexMissing,
    PermissionDenied,
    UnsupportedQuery,
)

PRODUCTS = ["opensearch", "elasticsearch"]
WAYS = [(product, awaited) for product in PRODUCTS for awaited in (False, True)]
JSON_TYPE = "application/json"
HITS = {"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": [{"_id": "any"}]}}


class Proxy:
    """Gives the same answer to everything but ``/moved``, and keeps the requests."""

    def __init__(self) -> None:
        self.answer: tuple[int, dict[str, str], bytes] = (200, {}, b"")
        self.requests: list[tuple[str, str, bytes]] = []
        proxy = self

        class Handler(Quiet):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                proxy.requests.append((self.command, self.path.partition("?")[0], body))
                status, headers, data = proxy.answer
                if self.path.startswith("/moved"):
                    status, headers, data = 200, {"Content-Type": JSON_TYPE}, json.dumps(HITS).encode()
                self.send_response(status)
                for name, value in {"X-elastic-product": "Elasticsearch", **headers}.items():
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - the library's names

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    made = Proxy()
    with serving(made.http):
        yield made


def ask(proxy: Proxy, way: tuple[str, bool], request: Callable[[Any], Any]) -> Any:
    """Send a request by an engine of a product, blocking or awaited."""
    connection = Connection((f"http://127.0.0.1:{proxy.http.server_port}",), way[0], timeout=5, retries=0)

    async def awaited() -> Any:
        async with open_async_engine(connection) as engine:
            made: Awaitable[Any] = request(engine)
            return await made

    if way[1]:
        return asyncio.run(awaited())
    with open_engine(connection) as engine:  # type: ignore[attr-defined]
        return request(engine)


DOCUMENT = {"_index": "pages", "_id": "1", "_source": {"text": "half \ud800"}}
REQUESTS: dict[str, Callable[[Any], Any]] = {
    "mappings": lambda engine: engine.mappings("pages"),
    "get": lambda engine: engine.get("pages", "1"),
    "search": lambda engine: engine.search("pages", {}),
    "search with parameters": lambda engine: engine.search("pages", {}, {"routing": "1"}),
    "msearch": lambda engine: engine.msearch([("pages", {}), ("pages", {})]),
    "pit": lambda engine: engine.open_pit("pages"),
    "refresh": lambda engine: engine.refresh("pages"),
    "write": lambda engine: engine.write([DOCUMENT]),
    "read": lambda engine: engine.read("pages", ["1"]),
    "identities": lambda engine: engine.identities(["pages"]),
}
BLOCKING: dict[str, Callable[[Any], Any]] = {
    "bulk": lambda engine: engine._send([DOCUMENT]).__next__(),
    "bulk of bytes": lambda engine: engine._send([{**DOCUMENT, "_source": b"{}"}]).__next__(),
    "settings": lambda engine: engine.index_settings("pages"),
    "component": lambda engine: engine.index_templates(),
}
EACH = [(way, name) for way in WAYS for name in (*REQUESTS, *(() if way[1] else BLOCKING))]


@pytest.mark.parametrize(
    "answer",
    [
        (200, {"Content-Type": JSON_TYPE}, b""),
        (200, {}, b""),
        (204, {}, b""),
        (200, {"Content-Type": "text/html; charset=utf-8"}, b"<html>Log in</html>"),
        (200, {"Content-Type": "text/plain"}, b"OK"),
        (200, {"Content-Type": JSON_TYPE}, b"null"),
        (200, {"Content-Type": JSON_TYPE}, b"[]"),
    ],
    ids=["empty", "no type", "204", "html", "text", "null", "list"],
)
def test_an_answer_that_is_no_object_is_told_with_a_remedy(proxy: Proxy, answer: Any):
    proxy.answer = answer
    for way, name in EACH:
        with pytest.raises(EngineUnavailable, match=r"not JSON.*Try again, and check the address"):
            ask(proxy, way, (REQUESTS | BLOCKING)[name])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(proxy: Proxy, status: int):
    """A client that follows sends the search again without its body, which finds every document."""
    proxy.answer = (status, {"Location": "/moved"}, b"")
    for way, name in EACH:
        proxy.requests.clear()
        with pytest.raises(EngineError, match=rf"without a word \({status}\)\. The address sends to another"):
            ask(proxy, way, (REQUESTS | BLOCKING)[name])
        assert len(proxy.requests) == 1


@pytest.mark.parametrize(
    ("kind", "error", "remedy"),
    [
        ("illegal_argument_exception", UnsupportedQuery, "Correct the request"),
        ("routing_missing_exception", UnsupportedQuery, "Correct the request"),
        ("security_exception", PermissionDenied, "Ask for a role"),
        ("index_not_found_exception", IndexMissing, "Create it first"),
        ("index_closed_exception", EngineError, "Open the index"),
        ("no_shard_available_action_exception", EngineUnavailable, "Try again later"),
    ],
)
def test_a_document_that_can_not_be_read_says_why(proxy: Proxy, kind: str, error: Any, remedy: str):
    item = {"_index": "pages", "_id": "1", "error": {"type": kind, "reason": "so"}}
    proxy.answer = (200, {"Content-Type": JSON_TYPE}, json.dumps({"docs": [item]}).encode())
    for way in WAYS:
        with pytest.raises(error, match=remedy) as told:
            ask(proxy, way, REQUESTS["read"])
        assert type(told.value) is error


def test_an_id_that_no_document_has_is_not_found(proxy: Proxy):
    for way in WAYS:
        for id_ in ("", "half \ud800"):
            found = ask(proxy, way, lambda engine, id_=id_: engine.get("pages", id_))
            assert found is None
    assert not proxy.requests


@pytest.mark.parametrize("name", ["", "half \ud800"])
def test_a_name_that_no_index_has_is_refused(proxy: Proxy, name: str):
    asks: list[Callable[[Any], Any]] = [
        lambda engine: engine.mappings(name),
        lambda engine: engine.search(name, {}),
        lambda engine: engine.get(name, "1"),
        lambda engine: engine.read(name, ["1"]),
        lambda engine: engine.refresh(name),
        lambda engine: engine.open_pit(name),
    ]
    for way in WAYS:
        for one in asks:
            with pytest.raises(UnsupportedQuery, match=r"names no index|does not name one index"):
                ask(proxy, way, one)
        (refused,) = ask(proxy, way, lambda engine: engine.msearch([(name, {})]))
        assert isinstance(refused, UnsupportedQuery)
    assert not proxy.requests


def test_half_a_surrogate_pair_is_sent_as_an_escape(proxy: Proxy):
    """OpenSearch refuses such bytes, and stores the escape."""
    item = {"index": {"_index": "pages", "_id": "1", "status": 201, "_seq_no": 0, "_primary_term": 1}}
    proxy.answer = (200, {"Content-Type": JSON_TYPE}, json.dumps({"items": [item]}).encode())
    for way, name in EACH:
        if name in ("write", "bulk"):
            ask(proxy, way, (REQUESTS | BLOCKING)[name])
            body = proxy.requests.pop()[2]
            assert json.loads(body.decode().split("\n")[1]) == DOCUMENT["_source"]


@pytest.mark.parametrize("client", [OpenSearch, AsyncOpenSearch])
def test_a_client_of_an_ipv6_address_is_taken(client: Any):
    made = client("http://[::1]:9200")
    assert addresses_of(made) == ("http://[::1]:9200",)
    opened = open_engine if client is OpenSearch else open_async_engine
    assert opened(made).who == "OpenSearch at http://[::1]:9200"


def test_a_page_that_is_missing_points_to_the_address():
    told = str(refusal(404, "<html>404 nginx</html>", "OpenSearch at x"))
    assert re.search(r"\(404\)\. Check the name and the address", told)
