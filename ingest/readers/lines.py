"""Streams and their lines: compressed or not, of any length, with the share read so far."""

import gzip
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from shinglefold.errors import InputError, why

STANDARD_INPUT = "-"
#: What messages call it.
NAMED = "standard input"
_CHUNK = 1 << 20
#: No text begins with these bytes.
_GZIP = b"\x1f\x8b"


class Line(NamedTuple):
    """One line without its end: its number from 1, its bytes, or why it has none; ``file``: of several."""

    number: int
    raw: bytes
    reason: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """An open stream, its name for messages, and the share of it that was read."""

    stream: IO[bytes]
    name: str
    fraction: Callable[[], float]


@contextmanager
def opened(path: str) -> Iterator[Source]:
    """Open a file or standard input; what begins as gzip does is unpacked, whatever its name.

    Raises:
        InputError: it can't be opened.
    """
    if path == STANDARD_INPUT:
        yield Source(_unpacked(sys.stdin.buffer), NAMED, lambda: 0.0)
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error
    with file:
        size = Path(path).stat().st_size or 1
        # A pipe with a name, as shells make them, tells no place.
        read = (lambda: min(1.0, file.tell() / size)) if file.seekable() else lambda: 0.0
        yield Source(_unpacked(file), path, read)


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
            yield Line(number, b"", f"the file is damaged from here on: {why(error)}")
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
