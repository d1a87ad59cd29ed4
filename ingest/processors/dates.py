"""The processor that reads dates as sites write them."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from shinglefold.contracts.engine import Document
from shinglefold.errors import ConfigError, ProcessorError
from shinglefold.ingest.field_paths import MISSING, get, put, said
from shinglefold.ingest.processors.context import Tools
from shinglefold.ingest.processors.options import Options
from shinglefold.ingest.processors.texts import Outcome, attempt

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The letters of the servers' patterns (Java's), longest first, in those of ``strptime``.
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

_Reader = Callable[[str], datetime]


class Date:
    """Read a date and write it in ISO 8601, as the field type ``date`` takes it.

    Options: ``field``, ``target_field`` (default ``@timestamp``), ``formats`` (tried in turn: ``ISO8601``,
    ``UNIX``, ``UNIX_MS``, or a pattern such as ``dd.MM.yyyy HH:mm``; names of months and days are English),
    ``timezone`` (of dates that have none; default UTC).
    """

    type: ClassVar[str] = "date"

    def __init__(self, options: Options, tools: Tools) -> None:
        self.field = options.text("field")
        self.target = options.text("target_field", "@timestamp")
        self.formats = options.names("formats")
        zone = _zone(options)
        self.readers = [_reader(name, zone, options.place) for name in self.formats]

    def apply(self, documents: Sequence[Document]) -> list[Outcome]:
        """Read the date of each document."""
        return attempt(self._one, documents)

    def _one(self, document: Document) -> Document:
        value = get(document, self.field)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            found = "missing" if value is MISSING else said(value)
            raise ProcessorError(f"field [{self.field}] is {found}, expected a date")
        for reader in self.readers:
            try:
                when = reader(str(value).strip()).astimezone(UTC)
            except (ValueError, OverflowError):
                continue
            return put(document, self.target, when.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
        raise ProcessorError(f"field [{self.field}]: {value!r:.100} is no date in {', '.join(self.formats)}")


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
        return lambda text: _placed(datetime.fromisoformat(text), zone)
    if name in {"UNIX", "UNIX_MS", "epoch_second", "epoch_millis"}:
        unit = 1.0 if name in {"UNIX", "epoch_second"} else 0.001
        return lambda text: _EPOCH + timedelta(seconds=_finite(text) * unit)
    pattern = _strptime(name, place)
    return lambda text: _placed(datetime.strptime(text, pattern), zone)


def _placed(when: datetime, zone: tzinfo) -> datetime:
    return when.replace(tzinfo=zone) if when.tzinfo is None else when


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise ValueError(text)
    return number


def _strptime(pattern: str, place: str) -> str:
    """Return a pattern of the servers as one of ``strptime``.

    Raises:
        ConfigError: it has letters that are not known here.
    """
    known = dict(_LETTERS)
    pieces = []
    for piece in _PIECE.findall(pattern):
        if piece in known:
            pieces.append(known[piece])
        elif piece[0] == "'":
            pieces.append(piece[1:-1].replace("''", "'").replace("%", "%%") or "'")
        elif piece[0].isascii() and piece[0].isalpha():
            raise ConfigError(
                f"{place}: the date format {pattern!r} has {piece!r}, which is not known here; use ISO8601, "
                "UNIX, UNIX_MS, or a pattern of yyyy MM dd HH mm ss SSS MMM EEE a Z, other letters in quotes"
            )
        else:
            pieces.append(piece.replace("%", "%%"))
    return "".join(pieces)
