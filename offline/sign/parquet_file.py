"""Open Parquet files; pyarrow is imported only then."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shinglefold.errors import InputError, MissingExtra, reason_of

if TYPE_CHECKING:
    from types import ModuleType


def row_counts(source: str) -> list[int]:
    """Return the number of rows of each row group.

    Raises:
        MissingExtra: pyarrow is not installed.
        InputError: it is no Parquet file.
    """
    metadata = parquet_file(source).metadata
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


def parquet_file(source: str) -> Any:  # noqa: ANN401 - pyarrow's
    """Return a Parquet file, opened.

    Raises:
        InputError: it is none, or can't be read.
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
    """Return the module ``pyarrow``.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtra("parquet", "reading and writing Parquet") from error
    return import_module("pyarrow")
