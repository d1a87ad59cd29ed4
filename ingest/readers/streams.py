"""Input streams and their encodings: decompress, detect and decode encodings, split into lines."""

import codecs
import gzip
import io
import os
import re
import shlex
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

from shinglefold.errors import InputError, reason_of
from shinglefold.ingest.readers.encodings import codec_of, detect_encoding, strip_bom

SURROGATE = re.compile("[\ud800-\udfff]")
REPLACEMENT = "\ufffd"
_TRANSCODED = 1 << 16
#: Length of the longest byte order mark.
_HEAD = 4
#: Becomes a byte that is invalid in UTF-8, so that decoding the line counts it.
_UNDECODABLE = "\udcff"
STANDARD_INPUT = "-"
#: The name of standard input in messages.
STDIN_NAME = "standard input"
_CHUNK = 1 << 20
#: The size of a chunk in an answer of HTTP: the line before it, after the end of the last one.
_SIZE = re.compile(rb"(?:\r?\n)?([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\n]*)?\r?\n")
#: The magic number of gzip.
_GZIP = b"\x1f\x8b"
#: The first bytes of other compressed files: the kind, and the command that decompresses them to a pipe.
_OTHERS = {
    re.compile(rb"BZh[1-9](?:1AY|\x17rE|$)"): ("bzip2", "bzip2 -dc"),
    re.compile(rb"\xfd7zX"): ("xz", "xz -dc"),
    re.compile(rb"\x28\xb5\x2f\xfd"): ("zstd", "zstd -dc"),
    re.compile(rb"\x04\x22\x4d\x18"): ("lz4", "lz4 -dc"),
    re.compile(rb"PK\x03\x04"): ("zip", "funzip"),
    re.compile(rb"7z\xbc\xaf"): ("7-Zip", "7z x -so"),
    re.compile(rb"Rar!"): ("RAR", "unrar p -inul"),
}
_LONGEST_MAGIC = 8


def decode_lossy(raw: bytes, encoding: str) -> tuple[str, int]:
    """Return the text and how many undecodable sequences became U+FFFD; a byte order mark is kept."""
    try:
        return raw.decode(encoding), 0
    except UnicodeError:
        text = raw.decode(encoding, "replace")
        # Do not count U+FFFD of the original text.
        return text, text.count(REPLACEMENT) - raw.decode(encoding, "ignore").count(REPLACEMENT)


def join_chunks(answer: bytes) -> bytes:
    """Return an answer of HTTP without the sizes of its chunks; unchanged if it was saved without them."""
    pieces: list[bytes] = []
    at = 0
    while at < len(answer):
        size = _SIZE.match(answer, at)
        if size is None:
            return b"".join(pieces) if pieces and not answer[at:].strip() else answer
        at = size.end() + int(size[1], 16)
        pieces.append(answer[size.end() : at])
        if not pieces[-1]:
            break
    return b"".join(pieces)


def newline_stream(stream: IO[bytes], encoding: str = "") -> tuple[IO[bytes], str]:
    r"""Return a stream whose lines end with the byte ``\n``, without byte order mark, and its encoding.

    Args:
        encoding: if empty, it is detected from the byte order mark or zero bytes, else UTF-8. Lines of
            ASCII are left as they are, so that readers tell that they are not UTF-16.
    """
    name = codec_of(encoding) if encoding else ""
    if name not in ("", "utf-8") and "\n".encode(name) == b"\n":
        return stream, name
    if b"\n".decode(name or "utf-8", "replace") != "\n" and (peek := getattr(stream, "peek", None)):
        with suppress(OSError, EOFError, zlib.error):  # Reading it says why it can't be read.
            head = peek(_TRANSCODED)
            if b"\n" in head and b"\0" not in head:
                return stream, name
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    whole: Any = io.BufferedReader(_Utf8(read, name), _TRANSCODED)
    return whole, "utf-8"


class _Utf8(io.RawIOBase):
    """A raw stream that converts its input to UTF-8."""

    def __init__(self, read: Callable[[int], bytes], encoding: str) -> None:
        self._read = read
        self._encoding = encoding
        self._decoder: codecs.IncrementalDecoder | None = None
        self._started = self._ended = False
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
        if not self._started:
            return self._begin()
        chunk = self._read(_TRANSCODED)
        self._ended = not chunk
        return self._to_utf8(chunk)

    def _begin(self) -> bytes:
        head = b""
        # A pipe may deliver the byte order mark alone.
        while len(head) < _HEAD and (more := self._read(_TRANSCODED)):
            head += more
        self._started = True
        name = _with_byte_order(self._encoding, head)
        if name != "utf-8":
            self._decoder = codecs.getincrementaldecoder(name)()
        return self._to_utf8(head).removeprefix(codecs.BOM_UTF8)

    def _to_utf8(self, chunk: bytes) -> bytes:
        if self._decoder is None:
            return chunk
        try:
            text = self._decoder.decode(chunk, self._ended)
        except UnicodeError:
            # A failed decoder has consumed nothing.
            self._decoder.errors = "replace"
            text = self._decoder.decode(chunk, self._ended).replace(REPLACEMENT, _UNDECODABLE)
            self._decoder.errors = "strict"
        try:
            return text.encode()
        except UnicodeEncodeError:
            return SURROGATE.sub(_UNDECODABLE, text).encode("utf-8", "surrogateescape")


def _with_byte_order(encoding: str, head: bytes) -> str:
    """Return the encoding with its byte order, little endian if there is no byte order mark."""
    if encoding in ("utf-16", "utf-32"):
        _, seen = strip_bom(head, encoding)
        return seen if seen != encoding else f"{encoding}-le"
    return encoding or detect_encoding(head)


class Line(NamedTuple):
    """One line without its line ending: number from 1, and bytes or a reason; ``file``: one of several."""

    number: int
    raw: bytes
    reason: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class InputSource:
    """An open stream, its name for messages, and a function that returns the share read so far."""

    stream: IO[bytes]
    name: str
    fraction: Callable[[], float]


@contextmanager
def open_source(path: str) -> Iterator[InputSource]:
    """Open a file or standard input; gzip is detected by content and decompressed.

    Raises:
        InputError: it can't be opened, or has another compression.
    """
    if path == STANDARD_INPUT:
        yield InputSource(_decompress(sys.stdin.buffer, STDIN_NAME), STDIN_NAME, lambda: 0.0)
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error
    with file:
        size = os.fstat(file.fileno()).st_size or 1
        # A named pipe has no position.
        read = (lambda: min(1.0, file.tell() / size)) if file.seekable() else lambda: 0.0
        yield InputSource(_decompress(file, path), path, read)


@contextmanager
def read_errors(name: str) -> Iterator[None]:
    """Name the file in errors of reading, which name none themselves.

    Raises:
        InputError: it can't be read.
    """
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot read {name}: {reason_of(error)}; check the file and its disk") from error


def lines(stream: IO[bytes], max_bytes: int) -> Iterator[Line]:
    """Yield the lines of a stream; one that is too long or damaged has a reason instead of bytes."""
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
        # Do not hold a long line while the caller processes it.
        del raw
        yield ready.pop()


def is_compressed(head: bytes) -> bool:
    """Return whether the first bytes of a stream are those of a compressed one."""
    return head.startswith(_GZIP) or any(magic.match(head) for magic in _OTHERS)


def _decompress(stream: IO[bytes], name: str) -> IO[bytes]:
    peek = getattr(stream, "peek", None)
    with read_errors(name):
        head = b"" if peek is None else peek(_LONGEST_MAGIC)[:_LONGEST_MAGIC]
    for magic, (kind, command) in _OTHERS.items():
        if magic.match(head):
            piped = f"pipe it through {command} first"
            remedy = piped if name == STDIN_NAME else f"decompress it: {command} {shlex.quote(name)} > FILE"
            raise InputError(f"{name} is compressed by {kind}, and only gzip is read: {remedy}")
    if not head.startswith(_GZIP):
        return stream
    unpacked: Any = gzip.GzipFile(fileobj=stream)
    return unpacked  # type: ignore[no-any-return]


def _skip(stream: IO[bytes]) -> None:
    while (rest := stream.readline(_CHUNK)) and not rest.endswith(b"\n"):
        pass
