"""Answers of proxies, redirects, and names that no server has: alike for all four engines."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from opensearchpy import AsyncOpenSearch, OpenSearch
from support.serving import Answer, Request, answering, as_json

from shinglefold.contracts.engine import AsyncEngine, Engine, GuardedWrites, Templates
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
        self.answer: Answer = (200, {}, b"")
        self.before: dict[str, Any] = {}
        self.requests: list[Request] = []
        self.url = ""

    def answer_to(self, request: Request) -> Answer:
        self.requests.append(request)
        status, headers, data = self.answer
        for part, before in {**self.before, "/moved": HITS}.items():
            if part in request.path:
                status, headers, data = as_json(before)
        return status, {"X-elastic-product": "Elasticsearch", **headers}, data


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    made = Proxy()
    with answering(made.answer_to) as made.url:
        yield made


def ask(proxy: Proxy, way: tuple[str, bool], request: Callable[[Any], Any]) -> Any:
    """Send a request by an engine of a product, blocking or awaited."""
    connection = Connection((proxy.url,), way[0], timeout=5, retries=0)

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
    "all_mappings": lambda engine: engine.all_mappings("pages"),
    "get": lambda engine: engine.get("pages", "1"),
    "search": lambda engine: engine.search("pages", {}),
    "search with parameters": lambda engine: engine.search("pages", {}, {"routing": "1"}),
    "msearch": lambda engine: engine.msearch([("pages", {}), ("pages", {})]),
    "msearch of one": lambda engine: engine.msearch([("pages", {})]),
    "open_pit": lambda engine: engine.open_pit("pages"),
    "close_pit": lambda engine: engine.close_pit("an id"),
    "refresh": lambda engine: engine.refresh("pages"),
    "write": lambda engine: engine.write([DOCUMENT]),
    "read": lambda engine: engine.read("pages", ["1"]),
    "identities": lambda engine: engine.identities(["pages"]),
    "ingest_pipelines": lambda engine: engine.ingest_pipelines("pages"),
}
BLOCKING: dict[str, Callable[[Any], Any]] = {
    "create_index": lambda engine: engine.create_index("pages", {}, {}),
    "delete_index": lambda engine: engine.delete_index("pages"),
    "indices": lambda engine: engine.indices(),
    "check": lambda engine: engine.check("pages"),
    "replace_index": lambda engine: engine.replace_index("pages", "other"),
    "delete_by_query": lambda engine: engine.delete_by_query("pages", {}),
    "put_mappings": lambda engine: engine.put_mappings("pages", {}),
    "bulk": lambda engine: engine.bulk([DOCUMENT]),
    "bulk of bytes": lambda engine: engine.bulk([{**DOCUMENT, "_source": b"{}"}]),
    "component_template": lambda engine: engine.component_template("pages"),
    "put_component_template": lambda engine: engine.put_component_template("pages", {}),
    "delete_component_template": lambda engine: engine.delete_component_template("pages"),
    "index_templates": lambda engine: engine.index_templates(),
    "put_index_template": lambda engine: engine.put_index_template("pages", {}),
    "delete_index_template": lambda engine: engine.delete_index_template("pages"),
    "resolved_template": lambda engine: engine.resolved_template("pages"),
    "legacy_templates": lambda engine: engine.legacy_templates(),
    "index_settings": lambda engine: engine.index_settings("pages"),
    "writes_to": lambda engine: engine.writes_to("pages"),
    "data_streams": lambda engine: engine.data_streams("pages"),
}
EACH = [(way, name) for way in WAYS for name in (*REQUESTS, *(() if way[1] else BLOCKING))]


def test_the_requests_here_are_all_of_the_contract():
    """Answers to these have no content, or another test reads them."""
    other = {"can", "templates", "close", "index_exists", "info", "tiebreaker"}
    for contract in (Engine, GuardedWrites, Templates, AsyncEngine):
        calls = {name for name in vars(contract) if not name.startswith("_")}
        assert calls - other <= REQUESTS.keys() | BLOCKING.keys()


@pytest.mark.long(every=12)
@pytest.mark.parametrize(
    "answer",
    [
        (200, {"Content-Type": JSON_TYPE}, b""),
        (200, {}, b""),
        (204, {}, b""),
        (200, {"Content-Type": "text/html; charset=utf-8"}, b"<html>Log in</html>"),
        (200, {"Content-Type": "text/plain"}, b"OK"),
        (200, {"Content-Type": JSON_TYPE}, b"null"),
    ],
    ids=["empty", "no type", "204", "html", "text", "null"],
)
def test_an_answer_that_is_not_json_is_told_with_a_remedy(proxy: Proxy, answer: Any):
    proxy.answer = answer
    for way, name in EACH:
        with pytest.raises(EngineUnavailable, match=r"not JSON.*Try again, and check the address"):
            ask(proxy, way, (REQUESTS | BLOCKING)[name])


ODD: list[Any] = [
    {"message": "ok"},
    {"message": {"of": "a proxy"}},
    {"status": 200, "message": None},
    [],
    [{"hits": {}}],
    7,
    True,
    {"hits": None, "_shards": None, "items": None, "docs": None, "responses": None, "indices": None},
    {"hits": {"total": 0}, "_shards": 7, "items": 7, "docs": 7, "responses": 7, "indices": 7},
    {"hits": {"hits": {}}, "items": [], "docs": [], "responses": [], "indices": []},
    {"hits": {"hits": ["text"]}, "items": ["text"], "docs": ["text"], "responses": ["text", "text"]},
    {"hits": [], "items": [{}], "docs": [[]], "responses": [{}, {}], "index_templates": [{}]},
    {"items": [{"index": 7}], "docs": [{"found": True}], "responses": [{"hits": {}}], "data_streams": [{}]},
    {"items": [{"index": {}}] * 2, "docs": [{}] * 2, "component_templates": [], "template": 7},
]


@pytest.mark.long(every=12)
@pytest.mark.parametrize("answer", ODD, ids=lambda answer: json.dumps(answer)[:40])
def test_json_that_does_not_answer_the_request_is_told_with_what_was_expected(proxy: Proxy, answer: Any):
    proxy.answer = as_json(answer)
    told = r"at http://127\.0\.0\.1:\d+ answers with JSON .*: expected \w.*Try again, and check the address"
    for way, name in EACH:
        with pytest.raises(EngineUnavailable, match=told):
            ask(proxy, way, (REQUESTS | BLOCKING)[name])


@pytest.mark.parametrize("answer", ODD, ids=lambda answer: json.dumps(answer)[:40])
@pytest.mark.parametrize("product", PRODUCTS)
def test_other_json_than_a_version_is_told(proxy: Proxy, product: str, answer: Any):
    proxy.answer = as_json(answer)
    with pytest.raises(EngineError, match=r"at http://127.* tells no version; check the address"):
        ask(proxy, (product, False), lambda engine: engine.info())


#: Requests that need several answers: what a server answers to those before, by a part of the address.
LATER: list[tuple[str, dict[str, Any], str]] = [
    ("indices", {"_alias": {"pages": {"aliases": {}}}}, "settings"),
    ("indices", {"_alias": {}, "_settings": {"pages": {"settings": {}}}}, "indices"),
    ("replace_index", {"pages/_alias": {}, "other/_alias": {"other": {"aliases": {}}}}, "acknowledged"),
    ("delete_by_query", {"_refresh": {"_shards": {}}}, "hits"),
    ("delete_by_query", {"_refresh": {"_shards": {}}, "_search": {"hits": {"hits": [{}]}}}, "_shards"),
    ("delete_by_query", {"_refresh": {"_shards": {}}, "_search": {**HITS}}, "_seq_no"),
]


@pytest.mark.long(every=6)
@pytest.mark.parametrize("answer", ODD[:8], ids=lambda answer: json.dumps(answer)[:40])
@pytest.mark.parametrize(("name", "before", "expected"), LATER)
@pytest.mark.parametrize("product", PRODUCTS)
def test_a_later_answer_is_checked_like_the_first(
    proxy: Proxy, product: str, name: str, before: dict[str, Any], expected: str, answer: Any
):
    proxy.answer = as_json(answer)
    proxy.before = before
    with pytest.raises(EngineUnavailable, match=rf"expected .*{expected}.*check the address"):
        ask(proxy, (product, False), BLOCKING[name])


@pytest.mark.long(every=5)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(proxy: Proxy, status: int):
    """A client that follows sends the search again without its body, which finds every document."""
    proxy.answer = (status, {"Location": "/moved"}, b"")
    for way, name in EACH:
        proxy.requests.clear()
        with pytest.raises(EngineError, match=rf"without a word \({status}\)\. The address sends to another"):
            ask(proxy, way, (REQUESTS | BLOCKING)[name])
        assert all("/moved" not in request.path for request in proxy.requests)


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
    proxy.answer = as_json({"docs": [item]})
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
    proxy.answer = as_json({"items": [item]})
    for way, name in EACH:
        if name in ("write", "bulk"):
            ask(proxy, way, (REQUESTS | BLOCKING)[name])
            body = proxy.requests.pop().body
            assert json.loads(body.decode().split("\n")[1]) == DOCUMENT["_source"]


def test_a_request_that_cannot_be_written_is_told_whatever_its_text_says(proxy: Proxy):
    body = {"query": {"match": {"text": "Unable to deserialize, said OpenSearch", "tags": {"a", "b"}}}}
    for way in WAYS:
        with pytest.raises(UnsupportedQuery, match="Give only what JSON has"):
            ask(proxy, way, lambda engine: engine.search("pages", body))
    assert not proxy.requests


@pytest.mark.parametrize("client", [OpenSearch, AsyncOpenSearch])
def test_a_client_of_an_ipv6_address_is_taken(client: Any):
    made = client("http://[::1]:9200")
    assert addresses_of(made) == ("http://[::1]:9200",)
    opened = open_engine if client is OpenSearch else open_async_engine
    assert opened(made).who == "OpenSearch at http://[::1]:9200"


def test_a_page_that_is_missing_points_to_the_address():
    told = str(refusal(404, "<html>404 nginx</html>", "OpenSearch at x"))
    assert re.search(r"\(404\)\. Check the name and the address", told)
