"""Connections of urllib3, which both clients send by, with less work a request and the same on the wire.

Of the processor time of a small search, reading three header lines as if they were those of an e-mail is a
tenth, and sending body and head apart nearly as much, as it wakes the server twice.
"""

import re
from functools import cache
from http.client import HTTPConnection, HTTPMessage, HTTPResponse
from typing import TYPE_CHECKING, Any

_END = b"\r\n\r\n"
_OK = b"HTTP/1.1 200 OK\r\n"
#: One header, as nearly all are; what is written otherwise is left to the standard library.
_HEADER = re.compile(rb"([!#-'*+.0-9A-Z^-z|~-]+): ([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)\r\n")
_LENGTH = "content-length"
#: What decides how a body is read, beside its length; no connection has these that stays open.
_TELLING = frozenset({"transfer-encoding", "connection"})
#: Digits of a length; what has more of them is nonsense.
_DIGITS = 18
#: Bytes of a body that goes along with its head: a copy of more would cost what it saves.
_SMALL = 1 << 16

if TYPE_CHECKING:
    _Base = HTTPConnection
else:
    # Mixed into whatever class of connections a pool makes, with TLS or without.
    _Base = object


class QuickResponse(HTTPResponse):
    """A response whose head is read in one go where it is an ordinary one and has arrived as a whole."""

    def begin(self) -> None:
        """Read the head."""
        if self.headers is None and not self._is_read():
            super().begin()

    def _is_read(self) -> bool:
        """Read the head where it is ordinary; tell whether it was, and leave all as it is where not."""
        if self._method == "HEAD":  # type: ignore[attr-defined]
            # Its length is that of a body that does not come.
            return False
        # Waits for the first bytes as reading a line does, and takes none of them.
        ahead = self.fp.peek()
        end = ahead.find(_END) + len(_END)
        found = ordinary_headers(ahead[:end])
        if found is None:
            return False
        message, length = found
        self.fp.read(end)
        self.code = self.status = 200
        self.reason = "OK"
        self.version = 11
        self.headers = self.msg = message
        self.chunked = self.will_close = False
        self.length = length
        return True


def ordinary_headers(head: bytes) -> tuple[HTTPMessage, int] | None:
    """Return the headers of a response that says 200 and how long it is, and that length; None for others.

    Args:
        head: up to the empty line, which is part of it.
    """
    if not head.startswith(_OK):
        return None
    pairs = _HEADER.findall(head, len(_OK))
    if sum(len(name) + len(value) + 4 for name, value in pairs) != len(head) - len(_OK) - 2:
        # There is more than these lines.
        return None
    message = HTTPMessage()
    # Nothing follows, as after a head that was parsed.
    message.set_payload("")
    lengths = []
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("ascii"), raw_value.decode("ascii")
        lowered = name.lower()
        if lowered in _TELLING:
            return None
        if lowered == _LENGTH:
            lengths.append(value)
        message.set_raw(name, value)
    if len(lengths) != 1 or not lengths[0].isdecimal() or len(lengths[0]) > _DIGITS:
        return None
    return message, int(lengths[0])


class QuickConnection(_Base):
    """What a connection does otherwise: small bodies go along with their heads, which are read in one go."""

    response_class = QuickResponse
    #: Whether the next bytes to be sent are a head whose body follows at once, and then that head.
    _holds = False
    _head = b""

    def request(self, method: str, url: str, body: Any = None, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Send a request."""
        self._holds = type(body) is bytes and 0 < len(body) <= _SMALL
        self._head = b""
        try:
            super().request(method, url, body, *args, **kwargs)
        finally:
            self._holds = False

    def send(self, data: Any) -> None:  # noqa: ANN401 - whatever can be sent
        """Send what is next of a request, or keep it until its body follows."""
        if self._holds:
            self._holds = False
            self._head = data
            return
        if self._head:
            data, self._head = self._head + data, b""
        super().send(data)


@cache
def quick(kind: type[Any]) -> type[Any]:
    """Return a class of connections like one of urllib3's."""
    return type(f"Quick{kind.__name__}", (QuickConnection, kind), {})


def quicken(pool: Any) -> None:  # noqa: ANN401 - urllib3 has no types for what is asked of it here
    """Have a pool of connections make such ones."""
    pool.ConnectionCls = quick(pool.ConnectionCls)
