"""Dates cover as much time as they say."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.engines.embedded.schema.field_types import format_date, looks_like_date, parse_date

_DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "first", "length"),
    [
        ("1970", 0, 365 * _DAY),
        ("1972-02", 760 * _DAY + _DAY, 29 * _DAY),
        ("1970-12", 334 * _DAY, 31 * _DAY),
        ("1970-01-02", _DAY, _DAY),
        ("1970-01-01T01", 3_600_000, 3_600_000),
        ("1970-01-01T01:02", 3_720_000, 60_000),
        ("1970-01-01T00:00:01Z", 1000, 1000),
        ("1970-01-01T00:00:00.5Z", 500, 1),
        ("1970-01-01T02:00:00+02:00", 0, 1000),
        ("1969-12-31T22:30:00-0130", 0, 1000),
        ("86400000", _DAY, 1),
        (86_400_000, _DAY, 1),
        (-1, -1, 1),
        ("9999", 253_370_764_800_000, 365 * _DAY),
        ("9999-12-31", 253_402_214_400_000, _DAY),
        ("9999-12-31T23:59:59Z", 253_402_300_799_000, 1000),
        ("9999-12-31T23:59:59.999-05:00", 253_402_318_799_999, 1),
    ],
)
def test_a_date_covers_its_span(text, first, length):
    assert parse_date(text) == (first, first + length - 1)


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(2**63) - 1,
        "9" * 19,
        "",
        "today",
        "2024-13",
        "2024-02-30",
        "24-01-01",
        "2024-1-1",
        "2024-01-01 1:00",
        True,
        None,
    ],
)
def test_what_is_no_date_is_refused(value):
    with pytest.raises(ValueError, match="is not a date"):
        parse_date(value)


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))
def test_a_printed_date_reads_back(moment):
    milliseconds = round(moment.replace(tzinfo=UTC, microsecond=0).timestamp()) * 1000 + 7
    assert parse_date(format_date(milliseconds)).first == milliseconds


def test_only_dates_are_taken_for_dates():
    assert looks_like_date("2024-05-31")
    assert looks_like_date("2024-05-31T10:00:00.000Z")
    assert not any(map(looks_like_date, ("2024", "20240531", "1717113600000", "12-05-31", "May 2024")))
