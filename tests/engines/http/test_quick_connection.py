"""What connections do with less work goes over the wire, and comes from it, as by urllib3 itself."""

import io
import json
import logging
import socket
import threading
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from typing import Any

import pytest
import urllib3
from hypothesis import example, given
from hypothesis import strategies as st

from shinglefold.engines import Connection
from shinglefold.engines.elasticsearch import ElasticsearchEngine
from shinglefold.engines.http.quick_connection import QuickResponse, ordinary_headers, quicken
from shinglefold.engines.opensearch import OpenSearchEngine
from shinglefold.errors import IndexMissing

_OF_OPENSEARCH = (
    "X-OpenSearch-Version: OpenSearch/3.8.0 (opensearch)",
    "content-type: application/json; charset=UTF-8",
    "content-length: 2",
)
_LINES = st.one_of(
    st.sampled_from(
        [
            *_OF_OPENSEARCH,
            "Content-Length: 2",
            "Content-Length: 3",
            "content-length: +2",
            "content-length: -1",
            "content-length: 2, 2",
            "content-length:2",
            "content-length : 2",
            "content-length: ٢",
            f"content-length: {'9' * 30}",
            "Transfer-Encoding: chunked",
            "Connection: close",
            "connection: keep-alive",
            "X-elastic-product: Elasticsearch",
            " folded",
            "\tfolded",
            "no colon",
            ": nameless",
            "empty:",
            "empty: ",
            "trailing: blank ",
            "From someone",
            "twice: 1",
            "twice: 2",
            'warning: 299 OpenSearch-3.8.0 "old"',
        ]
    ),
    st.text(st.characters(max_codepoint=255), max_size=12),
)
_ORDINARY = ["HTTP/1.1 200 OK\r\n"] * 4
_HEADS = st.builds(
    lambda first, lines, end: first + "".join(f"{line}{end}" for line in lines) + end,
    st.sampled_from([*_ORDINARY, "HTTP/1.1 404 Not Found\r\n", "HTTP/1.0 200 OK\r\n", "HTTP/1.1 204 \r\n"]),
    st.lists(_LINES, max_size=2).flatmap(lambda odd: st.permutations([*_OF_OPENSEARCH, *odd])),
    st.sampled_from(["\r\n"] * 6 + ["\n"]),
)


class _Socket:
    """What a response reads from, in pieces as they arrive."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)

    def makefile(self, _: str) -> io.BufferedReader:
        pieces = self._pieces

        class Raw(io.RawIOBase):
            def readable(self) -> bool:
                return True

            def readinto(self, buffer: Any) -> int:
                while pieces and not pieces[0]:
                    pieces.pop(0)
                taken = pieces[0][: len(buffer)] if pieces else b""
                buffer[: len(taken)] = taken
                if pieces:
                    pieces[0] = pieces[0][len(taken) :]
                return len(taken)

        return io.BufferedReader(Raw())


def _read(kind: type[HTTPResponse], method: str, *pieces: bytes) -> object:
    response = kind(_Socket(*pieces), method=method)  # type: ignore[arg-type]
    try:
        response.begin()
        told = (
            response.status,
            response.code,
            response.reason,
            response.version,
            response.headers.items(),
            response.msg.items(),
            response.headers.defects,
            response.headers.get_payload(),
            response.chunked,
            response.length,
            response.will_close,
        )
        return repr(told), response.read()
    except (HTTPException, OSError, ValueError, OverflowError) as error:
        return repr(error)


@given(_HEADS, st.sampled_from(["GET", "POST", "HEAD"]), st.integers(0, 200))
@example("HTTP/1.1 200 OK\r\n" + "\r\n".join(_OF_OPENSEARCH) + "\r\n\r\n", "POST", 0)
@example("HTTP/1.1 200 OK\r\n" + "\r\n".join(_OF_OPENSEARCH) + "\r\n\r\n", "HEAD", 0)
@example("HTTP/1.1 200 OK\r\n" + "\r\n".join(_OF_OPENSEARCH) + "\r\n\r\n", "POST", 40)
def test_any_response_is_read_as_the_standard_library_reads_it(head, method, cut):
    whole = head.encode("latin-1", "ignore") + b"{}and what follows"
    pieces = whole[:cut], whole[cut:]
    assert _read(QuickResponse, method, *pieces) == _read(HTTPResponse, method, *pieces)


def test_an_ordinary_head_is_read_in_one_go():
    told = ordinary_headers(("HTTP/1.1 200 OK\r\n" + "\r\n".join(_OF_OPENSEARCH) + "\r\n\r\n").encode())
    assert told is not None
    message, length = told
    assert length == 2
    assert message["content-type"] == "application/json; charset=UTF-8"


class _Server:
    """Answers each request with the next of some bytes, and keeps what came, one piece each reading."""

    def __init__(self, *answers: bytes) -> None:
        self.came: list[bytes] = []
        self.url = ""
        self._answers = list(answers)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while self._answers:
            try:
                there, _ = self._listening.accept()
            except OSError:
                return
            with there:
                while self._answers and self._request(there):
                    there.sendall(self._answers[0])
                    if b"connection: close" in self._answers.pop(0).lower():
                        break

    def _request(self, there: socket.socket) -> bool:
        whole = b""
        while True:
            piece = there.recv(1 << 20)
            if not piece:
                return False
            self.came.append(piece)
            whole += piece
            head, end, body = whole.partition(b"\r\n\r\n")
            told = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            if end and len(body) >= int(told[0].split(b":")[1] if told else 0):
                return True

    def close(self) -> None:
        self._listening.close()


def _answer(told: Any, *, status: str = "200 OK", more: str = "") -> bytes:
    body = told if isinstance(told, bytes) else json.dumps(told, ensure_ascii=False).encode()
    return (
        f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{more}content-length: {len(body)}\r\n\r\n"
    ).encode() + body


@pytest.fixture
def serve() -> Iterator[Any]:
    made: list[_Server] = []

    def start(*answers: bytes) -> _Server:
        made.append(_Server(*answers))
        return made[-1]

    yield start
    for one in made:
        one.close()


def _asked(server: _Server, *, by_us: bool, body: bytes | None) -> bytes:
    with urllib3.connection_from_url(server.url) as pool:
        if by_us:
            quicken(pool)
        response = pool.urlopen("POST" if body else "GET", "/x", body=body, headers={"a": "b"})
        assert response.data == b"{}"
    return b"".join(server.came).replace(server.url.removeprefix("http://").encode(), b"HOST")


@pytest.mark.parametrize("size", [0, 1, 1000, 65536, 65537, 300_000])
def test_the_same_bytes_are_sent(serve, size):
    body = b"x" * size or None
    ours, theirs = (_asked(serve(_answer({})), by_us=by_us, body=body) for by_us in (True, False))
    assert ours == theirs
    assert ours.endswith(body or b"\r\n\r\n")


@pytest.mark.parametrize("kind", [OpenSearchEngine, ElasticsearchEngine])
def test_a_search_is_one_piece(serve, kind):
    product = "X-elastic-product: Elasticsearch\r\n"
    server = serve(*[_answer({"hits": {"hits": []}}, more=product)] * 3)
    with kind(Connection((server.url,))) as engine:
        for _ in range(3):
            assert engine.search("pages", {"size": 3}) == {"hits": {"hits": []}}
    assert len(server.came) == 3
    assert all(piece.endswith(b'{"size":3}') for piece in server.came)


def test_a_connection_that_the_server_closes_is_opened_again(serve):
    server = serve(*[_answer({"n": 1}, more="Connection: close\r\n"), _answer({"n": 2})] * 2)
    with OpenSearchEngine(Connection((server.url,))) as engine:
        assert [engine.search("pages", {})["n"] for _ in range(4)] == [1, 2, 1, 2]


@pytest.mark.parametrize("level", [logging.DEBUG, logging.WARNING])
def test_answers_are_the_same_whether_they_are_logged_or_not(serve, caplog, level):
    body = '{"text": "Тест é 中 😀"}'
    server = serve(_answer(body.encode()))
    caplog.set_level(level, "opensearch")
    with OpenSearchEngine(Connection((server.url,))) as engine:
        assert engine.search("pages", {}) == json.loads(body)
    logged = [record.getMessage() for record in caplog.records if record.getMessage().startswith("< ")]
    assert logged == ([f"< {body}"] if level == logging.DEBUG else [])


def test_half_a_surrogate_pair_is_read_as_before(serve):
    server = serve(_answer('{"text": "Тест \ud800"}'.encode("utf-8", "surrogatepass")))
    with OpenSearchEngine(Connection((server.url,))) as engine:
        assert engine.search("pages", {}) == {"text": "Тест \ud800"}


def test_a_refusal_is_told_as_before(serve):
    error = {
        "error": {"type": "index_not_found_exception", "reason": "no such index [страницы]"},
        "status": 404,
    }
    server = serve(_answer(error, status="404 Not Found"))
    with OpenSearchEngine(Connection((server.url,))) as engine, pytest.raises(IndexMissing, match="страницы"):
        engine.search("pages", {})
