"""The ASGI application of the gateway."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from shinglefold.api.index_options import IndexOptions
from shinglefold.engines import Connection
from shinglefold.gateway.access import AccessToken, check_pages_access
from shinglefold.gateway.http.admin import PREFIX, Admin
from shinglefold.gateway.http.caller_engine import load_clients
from shinglefold.gateway.http.interception import SEARCHES, GatewayParts, Interception, request_of_message
from shinglefold.gateway.http.messages import (
    FOLD,
    Answer,
    BodyTooLarge,
    CallerGone,
    GatewayRequest,
    HttpCaller,
    MalformedBody,
    Receive,
    Sender,
    caller_headers,
    decompress,
    encode,
    end_to_end_headers,
    has_body,
    header,
    read_body,
    refusal,
    send_answer,
    sends_json,
    takes_gzip,
    takes_json,
    warning_header,
)
from shinglefold.gateway.http.metrics import Metrics
from shinglefold.gateway.http.signers import Signers
from shinglefold.gateway.http.upstream import Upstream, UpstreamFailure, upstream_connection
from shinglefold.gateway.http.upstream_connection import UpstreamResponse
from shinglefold.gateway.rest import Operation, operation_of
from shinglefold.ingest.writing.worker_pool import cores
from shinglefold.options.validation import check_int, check_number
from shinglefold.rerank import FoldOptions
from shinglefold.settings import Settings, load_settings

if TYPE_CHECKING:
    from shinglefold.gateway.http.pages import GatewayPages

_log = logging.getLogger("shinglefold.gateway")
#: The engines' own limit, http.max_content_length.
MOST_BYTES = 100 * 1024 * 1024
_NO_BODY = frozenset((204, 304))
#: Seconds for which nothing asks whether the caller is still there: most requests are answered sooner.
_SOON = 0.05


def gateway_app(
    upstream: str | Sequence[str] | Connection,
    *,
    always: bool = False,
    similarity: float | None = None,
    dedup: FoldOptions | Mapping[str, Any] | None = None,
    seal_key: str | None = None,
    cursor_key: bytes | str | None = None,
    settings: Settings | None = None,
    most_bytes: int = MOST_BYTES,
    connect_seconds: float = 5.0,
    read_seconds: float = 300.0,
    signers: int = 0,
    admin_token: str | None = None,
    admin_open: bool = False,
    pages: bool = False,
) -> "GatewayApp":
    """Return an ASGI application in front of OpenSearch or Elasticsearch: it folds searches and signs writes.

    Args:
        upstream: the addresses of one cluster, or a ``Connection``, whose credentials are not used: callers
            send their own.
        always, similarity, dedup, seal_key, cursor_key: as of ``shinglefold.fold``.
        most_bytes: of a body that the gateway reads, also after it is inflated. Other bodies have no limit.
        connect_seconds: for opening a connection upstream.
        read_seconds: the longest wait for the next bytes from upstream.
        signers: processes that sign documents; 0 signs in threads.
        admin_token: lets those who send it read metrics, sign texts and see pages.
        admin_open: everyone may without one, because only this machine can connect.
        pages: show indices in a browser under ``/_shinglefold/pages``, as callers may see them.

    Raises:
        ConfigError: an address or an option is not valid.
        MissingExtra: the extra ``gateway`` is not installed.
    """
    check_int("most_bytes", most_bytes, 1, 2**62)
    check_int("signers", signers)
    check_number("connect_seconds", connect_seconds, high=1_000_000, above=True)
    check_number("read_seconds", read_seconds, high=1_000_000, above=True)
    if pages:
        check_pages_access(admin_open, admin_token or "")
    options = IndexOptions.parse(similarity=similarity, dedup=dedup, seal_key=seal_key, cursor_key=cursor_key)
    connection = upstream if isinstance(upstream, Connection) else upstream_connection(upstream)
    settings = settings or load_settings()
    parts = GatewayParts(
        Upstream(connection, connect_seconds=connect_seconds, read_seconds=read_seconds),
        options,
        settings,
        Metrics(),
        Signers(signers, settings.languages or None),
        ThreadPoolExecutor(cores() + 2, "shinglefold-searches"),
    )
    token, interception = AccessToken(admin_token or ""), Interception(parts, always=always)
    admin = Admin(parts, interception, most_bytes, token=token, is_open=admin_open)
    return GatewayApp(
        parts, interception, admin, most_bytes, _pages(parts, interception, token) if pages else None
    )


@dataclass(eq=False, frozen=True)
class GatewayApp:
    """An ASGI application; ``gateway_app`` makes it."""

    parts: GatewayParts
    interception: Interception
    admin: Admin
    most_bytes: int
    pages: "GatewayPages | None"

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Sender) -> None:
        """Answer a request; see the ASGI specification."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            # Neither engine has websockets.
            await send({"type": "websocket.close"})
            return
        task = asyncio.current_task()
        assert task is not None
        watched = _Watched(receive, task)
        try:
            request = _request_of(scope)
            if self.pages is not None and _is_below(request.path, f"{PREFIX}/pages"):
                await self.pages.answer(scope, request, watched.receive, send)
            else:
                await self._answer(request, watched.receive, send)
        except asyncio.CancelledError:
            if not watched.gone:
                raise
            task.uncancel()
        except CallerGone:
            pass
        finally:
            watched.end()

    async def close(self) -> None:
        """Close the connections upstream, and end threads and processes."""
        await self.parts.upstream.close()
        self.parts.signers.close()
        self.parts.searching.shutdown(wait=False, cancel_futures=True)

    async def _lifespan(self, receive: Receive, send: Sender) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.parts.searching.submit(load_clients, self.interception.product)
            if message["type"] == "lifespan.shutdown":
                await self.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _answer(self, request: GatewayRequest, receive: Receive, send: Sender) -> None:
        if _is_below(request.path, PREFIX):
            await self._give(await self.admin.answer(request, receive), request, send)
            return
        operation = operation_of(request.method, request.path)
        if operation is None or _passes(operation, request):
            self.parts.metrics.count("other" if operation is None else operation.name, "forwarded")
            await self._forward(request, await _body_of(request, receive), send)
            return
        try:
            sent = await read_body(receive, request.headers, self.most_bytes)
            body: bytes | None = sent
            if header(request.headers, b"content-encoding"):
                loop = asyncio.get_running_loop()
                body = await loop.run_in_executor(
                    self.parts.searching, decompress, sent, request.headers, self.most_bytes
                )
        except BodyTooLarge:
            reason = f"the body has more than {self.most_bytes} bytes: send less at once"
            await self._give(refusal(413, reason), request, send)
            return
        except MalformedBody:
            await self._give(refusal(400, "the compressed body is cut off or damaged"), request, send)
            return
        if body is None:
            reason = "the gateway reads bodies that are not compressed, or compressed by gzip"
            await self._give(refusal(415, reason), request, send)
            return
        caller = HttpCaller(caller_headers(request.headers))
        if operation.name not in SEARCHES and not takes_json(request.headers, {}):
            caller.headers = {**caller.headers, "accept": "application/json"}
        given = request_of_message(operation, request, caller, body)
        made = await self.interception.answer(given)
        if made is not None:
            await self._give(made, request, send)
            return
        self.parts.metrics.count(operation.name, "forwarded")
        await self._forward(request, sent or None, send, warnings=caller.warnings)

    async def _give(self, answer: Answer, request: GatewayRequest, send: Sender) -> None:
        pretty = "pretty" in request.query.split("&") or "pretty=true" in request.query.split("&")
        body, headers = encode(answer, request.headers, self.interception.product, pretty=pretty)
        gzipped = takes_gzip(request.headers)
        await send_answer(
            send, answer.status, headers, body, compressed=gzipped, threads=self.parts.searching
        )

    async def _forward(
        self,
        request: GatewayRequest,
        body: "bytes | AsyncIterator[bytes] | None",
        send: Sender,
        *,
        warnings: Sequence[str] = (),
    ) -> None:
        """Send a request upstream and stream its answer back."""
        headers = [pair for pair in end_to_end_headers(request.headers) if pair[0] != FOLD]
        if isinstance(body, bytes):
            headers = [pair for pair in headers if pair[0] != b"content-length"]
        try:
            response = await self.parts.upstream.open(request.method, request.target, headers, body)
        except UpstreamFailure as failure:
            self.parts.metrics.count_failure("upstream")
            await self._give(refusal(failure.status, str(failure)), request, send)
            return
        async with response:
            await self._send_on(response, request.method, send, warnings)

    async def _send_on(
        self, response: UpstreamResponse, method: str, send: Sender, warnings: Sequence[str]
    ) -> None:
        headers = end_to_end_headers(response.headers)
        if response.status in _NO_BODY:
            headers = [pair for pair in headers if pair[0].lower() != b"content-length"]
        # A refused write stores nothing, so there is nothing to warn of.
        if warnings and response.status < 400:
            headers.append((b"warning", warning_header(warnings)))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        if method != "HEAD" and response.status not in _NO_BODY:
            try:
                more = True
                while more:
                    chunk = await response.read_some()
                    more = not response.ended
                    await send({"type": "http.response.body", "body": chunk, "more_body": more})
                return
            except OSError as error:
                # The server closes the connection, so no client takes the answer for a complete one.
                self.parts.metrics.count_failure("cut off")
                _log.warning("upstream ended an answer too early: %s", type(error).__name__)
                return
        await send({"type": "http.response.body", "body": b""})


class _Watched:
    """Messages of one request; its task is cancelled if the caller disconnects before the answer."""

    def __init__(self, receive: Receive, task: "asyncio.Task[Any]") -> None:
        self._receive, self._task = receive, task
        self._complete = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._begin = asyncio.get_running_loop().call_later(_SOON, self._begin_watch)
        self.gone = False

    async def receive(self) -> dict[str, Any]:
        """Return the next message with a part of the body."""
        message = await self._receive()
        # A disconnect has no more of the body either.
        if not message.get("more_body", False):
            self._complete.set()
        return message

    def end(self) -> None:
        """Stop watching, as the request is answered."""
        self._begin.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def _begin_watch(self) -> None:
        self._watch = asyncio.ensure_future(self._cancel_if_caller_leaves())

    async def _cancel_if_caller_leaves(self) -> None:
        """Wait until the body was read, and then for the end of the connection."""
        await self._complete.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        self._task.cancel()


def _request_of(scope: Mapping[str, Any]) -> GatewayRequest:
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    path = raw.decode("latin-1").removeprefix(scope.get("root_path", ""))
    return GatewayRequest(
        scope["method"], path or "/", scope["query_string"].decode("latin-1"), scope["headers"]
    )


def _pages(parts: GatewayParts, interception: Interception, token: AccessToken) -> "GatewayPages":
    # Templates are loaded only where there are pages.
    from shinglefold.gateway.http.pages import GatewayPages

    return GatewayPages(parts, interception, token)


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")


def _passes(operation: Operation, request: GatewayRequest) -> bool:
    """Return whether a request is forwarded unchanged, whatever its body is."""
    if operation.name not in SEARCHES:
        return False
    return not sends_json(request.headers) or not takes_json(request.headers, request.parameters)


async def _body_of(request: GatewayRequest, receive: Receive) -> "bytes | AsyncIterator[bytes] | None":
    """Return the body of a request: a short one whole, a long one as a stream."""
    first = await receive()
    if first["type"] == "http.disconnect":
        raise CallerGone
    body: bytes = first.get("body", b"")
    if first.get("more_body", False):
        return _rest_of_body(body, receive)
    if header(request.headers, b"content-encoding") or has_body(request.headers):
        return body
    return body or None


async def _rest_of_body(first: bytes, receive: Receive) -> AsyncIterator[bytes]:
    if first:
        yield first
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CallerGone
        if part := message.get("body", b""):
            yield part
        more = message.get("more_body", False)
