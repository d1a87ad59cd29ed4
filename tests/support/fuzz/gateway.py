"""Hostile requests to a gateway over raw sockets, while other callers ask it for what only they may see."""

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from support.fuzz.hostile_requests import KINDS
from support.gateway import running_gateway
from support.rest.raw import Connection, Request
from support.servers.admin import ask

import shinglefold

#: Seconds that a connection may stay open once nothing more is sent.
_PATIENCE = 20.0
#: Seconds that a whole request may wait for an answer before its connection is ended.
_WAITED = 0.1
_SECRET = "secret-of-another-caller"
_FAULTS = (b"Traceback", b"in the gateway", _SECRET.encode(), b"\r\n\r\nInternal Server Error")


class GatewayTarget:
    """Throws one request at a time at a gateway; ``end`` tells what other callers met in the meantime.

    Args:
        url: of the gateway.
        index: one with a recipe.
    """

    def __init__(self, url: str, index: str) -> None:
        self._url, self._index = url, index.encode()
        at = urlsplit(url)
        self._address = (at.hostname, at.port)
        self._ended = threading.Event()
        self._wrong: list[str] = []
        self._asked = 0
        self._victims = [
            threading.Thread(target=self._ask_on, args=(number,), daemon=True) for number in range(2)
        ]
        for victim in self._victims:
            victim.start()

    def throw(self, chance: random.Random) -> None:
        kind = chance.choice(list(KINDS))
        sent = KINDS[kind](chance)
        data = sent.data.replace(b"INDEX", self._index)
        received = self._exchange(data, sent.whole, abort=chance.random() < 0.05)
        for fault in _FAULTS:
            assert fault not in received, f"{kind}: {_around(received, fault)!r} to {data[:300]!r}"
        assert not received or received.startswith(b"HTTP/1."), (
            f"{kind}: {received[:200]!r} to {data[:300]!r}"
        )

    def end(self) -> None:
        """Check that the other callers were answered as if they were alone, and that the gateway is well."""
        self._ended.set()
        for victim in self._victims:
            victim.join()
        assert not self._wrong, self._wrong[:5]
        assert self._asked > 1
        with Connection(self._url) as connection:
            answer = connection.ask(Request("GET", "/_shinglefold/health"))
        assert answer.status == 200, answer

    def _exchange(self, data: bytes, whole: bool, abort: bool) -> bytes:
        received = bytearray()
        with socket.create_connection(self._address, timeout=_PATIENCE) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # The gateway may answer, and close, before it has read everything.
            with suppress(ConnectionError):
                connection.sendall(data)
                if abort:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                    return b""
                if whole:
                    connection.settimeout(_WAITED)
                    with suppress(TimeoutError):
                        received += connection.recv(1 << 20)
                    connection.settimeout(_PATIENCE)
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
                begun = time.monotonic()
                while part := connection.recv(1 << 20):
                    received += part
                    assert time.monotonic() - begun < _PATIENCE, "the connection stays open"
        return bytes(received)

    def _ask_on(self, victim: int) -> None:
        connection = None
        for number in count():
            if self._ended.is_set():
                break
            name = f"victim-{victim}-{number}"
            headers = {"Authorization": f"Bearer {_SECRET}", "X-Opaque-Id": name}
            try:
                connection = connection or Connection(self._url)
                answer = connection.ask(Request("GET", f"/{name}/_doc/1", headers=headers))
                if (
                    answer.status != 404
                    or name not in answer.text
                    or answer.headers.get("x-opaque-id", name) != name
                ):
                    self._wrong.append(f"{name}: {answer}")
                self._asked += 1
            except (OSError, HTTPException) as error:
                self._wrong.append(f"{name}: {error!r}")
                connection = None
            time.sleep(0.01)
        if connection is not None:
            connection.close()


@contextmanager
def hostile_requests(server: str, log: Path) -> Iterator[GatewayTarget]:
    """Run a gateway in front of a server with an index, to throw requests at; in the end it must be well."""
    index = "shinglefold-test-fuzz"
    closed = {"persistent": {"action.auto_create_index": "false"}}
    ask(server, "DELETE", f"/{index}?ignore_unavailable=true")
    ask(
        server,
        "PUT",
        f"/{index}",
        {"mappings": {"properties": {"title": {"type": "text"}, "body": {"type": "text"}}}},
    )
    shinglefold.setup(server, index, text=["title", "body"], languages=[])
    # Names made by chance are not to become indices.
    ask(server, "PUT", "/_cluster/settings", closed)
    try:
        with running_gateway(log, server, options=("--workers", "1")) as gateway:
            target = GatewayTarget(gateway.url, index)
            yield target
            target.end()
            assert gateway.stop() == 0
            assert _SECRET not in log.read_text()
    finally:
        ask(server, "PUT", "/_cluster/settings", {"persistent": {"action.auto_create_index": None}})
        ask(server, "DELETE", f"/{index}?ignore_unavailable=true")


def _around(received: bytes, fault: bytes) -> bytes:
    at = received.index(fault)
    return received[max(0, at - 300) : at + 300]
