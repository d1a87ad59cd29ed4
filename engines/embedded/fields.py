"""The field types: which there are, and how a JSON value becomes what is indexed."""

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from shinglefold.engines.embedded.dates import parse_date

Indexed = str | int | float
_LONGEST_KEYWORD = 32_766
_TEXTS = frozenset({str})
#: The pool of columns for keywords without doc values.
SEARCHED = "n"


class Kind(Enum):
    """How a field is kept; the value is the pool of columns it takes its column from."""

    TEXT = "t"
    KEYWORD = "k"
    LONG = "l"
    DATE = "l:date"
    BOOLEAN = "l:boolean"
    DOUBLE = "d"
    BINARY = ""

    #: Enum's own is Python code, and this is asked for with each value of each document.
    __hash__ = object.__hash__

    @property
    def pool(self) -> str:
        """The letter of the pool, empty for what is only stored."""
        return self.value[:1]


@dataclass(frozen=True, slots=True)
class Field:
    """A field as queries name it.

    ``source`` is its path in the document (another than ``path`` for multi-fields), ``column`` the name of
    its tantivy field, empty where it is stored only.
    """

    path: str
    source: str
    type: str
    kind: Kind
    column: str
    doc_values: bool = True
    ignore_above: int = 2**31

    @property
    def searched_only(self) -> bool:
        """Whether it can be searched for, and neither ordered by nor counted."""
        return self.column.startswith(SEARCHED)

    @property
    def has_order(self) -> bool:
        """Whether documents can be ordered by it, and its values counted, as far as its kind goes."""
        return self.column not in ("", "_id") and not self.searched_only


TYPES: Mapping[str, Kind] = MappingProxyType(
    {
        "text": Kind.TEXT,
        "keyword": Kind.KEYWORD,
        "byte": Kind.LONG,
        "short": Kind.LONG,
        "integer": Kind.LONG,
        "long": Kind.LONG,
        "half_float": Kind.DOUBLE,
        "float": Kind.DOUBLE,
        "double": Kind.DOUBLE,
        "boolean": Kind.BOOLEAN,
        "date": Kind.DATE,
        "binary": Kind.BINARY,
    }
)
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}


def to_index(field: Field, value: object) -> Indexed | None:
    """Return what is indexed for one value of a document, or None where it is to be left out.

    Raises:
        ValueError: the value is not valid for this type.
    """
    if isinstance(value, dict):
        raise ValueError("expected a value, got an object")
    # Most texts have a keyword beside them, which is left out before anything is done to it.
    if isinstance(value, str) and field.kind is Kind.KEYWORD and len(value) > field.ignore_above:
        return None
    converted = _CONVERTERS[field.kind](field, value)
    if isinstance(converted, str) and field.kind is Kind.KEYWORD:
        if len(converted) > field.ignore_above:
            return None
        # No character takes more than four bytes.
        if 4 * len(converted) > _LONGEST_KEYWORD and len(converted.encode()) > _LONGEST_KEYWORD:
            raise ValueError(f"keyword longer than {_LONGEST_KEYWORD} bytes; set ignore_above or use text")
    return converted


def is_short_keyword(field: Field, value: object) -> bool:
    """Tell quickly of most values whether they are indexed as they are, as keywords; of others say no."""
    return (
        field.kind is Kind.KEYWORD
        and type(value) is str
        and value.isascii()
        and len(value) <= min(field.ignore_above, _LONGEST_KEYWORD)
    )


def are_short_strings(field: Field, values: Sequence[object]) -> bool:
    """Tell whether values are strings that are indexed as they are: all together shorter than a keyword."""
    if set(map(type, values)) - _TEXTS:
        return False
    whole, most = "".join(map(str, values)), min(field.ignore_above, _LONGEST_KEYWORD)
    if len(whole) > most:
        return False
    try:
        return whole.isascii() or len(whole.encode()) <= most
    except UnicodeEncodeError:
        return False


def well_formed(text: str) -> str:
    """Return the text with lone surrogates replaced, which no index can hold."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _string(_: Field, value: object) -> str:
    if isinstance(value, str):
        return well_formed(value)
    return json.dumps(value)


def _long(field: Field, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is no number")
    try:
        whole = int(value)
    except (ValueError, OverflowError):
        whole = int(_double(field, value))
    limit = 2 ** (_BITS.get(field.type, 64) - 1)
    if not -limit <= whole < limit:
        raise ValueError(f"{value!r} is out of range for {field.type}")
    return whole


def _double(_: Field, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is no number")
    try:
        result = float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{value!r} is no number") from None
    if result - result != 0:
        raise ValueError(f"{value!r} is not finite")
    return result


def _boolean(_: Field, value: object) -> int:
    if value is True or value == "true":
        return 1
    if value is False or value in ("false", ""):
        return 0
    raise ValueError(f"{value!r} is neither true nor false")


def _date(_: Field, value: object) -> int:
    return parse_date(value).first


def _binary(_: Field, value: object) -> None:
    if not isinstance(value, str):
        raise ValueError("expected base64")
    b64decode(value, validate=True)


_CONVERTERS: Mapping[Kind, Callable[[Field, object], Indexed | None]] = MappingProxyType(
    {
        Kind.TEXT: _string,
        Kind.KEYWORD: _string,
        Kind.LONG: _long,
        Kind.DATE: _date,
        Kind.BOOLEAN: _boolean,
        Kind.DOUBLE: _double,
        Kind.BINARY: _binary,
    }
)
