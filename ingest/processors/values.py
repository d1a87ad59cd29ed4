"""Processors on single values: letter case, white space, patterns, types, lists, dates."""

import re
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from shinglefold.contracts.engine import Document
from shinglefold.documents import MISSING, as_text, get, json_type, put
from shinglefold.errors import ConfigError, ProcessorError
from shinglefold.ingest.processors.context import DocumentProcessor, FieldProcessor, Options, Tools

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Letters of Java date patterns, which servers use, longest first, and their ``strptime`` equivalents.
_LETTERS = (
    ("yyyy", "%Y"), ("uuuu", "%Y"), ("yy", "%y"), ("uu", "%y"),
    ("MMMM", "%B"), ("MMM", "%b"), ("MM", "%m"), ("M", "%m"),
    ("dd", "%d"), ("d", "%d"),
    ("EEEE", "%A"), ("EEE", "%a"), ("E", "%a"),
    ("HH", "%H"), ("H", "%H"), ("hh", "%I"), ("h", "%I"),
    ("mm", "%M"), ("m", "%M"), ("ss", "%S"), ("s", "%S"),
    ("SSSSSSSSS", "%f"), ("SSSSSS", "%f"), ("SSS", "%f"), ("SS", "%f"), ("S", "%f"),
    ("a", "%p"), ("XXX", "%z"), ("XX", "%z"), ("X", "%z"), ("Z", "%z"),
)  # fmt: skip
_PIECE = re.compile(
    "|".join([*(letters for letters, _ in _LETTERS), "'(?:[^']|'')*'", "[a-zA-Z]+", "."]), re.DOTALL
)

#: The last three digits of nanoseconds, which Python does not keep.
_NANOSECONDS = re.compile(r"(?<=\d{6})\d{3}(?!\d)")
_Reader = Callable[[str], datetime]
_TRUTH = {"true": True, "false": False}


class ValueProcessor(FieldProcessor):
    """Convert the value of one field. Options: those of ``FieldProcessor``."""

    @abstractmethod
    def _convert(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        """Return the new value, or raise ``ProcessorError``."""

    def _one(self, document: Document) -> Document:
        value = get(document, self.field)
        if value is MISSING or value is None:
            if self.ignore_missing:
                return document
            raise ProcessorError(f"field [{self.field}] is {'missing' if value is MISSING else 'null'}")
        return put(document, self.target, self._convert(value))

    def _text(self, value: object) -> str:
        if not isinstance(value, str):
            raise ProcessorError(f"field [{self.field}] is {json_type(value)}, expected text")
        return value


class _TextProcessor(ValueProcessor):
    """Convert a text, or every text of a list."""

    def _convert(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, list):
            return [self._convert_text(self._text(item)) for item in value]
        return self._convert_text(self._text(value))

    @abstractmethod
    def _convert_text(self, text: str) -> str:
        """Return a text in converted form."""


class Lowercase(_TextProcessor):
    """Convert to lower case. Options: those of ``FieldProcessor``."""

    type: ClassVar[str] = "lowercase"

    def _convert_text(self, text: str) -> str:
        return text.lower()


class Uppercase(_TextProcessor):
    """Convert to upper case. Options: those of ``FieldProcessor``."""

    type: ClassVar[str] = "uppercase"

    def _convert_text(self, text: str) -> str:
        return text.upper()


class Trim(_TextProcessor):
    """Strip white space from both ends. Options: those of ``FieldProcessor``."""

    type: ClassVar[str] = "trim"

    def _convert_text(self, text: str) -> str:
        return text.strip()


class Gsub(_TextProcessor):
    """Replace every match of a pattern.

    Options: those of ``FieldProcessor``, ``pattern`` (a Python regular expression), ``replacement``
    (``\\1`` or ``$1`` stands for the first group).
    """

    type: ClassVar[str] = "gsub"

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.pattern = _pattern(options, "pattern")
        replacement = options.any_text("replacement")
        # On servers, $1 in a replacement is a group, and \$ a dollar; in Python, these are \g<1> and $.
        self.replacement = re.sub(
            r"\\.|\$(\d)",
            lambda one: f"\\g<{one[1]}>" if one[1] else one[0].replace("\\$", "$"),
            replacement,
        )
        try:
            # Python parses the replacement even if nothing matches.
            self.pattern.sub(self.replacement, "")
        except (re.error, IndexError) as error:
            raise ConfigError(f"{options.place}: 'replacement': {error}") from error

    def _convert_text(self, text: str) -> str:
        return self.pattern.sub(self.replacement, text)


class Split(ValueProcessor):
    """Split a text into a list.

    Options: those of ``FieldProcessor``, ``separator`` (a regular expression), ``preserve_trailing``
    (false: empty pieces at the end are left out, as on the servers).
    """

    type: ClassVar[str] = "split"

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.separator = _pattern(options, "separator")
        self.preserve_trailing = options.flag("preserve_trailing", False)

    def _convert(self, value: Any) -> list[str]:  # noqa: ANN401 - JSON
        # re.split would return the groups of a separator as pieces.
        text, pieces, begin = self._text(value), [], 0
        for match in self.separator.finditer(text):
            # On servers, a match of nothing splits a text anywhere but at its beginning.
            if match.end():
                pieces.append(text[begin : match.start()])
                begin = match.end()
        pieces.append(text[begin:])
        while begin and pieces and not pieces[-1] and not self.preserve_trailing:
            pieces.pop()
        return pieces


class Join(ValueProcessor):
    """Join the values of a list into a text. Options: those of ``FieldProcessor``, ``separator``."""

    type: ClassVar[str] = "join"

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.separator = options.any_text("separator")

    def _convert(self, value: Any) -> str:  # noqa: ANN401 - JSON
        if not isinstance(value, list):
            raise ProcessorError(f"field [{self.field}] is {json_type(value)}, expected a list")
        return self.separator.join(as_text(item) for item in value if item is not None)


class Convert(ValueProcessor):
    """Convert a value, or the values of a list, to another type.

    Options: those of ``FieldProcessor``, ``type``: ``integer``, ``long``, ``float``, ``double``, ``boolean``,
    ``string``, or ``auto`` (guesses the type of a text).
    """

    type: ClassVar[str] = "convert"

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.kind = options.text("type")
        if self.kind not in _CONVERSIONS:
            raise ConfigError.unknown(f"type (in {options.place})", self.kind, _CONVERSIONS)

    def _convert(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, list):
            return [self._convert(item) for item in value]
        try:
            return _CONVERSIONS[self.kind](value)
        except (ValueError, TypeError, OverflowError) as error:
            raise ProcessorError(f"field [{self.field}]: {value!r:.100} is no {self.kind}") from error


def _check_digits(value: Any) -> None:  # noqa: ANN401 - JSON
    """Refuse a number with underscores, which Python reads, and engines do not."""
    if isinstance(value, str) and "_" in value:
        raise ValueError(value)


def _integer(value: Any) -> int:  # noqa: ANN401 - JSON
    if isinstance(value, bool) or (isinstance(value, str) and len(value) > 20):
        raise ValueError
    _check_digits(value)
    if isinstance(value, float) and not value.is_integer():
        raise ValueError
    number = int(value, 0) if isinstance(value, str) and "x" in value.lower() else int(value)
    if not -(2**63) <= number < 2**63:
        raise OverflowError
    return number


def _float(value: Any) -> float:  # noqa: ANN401 - JSON
    _check_digits(value)
    number = float(value)
    if isinstance(value, bool) or number - number != 0:
        # JSON has neither infinity nor NaN.
        raise ValueError
    return number


def _boolean(value: Any) -> bool:  # noqa: ANN401 - JSON
    if isinstance(value, bool):
        return value
    found = _TRUTH.get(str(value).lower())
    if found is None:
        raise ValueError
    return found


def _string(value: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        raise TypeError
    return as_text(value)


def _auto(value: Any) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(value, str):
        return value
    for convert in (_boolean, _integer, _float):
        try:
            return convert(value)
        except (ValueError, OverflowError):
            continue
    return value


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "integer": _integer,
    "long": _integer,
    "float": _float,
    "double": _float,
    "boolean": _boolean,
    "string": _string,
    "auto": _auto,
}


def _pattern(options: Options, name: str) -> re.Pattern[str]:
    source = options.text(name)
    try:
        return re.compile(source)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(f"{options.place}: {name!r} is not a regular expression: {error}") from error


class Date(DocumentProcessor):
    """Parse a date and write it in ISO 8601, as fields of type ``date`` expect.

    Options: ``field``, ``target_field`` (default ``@timestamp``), ``formats`` (tried in turn: ``ISO8601``,
    ``UNIX``, ``UNIX_MS``, or a pattern such as ``dd.MM.yyyy HH:mm``; names of months and days are English),
    ``timezone`` (of dates without one; default UTC).
    """

    type: ClassVar[str] = "date"

    def __init__(self, options: Options, tools: Tools) -> None:
        super().__init__(options, tools)
        self.field = options.text("field")
        self.target = options.text("target_field", "@timestamp")
        self.formats = options.names("formats")
        zone = _zone(options)
        self.readers = [_reader(name, zone, options.place) for name in self.formats]

    def _one(self, document: Document) -> Document:
        value = get(document, self.field)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            found = "missing" if value is MISSING else json_type(value)
            raise ProcessorError(f"field [{self.field}] is {found}, expected a date")
        for reader in self.readers:
            try:
                when = reader(str(value).strip()).astimezone(UTC)
            except (ValueError, OverflowError):
                continue
            return put(document, self.target, when.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
        raise ProcessorError(
            f"field [{self.field}]: {value!r:.100} is not a date in {', '.join(self.formats)}"
        )


def _zone(options: Options) -> tzinfo:
    name = options.text("timezone", "UTC")
    try:
        return UTC if name in {"UTC", "Z"} else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"{options.place}: no time zone {name!r}; give one such as Europe/Kyiv or UTC"
        ) from error


def _reader(name: str, zone: tzinfo, place: str) -> _Reader:
    if name in {"ISO8601", "strict_date_optional_time"}:
        return lambda text: _with_timezone(datetime.fromisoformat(text), zone)
    if name in {"UNIX", "UNIX_MS", "epoch_second", "epoch_millis"}:
        unit = 1.0 if name in {"UNIX", "epoch_second"} else 0.001
        return lambda text: _EPOCH + timedelta(seconds=_float(text) * unit)
    pattern = _strptime(name, place)
    try:
        with suppress(ValueError):
            datetime.strptime("", pattern)
    except re.error as error:
        raise ConfigError(f"{place}: the date format {name!r} has a part twice; name each once") from error
    nanoseconds = "SSSSSSSSS" in name
    return lambda text: _with_timezone(
        datetime.strptime(_NANOSECONDS.sub("", text) if nanoseconds else text, pattern), zone
    )


def _with_timezone(when: datetime, zone: tzinfo) -> datetime:
    return when.replace(tzinfo=zone) if when.tzinfo is None else when


def _strptime(pattern: str, place: str) -> str:
    """Convert a Java date pattern to one for ``strptime``."""
    known = dict(_LETTERS)
    pieces = []
    for piece in _PIECE.findall(pattern):
        if piece in known:
            pieces.append(known[piece])
        elif piece == "'":
            raise ConfigError(f"{place}: a quote opened in the date format {pattern!r} never closes")
        elif piece[0] == "'":
            pieces.append(piece[1:-1].replace("''", "'").replace("%", "%%") or "'")
        elif piece[0].isascii() and piece[0].isalpha():
            raise ConfigError(
                f"{place}: the date format {pattern!r} has {piece!r}, which is not supported; use ISO8601, "
                "UNIX, UNIX_MS, or a pattern of yyyy MM dd HH mm ss SSS MMM EEE a Z, other letters in quotes"
            )
        else:
            pieces.append(piece.replace("%", "%%"))
    return "".join(pieces)
