"""A connection to an engine over HTTP/1.1: it sends a request at a time, and its answer is read as it comes.

A general client of HTTP takes three times the processor time, a quarter of all that a forwarded search costs.
"""

import asyncio
import socket
from asyncio import Transport
from collections.abc import AsyncIterator, Callable
from typing import Any, Self, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

#: Bytes of an answer that wait to be read. With more the connection is not read from.
_MOST_WAITING = 262_144
#: The size in bytes from which the body of a request is written separately from its head.
_LONG_BODY = 65_536
#: Bytes of the headers of an answer: engines send long warnings.
_LONGEST_HEAD = 262_144
#: Statuses of answers that have no body.
_NO_BODY = frozenset((204, 304))


class AnswerCutOff(ConnectionError):
    """The engine closed the connection before its answer was complete, or sent what is not HTTP."""


class NoAnswer(AnswerCutOff):
    """The engine closed the connection before it answered anything."""


class UpstreamResponse:
    """The answer to a request; an async context manager, which ends it.

    Attributes:
        status, headers: of the answer; names of headers as they came.
        kept_alive: whether the engine keeps the connection open after it.
    """

    def __init__(self, connection: "UpstreamConnection", *, to_head: bool) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.kept_alive = False
        self._connection = connection
        self._to_head = to_head
        self._parts: list[bytes] = []
        self._head = self._waiting = 0
        self._begun = self._complete = self._until_end = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._connection.end(whole=self.ended)

    @property
    def ended(self) -> bool:
        """Whether the whole body was read."""
        return self._complete and not self._parts

    async def read(self) -> bytes:
        """Return the rest of the body; raise ``AnswerCutOff``, or ``TimeoutError`` if nothing more comes."""
        parts = []
        while not self.ended:
            parts.append(await self.read_some())
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def read_some(self) -> bytes:
        """Return the part of the body that is there, at least a byte; b"" at the end. Raises as ``read``."""
        while not (self._parts or self._complete):
            await self._connection.wait()
        parts, self._parts = self._parts, []
        if self._waiting > _MOST_WAITING:
            self._connection.resume()
        self._waiting = 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def wait_for_head(self) -> None:
        """Wait for the status and the headers; raise ``NoAnswer`` if the connection ends before."""
        while not self._begun:
            await self._connection.wait()

    def end_connection(self, *, cleanly: bool) -> AnswerCutOff | None:
        """Take the end of the connection; return the error that it is."""
        self._complete = self._complete or (self._until_end and cleanly)
        if self._complete:
            return None
        if self._begun or self._head:
            return AnswerCutOff("the answer is not complete")
        return NoAnswer("no answer")

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Refuse a second answer to one request."""
        if self._complete:
            raise ValueError("an answer to no request")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those after the body are left out."""
        if not self._begun:
            self._head += len(name) + len(value)
            if self._head > _LONGEST_HEAD:
                raise ValueError("the headers of the answer are too long")
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Take the status, after the headers. Answers of 1xx precede the real one."""
        parser = self._connection.parser
        status = parser.get_status_code()
        if status < 200:
            self.headers.clear()
            return
        self.status, self._begun = status, True
        # Not known any more after the end of the answer.
        self.kept_alive = bool(parser.should_keep_alive())
        if self._to_head:
            self._complete = True
            return
        names = {name.lower() for name, _ in self.headers}
        framed = status in _NO_BODY or b"content-length" in names or b"transfer-encoding" in names
        self._until_end = not framed

    def on_body(self, part: bytes) -> None:
        """Take a part of the body; pause reading while much is unsent."""
        self._parts.append(part)
        self._waiting += len(part)
        if self._waiting > _MOST_WAITING:
            self._connection.pause()

    def on_message_complete(self) -> None:
        """Take the end of an answer, or of one of 1xx."""
        self._complete = self._begun


class UpstreamConnection(asyncio.Protocol):
    """A connection, with the parser of the answer to the last request.

    Args:
        read_seconds: the longest wait for the next bytes of an answer.
        release: is called with a connection that can take the next request.
    """

    parser: HttpResponseParser

    def __init__(self, read_seconds: float, release: "Callable[[UpstreamConnection], None]") -> None:
        self.closed = False
        #: When it was released last, by the clock of the loop.
        self.idle_since = 0.0
        self._seconds, self._release = read_seconds, release
        self._loop = asyncio.get_running_loop()
        self._transport: Transport | None = None
        self._response: UpstreamResponse | None = None
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._sending: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._kept = False

    async def request(
        self,
        head: bytes,
        body: "bytes | AsyncIterator[bytes] | None",
        *,
        chunked: bool,
        to_head: bool,
        kept: bool,
    ) -> UpstreamResponse:
        """Send a request and return its answer, whose body is still to be read.

        Args:
            head: the first line and the headers.
            chunked: a body that comes in parts is sent in chunks; else ``head`` has its length.
            kept: the connection may take another request later.
        """
        assert self._transport is not None
        self._response = response = UpstreamResponse(self, to_head=to_head)
        # After an answer to HEAD the parser before waits for a body that does not come.
        self.parser = HttpResponseParser(response)
        self._kept = kept
        if body is None or isinstance(body, bytes):
            # A long body is not copied.
            joined = len(body or b"") < _LONG_BODY
            self._transport.write(head + (body or b"") if joined else head)
            if body and not joined:
                self._transport.write(body)
        else:
            self._transport.write(head)
            self._sending = asyncio.ensure_future(self._send(body, chunked=chunked))
        try:
            await response.wait_for_head()
        except BaseException:
            self.end(whole=False)
            raise
        return response

    def end(self, *, whole: bool) -> None:
        """End an answer: the connection takes another request if the answer was read as a whole."""
        sending, self._sending = self._sending, None
        if sending is not None:
            whole = whole and sending.done()
            sending.cancel()
        response, self._response = self._response, None
        if response is None or self.closed:
            return
        if whole and self._kept and response.kept_alive:
            self._release(self)
        else:
            self.close()

    def close(self) -> None:
        """Close the connection at once."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        """Read no more from the connection."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read from the connection again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    async def wait(self) -> None:
        """Wait for the next bytes of the answer; raise ``AnswerCutOff`` or ``TimeoutError``."""
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        self._timer = self._loop.call_later(self._seconds, self._time_out)
        try:
            await self._waiter
        finally:
            self._timer.cancel()
            self._waiter = None

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(Transport, transport)
        # Long searches are silent, and a firewall would take that for the end.
        found = transport.get_extra_info("socket")
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        """Parse bytes of an answer."""
        if self._response is None:
            # Such as an answer to no request, before the server closes the connection.
            self.close()
            return
        try:
            self.parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._fail(AnswerCutOff(f"this is not HTTP: {type(error).__name__}"))
            self.close()
            return
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the requests and responses that wait."""
        self.closed = True
        if self._sending is not None:
            self._sending.cancel()
        if self._response is not None:
            error = self._response.end_connection(cleanly=exc is None)
            if error is None:
                self._wake()
            else:
                self._fail(error)

    def pause_writing(self) -> None:
        """Hold back a body that comes in parts."""
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """Send more of it."""
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    async def _send(self, body: AsyncIterator[bytes], *, chunked: bool) -> None:
        """Send a body as it comes."""
        transport: Any = self._transport
        try:
            async for part in body:
                if self._writable is not None:
                    await self._writable
                if self.closed:
                    return
                transport.write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
            if chunked:
                transport.write(b"0\r\n\r\n")
        except Exception as error:
            # The caller disconnected: the engine must not take a part of the body for the whole.
            self._fail(error)
            self.close()

    def _time_out(self) -> None:
        if self._waiter is None or self._waiter.done():
            return
        sends = self._sending is not None and not self._sending.done()
        if sends or (self._transport is not None and self._transport.get_write_buffer_size()):
            # The engine can't answer before it has the request.
            self._timer = self._loop.call_later(self._seconds, self._time_out)
            return
        self._fail(TimeoutError("no answer in time"))

    def _fail(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_exception(self._error)

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
