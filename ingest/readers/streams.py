"""Input streams and their encodings: decompress, detect and decode encodings, split into lines."""

import codecs
import gzip
import io
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from shinglefold.errors import InputError, reason_of

#: Encodings that are detected, by Python's name, with their usual name for messages.
_CANDIDATES = {
    "cp1251": "windows-1251",
    "koi8_r": "koi8-r",
    "cp866": "cp866",
    "mac_cyrillic": "mac-cyrillic",
    "cp1252": "windows-1252",
    "cp1250": "windows-1250",
    "gb18030": "gb18030",
    "big5": "big5",
    "shift_jis": "shift_jis",
    "euc_jp": "euc-jp",
    "euc_kr": "euc-kr",
}
#: Two encodings that differ in one small letter only, so that a short text looks right in both.
_TWINS = ("cp1251", "mac_cyrillic")
_LETTERS = re.compile("[А-яЁёІіЇїЄєҐґЎў]")
_ODD_CAPITAL = re.compile("[а-яёіїєґў][А-ЯЁІЇЄҐЎ]")
_BAD = re.compile("[\udc80-\udcff]")
#: The character that marks, in UTF-8, what could not be decoded from UTF-16.
_FROM_OTHERS = {"\udcff"}
#: The bytes for a guess, and the number of guesses after which the most frequent one is final.
_ENOUGH, _GUESSES = 16_384, 50
#: UTF-32 before UTF-16, whose byte order mark is a prefix.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Patterns of zero bytes at the beginning of a text that begins with two ASCII letters.
_ZEROS = {
    b"a\0a\0": "utf-16-le",
    b"\0a\0a": "utf-16-be",
    b"a\0\0\0": "utf-32-le",
    b"\0\0\0a": "utf-32-be",
}
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
SURROGATE = re.compile("[\ud800-\udfff]")
#: An HTML page must declare its encoding within its first 1,024 bytes.
_DECLARED_WITHIN = 1024
REPLACEMENT = "\ufffd"
BEYOND_ASCII = re.compile("[^\x00-\x7f]")
#: Letters beyond ASCII that prove UTF-8. A Cyrillic word or two Chinese characters in another encoding may be
#: valid UTF-8 by chance.
_SEVERAL = 6
_TRANSCODED = 1 << 16
#: Length of the longest byte order mark.
_HEAD = 4
#: Becomes a byte that is invalid in UTF-8, so that decoding the line counts it.
_UNDECODABLE = "\udcff"
STANDARD_INPUT = "-"
#: Its name in messages.
STDIN_NAME = "standard input"
_CHUNK = 1 << 20
#: The magic number of gzip.
_GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class EncodingGuess:
    """Guesses the encoding of the texts of one source."""

    _votes: Counter[str] = field(default_factory=Counter)

    def mismatch(self, raw: bytes, encoding: str) -> str:
        """Return an error message if bytes seem to have another encoding than the given one, else nothing.

        UTF-8 with some damage still has more valid letters beyond ASCII than invalid bytes. Valid UTF-8 with
        several letters beyond ASCII is never another encoding.
        """
        name = codecs.lookup(encoding).name
        if name != "utf-8":
            usual = _CANDIDATES.get(name, name)
            return f"the text is UTF-8, not {usual}: try --encoding utf-8" if is_utf8(raw) else ""
        text = raw.decode("utf-8", "surrogateescape")
        bad = _BAD.findall(text)
        if 2 * len(bad) <= len(BEYOND_ASCII.findall(text)) or set(bad) == _FROM_OTHERS:
            return ""
        found = self._best_guess(raw)
        remedy = f"it looks like {found}, try --encoding {found}" if found else "say its --encoding"
        return f"the text is not UTF-8 ({len(bad):,} undecodable bytes): {remedy}"

    def _best_guess(self, raw: bytes) -> str:
        if self._votes.total() < _GUESSES:
            # Imported here, as few inputs need it and the import is slow.
            from charset_normalizer import from_bytes

            best = from_bytes(_from_first_non_ascii(raw), cp_isolation=list(_CANDIDATES)).best()
            if best is not None:
                self._votes[_resolve_twins(raw, best.encoding)] += 1
        return _CANDIDATES.get(self._votes.most_common(1)[0][0], "") if self._votes else ""


def _from_first_non_ascii(raw: bytes) -> bytes:
    """Return a text from shortly before its first letter beyond ASCII on."""
    first = next((place for place, byte in enumerate(raw) if byte > 0x7F), 0)
    return raw[max(0, first - 64) :][:_ENOUGH]


def _resolve_twins(raw: bytes, found: str) -> str:
    """Return that one of the twins in which capitals occur at the beginning of words only."""
    return (
        max(_TWINS, key=lambda encoding: _plausibility(raw[:_ENOUGH], encoding)) if found in _TWINS else found
    )


def _plausibility(raw: bytes, encoding: str) -> int:
    text = raw.decode(encoding, "replace")
    return len(_LETTERS.findall(text)) - 2 * len(_ODD_CAPITAL.findall(text))


def strip_bom(raw: bytes, encoding: str = "", html: bool = False) -> tuple[bytes, str]:
    """Return a text's bytes without byte order mark, and its encoding.

    Args:
        encoding: if empty, the encoding of the byte order mark, or the one that an HTML page declares
            unless the page is UTF-8, or UTF-8.
    """
    given = codecs.lookup(encoding).name if encoding else ""
    for bom, name in _BOMS:
        if raw.startswith(bom) and given in ("", name):
            return raw[len(bom) :], name
    return raw, given or (_declared(raw) if html else "utf-8")


def detect_encoding(head: bytes) -> str:
    """Return the encoding of JSON lines or CSV, given their first four bytes."""
    for bom, name in _BOMS:
        if head.startswith(bom):
            return name
    return _ZEROS.get(bytes(byte and ord("a") for byte in head[:4]), "utf-8")


def is_utf8(raw: bytes) -> bool:
    """Return whether a text is certainly UTF-8: it is valid and has several letters beyond ASCII."""
    try:
        text = "" if raw.isascii() else raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return len(BEYOND_ASCII.findall(text)) >= _SEVERAL


def _declared(raw: bytes) -> str:
    match = _CHARSET.search(raw[:_DECLARED_WITHIN])
    name = match[1].decode("ascii", "replace") if match else "utf-8"
    try:
        "".encode(name)
    except (LookupError, ValueError):
        return "utf-8"
    # A page with a readable declaration is not UTF-16, whatever it declares. And many pages declare the
    # encoding in which they were once written, but are UTF-8, as the server's header says.
    return "utf-8" if name.lower().startswith("utf-16") or is_utf8(raw) else name


def decode_lossy(raw: bytes, encoding: str) -> tuple[str, int]:
    """Return the text and how many undecodable sequences became U+FFFD; a byte order mark is kept."""
    try:
        return raw.decode(encoding), 0
    except UnicodeError:
        text = raw.decode(encoding, "replace")
        # Do not count U+FFFD of the original text.
        return text, text.count(REPLACEMENT) - raw.decode(encoding, "ignore").count(REPLACEMENT)


def without_surrogates(value: Any) -> tuple[Any, int]:  # noqa: ANN401 - JSON
    """Return a JSON value with lone surrogates replaced, as no engine can store them, and their number."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return SURROGATE.subn(REPLACEMENT, value)
        return value, 0
    if isinstance(value, dict):
        if _encodable(value):
            return value, 0
        pairs = [(without_surrogates(key), without_surrogates(item)) for key, item in value.items()]
        count = sum(key[1] + item[1] for key, item in pairs)
        return ({key[0]: item[0] for key, item in pairs} if count else value), count
    if isinstance(value, list):
        items = [without_surrogates(item) for item in value]
        count = sum(item[1] for item in items)
        return ([item[0] for item in items] if count else value), count
    return value, 0


def _encodable(fields: dict[Any, Any]) -> bool:
    """Return whether an object is flat and has no lone surrogates; a fast path for nearly all documents."""
    try:
        "".join(fields).encode()
        for value in fields.values():
            if isinstance(value, str):
                if not value.isascii():
                    value.encode()
            elif isinstance(value, dict | list):
                return False
    except (UnicodeEncodeError, TypeError):
        return False
    return True


def newline_stream(stream: IO[bytes], encoding: str = "") -> tuple[IO[bytes], str]:
    r"""Return a stream whose lines end with the byte ``\n``, without byte order mark, and its encoding.

    Args:
        encoding: if empty, it is detected from the byte order mark or zero bytes, else UTF-8.
    """
    name = codecs.lookup(encoding).name if encoding else ""
    if name not in ("", "utf-8") and "\n".encode(name) == b"\n":
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
    seen = detect_encoding(head)
    if encoding in ("utf-16", "utf-32"):
        return seen if seen.startswith(encoding) else f"{encoding}-le"
    return encoding or seen


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
        InputError: it can't be opened.
    """
    if path == STANDARD_INPUT:
        yield InputSource(_decompressed(sys.stdin.buffer), STDIN_NAME, lambda: 0.0)
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error
    with file:
        size = Path(path).stat().st_size or 1
        # A named pipe has no position.
        read = (lambda: min(1.0, file.tell() / size)) if file.seekable() else lambda: 0.0
        yield InputSource(_decompressed(file), path, read)


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


def is_gzip(head: bytes) -> bool:
    """Return whether the first bytes of a stream are those of gzip."""
    return head.startswith(_GZIP)


def _decompressed(stream: IO[bytes]) -> IO[bytes]:
    peek = getattr(stream, "peek", None)
    if peek is None or not is_gzip(peek(len(_GZIP))):
        return stream
    unpacked: Any = gzip.GzipFile(fileobj=stream)
    return unpacked  # type: ignore[no-any-return]


def _skip(stream: IO[bytes]) -> None:
    while (rest := stream.readline(_CHUNK)) and not rest.endswith(b"\n"):
        pass
