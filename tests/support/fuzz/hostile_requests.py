# Hostile lines stay as they are sent.
# ruff: noqa: E501
"""Hostile requests as bytes: broken heads, chunks, lengths, compression and JSON, floods, and smuggling.

Each is made by chance. INDEX and TWIN stand for indices with a recipe.
"""

import gzip
import json
import random
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from support.fuzz.spoil import spoil_bytes, spoil_json
from support.rest.raw import Request
from support.rest.reads import FORMS, OPERATIONS
from support.rest.writes import BULKS, DOCUMENTS, PAGE

_HOST = "gateway"
_HEAD = b"Host: gateway\r\nContent-Type: application/json\r\n"
_SEARCH = b'{"query": {"match": {"body": "ferry"}}, "size": 2}'
_SMUGGLED = b"GET /victim-smuggled/_doc/1 HTTP/1.1\r\nHost: gateway\r\nX-Opaque-Id: smuggled\r\n\r\n"
_NOT_SPOILT = (
    b"DELETE /INDEX-new",
    b"POST /INDEX-new",
    b"POST /INDEX/_forcemerge",
    b"POST /INDEX/_delete_by",
)
_DEEP = (100, 1_000, 20_000, 200_000)
_BOMB = 32 << 20
_FOLDED = {
    "query": {"match": {"body": "ferry"}},
    "ext": {
        "dedup": {"members": {"size": 2}, "explain": True, "cursor": True, "window": 10, "scope": ["lang"]}
    },
    "_source": ["title"],
    "sort": ["_score", {"number": "asc"}],
    "highlight": {"fields": {"body": {}}},
}


class Sent(NamedTuple):
    """What is sent; ``whole``: it may be a whole request, whose answer is waited for."""

    data: bytes
    whole: bool = True


@cache
def _bases() -> tuple[bytes, ...]:
    """Return the requests of the matrix, as bytes."""
    rows = (*FORMS.values(), *OPERATIONS.values(), *DOCUMENTS.values(), *BULKS.values())
    steps = [step for row in rows for step in ([row] if isinstance(row, Request) else row)]
    made = [b"".join(step.parts(_HOST)) for step in steps if isinstance(step, Request)]
    # Not what takes long, or may become the deletion of an index that others need.
    return tuple(one for one in made if len(one) < 20_000 and not one.startswith(_NOT_SPOILT))


def _request(line: bytes, headers: bytes = _HEAD, body: bytes = b"", length: bool = True) -> bytes:
    told = b"Content-Length: %d\r\n" % len(body) if length else b""
    return line + b" HTTP/1.1\r\n" + headers + told + b"\r\n" + body


def _any(chance: random.Random) -> Sent:
    """A request of the matrix, spoilt anywhere."""
    return Sent(spoil_bytes(chance.choice(_bases()), chance))


def _cut(chance: random.Random) -> Sent:
    """A request of the matrix that ends early."""
    base = chance.choice(_bases())
    return Sent(base[: chance.randrange(1, len(base))], whole=False)


def _framed(chance: random.Random) -> Sent:
    """A request of the matrix whose body is spoilt, and its length is not."""
    head, _, body = chance.choice(_bases()).partition(b"\r\n\r\n")
    lines = [
        line
        for line in head.split(b"\r\n")
        if not line.lower().startswith((b"content-length", b"expect", b"transfer-enc"))
    ]
    spoilt = spoil_bytes(body, chance)
    lines.append(b"Content-Length: %d" % len(spoilt))
    return Sent(b"\r\n".join(lines) + b"\r\n\r\n" + spoilt)


def _json(chance: random.Random) -> Sent:
    """A search, a document, an update or a bulk whose JSON has odd values."""
    kind = chance.randrange(5)
    if kind == 0:
        line, value = b"POST /INDEX/_search", _odd(_FOLDED, chance)
    elif kind == 1:
        line, value = b"PUT /INDEX/_doc/fuzz", _odd(dict(PAGE), chance)
    elif kind == 2:
        line, value = b"POST /INDEX/_update/fuzz", _odd({"doc": dict(PAGE), "doc_as_upsert": True}, chance)
    elif kind == 3:
        line = b"POST /INDEX/_bulk"
        action = {
            chance.choice(("index", "create", "update", "delete")): {
                "_id": "fuzz",
                "_index": "INDEX",
                "routing": "r",
            }
        }
        value = b"\n".join([_odd(action, chance), _odd({"doc": dict(PAGE)}, chance), b""])
    else:
        line = b"POST /INDEX/_msearch"
        value = b"\n".join(
            [_odd({"index": "INDEX", "preference": "_local"}, chance), _odd(_FOLDED, chance), b""]
        )
    return Sent(_request(line, body=value))


def _odd(value: object, chance: random.Random) -> bytes:
    return json.dumps(spoil_json(value, chance)).encode("utf-8", "surrogatepass")


def _deep(chance: random.Random) -> Sent:
    """JSON as deep as it is long, or numbers and texts without an end."""
    depth = chance.choice(_DEEP)
    deep = chance.choice(
        (
            b"[" * depth + b"]" * depth,
            b'{"a":' * depth + b"1" + b"}" * depth,
            b'{"query":{"bool":{"must":[' * (depth // 10) + b"]}}}" * (depth // 10),
            b'{"ext":{"dedup":' + b"[" * depth + b"]" * depth + b"}}",
            b'{"size":' + b"9" * depth + b"}",
            b'{"body":"' + b"\\u0000" * depth + b'"}',
            b'{"body":"' + b"\\ud83d" * depth + b'"}',
            b'{"doc":{"body":' + b"[" * depth + b"]" * depth + b"}}",
        )
    )
    line = chance.choice((b"POST /INDEX/_search", b"PUT /INDEX/_doc/deep", b"POST /INDEX/_update/deep"))
    if chance.random() < 0.4:
        line, deep = b"POST /INDEX/_bulk", b'{"index":{"_id":"deep"}}\n' + deep + b"\n" + deep + b"\n{}\n"
    elif chance.random() < 0.2:
        line, deep = b"POST /_msearch", b'{"index":"INDEX"}\n' + deep + b"\n" + deep + b"\n{}\n"
    return Sent(_request(line, body=deep))


def _chunks(chance: random.Random) -> Sent:
    """Chunks whose sizes lie."""
    head = (
        b"POST /INDEX/" + chance.choice((b"_search", b"_bulk", b"_doc", b"_count")) + b" HTTP/1.1\r\n" + _HEAD
    )
    coding = chance.choice(
        (b"chunked", b"Chunked", b"gzip, chunked", b"chunked, chunked", b"identity", b" chunked", b"xchunked")
    )
    size = chance.choice(
        (
            b"%x" % len(_SEARCH),
            b"FFFFFFFFFFFFFFFF",
            b"-1",
            b"0x5",
            b"1 ",
            b"",
            b"zz",
            b"%x;ext=1" % len(_SEARCH),
            b"%x;" % len(_SEARCH) + b"x" * 70_000,
            b"5",
            b"100000000",
            b"+5",
            b"0" * 50_000 + b"5",
        )
    )
    end = chance.choice(
        (
            b"0\r\n\r\n",
            b"0\r\nX-Trailer: a\r\n\r\n",
            b"0\r\nContent-Length: 5\r\n\r\n",
            b"0\n\n",
            b"",
            b"00\r\n\r\n",
            b"0\r\n" + b"X: y\r\n" * 5_000 + b"\r\n",
        )
    )
    line_end = chance.choice((b"\r\n", b"\r\n", b"\n", b"\r", b""))
    return Sent(
        head + b"Transfer-Encoding: " + coding + b"\r\n\r\n" + size + line_end + _SEARCH + line_end + end
    )


def _lengths(chance: random.Random) -> Sent:
    """Lengths that contradict each other, and requests hidden behind them."""
    length = chance.choice(
        (
            b"%d" % len(_SEARCH),
            b"0",
            b"-1",
            b"+5",
            b"0x32",
            b"5, 5",
            b"5,6",
            b"1e1",
            b"999999999999999999999",
            b"",
            b" 5 ",
            b"5\r\nContent-Length: 6",
            b"00000005",
        )
    )
    more = chance.choice(
        (
            b"",
            b"Transfer-Encoding: chunked\r\n",
            b"Transfer-Encoding:\tchunked\r\n",
            b"Transfer-Encoding : chunked\r\n",
            b"X: y\r\n Transfer-Encoding: chunked\r\n",
            b"Transfer-Encoding: identity\r\n",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            b"Connection: Content-Length\r\n",
            b"Expect: 100-continue\r\n",
            b"Expect: 200-ok\r\n",
        )
    )
    body = chance.choice(
        (
            _SEARCH,
            b"0\r\n\r\n",
            b"",
            _SEARCH + _SMUGGLED,
            b"0\r\n\r\n" + _SMUGGLED,
            b"5\r\nhello\r\n0\r\n\r\n" + _SMUGGLED,
        )
    )
    line = chance.choice(
        (
            b"POST /INDEX/_search",
            b"GET /INDEX/_search",
            b"POST /INDEX/_bulk",
            b"PUT /INDEX/_doc/length",
            b"HEAD /INDEX",
            b"GET /",
        )
    )
    return Sent(_request(line, _HEAD + b"Content-Length: " + length + b"\r\n" + more, body, length=False))


def _headers(chance: random.Random) -> Sent:
    """Floods of headers, and headers with what no header has."""
    flood = chance.choice(
        (
            b"X-Flood: y\r\n" * chance.choice((100, 2_000, 20_000)),
            b"X-Long: " + b"y" * chance.choice((8_000, 70_000, 1_000_000)) + b"\r\n",
            b"y" * chance.choice((9_000, 200_000)) + b": 1\r\n",
            b"X-Null: a\x00b\r\n",
            b"X-Bare: a\rb\r\n",
            b"X-Bare: a\nX-Other: b\r\n",
            b"No colon\r\n",
            b": no name\r\n",
            b"X Space: 1\r\n",
            b"X-High: \xff\xfe\xd0\xbc\r\n",
            b"X-High\xff: 1\r\n",
            b"Host: other\r\nHost: third\r\n",
            b"Authorization: Basic \xff\r\n",
            b"Connection: close, X-Opaque-Id, Authorization\r\nX-Opaque-Id: " + b"o" * 300 + b"\r\n",
            b"X-Opaque-Id: a\tb \r\n",
            b"Accept-Encoding: " + b"gzip, " * 5_000 + b"\r\n",
            b"Accept: " + b"application/json;q=0.1, " * 3_000 + b"\r\n",
            b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n",
            b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
            b"X-Forwarded-For: 127.0.0.1\r\nX-Real-Ip: 127.0.0.1\r\nForwarded: for=127.0.0.1\r\n",
            b"X-Shinglefold-Fold: "
            + chance.choice((b"nonsense", b"true", b"false", b"\xff", b"1" * 9_000))
            + b"\r\n",
            b"Cookie: " + b"a=b; " * 4_000 + b"\r\n",
        )
    )
    line = chance.choice((b"POST /INDEX/_search", b"GET /INDEX/_count", b"POST /INDEX/_doc"))
    return Sent(_request(line, _HEAD + flood, b"" if b"_count" in line else _SEARCH))


def _compressed(chance: random.Random) -> Sent:
    """Bodies that are packed badly, or grow without an end."""
    kind = chance.randrange(8)
    name, body = b"gzip", gzip.compress(_SEARCH, mtime=0)
    if kind == 0 and chance.random() < 0.1:
        body = _bomb()
    elif kind <= 2:
        body = spoil_bytes(body, chance)
    elif kind == 3:
        body = body[: chance.randrange(len(body))]
    elif kind == 4:
        body = body * 2
    elif kind == 5:
        name, body = chance.choice(
            (
                (b"deflate", zlib.compress(_SEARCH)),
                (b"br", _SEARCH),
                (b"gzip, gzip", gzip.compress(body)),
                (b"zstd", b"\x28\xb5\x2f\xfd\x00"),
                (b"nonsense", body),
                (b"", body),
                (b"gzip", _SEARCH),
                (b"identity", body),
            )
        )
    elif kind == 6:
        body += b"trailing"
    else:
        body = b""
    line = b"POST /INDEX/" + chance.choice((b"_search", b"_bulk", b"_doc", b"_msearch", b"_count"))
    return Sent(_request(line, _HEAD + b"Content-Encoding: " + name + b"\r\n", body))


@cache
def _bomb() -> bytes:
    return gzip.compress(b" " * (8 * _BOMB), 9, mtime=0)


def _lines(chance: random.Random) -> Sent:
    """First lines that are no requests, or are about something else than an index."""
    target = chance.choice(
        (
            *(
                b"/../../etc/passwd",
                b"/%2e%2e/%2e%2e/_cluster/health",
                b"/INDEX/%00/_search",
                b"http://elsewhere/INDEX",
                b"*",
            ),
            *(
                b"/_shinglefold/metrics",
                b"/_shinglefold/sign",
                b"/%5fshinglefold/metrics",
                b"/_shinglefold/../INDEX",
                b"/_shinglefold//health",
            ),
            *(
                b"/" + b"a" * 60_000,
                b"/" * 5_000,
                b"/INDEX/_search?" + b"a=b&" * 10_000,
                b"/INDEX/_doc/" + b"%25" * 2_000,
                b"/%",
                b"/INDEX/_search?q=\xff",
            ),
            *(
                b"/INDEX/_search#part",
                b"elsewhere:443",
                b"",
                b"INDEX/_count",
                b"/INDEX/_doc/a\x7fb",
                b"//elsewhere/INDEX",
                b"/\\elsewhere\\INDEX",
                b"/INDEX/_doc/%0d%0aX-Injected:%201",
            ),
            *(
                b"/<INDEX-{now/d}>/_search",
                b"/INDEX/_bulk?filter_path=%ff",
                b"/_bulk?refresh=%0a",
                b"/INDEX/_search?source=%7b%22ext%22%3a1%7d",
            ),
        )
    )
    method = chance.choice(
        (
            b"GET",
            b"POST",
            b"PUT",
            b"HEAD",
            b"CONNECT",
            b"OPTIONS",
            b"TRACE",
            b"get",
            b"G\x00T",
            b"",
            b"BREW" * 500,
            b"PRI",
        )
    )
    version = chance.choice(
        (
            b" HTTP/1.1",
            b" HTTP/1.1",
            b" HTTP/1.0",
            b" HTTP/2.0",
            b" HTTP/9.9",
            b" HTTP/1.1 more",
            b"",
            b" http/1.1",
            b" HTTP/0.9",
        )
    )
    body = chance.choice((b"", _SEARCH))
    return Sent(
        method + b" " + target + version + b"\r\n" + _HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    )


def _protocols(chance: random.Random) -> Sent:
    """What speaks another protocol, or nothing at all."""
    data = chance.choice(
        (
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 50,
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + chance.randbytes(200),
            b"\r\n" * 3_000,
            b"\x00" * 5_000,
            chance.randbytes(chance.randrange(1, 3_000)),
            b"SSH-2.0-OpenSSH_9.6\r\n",
            b"GET / HTTP/1.1\r\nHost: gateway\r\n\r\n" * 200,
            _request(b"POST /INDEX/_search", body=_SEARCH) + _request(b"GET /INDEX/_count") + b"garbage",
            b"A" * 300_000,
            b"GET / HTTP/1.1\r\n" + b"A" * 300_000,
        )
    )
    return Sent(data, whole=data.startswith((b"GET", b"POST")))


KINDS: Mapping[str, Callable[[random.Random], Sent]] = {
    "any": _any,
    "cut": _cut,
    "framed": _framed,
    "json": _json,
    "deep": _deep,
    "chunks": _chunks,
    "lengths": _lengths,
    "headers": _headers,
    "compressed": _compressed,
    "lines": _lines,
    "protocols": _protocols,
}
