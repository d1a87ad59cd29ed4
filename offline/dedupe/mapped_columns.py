"""Columns in temporary files: rows are appended block by block and mapped into memory where they are read."""

import tempfile
from contextlib import suppress
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from shinglefold.model.values import Int64s
from shinglefold.sketch import Words

_BUFFER = 1 << 20


class ColumnStore:
    """The temporary files of one run, without names, so that they end with the process."""

    def __init__(self) -> None:
        self._files: list[IO[bytes]] = []

    def new_file(self) -> IO[bytes]:
        """Return an empty file to read and write."""
        file = tempfile.TemporaryFile(buffering=_BUFFER)  # noqa: SIM115 - closed by close()
        self._files.append(file)
        return file

    def close(self) -> None:
        """Delete all files."""
        for file in self._files:
            # Closing writes the buffer, which fails on a full disk.
            with suppress(OSError):
                file.close()
        self._files.clear()


class MappedColumn:
    """Rows of ``width`` values of one type; if the width is 0, rows are single values."""

    def __init__(self, store: ColumnStore, dtype: DTypeLike, width: int = 0) -> None:
        self._file = store.new_file()
        self._dtype = np.dtype(dtype)
        self._width = width
        self._size = 0

    @property
    def row_bytes(self) -> int:
        """The bytes of a row."""
        return self._dtype.itemsize * max(1, self._width)

    def __len__(self) -> int:
        return self._size // self.row_bytes

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows at the end."""
        data = np.ascontiguousarray(rows, self._dtype)
        self._file.write(data.data.cast("B") if data.size else b"")
        self._size += data.nbytes

    def mapped(self) -> NDArray[Any]:
        """Return all rows, shape (N,) or (N, width); they are read from the file when they are used."""
        self._file.flush()
        shape = (len(self), self._width) if self._width else (len(self),)
        if not len(self):
            return np.zeros(shape, self._dtype)
        # A plain array, because slices of a memmap are slow.
        return np.asarray(np.memmap(self._file, self._dtype, "r", shape=shape))

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """Return a copy of the rows begin…end − 1; no part of the file stays mapped."""
        self._file.flush()
        self._file.seek(begin * self.row_bytes)
        data = np.frombuffer(self._file.read((end - begin) * self.row_bytes), self._dtype)
        self._file.seek(0, 2)
        return data.reshape(-1, self._width) if self._width else data


class Blobs:
    """Byte strings of any length: one column has the bytes, another one the end of each string."""

    def __init__(self, store: ColumnStore) -> None:
        self._bytes = MappedColumn(store, np.uint8)
        self._ends = MappedColumn(store, np.int64)

    def append(self, data: bytes, sizes: Int64s) -> None:
        """Add pieces of this many bytes each, one after another in ``data``."""
        ends = np.cumsum(sizes) + len(self._bytes)
        self._bytes.append(np.frombuffer(data, np.uint8))
        self._ends.append(ends)

    def __len__(self) -> int:
        return len(self._ends)

    def words(self) -> Words:
        """Return the pieces as words of four bytes."""
        bounds: Int64s = np.concatenate((np.zeros(1, np.int64), self._ends.mapped()))
        return Words(self._bytes.mapped().view(np.uint32), bounds // 4)

    def reader(self) -> "Pieces":
        """Return a fast reader of pieces by number."""
        return Pieces(self._bytes.mapped().data, self._ends.mapped())


class Pieces:
    """Reads pieces of bytes by number from mapped files."""

    def __init__(self, data: memoryview, ends: Int64s) -> None:
        self._data = data
        self._ends = ends

    def of(self, numbers: Int64s) -> list[bytes]:
        """Return the pieces with these numbers."""
        data = self._data
        begins = np.where(numbers > 0, self._ends[numbers - 1], 0).tolist()
        ends = self._ends[numbers].tolist()
        return [data[begin:end].tobytes() for begin, end in zip(begins, ends, strict=True)]
