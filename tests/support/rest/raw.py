"""A plain HTTP client that sends bytes as they are given, and adds nothing."""

import gzip
import json
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPResponse
from typing import Any
from urllib.parse import urlsplit

#: Seconds after which an answer does not come any more.
PATIENCE = 30.0
_CHUNK = 7


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; ``headers`` by their names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body without its compression."""
        packed = self.headers.get("content-encoding") == "gzip"
        return (gzip.decompress(self.body) if packed else self.body).decode(errors="backslashreplace")

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the REST API.

    ``body``: bytes, text, one JSON value, or a list of JSON values, a line each. ``sent``: how it is sent:
    "whole", "chunked", "gzip", "expect" (``Expect: 100-continue``), or "gzip chunked".
    """

    method: str
    target: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: str = "whole"

    def renamed(self, names: Mapping[str, str]) -> "Request":
        """Return it with other names of indices."""
        target, body = self.target, self.payload()
        for name, own in names.items():
            target = target.replace(name, own)
            body = None if body is None else body.replace(name.encode(), own.encode())
        return Request(self.method, target, body, self.headers, self.sent)

    def payload(self) -> bytes | None:
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        if isinstance(self.body, str):
            return self.body.encode()
        lines = self.body if isinstance(self.body, list) else [self.body]
        end = "\n" if isinstance(self.body, list) else ""
        return ("\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + end).encode()

    def parts(self, host: str) -> Iterable[bytes]:
        """Yield the head and the body as they are sent."""
        body = self.payload()
        headers = {"Host": host, **self.headers}
        if body is not None and "gzip" in self.sent:
            headers["Content-Encoding"] = "gzip"
            body = gzip.compress(body, mtime=0)
        if "chunked" in self.sent:
            headers["Transfer-Encoding"] = "chunked"
        elif body is not None:
            headers["Content-Length"] = str(len(body))
        if self.sent == "expect":
            headers["Expect"] = "100-continue"
        if body is not None and not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = (
                "application/x-ndjson" if isinstance(self.body, list) else "application/json"
            )
        lines = [
            f"{self.method} {self.target} HTTP/1.1",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        yield ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        if body is not None and "chunked" in self.sent:
            for at in range(0, len(body), _CHUNK):
                part = body[at : at + _CHUNK]
                yield b"%x\r\n%b\r\n" % (len(part), part)
            yield b"0\r\n\r\n"
        elif body is not None:
            yield body


class Connection:
    """One kept connection to a server."""

    def __init__(self, url: str, patience: float = PATIENCE) -> None:
        at = urlsplit(url)
        self.host = at.netloc
        self._socket = socket.create_connection((at.hostname, at.port), timeout=patience)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: Request) -> Answer:
        head, *rest = request.parts(self.host)
        if request.sent == "expect":
            self._socket.sendall(head)
            told = self._socket.recv(65_536)
            # One that refuses a request by its head must not be sent its body.
            assert told.startswith(b"HTTP/1.1 100"), told
        else:
            rest = [head + b"".join(rest)]
        self._socket.sendall(b"".join(rest))
        return self.read(request.method)

    def read(self, method: str = "GET") -> Answer:
        """Read the answer to a request of this method."""
        answer = HTTPResponse(self._socket, method=method)
        answer.begin()
        body = answer.read()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ask(url: str, request: Request) -> Answer:
    """Return the answer to one request on a connection of its own."""
    with Connection(url) as connection:
        return connection.ask(request)
