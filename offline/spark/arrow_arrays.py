"""Arrow's columns as arrays and back, without a Python object a row."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from shinglefold.model.values import Bytes, Int64s
from shinglefold.offline.sign.parquet_file import text_buffers

#: An Arrow array.
Column = Any
#: Arrow's functions. They are made when pyarrow is imported, so type checkers don't know them.
compute: Any = pyarrow.compute


def numbers(column: Column) -> Int64s:
    """Return a column of integers without nulls, int64."""
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def matrix(column: Column, width: int) -> Bytes:
    """Return the rows of a column of texts or bytes, uint8 (D, width).

    Raises:
        ValueError: a row has another length.
    """
    data, sizes = text_buffers(column)
    if (sizes != width).any():
        raise ValueError(f"not all rows are of {width} bytes")
    return data.reshape(len(column), width)


def binary(rows: Bytes, valid: NDArray[np.bool_]) -> Column:
    """Return rows of bytes as a column, with null for rows that are not valid.

    Args:
        rows: uint8 (D, B), of all rows or of the valid ones.
        valid: bool (D,).
    """
    kept = rows if len(rows) == int(valid.sum()) else rows[valid]
    bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(valid) * rows.shape[1])).astype(np.int32)
    mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [mask, pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(kept))]
    return pa.Array.from_buffers(pa.binary(), len(valid), buffers, int((~valid).sum()))


def lists(values: Int64s, sizes: Int64s) -> Column:
    """Return a column of lists of this many values each."""
    bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), pa.array(values))


def run_starts(keys: Int64s) -> Int64s:
    """Return where each run of equal keys begins, int64; empty if there are no keys."""
    if not len(keys):
        return np.zeros(0, np.int64)
    return np.concatenate((np.zeros(1, np.int64), np.flatnonzero(keys[1:] != keys[:-1]) + 1))
