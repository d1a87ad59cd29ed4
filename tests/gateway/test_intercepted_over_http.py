"""Requests that the gateway folds or signs, on the wire: what upstream is sent, and what callers get."""

import gzip
import json
from types import SimpleNamespace

import pytest
from support.drop_in import FIELD, TEXT
from support.gateway import RawUpstream, exchange, parts, reply, request, running_gateway
from support.interceptor import lines, with_note

pytest.importorskip("uvicorn")

JSON = "content-type: application/json"
DOCUMENT = json.dumps({"title": TEXT}).encode()
#: An answer that no program here would write like this, with headers of all kinds.
STORED = b'{ "_index":"site",  "_id":"1", "_version":1.0, "result":"created" }\n'
HEADERS = (
    *(JSON, 'warning: 299 x "own"', "x-opensearch-version: OpenSearch/3.8.0", "x-opaque-id: 7"),
    *("x-more: 1", "vary: accept"),
)
EMPTY = {
    "took": 1,
    "timed_out": False,
    "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
    "hits": {"total": {"value": 0, "relation": "eq"}, "max_score": None, "hits": []},
}


@pytest.fixture(scope="module")
def wire(site, tmp_path_factory):
    """A gateway, its upstream with an index that was set up, and what upstream was sent."""
    upstream, sent = RawUpstream(), []
    found = SimpleNamespace(sent=sent, status="201 Created", body=STORED, mappings="200 OK")
    mapping = json.dumps({"site": {"mappings": with_note(site, groups=None)}}).encode()

    async def serve(connection):
        head = connection.head.decode("latin-1")
        size = next(
            (int(line[15:]) for line in head.lower().split("\r\n") if line[:15] == "content-length:"), 0
        )
        body = await connection.reader.readexactly(size)
        line, *headers = head.split("\r\n")
        if "/bare/_mapping" in line:
            answer = reply(b'{"bare": {"mappings": {}}}', JSON)
        elif "_mapping" in line:
            answer = reply(mapping if found.mappings == "200 OK" else b"{}", JSON, status=found.mappings)
        elif "_settings" in line:
            answer = reply(b'{"%s": {"settings": {}}}' % line.split("/")[1].encode(), JSON)
        elif "search" in line:
            page = {"took": 1, "responses": [EMPTY]} if "_msearch" in line else EMPTY
            answer = reply(json.dumps(page).encode(), *HEADERS)
            sent.append((line, headers, body))
        else:
            answer = reply(found.body, *HEADERS, status=found.status)
            sent.append((line, headers, body))
        connection.writer.write(answer)

    class Any(dict):
        def get(self, target, default=None):
            return default if target == "/" else serve

    upstream.answers = Any()
    folder = tmp_path_factory.mktemp("wire")
    with running_gateway(folder / "log", upstream.url, options=("--workers", "1")) as gateway:
        found.port = gateway.port
        yield found
    upstream.close()


def ask(wire, method, target, body=b"", *headers):
    wire.sent.clear()
    return parts(exchange(wire.port, request(method, target, body, *headers)))


def test_a_signed_write_is_answered_by_the_bytes_of_the_engine(wire):
    target = "/site/_doc/1?refresh&x=a+b%20c"
    status, headers, body = ask(wire, "PUT", target, DOCUMENT, JSON, "x-shinglefold-fold: true", "x-own: 1")
    ((line, sent, source),) = wire.sent
    assert line == f"PUT {target} HTTP/1.1"
    assert "x-own: 1" in sent
    assert not [one for one in sent if one.startswith(("x-shinglefold", "accept-encoding"))]
    assert source.startswith(DOCUMENT[:-1] + b',"_dedup":{"scheme":')
    assert (status, body, headers["content-type"]) == (201, STORED, "application/json")
    for name, value in (("warning", '299 x "own"'), ("x-opaque-id", "7"), ("x-more", "1")):
        assert headers[name] == value
    assert not headers.keys() & {"vary", "x-shinglefold", "content-encoding"}


def test_a_compressed_write_is_signed_and_others_pass_compressed(wire):
    packed = gzip.compress(DOCUMENT)
    ask(wire, "PUT", "/site/_doc/1", packed, JSON, "content-encoding: gzip")
    ((_, headers, source),) = wire.sent
    assert source.startswith(DOCUMENT[:-1])
    assert FIELD in json.loads(source)
    assert "content-encoding: gzip" not in headers
    ask(wire, "PUT", "/site/_doc/1", gzip.compress(b"[1]"), JSON, "content-encoding: gzip")
    ((_, headers, source),) = wire.sent
    assert (gzip.decompress(source), "content-encoding: gzip" in headers) == (b"[1]", True)


def test_the_answer_to_a_write_is_asked_for_in_json(wire):
    for accepted, expected in (("application/yaml", "application/json"), ("application/*", "application/*")):
        ask(wire, "PUT", "/site/_doc/1", DOCUMENT, JSON, f"accept: {accepted}")
        assert f"accept: {expected}" in wire.sent[0][1]


def test_only_a_write_that_is_stored_is_warned_of(wire):
    wire.mappings = "403 Forbidden"
    try:
        for status, warned in (("201 Created", True), ("400 Bad Request", False)):
            wire.status = status
            found, headers, body = ask(wire, "PUT", "/unread/_doc/1?x=1", DOCUMENT, JSON)
            assert (found, body, wire.sent[0][2]) == (int(status[:3]), STORED, DOCUMENT)
            assert ("may not be read" in headers["warning"]) is warned
    finally:
        wire.mappings, wire.status = "200 OK", "201 Created"


def test_a_warning_about_a_signed_write_comes_with_its_answer(wire):
    _, headers, body = ask(wire, "PUT", "/site/_doc/1?pipeline=p", DOCUMENT, JSON)
    assert "the pipeline 'p' of the server" in headers["warning"]
    assert body == STORED


FOLD = "x-shinglefold-fold: "


@pytest.mark.parametrize("wish", ["true", " TRUE"])
def test_a_search_is_folded_by_a_wish_in_its_header(wire, wish):
    status, headers, body = ask(wire, "POST", "/site/_search", b'{"size": 1}', JSON, FOLD + wish)
    assert (status, headers["x-shinglefold"]) == (200, "folded")
    assert json.loads(body)["dedup"]["mode"] == "window"
    # Headers of upstream that hold for any answer stay.
    assert (headers["x-opaque-id"], headers["warning"]) == ("7", '299 x "own"')
    assert "x-more" not in headers
    assert headers["content-type"] == "application/json; charset=UTF-8"
    assert all("x-shinglefold-fold" not in one for _, sent, _ in wire.sent for one in sent)


@pytest.mark.parametrize("more", ["", "&pretty", "&pretty=true", "&pretty=false"])
def test_a_folded_page_is_pretty_where_it_is_asked_for(wire, more):
    body = b'{"size": 1, "ext": {"dedup": {}}}'
    _, _, found = ask(wire, "POST", f"/site/_search?preference=x{more}", body, JSON)
    assert (b'\n  "took"' in found) is (more in ("&pretty", "&pretty=true"))


@pytest.mark.parametrize("wish", ["false", "False"])
def test_a_search_is_left_alone_by_a_wish_in_its_header(wire, wish):
    asked = b'{"size": 1, "ext": {"dedup": {}}}'
    status, headers, body = ask(wire, "POST", "/site/_search?preference=a+b%20c", asked, JSON, FOLD + wish)
    assert (status, json.loads(body)) == (200, EMPTY)
    assert "x-shinglefold" not in headers
    ((line, _, sent),) = wire.sent
    assert (line, sent) == ("POST /site/_search?preference=a+b%20c HTTP/1.1", b'{"size":1}')
    for wished, expected in ((wish, None), ("perhaps", "folded")):
        several = lines({"index": "site"}, {"size": 1, "ext": {"dedup": {}}})
        _, headers, _ = ask(wire, "POST", "/_msearch", several, JSON, FOLD + wished)
        assert headers.get("x-shinglefold") == expected


def test_a_wish_about_folding_is_not_forwarded(wire):
    for target in ("/site/_stats", "/site/_search?format=yaml"):
        ask(wire, "GET", target, b"", FOLD + "true", "x-own: 1")
        ((_, headers, _),) = wire.sent
        assert "x-own: 1" in headers
        assert not any("x-shinglefold" in one for one in headers)


def test_searches_in_other_formats_pass(wire):
    body = b"size: 1\next: {dedup: {}}\n"
    for headers in (("content-type: application/yaml",), (JSON, "accept: application/yaml")):
        status, answered, _ = ask(wire, "POST", "/site/_search", body, *headers)
        assert (status, wire.sent[0][2], "x-shinglefold" in answered) == (200, body, False)
    _, answered, _ = ask(wire, "POST", "/site/_search?format=yaml", b'{"ext": {"dedup": {}}}', JSON)
    assert (wire.sent[0][2], "x-shinglefold" in answered) == (b'{"ext": {"dedup": {}}}', False)


def test_a_search_that_cannot_be_folded_says_why_in_a_header(wire):
    status, headers, body = ask(wire, "POST", "/bare/_search", b'{"ext": {"dedup": {}}}', JSON)
    told = json.loads(body)["dedup"]
    assert (status, told["mode"]) == (200, "unfolded")
    assert headers["x-shinglefold"].startswith("unfolded; reason=")
    status, headers, body = ask(wire, "POST", "/site/_search", b'{"ext": {"dedup": {"memberz": 1}}}', JSON)
    assert (status, json.loads(body)["error"]["type"]) == (400, "illegal_argument_exception")
    assert wire.sent == []
