"""A column in a file: rows of one width, appended block by block and mapped where they are read."""

from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from shinglefold.ingest.linking.shelf import Shelf, cut
from shinglefold.model import Int64s
from shinglefold.sketch import Words


class Column:
    """Rows of ``width`` values of a type; one value a row where the width is 0."""

    def __init__(self, shelf: Shelf, name: str, dtype: DTypeLike, width: int = 0) -> None:
        self.name = name
        self._file: IO[bytes] = shelf.file(name)
        self.dtype = np.dtype(dtype)
        self._width = width
        self._file.seek(0, 2)
        self._size = self._file.tell()

    @property
    def row_bytes(self) -> int:
        """The bytes of a row."""
        return self.dtype.itemsize * max(1, self._width)

    def __len__(self) -> int:
        return self._size // self.row_bytes

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows at the end."""
        data = np.ascontiguousarray(rows, self.dtype)
        self._file.write(data.data.cast("B") if data.size else b"")
        self._size += data.nbytes

    def write(self, begin: int, rows: NDArray[Any]) -> None:
        """Write rows over those from ``begin`` on."""
        self._file.seek(begin * self.row_bytes)
        self._file.write(np.ascontiguousarray(rows, self.dtype).data.cast("B"))
        self._file.seek(0, 2)

    def cut(self, rows: int) -> None:
        """Keep so many rows; those that were not there yet are zeros."""
        if self._size != rows * self.row_bytes:
            self._size = rows * self.row_bytes
            cut(self._file, self._size)

    def mapped(self) -> NDArray[Any]:
        """Return all rows, read from the file as they are looked at: (N,) or (N, width)."""
        self._file.flush()
        shape = (len(self), self._width) if self._width else (len(self),)
        if not len(self):
            return np.zeros(shape, self.dtype)
        # As a plain array: slices of the other kind are dear.
        return np.asarray(np.memmap(self._file, self.dtype, "r", shape=shape))

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """Return rows as an array of their own; nothing of the file stays mapped."""
        self._file.flush()
        self._file.seek(begin * self.row_bytes)
        data = np.frombuffer(self._file.read((end - begin) * self.row_bytes), self.dtype)
        self._file.seek(0, 2)
        return data.reshape(-1, self._width) if self._width else data


class Blobs:
    """Bytes of any length, one piece a document, in one file; where each ends is in another."""

    def __init__(self, shelf: Shelf, name: str) -> None:
        self._bytes = Column(shelf, name, np.uint8)
        self._ends = Column(shelf, f"{name}.ends", np.int64)

    @property
    def names(self) -> tuple[str, str]:
        """The names of its files."""
        return self._bytes.name, self._ends.name

    def append(self, data: bytes, sizes: Int64s) -> None:
        """Add pieces of so many bytes each, one after another in ``data``."""
        ends = np.cumsum(sizes) + len(self._bytes)
        self._bytes.append(np.frombuffer(data, np.uint8))
        self._ends.append(ends)

    def cut(self, pieces: int) -> None:
        """Keep so many pieces."""
        end = int(self._ends.read(pieces - 1, pieces)[0]) if pieces else 0
        self._ends.cut(pieces)
        self._bytes.cut(end)

    def bounds(self) -> Int64s:
        """Return where each piece begins, and where the last one ends: int64 (N + 1,)."""
        return np.concatenate((np.zeros(1, np.int64), self._ends.mapped()))

    def piece(self, number: int) -> bytes:
        """Return one piece."""
        begin, end = (
            int(self._ends.read(one, one + 1)[0]) if one >= 0 else 0 for one in (number - 1, number)
        )
        return self._bytes.read(begin, end).tobytes()

    def words(self) -> Words:
        """Return the pieces as words of four bytes."""
        return Words(self._bytes.mapped().view(np.uint32), self.bounds() // 4)

    def reader(self) -> "Pieces":
        """Return what gives out pieces fast."""
        return Pieces(self._bytes.mapped().data, self._ends.mapped())


class Pieces:
    """Pieces of bytes by number, out of mapped files."""

    def __init__(self, data: memoryview, ends: Int64s) -> None:
        self._data = data
        self._ends = ends

    def of(self, numbers: Int64s) -> list[bytes]:
        """Return some pieces."""
        data = self._data
        begins = np.where(numbers > 0, self._ends[numbers - 1], 0).tolist()
        ends = self._ends[numbers].tolist()
        return [data[begin:end].tobytes() for begin, end in zip(begins, ends, strict=True)]
