"""Gateways for tests: the real command in a process, and an upstream that answers with prepared bytes."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

#: A message of HTTP is complete after this.
END = b"\r\n\r\n"


class Gateway(NamedTuple):
    url: str
    process: "subprocess.Popen[str]"
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def stop(self) -> int:
        """End it as an administrator does, and return its exit code."""
        self.process.terminate()
        return self.process.wait(30)


@contextmanager
def running_gateway(
    log: Path, *upstream: str, options: tuple[str, ...] = (), env: dict[str, str] | None = None
) -> Iterator[Gateway]:
    """Run a gateway in front of addresses; ``log`` takes its standard error."""
    command = [str(Path(sys.executable).with_name("shinglefold")), "gateway", "--listen", "127.0.0.1:0"]
    for url in upstream:
        command += ["--upstream", url]
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=errors, text=True, env=env
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("gateway at "), log.read_text()
        yield Gateway(line.split()[2], process, log)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class Connection(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: bytes

    @property
    def target(self) -> str:
        return self.head.split(b" ", 2)[1].decode("latin-1")


class RawUpstream:
    """A server that answers each request as a coroutine of the test says, byte by byte."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.connections = 0
        self.answers: dict[str, Callable[[Connection], object]] = {}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self.port = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)

        async def start() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            self._ready.set()

        self._loop.run_until_complete(start())
        self._loop.run_forever()
        for task in (left := asyncio.all_tasks(self._loop)):
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(END)
                self.heads.append(head)
                connection = Connection(reader, writer, head)
                answer = self.answers.get(connection.target.partition("?")[0], _root)
                if await answer(connection) is False:  # type: ignore[misc]
                    break
        writer.close()


async def _root(connection: Connection) -> None:
    """Answer as OpenSearch does at its root."""
    body = b'{"version":{"distribution":"opensearch","number":"3.8.0"}}'
    connection.writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
        % (len(body), b"" if connection.head.startswith(b"HEAD") else body)
    )


def exchange(port: int, request: bytes, seconds: float = 10.0) -> bytes:
    """Send bytes on a connection of their own, and return all that comes back until it ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as own:
        own.sendall(request)
        parts = []
        with contextlib.suppress(ConnectionError):
            while part := own.recv(65_536):
                parts.append(part)
        return b"".join(parts)


def request(method: str, target: str, body: bytes = b"", *headers: str) -> bytes:
    """The bytes of a request after which the connection is closed."""
    lines = [f"{method} {target} HTTP/1.1", "host: localhost", "connection: close", *headers]
    if body and not any(line.lower().startswith("transfer-encoding") for line in headers):
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + END + body


def reply(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, f"content-length: {len(body) if length is None else length}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def says(answer: bytes, *, close: bool = False) -> Callable[[Connection], object]:
    """An upstream that answers with these bytes, whatever the request is."""

    async def serve(connection: Connection) -> bool:
        connection.writer.write(answer)
        await connection.writer.drain()
        return not close

    return serve


def parts(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(status.split()[1]), headers, body
