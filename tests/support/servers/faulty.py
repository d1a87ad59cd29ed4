"""A relay before a real server that spoils requests as networks, proxies and busy servers do."""

import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from support.serving import Quiet, serving

#: What can befall a request: an answer of the relay's own with this status, so many seconds of delay, or one
#: of the words below.
Fault = int | float | str
#: The server's answer is lost on the way, or held until the relay is told to release it.
LOST = "lost"
LATE = "late"
#: The connection is cut before the server hears of the request.
CUT = "cut"
#: Half of the answer comes, and the connection ends; or the half comes as if it were the whole.
HALF = "half"
BROKEN = "broken"
#: The answer comes, and says that a shard failed.
PARTIAL = "partial"
#: A request for a refresh comes to nothing, and the answer says that a copy did not take part.
MISSED = "missed"
#: Nothing is spoilt.
FINE = 0.0
#: All that may befall any request again and again.
EVERYTHING: Sequence[Fault] = (429, 503, LOST, CUT, HALF, BROKEN, 0.2)

_JSON = [("Content-Type", "application/json"), ("X-Elastic-Product", "Elasticsearch")]
_MISSED = {
    "_shards": {
        "total": 2,
        "successful": 1,
        "failed": 1,
        "failures": [
            {
                "shard": 0,
                "index": "i",
                "status": "INTERNAL_SERVER_ERROR",
                "reason": {"type": "node_disconnected_exception", "reason": "[node-1] disconnected"},
            }
        ],
    }
}


class Relay(ThreadingHTTPServer):
    """Passes requests on; ``faults`` befall the next requests whose path ends with ``of``, in order.

    An empty ``of`` means every path. After ``weather`` a share of all such requests is spoilt by chance.
    """

    daemon_threads = True

    def __init__(self, target: str, of: str = "/_bulk") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = urlsplit(target)
        self.of = of
        self.faults: list[Fault] = []
        self.asked = 0
        self.spoilt = 0
        self.released = threading.Event()
        self._turn = threading.Lock()
        self._chance = random.Random()
        self._share = 0.0
        self._kinds: Sequence[Fault] = ()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def weather(self, seed: int, share: float, kinds: Sequence[Fault] = EVERYTHING) -> None:
        """Spoil a share of the requests from now on, each in one of these ways."""
        self._chance = random.Random(seed)
        self._share, self._kinds = share, kinds

    def fault(self, path: str) -> Fault | None:
        """Return what befalls a request."""
        with self._turn:
            if not path.split("?", maxsplit=1)[0].endswith(self.of):
                return None
            self.asked += 1
            if self.faults:
                found = self.faults.pop(0)
            elif self._chance.random() < self._share:
                found = self._chance.choice(self._kinds)
            else:
                return None
            self.spoilt += 1
            return found


class _Handler(Quiet):
    protocol_version = "HTTP/1.1"
    server: Relay

    def _relay(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.fault(self.path)
        if isinstance(fault, int):
            told = json.dumps({"error": "spoilt on the way", "status": fault}).encode()
            return self._answer(fault, told, [])
        if fault == MISSED:
            return self._answer(500, json.dumps(_MISSED).encode(), _JSON)
        if fault == CUT:
            self.close_connection = True
            return None
        if isinstance(fault, float):
            time.sleep(fault)
        try:
            return self._pass_on(body, fault)
        except OSError:
            # The server is gone; so is this connection.
            self.close_connection = True
            return None

    def _pass_on(self, body: bytes, fault: Fault | None) -> None:
        target = HTTPConnection(self.server.target.hostname or "", self.server.target.port, timeout=30)
        target.request(self.command, self.path, body, dict(self.headers.items()))
        with target.getresponse() as answer:
            data = answer.read()
            if fault == PARTIAL:
                data = json.dumps(_without_a_shard(json.loads(data))).encode()
            if fault == LATE:
                self.server.released.wait(30)
            if fault in (LATE, LOST):
                self.close_connection = True
                return
            kept = ("content-type", "x-elastic-product")
            headers = [(name, value) for name, value in answer.getheaders() if name.lower() in kept]
            self._answer(answer.status, data, headers, fault)

    def _answer(
        self, status: int, data: bytes, headers: list[tuple[str, str]], fault: Fault | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers or _JSON:
            self.send_header(name, value)
        half = data[: len(data) // 2]
        self.send_header("Content-Length", str(len(half if fault == BROKEN else data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(half if fault in (HALF, BROKEN) else data)
        if fault == HALF:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _relay  # noqa: N815 - the library's names


def _without_a_shard(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer to a search, or to several, as it is when a shard of the last one fails."""
    if "responses" in answer:
        return {**answer, "responses": [*answer["responses"][:-1], _without_a_shard(answer["responses"][-1])]}
    shards = answer["_shards"]
    return {**answer, "_shards": {**shards, "failed": 1, "successful": shards["successful"] - 1}}


@contextmanager
def relay(target: str, of: str = "/_bulk") -> Iterator[Relay]:
    """Run a relay before a server."""
    made = Relay(target, of)
    with serving(made):
        try:
            yield made
        finally:
            made.released.set()
