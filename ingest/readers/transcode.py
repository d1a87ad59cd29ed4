"""Streams whose lines can't be told by the byte of a newline, such as UTF-16, as UTF-8."""

import codecs
import io
from collections.abc import Callable
from typing import IO, Any

from shinglefold.ingest.readers.decode import REPLACEMENT, SURROGATE, announced

_CHUNK = 1 << 16
#: Enough to tell every byte order mark.
_HEAD = 4
#: Becomes a byte that UTF-8 never has: whoever decodes the line counts it.
_UNDECODABLE = "\udcff"


def splittable(stream: IO[bytes], encoding: str = "") -> tuple[IO[bytes], str]:
    """Return a stream whose lines end with the byte of a newline, without byte order mark, and its encoding.

    Args:
        encoding: empty means by byte order mark, by the zero bytes UTF-16 and UTF-32 have, else UTF-8.
    """
    name = codecs.lookup(encoding).name if encoding else ""
    if name not in ("", "utf-8") and "\n".encode(name) == b"\n":
        return stream, name
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    whole: Any = io.BufferedReader(_Utf8(read, name), _CHUNK)
    return whole, "utf-8"


class _Utf8(io.RawIOBase):
    """Bytes as they are read, in UTF-8."""

    def __init__(self, read: Callable[[int], bytes], encoding: str) -> None:
        self._read = read
        self._encoding = encoding
        self._decoder: codecs.IncrementalDecoder | None = None
        self._begun = self._ended = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a buffer
        while not self._ready and not self._ended:
            self._ready = memoryview(self._next())
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _next(self) -> bytes:
        if not self._begun:
            return self._begin()
        chunk = self._read(_CHUNK)
        self._ended = not chunk
        return self._converted(chunk)

    def _begin(self) -> bytes:
        head = b""
        # A pipe may bring the mark alone.
        while len(head) < _HEAD and (more := self._read(_CHUNK)):
            head += more
        self._begun = True
        name = _exact(self._encoding, head)
        if name != "utf-8":
            self._decoder = codecs.getincrementaldecoder(name)()
        return self._converted(head).removeprefix(codecs.BOM_UTF8)

    def _converted(self, chunk: bytes) -> bytes:
        if self._decoder is None:
            return chunk
        try:
            text = self._decoder.decode(chunk, self._ended)
        except UnicodeError:
            # A decoder that failed has not moved on.
            self._decoder.errors = "replace"
            text = self._decoder.decode(chunk, self._ended).replace(REPLACEMENT, _UNDECODABLE)
            self._decoder.errors = "strict"
        try:
            return text.encode()
        except UnicodeEncodeError:
            return SURROGATE.sub(_UNDECODABLE, text).encode("utf-8", "surrogateescape")


def _exact(encoding: str, head: bytes) -> str:
    """Return the encoding with its byte order, which a stream without a mark does not say."""
    seen = announced(head)
    if encoding in ("utf-16", "utf-32"):
        return seen if seen.startswith(encoding) else f"{encoding}-le"
    return encoding or seen
