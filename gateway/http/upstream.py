"""The cluster behind the gateway: requests go to its addresses in turn, but not to those that are down."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from socket import SOCK_STREAM
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from shinglefold.engines.http.connection import Connection, load_connection, parse_urls
from shinglefold.engines.http.product_detection import tls_context
from shinglefold.errors import ConfigError, MissingExtra
from shinglefold.gateway.http.messages import Headers, HttpCaller, Reply
from shinglefold.gateway.rest import read_value

try:
    from aiohappyeyeballs import start_connection
    from msgspec import MsgspecError
    from msgspec.json import decode

    from shinglefold.gateway.http.upstream_connection import NoAnswer, UpstreamConnection, UpstreamResponse
except ModuleNotFoundError as _error:
    raise MissingExtra("gateway", "the gateway") from _error

#: Seconds for which an address that does not answer is tried last.
_DOWN_SECONDS = 5.0
#: Bytes of a first line and of headers that engines always take; their limits are 4096 and 8192 or more. To a
#: longer head they answer 400, and then read nothing more on that connection, which others would wait for.
_SHORT_LINE, _SHORT_HEAD = 3_000, 6_000
#: Seconds until the next address of a host name is tried, too: IPv6 may lead nowhere.
_NEXT_PLACE_SECONDS = 0.25
#: Seconds for which an idle connection stays open.
_IDLE_SECONDS = 15.0
#: Methods whose requests may be repeated, and those that send no Content-Length without a body.
_IDEMPOTENT = frozenset(("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"))
_WITHOUT_BODY = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))


class UpstreamFailure(Exception):
    """Upstream did not answer; ``status`` is the gateway's answer to the caller."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _NotConnected(Exception):
    """An address can't be reached; ``in_time``: it refuses, and does not only say nothing."""

    def __init__(self, *, in_time: bool) -> None:
        super().__init__()
        self.in_time = in_time


class _Node:
    """An address of the cluster, and its idle connections."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.is_tls, self.prefix = parts.hostname or "", parts.scheme == "https", parts.path
        self.port = parts.port or (443 if self.is_tls else 80)
        self.authority = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
        self.down_until = 0.0
        #: Those released last are at the end.
        self.idle: list[UpstreamConnection] = []
        self._sweep: asyncio.TimerHandle | None = None

    def release(self, connection: UpstreamConnection) -> None:
        """Keep a connection for the next request, for some seconds."""
        connection.idle_since = monotonic()
        self.idle.append(connection)
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._close_idle)

    def close(self) -> None:
        """Close the idle connections."""
        while self.idle:
            self.idle.pop().close()

    def idle_connection(self) -> UpstreamConnection | None:
        """Return the connection that was released last."""
        since = monotonic() - _IDLE_SECONDS
        while self.idle:
            connection = self.idle.pop()
            if not connection.closed and connection.idle_since >= since:
                return connection
            connection.close()
        return None

    def _close_idle(self) -> None:
        """Close the connections that are idle for long."""
        self._sweep, since = None, monotonic() - _IDLE_SECONDS
        while self.idle and (self.idle[0].closed or self.idle[0].idle_since <= since):
            self.idle.pop(0).close()
        if self.idle:
            self._sweep = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._close_idle)


def upstream_connection(urls: Iterable[str] | str) -> Connection:
    """Return the connection to upstream: addresses, TLS and timeouts; refuse credentials."""
    named = parse_urls(urls)
    if "user" in named:
        raise ConfigError(
            "--upstream: an address with credentials; callers send their own, and the gateway has none: "
            "write it as https://HOST:PORT"
        )
    return replace(
        load_connection(urls),
        user="",
        password="",
        api_key="",
        bearer_token="",
        client_cert="",
        client_key="",
        aws_region="",
    )


class Upstream:
    """Sends requests to a cluster, and keeps connections to it open; its credentials are ignored.

    ``connect_seconds``: for opening a connection. ``read_seconds``: the longest wait for the next bytes.

    Raises:
        ConfigError: a certificate file can't be used.
    """

    def __init__(self, connection: Connection, *, connect_seconds: float, read_seconds: float) -> None:
        self.connection = connection
        self._nodes = [_Node(url) for url in connection.urls]
        self._next = 0
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        is_tls = any(node.is_tls for node in self._nodes)
        self._tls = tls_context(connection) if is_tls else None

    async def close(self) -> None:
        """Close the idle connections."""
        for node in self._nodes:
            node.close()

    async def open(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: "bytes | AsyncIterator[bytes] | None" = None,
        *,
        safe: bool = False,
    ) -> UpstreamResponse:
        """Send a request and return the answer, whose body is still to be read.

        Only a request that did not reach an address is sent to the next one.

        Args:
            target: the path and the parameters, percent-encoded, which are sent unchanged.
            safe: the request changes nothing, so that it may run twice.

        Raises:
            UpstreamFailure: no address answers.
        """
        failed: _NotConnected | None = None
        for node in self._in_turn():
            try:
                return await self._request(node, method, target, headers, body, safe=safe)
            except _NotConnected as error:
                node.down_until = monotonic() + _DOWN_SECONDS
                failed = error
            except TimeoutError as error:
                raise UpstreamFailure(504, "the engine does not answer in time") from error
            except OSError as error:
                raise UpstreamFailure(502, "the engine closed the connection without an answer") from error
            except ValueError as error:
                raise UpstreamFailure(400, "a header of the request is not valid") from error
        status = 504 if failed is not None and not failed.in_time else 502
        raise UpstreamFailure(
            status, f"no connection to the engine at {self.connection.address}: start it, or check --upstream"
        ) from failed

    async def ask(
        self,
        method: str,
        target: str,
        caller: HttpCaller,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        safe: bool = False,
    ) -> Reply:
        """Send a request of the gateway in place of a caller, and return the whole answer; see ``open``."""
        try:
            given = [(name.encode(), value.encode()) for name, value in headers.items()]
        except ValueError as error:
            raise UpstreamFailure(400, "a header of the request is not valid") from error
        response = await self.open(method, target, given, body, safe=safe)
        try:
            async with response:
                content = await response.read()
        except TimeoutError as error:
            raise UpstreamFailure(504, "the engine does not answer in time") from error
        except OSError as error:
            raise UpstreamFailure(502, "the engine ended its answer too early") from error
        raw = [(name.lower(), value) for name, value in response.headers]
        reply = Reply(response.status, raw, content, *_read(content))
        caller.replies.append(reply)
        return reply

    async def _request(
        self,
        node: _Node,
        method: str,
        target: str,
        headers: Headers,
        body: "bytes | AsyncIterator[bytes] | None",
        *,
        safe: bool,
    ) -> UpstreamResponse:
        head, chunked = _head(node, method, target, headers, body)
        kept = len(target) <= _SHORT_LINE and len(head) - len(target) <= _SHORT_HEAD
        head += b"\r\n" if kept else b"connection: close\r\n\r\n"
        connection = (node.idle_connection() if kept else None) or await self._connect(node)
        given = {"chunked": chunked, "to_head": method == "HEAD", "kept": kept}
        again = connection.idle_since and (safe or method in _IDEMPOTENT)
        try:
            return await connection.request(head, body, **given)
        except NoAnswer:
            # An idle connection was closed at the other end in the very moment.
            if not again or not (body is None or isinstance(body, bytes)):
                raise
            return await (await self._connect(node)).request(head, body, **given)

    async def _connect(self, node: _Node) -> UpstreamConnection:
        try:
            async with asyncio.timeout(self._connect_seconds):
                loop = asyncio.get_running_loop()
                places = await loop.getaddrinfo(node.host, node.port, type=SOCK_STREAM)
                _, made = await loop.create_connection(
                    lambda: UpstreamConnection(self._read_seconds, node.release),
                    sock=await start_connection(places, happy_eyeballs_delay=_NEXT_PLACE_SECONDS),
                    ssl=self._tls if node.is_tls else None,
                    server_hostname=node.host if node.is_tls else None,
                )
        except TimeoutError as error:
            raise _NotConnected(in_time=False) from error
        except OSError as error:
            raise _NotConnected(in_time=True) from error
        return made

    def _in_turn(self) -> Iterator[_Node]:
        """Yield the addresses, starting with the next one each time; those that are down come last."""
        start, now = self._next, monotonic()
        self._next = (start + 1) % len(self._nodes)
        order = self._nodes[start:] + self._nodes[:start]
        yield from sorted(order, key=lambda node: node.down_until > now)


def _head(node: _Node, method: str, target: str, headers: Headers, body: object) -> tuple[bytes, bool]:
    """Return the first line and the headers of a request, and whether its body is sent in chunks."""
    lines = [f"{method} {node.prefix}{target} HTTP/1.1\r\nhost: {node.authority}".encode("latin-1")]
    lines += [b"%b: %b" % pair for pair in headers]
    chunked = False
    if isinstance(body, bytes):
        lines.append(b"content-length: %d" % len(body))
    elif not any(name == b"content-length" for name, _ in headers):
        chunked = body is not None
        if chunked:
            lines.append(b"transfer-encoding: chunked")
        elif method not in _WITHOUT_BODY:
            lines.append(b"content-length: 0")
    made = b"\r\n".join([*lines, b""])
    ends = len(lines) + 1
    if made.count(b"\r") != ends or made.count(b"\n") != ends or b"\0" in made:
        raise ValueError("a line ends in a header")
    return made, chunked


def _read(content: bytes) -> tuple[Any, bool]:
    """Return the JSON of an answer, or its text, and whether it is strict JSON."""
    if not content:
        return None, False
    with suppress(MsgspecError, ValueError, RecursionError):
        return decode(content), True
    try:
        return read_value(content), False
    except ValueError:
        return content.decode("utf-8", "replace"), False
