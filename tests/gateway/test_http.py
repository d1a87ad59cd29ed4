"""The gateway on the wire: what passes unchanged, what goes wrong at either end, and hostile requests."""

import asyncio
import gzip
import json
import pickle
import socket
import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest
from support.gateway import RawUpstream, exchange, parts, reply, request, running_gateway, says

from shinglefold.gateway.http.messages import decompress, takes_gzip
from shinglefold.gateway.http.signers import Signers, _sign
from shinglefold.gateway.indices import SignedIndex
from shinglefold.ingest import Pipeline, default_definition
from shinglefold.registry import make_scheme

pytest.importorskip("uvicorn")

JSON = "content-type: application/json"


GZIPPED = gzip.compress(b'{"some":"json"}' * 50)
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
ANSWERS = {
    "json": (reply(b'{"a":1}', JSON, "x-elastic-product: Elasticsearch"), "GET"),
    "compressed": (reply(GZIPPED, JSON, "content-encoding: gzip"), "GET"),
    "chunked": (CHUNKED, "GET"),
    "head": (reply(b"", JSON, length=2019), "HEAD"),
    "head of a missing index": (reply(b"", JSON, status="404 Not Found", length=345), "HEAD"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", "DELETE"),
    "error": (reply(b'{"error":"x"}', JSON, status="400 Bad Request"), "POST"),
    "redirect": (reply(b"", "location: http://elsewhere/", status="302 Found"), "GET"),
    "two of one header": (reply(b"{}", 'warning: 299 a "b"', 'warning: 299 c "d"', "set-cookie: a=b"), "GET"),
    "after early hints": (
        b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + reply(b'{"a":1}', JSON),
        "GET",
    ),
    "until the end": (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall of it", "GET"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_comes_back_as_it_was(setting, name):
    answer, method = ANSWERS[name]
    setting.upstream.answers["/any/_path"] = says(answer, close=name == "until the end")
    status, headers, body = parts(exchange(setting.port, request(method, "/any/_path")))
    given = parts(answer.partition(b"\r\n\r\n")[2] if name == "after early hints" else answer)
    assert status == given[0]
    for header in ("content-type", "content-encoding", "x-elastic-product", "location", "set-cookie"):
        assert headers.get(header) == given[1].get(header)
    if name not in ("chunked", "until the end"):
        assert headers.get("content-length") == given[1].get("content-length")
    if name == "chunked":
        assert b"hello" in body
        assert body.endswith(b"0\r\n\r\n")
    elif name == "until the end":
        assert b"all of it" in body
    else:
        assert body == given[2]
    if name == "two of one header":
        assert headers["warning"] == '299 c "d"'
    # Nothing of the gateway's own.
    assert headers.keys() <= {*given[1], "connection", "transfer-encoding"}


@pytest.fixture
def seen(setting):
    """An upstream that tells what it was sent: request line, headers, and its body."""
    found = SimpleNamespace(head=b"", body=b"")

    async def serve(connection):
        head, found.body = connection.head.lower(), b""
        found.head = connection.head
        if b"content-length:" in head:
            size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            found.body = await connection.reader.readexactly(size)
        elif b"chunked" in head:
            while size := int((await connection.reader.readline()).strip(), 16):
                found.body += await connection.reader.readexactly(size)
                await connection.reader.readline()
            await connection.reader.readline()
        connection.writer.write(reply(b'{"took":1,"hits":{"hits":[]}}', JSON))
        return True

    found.serve = serve
    return found


TARGETS = (
    "/idx/_doc/a%2Fb%0d%0aX-Injected:%201",
    "/idx/_settings?q=a+b%20c&pretty&x=%E2%98%83;y=1",
    "//_settings",
    "/idx/%2e%2e/_search2",
    "/idx/../other/_settings",
    "/idx/_search%20?a=1",
    "/<logs-{now%2Fd}>/_settings",
    "/_shinglefold%2fhealth",
    "/%5Fshinglefold/health",
    "/_shinglefolder",
)


@pytest.mark.parametrize("target", TARGETS)
def test_path_and_parameters_pass_unchanged(setting, seen, target):
    setting.upstream.answers[target.partition("?")[0]] = seen.serve
    status, _, _ = parts(exchange(setting.port, request("GET", target)))
    assert status == 200
    assert seen.head.split(b"\r\n")[0] == f"GET {target} HTTP/1.1".encode("latin-1")
    assert b"x-injected" not in seen.head.lower().replace(b"%0d%0ax-injected", b"")


def test_headers_pass_but_for_those_of_a_connection(setting, seen):
    setting.upstream.answers["/idx/_settings"] = seen.serve
    headers = (
        "authorization: Basic abc", "x-opaque-id: ünï", "accept-encoding: br", "cookie: a=b", "te: trailers",
        "x-own: 1", "keep-alive: 5", "proxy-authorization: Basic secret", "user-agent: mine",
        "x-two: 1", "x-two: 2",
    )  # fmt: skip
    exchange(setting.port, request("GET", "/idx/_settings", b"", *headers, "connection: x-own"))
    got = seen.head.lower()
    for kept in (b"authorization: basic abc", b"accept-encoding: br", b"cookie: a=b", b"user-agent: mine"):
        assert kept in got
    assert got.count(b"x-two:") == 2
    for dropped in (b"te:", b"keep-alive", b"proxy-authorization", b"x-own", b"gateway", b"python"):
        assert dropped not in got
    assert f"host: 127.0.0.1:{setting.upstream.port}".encode() in got


BODIES = {
    "empty": (b"", ()),
    "short": (b'{"a":1}', (JSON,)),
    "chunked": (b'4\r\n{"a"\r\n3\r\n:1}\r\n0\r\n\r\n', (JSON, "transfer-encoding: chunked")),
    "compressed": (GZIPPED, (JSON, "content-encoding: gzip")),
    "long": (b"x" * 3_000_000, ("content-type: application/octet-stream",)),
    "awaited": (b'{"a":1}', (JSON, "expect: 100-continue")),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_of_forwarded_requests_pass_unchanged(setting, seen, name):
    body, headers = BODIES[name]
    setting.upstream.answers["/idx/_settings"] = seen.serve
    answer = exchange(setting.port, request("PUT", "/idx/_settings", body, *headers))
    if name == "awaited":
        first, _, answer = answer.partition(b"\r\n\r\n")
        assert first == b"HTTP/1.1 100 Continue"
    assert parts(answer)[0] == 200
    assert seen.body == (b'{"a":1}' if name == "chunked" else body)
    assert (b"content-encoding: gzip" in seen.head.lower()) == (name == "compressed")
    assert b"expect" not in seen.head.lower()


TROUBLES = {
    "cut short": reply(b"only this", JSON, length=100),
    "cut in a chunk": CHUNKED.removesuffix(b"6\r\n world\r\n0\r\n\r\n"),
}


@pytest.mark.parametrize("name", TROUBLES)
def test_an_answer_that_is_cut_off_never_looks_whole(setting, name):
    setting.upstream.answers["/idx/_stats"] = says(TROUBLES[name], close=True)
    answer = exchange(setting.port, request("GET", "/idx/_stats"))
    _, headers, body = parts(answer)
    assert len(body) < int(headers.get("content-length", 10**9))
    assert not body.endswith(b"0\r\n\r\n")


async def never(connection):
    await asyncio.sleep(60)


async def stalls(connection):
    connection.writer.write(reply(b"only this", JSON, length=100))
    await asyncio.sleep(60)


async def hangs_up(connection):
    return False


def test_an_upstream_that_fails_is_told_in_the_engines_shape(setting):
    for serve, status in ((never, 504), (hangs_up, 502), (says(b"nonsense\r\n\r\n", close=True), 502)):
        setting.upstream.answers |= {"/slow/_stats": serve, "/slow/_doc/1": serve}
        got, headers, body = parts(exchange(setting.port, request("POST", "/slow/_stats", b"{}", JSON)))
        assert (got, json.loads(body)["status"]) == (status, status)
        assert headers["content-type"].startswith("application/json")
        assert json.loads(body)["error"]["type"] == "shinglefold_gateway_exception"
    setting.upstream.answers["/slow/_stats"] = stalls
    begin = time.monotonic()
    assert len(parts(exchange(setting.port, request("GET", "/slow/_stats")))[2]) < 100
    assert time.monotonic() - begin < 30


def test_a_caller_who_leaves_ends_the_request_upstream(setting):
    came, left = threading.Event(), threading.Event()

    async def waits(connection):
        came.set()
        await connection.reader.read()
        left.set()
        return False

    search = request("POST", "/idx/_search", b'{"ext":{"dedup":{}}}', JSON)
    with socket.create_connection(("127.0.0.1", setting.port)) as own:
        own.sendall(search[:-2])
    for path, sent in (
        ("/idx/_long", request("GET", "/idx/_long")),
        ("/idx/_search", search),
        ("/_bulk", request("POST", "/_bulk", b'{"index":{"_index":"idx"}}\n{}\n', JSON)),
        ("/idx/_stats", request("POST", "/idx/_stats", b"cut off")[:-2]),
    ):
        came.clear()
        left.clear()
        setting.upstream.answers |= {path: waits, "/idx/_mapping": waits, "/idx/_mappings": waits}
        with socket.create_connection(("127.0.0.1", setting.port)) as own:
            own.sendall(sent)
            assert came.wait(30), path
        # Sooner than by the limit of the gateway.
        assert left.wait(2.5), path
    assert "Exception" not in setting.gateway.log.read_text()


def test_a_slow_reader_holds_the_upstream_back(setting):
    sent = SimpleNamespace(size=0)

    async def floods(connection):
        connection.writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 200000000\r\n\r\n")
        for _ in range(2000):
            connection.writer.write(b"x" * 100_000)
            await connection.writer.drain()
            sent.size += 100_000
        return True

    setting.upstream.answers["/idx/_flood"] = floods
    with socket.create_connection(("127.0.0.1", setting.port)) as own:
        own.sendall(request("GET", "/idx/_flood"))
        own.recv(1000)
        time.sleep(0.7)
        assert 0 < sent.size < 50_000_000


def test_a_slow_upstream_holds_the_caller_back(setting):
    async def sips(connection):
        connection.reader._transport.pause_reading()
        await asyncio.sleep(1.2)
        return False

    setting.upstream.answers["/idx/_sip"] = sips
    sent = 0
    with socket.create_connection(("127.0.0.1", setting.port)) as own:
        own.settimeout(0.5)
        own.sendall(b"PUT /idx/_sip HTTP/1.1\r\nhost: a\r\ncontent-length: 200000000\r\n\r\n")
        try:
            for _ in range(2000):
                sent += own.send(b"x" * 100_000)
        except (TimeoutError, ConnectionError):
            pass
    assert sent < 50_000_000


POST = b"POST /idx/_stats HTTP/1.1\r\nhost: a\r\n"
SMUGGLED = {
    "two lengths": POST + b"content-length: 1\r\ncontent-length: 40\r\n\r\nx",
    "length and chunks": POST + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks that are not last": POST + b"transfer-encoding: chunked, x\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"GET /idx/_stats HTTP/1.1\r\nhost: a\r\ntransfer-encoding : chunked\r\n\r\n",
    "a folded header": b"GET /idx/_stats HTTP/1.1\r\nhost: a\r\nx: y\r\n z: 1\r\n\r\n",
    "a negative length": POST + b"content-length: -1\r\n\r\n",
    "a length with a sign": POST + b"content-length: +1\r\n\r\nx",
    "a bare line feed in a header": b"GET /idx/_stats HTTP/1.1\r\nhost: a\r\nx: a\nb: c\r\n\r\n",
    "bytes beyond ASCII in the path": b"GET /\xff\xfe/_stats HTTP/1.1\r\nhost: a\r\n\r\n",
    "no request at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_request_with_two_readings_reaches_nobody(setting, name):
    setting.upstream.answers["/idx/_stats"] = says(reply(b"{}"))
    before = len(setting.upstream.heads)
    answer = exchange(setting.port, SMUGGLED[name] + b"\r\n", seconds=3)
    assert answer.startswith(b"HTTP/1.1 400")
    assert len(setting.upstream.heads) == before


def bulk_of(size: int) -> bytes:
    line = b'{"index":{"_index":"idx"}}\n{"title":"%s"}\n'
    return line % (b"x" * (size - len(line)))


def test_bodies_over_the_limit_are_refused_also_when_inflated(setting, seen):
    setting.upstream.answers["/_bulk"] = seen.serve
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(bulk_of(1_200_000)), bulk_of(1_200_000))
    small = gzip.compress(bulk_of(1_200_000))
    for body, headers in (
        (bulk_of(1_200_000), (JSON,)),
        (chunked, (JSON, "transfer-encoding: chunked")),
        (small, (JSON, "content-encoding: gzip")),
    ):
        status, _, answer = parts(exchange(setting.port, request("POST", "/_bulk", body, *headers)))
        assert (status, json.loads(answer)["status"]) == (413, 413)
    for body, encoding, expected in ((small[:200], "gzip", 400), (b"x", "gzip", 400), (b"x", "br", 415)):
        sent = request("POST", "/_bulk", body, JSON, f"content-encoding: {encoding}")
        assert parts(exchange(setting.port, sent))[0] == expected
    assert seen.head == b""


@pytest.mark.long
def test_the_time_for_members_of_gzip_grows_with_their_number():
    def seconds(members: int) -> float:
        body, begun = gzip.compress(b"") * members, time.process_time()
        assert decompress(body, [(b"content-encoding", b"gzip")], 10) == b""
        return time.process_time() - begun

    assert seconds(160_000) < 20 * seconds(16_000)


def test_no_memory_is_allocated_for_the_limit():
    assert decompress(gzip.compress(b"{}"), [(b"content-encoding", b"gzip")], 2**62) == b"{}"


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [("gzip", True), ("br, *;q=0.1", True), ("gzip;q=0.000", False), ("gzip; q = 0", False), ("br", False)],
)
def test_a_weight_of_zero_refuses_gzip(accepted, takes):
    assert takes_gzip([(b"accept-encoding", accepted.encode())]) is takes


def test_the_gateways_own_paths(setting):
    def ask(method: str, path: str, body: bytes = b"", *headers: str) -> tuple[int, dict[str, str], bytes]:
        return parts(exchange(setting.port, request(method, path, body, *headers)))

    status, _, body = ask("GET", "/_shinglefold/health")
    assert (status, json.loads(body)["upstream"]) == (200, {"reachable": True, "status": 200})
    setting.upstream.answers["/idx/_gone"] = hangs_up
    assert ask("POST", "/idx/_gone", b"{}")[0] == 502
    status, headers, body = ask("GET", "/_shinglefold/metrics")
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b'shinglefold_gateway_failures_total{kind="upstream"}' in body
    documents = {"documents": [{"title": "An old bridge", "body": "is open"}, 5], "languages": ["en"]}
    status, _, body = ask("POST", "/_shinglefold/sign", json.dumps(documents).encode())
    signed = json.loads(body)
    assert (status, signed["field"]) == (200, "_dedup")
    assert signed["documents"][0]["fingerprint"]["scheme"] == signed["scheme"]
    assert signed["documents"][1]["error"]["reason"] == "the document is not an object"
    for path, method, expected in (
        ("/_shinglefold", "GET", 404), ("/_shinglefold/", "GET", 404), ("/_shinglefold/x", "GET", 404),
        ("/_shinglefold/metrics", "POST", 405), ("/_shinglefold/sign", "GET", 405),
    ):  # fmt: skip
        assert ask(method, path)[0] == expected
    for host, expected in (("localhost:1", 200), ("[::1]", 200), ("evil.example:9201", 403), ("", 403)):
        for path in ("metrics", "sign"):
            sent = request(
                "GET" if path == "metrics" else "POST", f"/_shinglefold/{path}", b'{"documents":[]}'
            )
            sent = sent.replace(b"host: localhost", b"host: " + host.encode())
            assert parts(exchange(setting.port, sent))[0] == expected, (path, host)
    for wrong in (b"", b"[]", b'{"documents":1}', b'{"documents":[],"texts":["a"]}'):
        assert ask("POST", "/_shinglefold/sign", wrong)[0] == 400


@pytest.mark.long
def test_sigterm_lets_running_requests_end(tmp_path):
    upstream = RawUpstream()

    async def late(connection):
        await asyncio.sleep(1)
        connection.writer.write(reply(b'{"late":true}', JSON))
        return True

    upstream.answers["/idx/_late"] = late
    with running_gateway(tmp_path / "log", upstream.url, options=("--workers", "1")) as gateway:
        answers: list[bytes] = []
        asking = threading.Thread(
            target=lambda: answers.append(exchange(gateway.port, request("GET", "/idx/_late")))
        )
        asking.start()
        time.sleep(0.3)
        assert gateway.stop() == 0
        asking.join()
        assert parts(answers[0])[2] == b'{"late":true}'
        assert gateway.log.read_text() == ""
    upstream.close()


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("languages", "expected"), [(["en"], {"en"}), (["xx"], set()), (None, {"en", "uk"})])
def test_a_process_that_signs_loads_its_languages_as_it_starts(languages, expected):
    signers = Signers(1, languages)
    try:
        modules = signers._pool.submit(eval, "set(__import__('sys').modules)").result(120)
    finally:
        signers.close()
    assert {code for code in ("en", "uk") if f"shinglefold.plugins.{code}" in modules} == expected


@pytest.mark.long
def test_a_process_that_signs_compiles_before_a_bulk_must_wait_for_it():
    pytest.importorskip("numba")
    module = "__import__('shinglefold.ingest.fingerprint_json', fromlist=['x'])"
    signers, end = Signers(1, ["en"]), time.monotonic() + 120
    try:
        while not signers._pool.submit(eval, f"{module}._write.signatures").result(120):
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        signers.close()


@pytest.mark.long
def test_a_process_that_signs_sends_no_texts_back():
    scheme = make_scheme(codes=["en", "any"])
    recipe = Pipeline.from_json(default_definition("dedup"), scheme).recipe("dedup")
    index = SignedIndex("site", recipe, None, "site")
    text = "The old bridge over the river was closed for repairs. " * 20
    documents = [("1", {"title": "Bridge", "body": text}), (None, {"body": [text, text]}), ("3", "no object")]
    documents.append(("4", {"body": text + "\ud800", "n": 1.0}))
    expected = index.sign(documents)
    pickled = pickle.dumps((index.name, index.recipe, index.seal, index.stored_in))
    assert text.encode() not in pickle.dumps(_sign(pickled, documents[:1]))
    signers = Signers(1, ["en"])
    try:
        assert asyncio.run(signers.run(partial(index.sign, documents))) == expected
    finally:
        signers.close()


def test_a_short_answer_comes_in_one_piece(setting):
    whole = reply(b'{"a":1}', JSON)
    setting.upstream.answers["/idx/_short"] = says(whole)
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", setting.port), timeout=10) as connection:
            connection.sendall(request("GET", "/idx/_short"))
            assert parts(connection.recv(65536))[2] == b'{"a":1}'


@pytest.mark.long
def test_what_the_gateway_asks_itself_is_in_json(setting):
    """An engine answers in the format of the request, and no mappings could be read from YAML."""
    setting.upstream.heads.clear()
    formats = ("content-type: application/yaml", "accept: application/yaml")
    exchange(setting.port, request("PUT", "/written-in-yaml/_doc/1", b"title: a bridge\n", *formats))
    (head,) = [head for head in setting.upstream.heads if b"_mapping" in head.split(b"\r\n")[0]]
    assert b"yaml" not in head.partition(b"\r\n")[2].lower()
    assert b"accept: application/json" in head.lower()
