"""Streams and their lines: compressed or not, of any length and encoding, with the share read so far."""

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

#: What is told apart; the names ``--encoding`` takes are Python's, those said are the usual ones.
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
#: These two have the same small letters but for one, so that a short text is as sound in either.
_TWINS = ("cp1251", "mac_cyrillic")
_USUAL = re.compile("[А-яЁёІіЇїЄєҐґЎў]")
_ODD_CAPITAL = re.compile("[а-яёіїєґў][А-ЯЁІЇЄҐЎ]")
_BAD = re.compile("[\udc80-\udcff]")
#: Stands in UTF-8 for what could not be decoded from UTF-16.
_FROM_OTHERS = {"\udcff"}
#: Bytes looked at for a guess, and guesses after which the commonest is given.
_ENOUGH, _GUESSES = 16_384, 50
#: The mark of UTF-32 begins with that of UTF-16.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Where the zero bytes are when a text begins with two ASCII letters.
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
#: Letters beyond ASCII by which UTF-8 is told. A word of Cyrillic or two characters of Chinese in an older
#: encoding may be sound UTF-8 by chance.
_SEVERAL = 6


@dataclass(slots=True)
class EncodingGuess:
    """Guesses what the texts of one source are encoded in."""

    _votes: Counter[str] = field(default_factory=Counter)

    def mistaken(self, raw: bytes, encoding: str) -> str:
        """Return why bytes are taken for another encoding than they are read in, or nothing.

        UTF-8 that is damaged here and there still has more sound letters beyond ASCII than broken ones. What
        is sound UTF-8 with several letters beyond ASCII is no text in another encoding.
        """
        name = codecs.lookup(encoding).name
        if name != "utf-8":
            said = _CANDIDATES.get(name, name)
            return f"the text is UTF-8, not {said}: try --encoding utf-8" if is_utf8(raw) else ""
        text = raw.decode("utf-8", "surrogateescape")
        bad = _BAD.findall(text)
        if 2 * len(bad) <= len(BEYOND_ASCII.findall(text)) or set(bad) == _FROM_OTHERS:
            return ""
        found = self._guessed(raw)
        remedy = f"it looks like {found}, try --encoding {found}" if found else "say its --encoding"
        return f"the text is not UTF-8 ({len(bad):,} undecodable bytes): {remedy}"

    def _guessed(self, raw: bytes) -> str:
        if self._votes.total() < _GUESSES:
            # Only asked about text that can't be read: importing it takes a while.
            from charset_normalizer import from_bytes

            best = from_bytes(_telling(raw), cp_isolation=list(_CANDIDATES)).best()
            if best is not None:
                self._votes[_of_twins(raw, best.encoding)] += 1
        return _CANDIDATES.get(self._votes.most_common(1)[0][0], "") if self._votes else ""


def _telling(raw: bytes) -> bytes:
    """Return the part of a text that begins with its first letter beyond ASCII."""
    first = next((place for place, byte in enumerate(raw) if byte > 0x7F), 0)
    return raw[max(0, first - 64) :][:_ENOUGH]


def _of_twins(raw: bytes, found: str) -> str:
    """Return that one of the twins in which the capitals are usual ones at the beginning of words."""
    return max(_TWINS, key=lambda encoding: _soundness(raw[:_ENOUGH], encoding)) if found in _TWINS else found


def _soundness(raw: bytes, encoding: str) -> int:
    text = raw.decode(encoding, "replace")
    return len(_USUAL.findall(text)) - 2 * len(_ODD_CAPITAL.findall(text))


def decode(raw: bytes, encoding: str = "", html: bool = False) -> tuple[str, int]:
    """Return the text and how many undecodable places became U+FFFD.

    Args:
        encoding: empty means by BOM, by what an HTML page declares unless it is UTF-8 all the same, else
            UTF-8.
    """
    return decode_lossy(*strip_bom(raw, encoding, html))


def strip_bom(raw: bytes, encoding: str = "", html: bool = False) -> tuple[bytes, str]:
    """Return a text's bytes without byte order mark, and its encoding; see ``decode``."""
    given = codecs.lookup(encoding).name if encoding else ""
    for bom, name in _BOMS:
        if raw.startswith(bom) and given in ("", name):
            return raw[len(bom) :], name
    return raw, given or (_declared(raw) if html else "utf-8")


def detect_encoding(head: bytes) -> str:
    """Return the encoding of JSON lines or CSV by their first four bytes."""
    for bom, name in _BOMS:
        if head.startswith(bom):
            return name
    return _ZEROS.get(bytes(byte and ord("a") for byte in head[:4]), "utf-8")


def is_utf8(raw: bytes) -> bool:
    """Tell whether a text is surely UTF-8: several letters beyond ASCII are, and nothing else."""
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
    # A page that can be searched for an ASCII declaration is not in UTF-16, whatever it says. Servers often
    # say in their headers that a page is UTF-8 which was once written in something else, and says so.
    return "utf-8" if name.lower().startswith("utf-16") or is_utf8(raw) else name


def decode_lossy(raw: bytes, encoding: str) -> tuple[str, int]:
    """Return the text and how many undecodable places became U+FFFD; a byte order mark is text."""
    try:
        return raw.decode(encoding), 0
    except UnicodeError:
        text = raw.decode(encoding, "replace")
        # Not those that stood there before.
        return text, text.count(REPLACEMENT) - raw.decode(encoding, "ignore").count(REPLACEMENT)


def without_surrogates(value: Any) -> tuple[Any, int]:  # noqa: ANN401 - JSON
    """Return a JSON value with lone surrogates, which no engine can store, replaced; and how many."""
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
    """Tell whether nothing in an object needs a closer look, as is so with nearly all documents."""
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


_TRANSCODED = 1 << 16
#: Enough to tell every byte order mark.
_HEAD = 4
#: Becomes a byte that UTF-8 never has: whoever decodes the line counts it.
_UNDECODABLE = "\udcff"
STANDARD_INPUT = "-"
#: What messages call it.
STDIN_NAME = "standard input"
_CHUNK = 1 << 20
#: No text begins with these bytes.
_GZIP = b"\x1f\x8b"


def newline_stream(stream: IO[bytes], encoding: str = "") -> tuple[IO[bytes], str]:
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
    seen = detect_encoding(head)
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
def open_source(path: str) -> Iterator[InputSource]:
    """Open a file or standard input; what begins as gzip does is unpacked, whatever its name.

    Raises:
        InputError: it can't be opened.
    """
    if path == STANDARD_INPUT:
        yield InputSource(_unpacked(sys.stdin.buffer), STDIN_NAME, lambda: 0.0)
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
