"""JSON lines: one document a line, which travels to a worker process as its line."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

from msgspec import MsgspecError
from msgspec.json import decode

from shinglefold.contracts.engine import Document
from shinglefold.errors import InputError
from shinglefold.ingest.readers.record import ReadOptions, Record, to_document
from shinglefold.ingest.readers.streams import (
    STDIN_NAME,
    InputSource,
    Line,
    decode_lossy,
    lines,
    newline_stream,
    without_surrogates,
)

#: Bytes from which on a line is too long to be held beside its document.
_LONG = 1 << 21
#: What nobody can change in its place.
_FLAT = frozenset((str, int, float, bool, type(None)))
_CHANGING = ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update")
#: Files joined to one have their byte order marks in the middle.
_BOM = b"\xef\xbb\xbf"
#: How the reason begins why a source as a whole can't be read.
WHOLE = "the input"
#: Bytes at either end of a first line that are looked at.
_LOOK = 200
#: Cells between separators, and no object among them.
_ROW = re.compile(r"[^{}\[\]]+[,;\t][^{}]*")


class LazyLineDocument(dict[str, Any]):
    """A document as it was read from a line, which it forgets where it is changed.

    To send it to a worker, its texts need not be written as UTF-8 once more: the worker reads the line, which
    costs what it takes to read what was written. Copies are plain dictionaries.

    Args:
        document: what ``from_line`` returns of the line; its values hold no others.
    """

    __slots__ = ("_id_field", "_line")

    def __init__(self, document: Mapping[str, Any], line: bytes, id_field: str) -> None:
        super().__init__(document)
        self._line: bytes | None = line
        self._id_field = id_field

    def __reduce__(self) -> tuple[Callable[..., Document], tuple[Any, ...]]:
        return (dict, (dict(self),)) if self._line is None else (from_line, (self._line, self._id_field))


def from_line(line: bytes, id_field: str) -> Document:
    """Return the document of a line of UTF-8; what the fast reader takes has the values the library gives.

    Raises:
        MsgspecError, ValueError, RecursionError: the fast reader refuses it, the standard library may not.
        InputError: it is no document.
    """
    return to_document(decode(line), id_field)


def as_read(document: Document, line: bytes, id_field: str) -> Document:
    """Return a document that knows its line, where nothing in it can be changed unseen and it is not long."""
    if len(line) < _LONG and set(map(type, document.values())) <= _FLAT:
        return LazyLineDocument(document, line, id_field)
    return document


def _forgetting(change: Callable[..., Any]) -> Callable[..., Any]:
    def changed(self: LazyLineDocument, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the change has them
        self._line = None
        return change(self, *given, **named)

    return changed


for _name in _CHANGING:
    setattr(LazyLineDocument, _name, _forgetting(getattr(dict, _name)))


def read_jsonl(source: InputSource, options: ReadOptions) -> Iterator[Record]:
    """Yield a record for each line that is not blank."""
    stream, encoding = newline_stream(source.stream, options.encoding)
    options = replace(options, encoding=encoding)
    first = True
    # An array that may be all there is: its line, and the record that says so.
    held: tuple[Line, Record] | None = None
    for line in lines(stream, options.max_bytes):
        raw = line.raw.removeprefix(_BOM) if encoding == "utf-8" else line.raw
        if not (raw.strip() or line.reason):
            continue
        if held is not None:
            # Only a line that is wrong, as others follow.
            yield parse_line(held[0], source.name, options, source.fraction())
            held = None
        if first and (shape := _shape(_text(raw[:_LOOK], encoding))):
            first = False
            reason = _refusal(shape, source.name)
            refused = Record(None, source.name, line.number, reason, fraction=source.fraction())
            if shape is _ARRAY and _text(raw[-_LOOK:], encoding).endswith("]"):
                held = line._replace(raw=raw), refused
                continue
            # What follows are parts of it, none of which is a document.
            yield refused
            return
        first = False
        record = parse_line(line._replace(raw=raw), source.name, options, source.fraction(), travels=True)
        # A long line must not be kept while its document is worked on.
        del line, raw
        yield record
    if held is not None:
        yield held[1]


def parse_line(
    line: Line, name: str, options: ReadOptions, fraction: float = 0.0, travels: bool = False
) -> Record:
    """Return the record of one line, which says why where it holds no document.

    Args:
        options: with an encoding in which a newline is one byte.
        travels: the document may go to a worker, as the line it stands in.
    """
    if line.reason:
        return Record(None, name, line.number, line.reason, fraction=fraction)
    if options.encoding == "utf-8" and (quick := _quick(line.raw, options.id_field)) is not None:
        document = as_read(quick, line.raw, options.id_field) if travels else quick
        return Record(document, name, line.number, fraction=fraction)
    text, replaced = decode_lossy(line.raw, options.encoding)
    if (replaced or options.encoding != "utf-8") and (
        mistaken := options.guess.mistaken(line.raw, options.encoding)
    ):
        kept = _kept(line.raw, options.encoding)
        return Record(None, name, line.number, mistaken, kept, replaced, fraction, options.id_field)
    try:
        value = json.loads(text, parse_constant=_refuse)
        # Only an escape can bring a lone surrogate into decoded text.
        if "\\ud" in text or "\\uD" in text:
            value, lone = without_surrogates(value)
            replaced += lone
        document = to_document(value, options.id_field)
    except (ValueError, RecursionError, InputError) as error:
        kept = _kept(line.raw, options.encoding)
        reason = _reason(text, error)
        return Record(None, name, line.number, reason, kept, replaced, fraction, options.id_field)
    return Record(document, name, line.number, "", "", replaced, fraction)


def _quick(raw: bytes, id_field: str) -> Document | None:
    """Return the document of a line of UTF-8 in a third of the time; None where something may be wrong.

    What the fast reader refuses is read again with care: half of a surrogate pair, which is replaced, and
    whatever needs a reason.
    """
    try:
        return from_line(raw, id_field)
    except (MsgspecError, ValueError, RecursionError, InputError):
        return None


class _Shape(NamedTuple):
    """JSON that is not an object a line: in words of a file and of a line, and what makes lines of it."""

    file: str
    line: str
    program: str


_ARRAY = _Shape("an array", "an array: write one object a line", "jq -c '.[]'")
_SPREAD = _Shape("objects over several lines", "an object over several lines: write each on one", "jq -c .")


def _shape(text: str) -> _Shape | None:
    """Return what begins with a text, without space around it, that is no line of JSON lines."""
    if text.startswith("["):
        return _ARRAY
    return _SPREAD if text == "{" else None


def _refusal(shape: _Shape, name: str) -> str:
    """Return why an input can't be read, and what makes lines of it."""
    if name == STDIN_NAME:
        return f"{WHOLE} holds {shape.file}, not an object a line; pipe it through {shape.program} first"
    command = f"{shape.program} {shlex.quote(name)} > documents.jsonl"
    return f"{WHOLE} holds {shape.file}, not an object a line; make lines of it: {command}"


def _text(raw: bytes, encoding: str) -> str:
    text, _ = decode_lossy(raw, encoding)
    return text.strip()


def _kept(raw: bytes, encoding: str) -> str:
    """Return a line as it can be read again from UTF-8, undecodable bytes as lone surrogates."""
    try:
        return raw.decode(encoding, "surrogateescape")
    except UnicodeError:
        return raw.decode(encoding, "replace")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON; write null or leave it out")


def _reason(text: str, error: Exception) -> str:
    if isinstance(error, InputError):
        return f"{error}{_hint(text)}"
    if isinstance(error, RecursionError):
        return "invalid JSON: nested too deeply"
    if "integer string conversion" in str(error):
        return "invalid JSON: a number of more digits than can be read"
    return f"invalid JSON: {error}{_hint(text)}"


def _hint(text: str) -> str:
    if shape := _shape(text.strip()):
        return f" ({shape.line}, as {shape.program} does)"
    return "; if these are rows of CSV, add --format csv" if _ROW.fullmatch(text) else ""
