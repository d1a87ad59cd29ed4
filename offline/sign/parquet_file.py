"""Opens Parquet files, joins their schemas, and converts their rows; imports pyarrow only then."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from shinglefold.errors import ConfigError, InputError, MissingExtra, reason_of
from shinglefold.model.values import Bytes, Int64s

if TYPE_CHECKING:
    from types import ModuleType


def parquet_file(source: str) -> Any:  # noqa: ANN401 - pyarrow's
    """Open a Parquet file.

    Raises:
        InputError: the source is not a Parquet file, or can't be read.
        MissingExtra: pyarrow is not installed.
    """
    pa = pyarrow_module()
    try:
        return pa.parquet.ParquetFile(source)
    except pa.ArrowInvalid as error:
        raise InputError(f"cannot read {source}: it is no Parquet file, or damaged") from error
    except FileNotFoundError as error:
        raise InputError(f"cannot read {source}: no such file; check the path") from error
    except OSError as error:
        raise InputError(f"cannot read {source}: {reason_of(error)}; check the path") from error


def pyarrow_module() -> "ModuleType":
    """Return the module ``pyarrow``; raise ``MissingExtra`` if it is not installed."""
    try:
        import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtra("parquet", "reading and writing Parquet") from error
    return import_module("pyarrow")


def text_buffers(column: Any) -> tuple[Bytes, Int64s]:  # noqa: ANN401 - pyarrow's
    """Return the bytes of a column of texts or bytes, one after another, and the size of each row.

    Raises:
        ValueError: Arrow stores the column in another form, such as that of a dictionary.
    """
    import pyarrow as pa

    large = column.type in (pa.large_string(), pa.large_binary())
    if not large and column.type not in (pa.string(), pa.binary()):
        raise ValueError(f"the bytes of {column.type} are not one after another")
    if not len(column):
        return np.zeros(0, np.uint8), np.zeros(0, np.int64)
    _, ends, data = column.buffers()
    bounds = np.frombuffer(ends, np.int64 if large else np.int32)
    bounds = bounds[column.offset : column.offset + len(column) + 1].astype(np.int64)
    whole = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return whole[bounds[0] : bounds[-1]], np.diff(bounds)


def check_types(schemas: Mapping[str, Any]) -> None:
    """Check that sources have the columns of one table, with types that hold all values unchanged.

    Args:
        schemas: the schemas by the names of the sources.

    Raises:
        ConfigError: they do not.
    """
    (first, schema), *others = schemas.items()
    for source, other in others:
        names = set(schema.names) ^ set(other.names)
        if names:
            lacking = source if (name := min(names)) in schema.names else first
            raise _column_mismatch(first, source, f"{lacking} has no [{name}]")
        for field in schema:
            kinds = field.type, other.field(field.name).type
            if _common(*kinds) is None:
                raise _column_mismatch(first, source, f"[{field.name}] is {kinds[0]} and {kinds[1]}")
        schema = common([schema, other])


def _column_mismatch(first: str, source: str, why: str) -> ConfigError:
    return ConfigError(
        f"{first} and {source} have different columns ({why}), of which no one table can be made: sign them "
        "into a file each, or add --only-ids"
    )


def common(schemas: Sequence[Any]) -> Any:  # noqa: ANN401 - pyarrow's
    """Return the schema of a table that can hold the rows of tables of all these schemas."""
    first, *others = schemas
    for other in others:
        if other.equals(first):
            continue
        for number, field in enumerate(first):
            kind = _common(field.type, other.field(field.name).type)
            assert kind is not None
            first = first.set(number, field.with_type(kind).with_nullable(True))
    return first


def _common(one: Any, other: Any) -> Any:  # noqa: ANN401 - pyarrow's
    """Return the type that holds the values of two types unchanged; None if there is none."""
    import pyarrow as pa

    kinds = pa.types
    if one == other or kinds.is_null(other):
        return one
    if kinds.is_null(one):
        return other
    one, other = _plain(one), _plain(other)
    if one == other:
        return one
    whole = kinds.is_integer(one) and kinds.is_integer(other)
    if whole and pa.uint64() not in (one, other):
        return pa.int64()
    if kinds.is_floating(one) and kinds.is_floating(other):
        return pa.float64()
    return None


def _plain(kind: Any) -> Any:  # noqa: ANN401 - pyarrow's
    """Return the plain type for the values of a type that only stores them differently."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)


#: Errors of Arrow for values without a Python object: years beyond 9999, text that is not UTF-8, unknown
#: time zones.
_BEYOND = (ValueError, OverflowError, TypeError, KeyError, NotImplementedError)
_OFFSET = re.compile(r"([+-]\d\d)(\d\d)$")
_Row = dict[str, Any]


def rows_of(batch: Any) -> list[_Row | str]:  # noqa: ANN401 - pyarrow's
    """Return the rows of a batch; a reason replaces a row with a value that JSON can't hold."""
    names = batch.schema.names
    columns = [_plain_value(column) for column in batch.columns]
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


def _plain_value(column: Any) -> Any:  # noqa: ANN401 - pyarrow's
    """Return a column without nanoseconds, whose Python objects depend on whether pandas is installed.

    They become microseconds if nothing is lost, else text of the same form.
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
        return _nanoseconds_as_text(column)


def _nanoseconds_as_text(column: Any) -> Any:  # noqa: ANN401 - pyarrow's
    """Return a column of nanoseconds as text; the same column if its time zone is unknown."""
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
    """Return a duration in ISO 8601, as msgspec writes those of microseconds: PT1.5S, -P1DT2S."""
    days, rest = divmod(abs(nanoseconds), 86_400 * 10**9)
    seconds, fraction = divmod(rest, 10**9)
    sign, whole = "-" if nanoseconds < 0 else "", f"P{days}D" if days or not rest else "P"
    if not rest:
        return f"{sign}{whole}"
    return f"{sign}{whole}T{f'{seconds}.{fraction:09}'.rstrip('0').rstrip('.')}S"


def encode_special(value: Any) -> str:  # noqa: ANN401 - anything
    """Encode what msgspec does not know, such as the times of pandas; ``TypeError`` if JSON can't."""
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    raise TypeError(f"a {type(value).__name__} is nothing that JSON can hold")
