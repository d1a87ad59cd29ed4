"""Arrow's columns as arrays and back, without a Python object a row."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from shinglefold.model.values import Bytes, Int64s

#: An Arrow array.
Column = Any
#: Arrow's functions. They are made when pyarrow is imported, so type checkers don't know them.
compute: Any = pyarrow.compute


def numbers(column: Column) -> Int64s:
    """Return a column of integers without nulls, int64."""
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def bytes_of(column: Column) -> tuple[Bytes, Int64s]:
    """Return all bytes of a column of texts or bytes, and the bounds of its rows: int64 (D + 1,).

    A null has the length 0.
    """
    _, offsets, data = column.buffers()
    kind = (
        np.int64
        if pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
        else np.int32
    )
    if not len(column):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    bounds = np.frombuffer(offsets, kind)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    whole = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return whole[bounds[0] : bounds[-1]], bounds - bounds[0]


def matrix(column: Column, width: int) -> Bytes:
    """Return the rows of a column of texts or bytes, uint8 (D, width).

    Raises:
        ValueError: a row has another length.
    """
    data, bounds = bytes_of(column)
    if (np.diff(bounds) != width).any():
        raise ValueError(f"not all rows are of {width} bytes")
    return data.reshape(len(column), width)


def binary(rows: Bytes, valid: NDArray[np.bool_] | None = None) -> Column:
    """Return rows of bytes as a column, with null for rows that are not valid.

    Args:
        rows: uint8 (D, B), of all rows or of the valid ones.
        valid: bool (D,); None means that all rows are valid.
    """
    there = np.ones(len(rows), np.bool_) if valid is None else valid
    kept = rows if len(rows) == int(there.sum()) else rows[there]
    bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(there) * rows.shape[1])).astype(np.int32)
    data = np.ascontiguousarray(kept)
    mask = None if there.all() else _bits(there)
    return pa.Array.from_buffers(
        pa.binary(), len(there), [mask, pa.py_buffer(bounds), pa.py_buffer(data)], int((~there).sum())
    )


def lists(values: Int64s, sizes: Int64s) -> Column:
    """Return a column of lists of this many values each."""
    bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), pa.array(values))


def _bits(there: NDArray[np.bool_]) -> Any:  # noqa: ANN401 - a buffer
    return pa.py_buffer(np.packbits(there, bitorder="little"))


def run_starts(keys: Int64s) -> Int64s:
    """Return where each run of equal keys begins, int64; empty if there are no keys."""
    if not len(keys):
        return np.zeros(0, np.int64)
    return np.concatenate((np.zeros(1, np.int64), np.flatnonzero(keys[1:] != keys[:-1]) + 1))
