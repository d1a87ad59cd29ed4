"""Field types, and how a JSON value of each becomes an indexed value."""

import json
import re
import struct
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from shinglefold.contracts.engine import DATE_FORMAT
from shinglefold.documents import well_formed

_ISO = re.compile(
    r"(\d{4})(?:-(\d{2})(?:-(\d{2})(?:T(?:(\d{2})(?::(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?"
    r"(Z|[+-]\d{2}(?::?\d{2})?)?)?)?)?)?",
    re.ASCII,
)
_YEAR, _EPOCH_MILLIS = re.compile(r"-?[0-9]{4}"), re.compile(r"-?[0-9]{1,19}(?:\.[0-9]+)?")
#: A number in a text, as Java reads it.
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*", re.ASCII)
#: The formats of dates, with an example of each.
DATE_FORMATS: Mapping[str, str] = MappingProxyType(
    {
        DATE_FORMAT: "2024-05-31T12:00:00Z or milliseconds since 1970",
        "strict_date_optional_time": "2024-05-31T12:00:00Z",
        "epoch_millis": "milliseconds since 1970",
    }
)
#: The longest offset of a time zone on servers.
_FARTHEST = timedelta(hours=18)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_STEPS = (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1), _MILLISECOND)


class ValueRange(NamedTuple):
    """The milliseconds since 1970 that a date covers, both ends included; a day has 86 400 000 of them."""

    first: int
    last: int


def looks_like_date(text: str) -> bool:
    """Return whether dynamic mapping makes a date field of a string; a year alone is not enough."""
    return len(text) >= 7 and _read(text) is not None


def parse_date(value: object, format: str = DATE_FORMAT) -> ValueRange:  # noqa: A002
    """Return the milliseconds that a date covers; without a zone it is in UTC.

    A number is read as its text, as on servers: 2024 is a year, unless the format is milliseconds only.

    Raises:
        ValueError: it is not a date of this format.
    """
    text = f"{value:f}" if isinstance(value, float) else str(value)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        span = _read(text) if format != "epoch_millis" else None
        if span is None and "epoch_millis" in format:
            span = _read_milliseconds(text, years=format != "epoch_millis")
        if span is not None:
            return span
    raise ValueError(f"{value!r} is not a date such as {DATE_FORMATS[format]}")


def format_date(milliseconds: int) -> str:
    """Return milliseconds since 1970 as a date, in the format of servers."""
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _read(text: str) -> ValueRange | None:
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        first = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0),
            int(float(f"0.{fraction or 0}") * 1000) * 1000, _zone(zone),
        )  # fmt: skip
    except (ValueError, OverflowError):
        return None
    try:
        after = _next(first, month, (day, hour, minute, second, fraction))
    except (ValueError, OverflowError):
        # The last day, month or year that Python knows, which stands for "without end".
        return ValueRange(_milliseconds(first), _milliseconds(datetime.max.replace(tzinfo=first.tzinfo)))
    return ValueRange(_milliseconds(first), _milliseconds(after) - 1)


def _read_milliseconds(text: str, *, years: bool) -> ValueRange | None:
    """Return a number of milliseconds, rounded down; four digits are a year if there are ``years``."""
    if not _EPOCH_MILLIS.fullmatch(text) or (years and _YEAR.fullmatch(text)):
        return None
    whole, _, fraction = text.partition(".")
    moment = int(whole) - (text[0] == "-" and bool(fraction.strip("0")))
    return ValueRange(moment, moment) if -(2**63) < moment < 2**63 else None


def _next(first: datetime, month: str | None, parts: tuple[str | None, ...]) -> datetime:
    """Return the first moment after a date, such as the next day if the date has no time."""
    given = sum(part is not None for part in parts)
    if given:
        return first + _STEPS[given - 1]
    if month is None:
        return first.replace(year=first.year + 1)
    return first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)


def _zone(text: str | None) -> timezone:
    if text in (None, "Z"):
        return UTC
    assert text is not None
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[3:].lstrip(":") or 0))
    if offset > _FARTHEST or int(text[3:].lstrip(":") or 0) > 59:
        raise ValueError(f"{text!r} is not the offset of a time zone")
    return timezone(-offset if text[0] == "-" else offset)


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND


Indexed = str | int | float
_LONGEST_KEYWORD = 32_766
_TEXTS = frozenset({str})
#: The pool of columns for keywords without doc values.
SEARCHED = "n"


class FieldKind(Enum):
    """The kinds of columns; the value begins with the pool of the column."""

    TEXT = "t"
    KEYWORD = "k"
    LONG = "l"
    DATE = "l:date"
    BOOLEAN = "l:boolean"
    DOUBLE = "d"
    BINARY = ""

    #: Enum's own ``__hash__`` is slow Python code, and this runs for each value of each document.
    __hash__ = object.__hash__

    @property
    def pool(self) -> str:
        """The letter of the pool; empty for fields that are only stored."""
        return self.value[:1]


@dataclass(frozen=True, slots=True)
class Field:
    """A field, by its path in queries.

    ``source`` is its path in the document, which differs from ``path`` for multi-fields. ``column`` is its
    tantivy field, empty if it is only stored. ``format`` is that of dates.
    """

    path: str
    source: str
    type: str
    kind: FieldKind
    column: str
    doc_values: bool = True
    ignore_above: int = 2**31
    format: str = DATE_FORMAT

    @property
    def searched_only(self) -> bool:
        """Whether it can be searched, but not sorted by or aggregated."""
        return self.column.startswith(SEARCHED)

    @property
    def has_order(self) -> bool:
        """Whether it can be sorted by or aggregated, if its kind allows that."""
        return self.column not in ("", "_id") and not self.searched_only


TYPES: Mapping[str, FieldKind] = MappingProxyType(
    {
        "text": FieldKind.TEXT,
        "keyword": FieldKind.KEYWORD,
        "byte": FieldKind.LONG,
        "short": FieldKind.LONG,
        "integer": FieldKind.LONG,
        "long": FieldKind.LONG,
        "half_float": FieldKind.DOUBLE,
        "float": FieldKind.DOUBLE,
        "double": FieldKind.DOUBLE,
        "boolean": FieldKind.BOOLEAN,
        "date": FieldKind.DATE,
        "binary": FieldKind.BINARY,
    }
)
#: The forms of numbers with fewer bits than a double. As on servers, a half is rounded twice.
_PACKED = {"half_float": ("<f", "<e"), "float": ("<f",)}
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}


def to_index(field: Field, value: object) -> Indexed | None:
    """Return the indexed form of a value, None if it is not indexed.

    Raises:
        ValueError: the value is not valid for the field's type.
    """
    if isinstance(value, dict):
        raise ValueError("expected a value, got an object")
    # Checked first, because the text of most text fields is too long for their keyword multi-field.
    if isinstance(value, str) and field.kind is FieldKind.KEYWORD and len(value) > field.ignore_above:
        return None
    if value == "" and field.kind in (FieldKind.LONG, FieldKind.DOUBLE):
        return None
    converted = _CONVERTERS[field.kind](field, value)
    if isinstance(converted, str) and field.kind is FieldKind.KEYWORD:
        if is_ignored(field, converted):
            return None
        # No character takes more than four bytes.
        if 4 * len(converted) > _LONGEST_KEYWORD and len(converted.encode()) > _LONGEST_KEYWORD:
            raise ValueError(f"keyword longer than {_LONGEST_KEYWORD} bytes; set ignore_above or use text")
    return converted


def is_ignored(field: Field, text: str) -> bool:
    """Return whether a keyword is longer than ``ignore_above``, in UTF-16 code units as on servers."""
    if 2 * len(text) <= field.ignore_above or text.isascii():
        return len(text) > field.ignore_above
    return len(text.encode("utf-16-le", "surrogatepass")) > 2 * field.ignore_above


def is_short_keyword(field: Field, value: object) -> bool:
    """Return whether a value surely is a keyword that is indexed unchanged. Faster than ``to_index``."""
    return (
        field.kind is FieldKind.KEYWORD
        and type(value) is str
        and value.isascii()
        and len(value) <= min(field.ignore_above, _LONGEST_KEYWORD)
    )


def are_short_strings(field: Field, values: Sequence[object]) -> bool:
    """Return whether values surely are keywords that are indexed unchanged, as ``is_short_keyword``."""
    if set(map(type, values)) - _TEXTS:
        return False
    whole, most = "".join(map(str, values)), min(field.ignore_above, _LONGEST_KEYWORD)
    if len(whole) > most:
        return False
    try:
        return whole.isascii() or len(whole.encode()) <= most
    except UnicodeEncodeError:
        return False


def _string(_: Field, value: object) -> str:
    if isinstance(value, str):
        return well_formed(value)
    return json.dumps(value)


def _number(value: object) -> int | float | str:
    """Return a number as JSON or text has it; Python also reads underscores and other digits."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a number")
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise ValueError(f"{value!r} is not a number")
    return value


def _long(field: Field, value: object) -> int:
    number = _number(value)
    try:
        whole = int(number)
    except (ValueError, OverflowError):
        whole = int(_double(field, value))
    limit = 2 ** (_BITS.get(field.type, 64) - 1)
    if not -limit <= whole < limit:
        raise ValueError(f"{value!r} is out of range for {field.type}")
    return whole


def _double(field: Field, value: object) -> float:
    try:
        result = float(_number(value))
        for form in _PACKED.get(field.type, ()):
            (result,) = struct.unpack(form, struct.pack(form, result))
    except (ValueError, OverflowError):
        raise ValueError(f"{value!r} is not a number that {field.type} can hold") from None
    if result - result != 0:
        raise ValueError(f"{value!r} is not finite")
    return result


def _boolean(_: Field, value: object) -> int:
    if value is True or value == "true":
        return 1
    if value is False or value in ("false", ""):
        return 0
    raise ValueError(f"{value!r} is neither true nor false")


def _date(field: Field, value: object) -> int:
    return parse_date(value, field.format).first


def _binary(_: Field, value: object) -> None:
    if not isinstance(value, str):
        raise ValueError("expected base64")
    b64decode(value, validate=True)


_CONVERTERS: Mapping[FieldKind, Callable[[Field, object], Indexed | None]] = MappingProxyType(
    {
        FieldKind.TEXT: _string,
        FieldKind.KEYWORD: _string,
        FieldKind.LONG: _long,
        FieldKind.DATE: _date,
        FieldKind.BOOLEAN: _boolean,
        FieldKind.DOUBLE: _double,
        FieldKind.BINARY: _binary,
    }
)
