"""Reads the values that reports count by: hosts and dates."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from shinglefold.rerank.hits import field_values, moment

#: How dates are written that are not ISO 8601. 01/02/2024 is no date: in some countries it is another one.
_WRITTEN = (
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y, %H:%M",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S",
)


def first_value(hit: Mapping[str, Any], names: Iterable[str]) -> Any:  # noqa: ANN401 - JSON
    """Return the first value of the first of these fields that a document has; None if it has none."""
    return next((values[0] for name in names if (values := field_values(hit, name))), None)


def host_of(value: object) -> str:
    """Return the host of an address or of a bare host name, without a port; "" if there is none."""
    text = "" if value is None else str(value).strip().lower()
    try:
        parts = urlsplit(text if "//" in text else f"//{text}")
        # Raises ValueError if the part after the colon is not a port, as in other kinds of addresses.
        _ = parts.port
        mail = "//" not in text and parts.username is not None
        return "" if mail else parts.hostname or ""
    except ValueError:
        return ""


def read_date(value: object) -> float | None:
    """Return a date in seconds since 1970; None if it cannot be read.

    It may be ISO 8601, milliseconds, a year, ``1.2.2024``, ``2024/02/01``, or as in mails.
    """
    text = value.strip() if isinstance(value, str) else ""
    if text.isdigit() and len(text) in (4, 8):
        # A year, or 20240201; as milliseconds both would be in 1970.
        text = f"{text}0101" if len(text) == 4 else text
        when = moment(f"{text[:4]}-{text[4:6]}-{text[6:]}")
    else:
        when = moment(value)
        when = _as_written(text) if when is None and text else when
    return when if day_of(when) else None


def _as_written(text: str) -> float | None:
    for form in _WRITTEN:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
        except (ValueError, OverflowError):
            continue
    try:
        read = parsedate_to_datetime(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def day_of(when: float | None) -> str:
    """Return the day of a moment as ``YYYY-MM-DD``, "" if there is none."""
    if when is None:
        return ""
    try:
        return datetime.fromtimestamp(when, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
