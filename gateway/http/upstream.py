"""The cluster behind the gateway: requests go to its addresses in turn, but not to those that are down."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from shinglefold.engines.http.connection import Connection, load_connection, parse_urls
from shinglefold.engines.http.product_detection import tls_context
from shinglefold.errors import ConfigError, MissingExtra
from shinglefold.gateway.http.messages import HttpCaller, Reply
from shinglefold.gateway.rest import read_value

try:
    import aiohttp
    from aiohttp.payload import AsyncIterablePayload
    from msgspec import MsgspecError
    from msgspec.json import decode
    from multidict import CIMultiDict
    from yarl import URL
except ModuleNotFoundError as _error:
    raise MissingExtra("gateway", "the gateway") from _error

#: Seconds for which an address that does not answer is tried last.
_DOWN_SECONDS = 5.0
#: Bytes of a line of headers: engines send long warnings.
_LONGEST_HEADER = 65_536
#: Bytes of a first line and of headers that engines always take; their limits are 4096 and 8192 or more. To a
#: longer head they answer 400, and then read nothing more on that connection, which others would wait for.
_SHORT_LINE, _SHORT_HEAD = 3_000, 6_000
#: Headers that aiohttp would add.
_AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class UpstreamFailure(Exception):
    """Upstream did not answer; ``status`` is the gateway's answer to the caller."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class StreamedBody(AsyncIterablePayload):
    """A body that is streamed, so it can be sent only once."""

    async def write_with_length(self, writer: Any, content_length: int | None) -> None:  # noqa: ANN401
        """Write the body; aiohttp does not send it again after that."""
        self._consumed = True
        await super().write_with_length(writer, content_length)


@dataclass(slots=True)
class _Node:
    url: str
    down_until: float = 0.0


def upstream_connection(urls: Iterable[str] | str, environ: Mapping[str, str] | None = None) -> Connection:
    """Return the connection to upstream: addresses, TLS and timeouts, and no credentials.

    Raises:
        ConfigError: an address is not valid, or has credentials.
    """
    named = parse_urls(urls)
    if "user" in named:
        raise ConfigError(
            "--upstream: an address with credentials; callers send their own, and the gateway has none: "
            "write it as https://HOST:PORT"
        )
    found = load_connection(urls, environ=environ)
    return replace(
        found,
        user="",
        password="",
        api_key="",
        bearer_token="",
        client_cert="",
        client_key="",
        aws_region="",
    )


class Upstream:
    """Sends requests to a cluster, and keeps connections to it open.

    Args:
        connection: the addresses and TLS; credentials are ignored.
        connect_seconds: for opening a connection.
        read_seconds: the longest wait for the next bytes of an answer.
    """

    def __init__(self, connection: Connection, *, connect_seconds: float, read_seconds: float) -> None:
        self.connection = connection
        self._nodes = [_Node(url) for url in connection.urls]
        self._next = 0
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=connect_seconds, sock_read=read_seconds
        )
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    def _session(self, *, reuses: bool) -> aiohttp.ClientSession:
        """Return the open session; it is made at first use, in the loop that uses it.

        Args:
            reuses: whether its connections serve one request after the other.
        """
        found = self._sessions.get(reuses)
        if found is None or found.closed:
            tls = any(url.startswith("https:") for url in self.connection.urls)
            kept: dict[str, Any] = {"keepalive_timeout": 15} if reuses else {"force_close": True}
            found = self._sessions[reuses] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, ssl=tls_context(self.connection) if tls else True, **kept
                ),
                # Cookies of one caller must not go with the requests of another.
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=_AUTOMATIC,
                timeout=self._timeout,
                trust_env=False,
                max_line_size=_LONGEST_HEADER,
                max_field_size=_LONGEST_HEADER,
            )
        return found

    async def close(self) -> None:
        """Close the connections."""
        for session in self._sessions.values():
            await session.close()

    async def open(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]],
        body: "bytes | AsyncIterator[bytes] | None" = None,
        *,
        safe: bool = False,
    ) -> aiohttp.ClientResponse:
        """Send a request and return the answer, whose body is still to be read.

        Only a request that did not reach an address is sent to the next one.

        Args:
            target: the path and the parameters, percent-encoded, which are sent unchanged.
            safe: the request changes nothing, so that it may run twice.

        Raises:
            UpstreamFailure: no address answers.
        """
        failed: Exception | None = None
        data = StreamedBody(body) if body is not None and not isinstance(body, bytes) else body
        for node in self._in_turn():
            url = URL(node.url + target, encoded=True)
            try:
                return await self._request(method, url, CIMultiDict(headers), data, again=safe)
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                node.down_until = monotonic() + _DOWN_SECONDS
                failed = error
            except (TimeoutError, aiohttp.ServerTimeoutError) as error:
                raise UpstreamFailure(504, "the engine does not answer in time") from error
            except aiohttp.InvalidURL as error:
                raise UpstreamFailure(400, "the path of the request is not valid") from error
            except (aiohttp.ClientError, OSError) as error:
                raise UpstreamFailure(502, "the engine closed the connection without an answer") from error
            except ValueError as error:
                # A header with characters that HTTP does not allow.
                raise UpstreamFailure(400, "a header of the request is not valid") from error
        status = 504 if isinstance(failed, aiohttp.ConnectionTimeoutError) else 502
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
        """Send a request of the gateway in place of a caller, and return the whole answer; see ``open``.

        Raises:
            UpstreamFailure: no address answers, or the answer is cut off.
        """
        response = await self.open(method, target, headers.items(), body, safe=safe)
        try:
            async with response:
                content = await response.read()
        except TimeoutError as error:
            raise UpstreamFailure(504, "the engine does not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise UpstreamFailure(502, "the engine ended its answer too early") from error
        raw = [(name.lower(), value) for name, value in response.raw_headers]
        reply = Reply(response.status, raw, content, *_read(content))
        caller.replies.append(reply)
        return reply

    async def _request(
        self,
        method: str,
        url: URL,
        headers: CIMultiDict[str],
        data: Any,  # noqa: ANN401 - a body as aiohttp takes it
        *,
        again: bool,
    ) -> aiohttp.ClientResponse:
        head = sum(len(name) + len(value) for name, value in headers.items())
        session = self._session(reuses=len(str(url)) <= _SHORT_LINE and head <= _SHORT_HEAD)
        try:
            return await session.request(method, url, headers=headers, data=data, allow_redirects=False)
        except aiohttp.ServerDisconnectedError:
            # An idle connection was closed at the other end in the very moment.
            if not again:
                raise
            await asyncio.sleep(0)
            return await session.request(method, url, headers=headers, data=data, allow_redirects=False)

    def _in_turn(self) -> Iterator[_Node]:
        """Yield the addresses, starting with the next one each time; those that are down come last."""
        start, now = self._next, monotonic()
        self._next = (start + 1) % len(self._nodes)
        order = self._nodes[start:] + self._nodes[:start]
        yield from sorted(order, key=lambda node: node.down_until > now)


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
