"""Read JSON lines: one document per line, which goes to worker processes unparsed."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

from msgspec import MsgspecError
from msgspec.json import decode

from shinglefold.contracts.engine import Document
from shinglefold.errors import InputError
from shinglefold.ingest.readers.record import ReadOptions, Record, to_document, without_surrogates
from shinglefold.ingest.readers.streams import (
    STDIN_NAME,
    InputSource,
    Line,
    decode_lossy,
    lines,
    newline_stream,
)

#: A line of at least this many bytes is not kept together with its document.
_LONG = 1 << 21
#: Types of immutable values.
_FLAT = frozenset((str, int, float, bool, type(None)))
_CHANGING = ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update")
#: Concatenated files have byte order marks in the middle.
_BOM = b"\xef\xbb\xbf"
#: Prefix of reasons that concern a whole source.
WHOLE = "the input"
#: How many bytes at both ends of the first line are examined to recognize the format.
_LOOK = 200
#: A row of CSV.
_ROW = re.compile(r"[^{}\[\]]+[,;\t][^{}]*")
#: The end of a key; a text may hold it, too.
_KEY_END = re.compile(rb'"[ \t\r\n]*:')


class LazyLineDocument(dict[str, Any]):
    """A document that is pickled as the line it was read from, until it is changed.

    Sending the line to a worker saves encoding the texts to UTF-8 again. Copies are plain dictionaries.

    Args:
        document: what ``from_line`` returns for the line; flat.
    """

    __slots__ = ("_id_field", "_line")

    def __init__(self, document: Mapping[str, Any], line: bytes, id_field: str) -> None:
        super().__init__(document)
        self._line: bytes | None = line
        self._id_field = id_field

    def __reduce__(self) -> tuple[Callable[..., Document], tuple[Any, ...]]:
        return (dict, (dict(self),)) if self._line is None else (from_line, (self._line, self._id_field))


def from_line(line: bytes, id_field: str) -> Document:
    """Return the document of a line of UTF-8, read by msgspec, with the same values as by ``json``.

    Raises:
        MsgspecError, ValueError, RecursionError: msgspec rejects it; ``json`` may accept it.
        InputError: it is not a document.
    """
    return to_document(decode(line), id_field)


def _invalidate_line(change: Callable[..., Any]) -> Callable[..., Any]:
    def change_line(self: LazyLineDocument, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the change has them
        self._line = None
        return change(self, *given, **named)

    return change_line


for _name in _CHANGING:
    setattr(LazyLineDocument, _name, _invalidate_line(getattr(dict, _name)))


def read_jsonl(source: InputSource, options: ReadOptions) -> Iterator[Record]:
    """Yield a record for each line that is not blank."""
    stream, encoding = newline_stream(source.stream, options.encoding)
    options = replace(options, encoding=encoding)
    first = True
    # The first line if it is an array, which may be the whole input, and the record for that case.
    array: tuple[Line, Record] | None = None
    for line in lines(stream, options.max_bytes):
        raw = line.raw.removeprefix(_BOM) if encoding == "utf-8" else line.raw
        if not (raw.strip() or line.reason):
            continue
        if array is not None:
            # More lines follow: the array is one invalid line.
            yield parse_line(array[0], source.name, options, source.fraction())
            array = None
        if first and (shape := _shape(_text(raw[:_LOOK], encoding))):
            first = False
            reason = _refusal(shape, source.name)
            error_record = Record(None, source.name, line.number, reason, fraction=source.fraction())
            if shape is _ARRAY and _text(raw[-_LOOK:], encoding).endswith("]"):
                array = line._replace(raw=raw), error_record
                continue
            # The following lines are parts of it.
            yield error_record
            return
        first = False
        record = parse_line(line._replace(raw=raw), source.name, options, source.fraction(), travels=True)
        # Do not hold a long line while the caller processes its document.
        del line, raw
        yield record
    if array is not None:
        yield array[1]


def parse_line(
    line: Line, name: str, options: ReadOptions, fraction: float = 0.0, travels: bool = False
) -> Record:
    """Return the record of one line, with a reason if it holds no document.

    Args:
        options: the encoding must be one in which a newline is one byte.
        travels: the document may be sent to a worker, and keeps its line for that.
    """
    if line.reason:
        return Record(None, name, line.number, line.reason, fraction=fraction)
    if options.encoding == "utf-8" and (document := _decode_fast(line.raw, options.id_field)) is not None:
        # Nested values could be changed without the document's knowledge.
        if travels and len(line.raw) < _LONG and set(map(type, document.values())) <= _FLAT:
            document = LazyLineDocument(document, line.raw, options.id_field)
        return Record(document, name, line.number, fraction=fraction)
    text, replaced = decode_lossy(line.raw, options.encoding)
    if (replaced or options.encoding != "utf-8") and (
        mismatch := options.guess.mismatch(line.raw, options.encoding)
    ):
        kept = _reread_text(line.raw, options.encoding)
        return Record(None, name, line.number, mismatch, kept, replaced, fraction, options.id_field)
    try:
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_of_distinct_keys)
        # Decoded text has lone surrogates only from escapes.
        if "\\ud" in text or "\\uD" in text:
            value, lone = without_surrogates(value)
            replaced += lone
        document = to_document(value, options.id_field)
    except (ValueError, RecursionError, InputError) as error:
        kept = _reread_text(line.raw, options.encoding)
        reason = _reason(text, error)
        return Record(None, name, line.number, reason, kept, replaced, fraction, options.id_field)
    return Record(document, name, line.number, "", "", replaced, fraction)


def _decode_fast(raw: bytes, id_field: str) -> Document | None:
    """Return the document of a line of UTF-8 in a third of the time; None if msgspec rejects it.

    The caller then reads the line with ``json``, which accepts lone surrogates and gives better reasons.
    """
    try:
        value = decode(raw)
        check_keys(raw, value)
        return to_document(value, id_field)
    except (MsgspecError, ValueError, RecursionError, InputError):
        return None


def check_keys(raw: bytes, value: Any) -> None:  # noqa: ANN401 - JSON
    """Check that no object of a line has two values for one key, of which decoding keeps the last.

    Args:
        value: the line, decoded.

    Raises:
        InputError, ValueError, RecursionError: an object has.

    Cost: a quarter of decoding; a line with quotes before colons in its texts is decoded once more.
    """
    # Each key has one colon after its quote, so that equal counts mean that no key was lost.
    if len(_KEY_END.findall(raw)) != _keys(value):
        json.loads(raw, object_pairs_hook=_of_distinct_keys)


def _keys(value: Any) -> int:  # noqa: ANN401 - JSON
    """Return how many keys there are in a value."""
    if type(value) is dict:
        nested = [item for item in value.values() if type(item) is dict or type(item) is list]
        return len(value) + sum(map(_keys, nested)) if nested else len(value)
    return sum(map(_keys, value)) if type(value) is list else 0


def _of_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, which must not have two values for one key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = Counter(name for name, _ in pairs)
        twice = next(name for name in names if names[name] > 1)
        raise InputError(f"the key {twice[:80]!r} occurs twice in an object, and one value would be lost")
    return found


class _Shape(NamedTuple):
    """JSON that is not one object per line: its names for files and lines, and a command to convert it."""

    file: str
    line: str
    program: str


_ARRAY = _Shape("an array", "an array: write one object a line", "jq -c '.[]'")
_SPREAD = _Shape("objects over several lines", "an object over several lines: write each on one", "jq -c .")


def _shape(text: str) -> _Shape | None:
    """Return the shape of JSON that begins with this text, None if it may be JSON lines."""
    if text.startswith("["):
        return _ARRAY
    return _SPREAD if text == "{" else None


def _refusal(shape: _Shape, name: str) -> str:
    """Return the reason why an input can't be read, with a command that converts it."""
    if name == STDIN_NAME:
        return f"{WHOLE} holds {shape.file}, not an object a line; pipe it through {shape.program} first"
    command = f"{shape.program} {shlex.quote(name)} > documents.jsonl"
    return f"{WHOLE} holds {shape.file}, not an object a line; make lines of it: {command}"


def _text(raw: bytes, encoding: str) -> str:
    text, _ = decode_lossy(raw, encoding)
    return text.strip()


def _reread_text(raw: bytes, encoding: str) -> str:
    """Return a line as text that can be encoded again, undecodable bytes as lone surrogates."""
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
    if text.strip().endswith("},"):
        return "invalid JSON: a comma after the object; leave it out"
    if isinstance(error, json.JSONDecodeError):
        return f"invalid JSON: {error.msg}, column {error.colno}{_hint(text)}"
    return f"invalid JSON: {error}{_hint(text)}"


def _hint(text: str) -> str:
    if shape := _shape(text.strip()):
        return f" ({shape.line}, as {shape.program} does)"
    return "; if these are rows of CSV, add --format csv" if _ROW.fullmatch(text) else ""
