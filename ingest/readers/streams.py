"""Streams and their lines: compressed or not, of any length and encoding, with the share read so far."""

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from shinglefold.errors import InputError, reason_of
from shinglefold.ingest.readers.encodings import REPLACEMENT, SURROGATE, announced

_TRANSCODED = 1 << 16
#: Enough to tell every byte order mark.
_HEAD = 4
#: Becomes a byte that UTF-8 never has: whoever decodes the line counts it.
_UNDECODABLE = "\udcff"
STANDARD_INPUT = "-"
#: What messages call it.
NAMED = "standard input"
_CHUNK = 1 << 20
#: No text begins with these bytes.
_GZIP = b"\x1f\x8b"


def splittable(stream: IO[bytes], encoding: str = "") -> tuple[IO[bytes], str]:
    """Return a stream whose lines end with the byte of a newline, without byte order mark, and its encoding.

    Args:
        encoding: empty means by byte order mark, by the zero bytes UTF-16 and UTF-32 have, else UTF-8.
    """
    name = codecs.lookup(encoding).name if encoding else ""
    if name not in ("", "utf-8") and "\n".encode(name) == b"\n":
        return stream, name
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    whole: Any = io.BufferedReader(_Utf8(read, name), _TRANSCODED)
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
        chunk = self._read(_TRANSCODED)
        self._ended = not chunk
        return self._converted(chunk)

    def _begin(self) -> bytes:
        head = b""
        # A pipe may bring the mark alone.
        while len(head) < _HEAD and (more := self._read(_TRANSCODED)):
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


class Line(NamedTuple):
    """One line without its end: its number from 1, its bytes, or why it has none; ``file``: of several."""

    number: int
    raw: bytes
    reason: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class InputSource:
    """An open stream, its name for messages, and the share of it that was read."""

    stream: IO[bytes]
    name: str
    fraction: Callable[[], float]


@contextmanager
def opened(path: str) -> Iterator[InputSource]:
    """Open a file or standard input; what begins as gzip does is unpacked, whatever its name.

    Raises:
        InputError: it can't be opened.
    """
    if path == STANDARD_INPUT:
        yield InputSource(_unpacked(sys.stdin.buffer), NAMED, lambda: 0.0)
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error
    with file:
        size = Path(path).stat().st_size or 1
        # A pipe with a name, as shells make them, tells no place.
        read = (lambda: min(1.0, file.tell() / size)) if file.seekable() else lambda: 0.0
        yield InputSource(_unpacked(file), path, read)


def lines(stream: IO[bytes], max_bytes: int) -> Iterator[Line]:
    """Yield the lines of a stream; one that is too long, or where the stream breaks off, has a reason."""
    number = 0
    while True:
        number += 1
        try:
            raw = stream.readline(max_bytes + 1)
            if not raw:
                return
            if len(raw) > max_bytes and not raw.endswith(b"\n"):
                _skip(stream)
                yield Line(number, b"", f"longer than {max_bytes:,} bytes")
                continue
        except (OSError, EOFError, zlib.error) as error:
            yield Line(number, b"", f"the file is damaged from here on: {reason_of(error)}")
            return
        raw = raw.rstrip(b"\r\n")
        ready = [Line(number, raw, "")]
        # A long line must not be kept here while its document is worked on.
        del raw
        yield ready.pop()


def is_gzip(head: bytes) -> bool:
    """Tell whether a stream is compressed, by its first bytes."""
    return head.startswith(_GZIP)


def _unpacked(stream: IO[bytes]) -> IO[bytes]:
    peek = getattr(stream, "peek", None)
    if peek is None or not is_gzip(peek(len(_GZIP))):
        return stream
    unpacked: Any = gzip.GzipFile(fileobj=stream)
    return unpacked  # type: ignore[no-any-return]


def _skip(stream: IO[bytes]) -> None:
    while (rest := stream.readline(_CHUNK)) and not rest.endswith(b"\n"):
        pass
