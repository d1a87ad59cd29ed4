"""A relay before a real server that spoils some requests as networks and busy servers do."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

#: What can befall a request: an answer of the relay's own with this status, the server's answer lost on the
#: way, or the server's answer late.
Fault = int | str
LOST = "lost"
LATE = "late"


class Relay(ThreadingHTTPServer):
    """Passes requests on; ``faults`` befall the next requests whose path ends with ``of``, in order."""

    daemon_threads = True

    def __init__(self, target: str, of: str = "/_bulk") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = urlsplit(target)
        self.of = of
        self.faults: list[Fault] = []
        self.asked = 0
        self.released = threading.Event()
        self._turn = threading.Lock()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"

    def fault(self, path: str) -> Fault | None:
        """Return what befalls a request."""
        with self._turn:
            if not path.split("?", maxsplit=1)[0].endswith(self.of):
                return None
            self.asked += 1
            return self.faults.pop(0) if self.faults else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Relay

    def _relay(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.fault(self.path)
        if isinstance(fault, int):
            return self._answer(
                fault, json.dumps({"error": "spoilt on the way", "status": fault}).encode(), []
            )
        target = HTTPConnection(self.server.target.hostname or "", self.server.target.port, timeout=30)
        target.request(self.command, self.path, body, dict(self.headers.items()))
        with target.getresponse() as answer:
            data = answer.read()
            if fault == LATE:
                self.server.released.wait(30)
            if fault:
                self.close_connection = True
                return None
            kept = ("content-type", "x-elastic-product")
            headers = [(name, value) for name, value in answer.getheaders() if name.lower() in kept]
            return self._answer(answer.status, data, headers)

    def _answer(self, status: int, data: bytes, headers: list[tuple[str, str]]) -> None:
        self.send_response(status)
        for name, value in headers or [("Content-Type", "application/json")]:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _relay  # noqa: N815 - the library's names

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def relay(target: str) -> Iterator[Relay]:
    """Run a relay before a server."""
    with Relay(target) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.released.set()
            made.shutdown()
            thread.join()
