"""Small servers of the standard library in threads, for tests: they answer, and end, without delay."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from typing import Any, NamedTuple

#: Seconds between looks whether the end has come; half a second by default, and hundreds of tests would wait.
_TICK = 0.02


class Quiet(BaseHTTPRequestHandler):
    """A handler that logs nothing, and whose answers are sent as they are written.

    Headers and body are two writes. By default the second is held back until the first is acknowledged, and
    who has asked acknowledges 40 ms later.
    """

    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


class Request(NamedTuple):
    """A request as it arrived."""

    method: str
    path: str
    headers: Message
    body: bytes


#: Status, headers and body.
Answer = tuple[int, Mapping[str, str], bytes]


def as_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer that has a value as JSON."""
    return status, {"Content-Type": "application/json", **(headers or {})}, json.dumps(value).encode()


@contextmanager
def answering(answer: Callable[[Request], Answer]) -> Iterator[str]:
    """Run a server that answers every request by a function until the block ends; yields its address."""

    class Handler(Quiet):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, data = answer(Request(self.command, self.path, self.headers, body))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - the library's names

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as url:
        yield url


@contextmanager
def serving(server: HTTPServer) -> Iterator[str]:
    """Run a server until the block ends; yields its address."""
    thread = threading.Thread(target=server.serve_forever, args=(_TICK,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
