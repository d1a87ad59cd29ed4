"""Rows of Arrow as Python objects that JSON can hold, on every machine the same, pandas installed or not."""

import re
from contextlib import suppress
from typing import Any

#: What Arrow raises for a value that Python has nothing for: years beyond 9999, text that is not UTF-8,
#: time zones that nobody knows.
_BEYOND = (ValueError, OverflowError, TypeError, KeyError, NotImplementedError)
_OFFSET = re.compile(r"([+-]\d\d)(\d\d)$")
_Row = dict[str, Any]


def rows_of(batch: Any) -> list[_Row | str]:  # noqa: ANN401 - pyarrow's
    """Return the rows of a batch; of one with a value that JSON can't hold, the reason."""
    names = batch.schema.names
    columns = [_plain(column) for column in batch.columns]
    try:
        values = [column.to_pylist() for column in columns]
    except _BEYOND:
        return [_row(names, columns, place) for place in range(batch.num_rows)]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def _row(names: list[str], columns: list[Any], place: int) -> _Row | str:
    row: _Row = {}
    for name, column in zip(names, columns, strict=True):
        try:
            row[name] = column[place].as_py()
        except _BEYOND as error:
            if isinstance(error, UnicodeDecodeError):
                return f"the column [{name}] has text that is not UTF-8; mend it, or leave the column out"
            return f"the column [{name}] has a {column.type} JSON can't hold; make it text, or leave it out"
    return row


def _plain(column: Any) -> Any:  # noqa: ANN401 - pyarrow's
    """Return a column without nanoseconds, which are other objects wherever pandas is installed.

    They become microseconds where these tell as much, else text in the same form.
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        coarse = pa.timestamp("us", kind.tz)
    elif pa.types.is_time64(kind) and kind.unit == "ns":
        coarse = pa.time64("us")
    elif pa.types.is_duration(kind) and kind.unit == "ns":
        coarse = pa.duration("us")
    else:
        return column
    try:
        return column.cast(coarse)
    except pa.ArrowInvalid:
        return _said(column)


def _said(column: Any) -> Any:  # noqa: ANN401 - pyarrow's
    """Return a column of nanoseconds as text; as it is where its time zone is none that anybody knows."""
    import pyarrow as pa

    if pa.types.is_duration(column.type):
        texts = [one if one is None else _period(one) for one in column.cast(pa.int64()).to_pylist()]
        return pa.array(texts, pa.string())
    with suppress(pa.ArrowInvalid):
        texts = column.cast(pa.string()).to_pylist()
        return pa.array([one if one is None else _iso(one) for one in texts], pa.string())
    return column


def _iso(text: str) -> str:
    return _OFFSET.sub(r"\1:\2", text.replace(" ", "T", 1))


def _period(nanoseconds: int) -> str:
    """Return a duration as JSON has those of microseconds: PT1.5S, -P1DT2S."""
    days, rest = divmod(abs(nanoseconds), 86_400 * 10**9)
    seconds, fraction = divmod(rest, 10**9)
    sign, whole = "-" if nanoseconds < 0 else "", f"P{days}D" if days or not rest else "P"
    if not rest:
        return f"{sign}{whole}"
    return f"{sign}{whole}T{f'{seconds}.{fraction:09}'.rstrip('0').rstrip('.')}S"


def said(value: Any) -> str:  # noqa: ANN401 - anything
    """Return what JSON says of a value that msgspec does not know, as pandas' times inside of lists.

    Raises:
        TypeError: nothing.
    """
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    raise TypeError(f"a {type(value).__name__} is nothing that JSON can hold")
