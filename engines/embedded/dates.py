"""Dates, as the servers' default format ``strict_date_optional_time||epoch_millis`` reads them."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

_ISO = re.compile(
    r"(\d{4})(?:-(\d{2})(?:-(\d{2})(?:T(\d{2})(?::(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?"
    r"(Z|[+-]\d{2}:?\d{2})?)?)?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_STEPS = (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1), _MILLISECOND)


class Span(NamedTuple):
    """The milliseconds since 1970 a date covers, both ends included: a day has 86 400 000 of them."""

    first: int
    last: int


def looks_like_date(text: str) -> bool:
    """Tell whether dynamic mapping takes a string for a date; a mere year is taken for a number."""
    return len(text) >= 7 and _read(text) is not None


def parse_date(value: object) -> Span:
    """Return what a date covers; without a zone it is UTC.

    Raises:
        ValueError: it is no date.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return Span(value, value)
    text = str(value)
    if re.fullmatch(r"-?\d{5,}", text):
        return Span(int(text), int(text))
    span = _read(text) if isinstance(value, str) else None
    if span is None:
        raise ValueError(f"{value!r} is no date such as 2024-05-31T12:00:00Z or milliseconds since 1970")
    return span


def format_date(milliseconds: int) -> str:
    """Return the date the servers print for milliseconds since 1970."""
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _read(text: str) -> Span | None:
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        first = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0),
            int(float(f"0.{fraction or 0}") * 1000) * 1000, _zone(zone),
        )  # fmt: skip
        after = _next(first, month, (day, hour, minute, second, fraction))
        return Span(_milliseconds(first), _milliseconds(after) - 1)
    except (ValueError, OverflowError):
        return None


def _next(first: datetime, month: str | None, parts: tuple[str | None, ...]) -> datetime:
    """Return the first moment after what is covered: the smallest part given decides."""
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
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND
