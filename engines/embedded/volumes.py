"""Files of records that are only ever added to: what a commit wrote at once is a batch with a checksum.

A record is found by its address alone, which tantivy keeps as one number a document and carries along when it
merges. A killed writer may leave half a batch at an end; nothing refers to it, and nothing is written behind
it: the next writer begins another volume.

The records are heads: the id of a document and the objects at its top level, readable without the page they
belong to. A window of hits needs a small object of each of some hundred documents. Stored fields are
compressed in blocks together with the pages, so reading them costs what the pages are long (measured: 15 ms
for 200 pages of 14 kB). Columns are not, but tantivy gives numbers only. So one column has the addresses of
the heads: reading 200 of 600 bytes takes 0.3 ms.
"""

import json
import mmap
import os
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import tantivy

from shinglefold.durable import sync_folder
from shinglefold.engines.embedded.schema import ADDRESS

#: Magic bytes, checksum of all that follows in the batch, bytes and number of its records.
_HEADER = struct.Struct("<4sIQI")
_MAGIC = b"sfv1"
_LENGTH = struct.Struct("<I")
#: Marks the length of a record that another one belongs to, which follows it.
_HAS_PAYLOAD = 1 << 31
#: Bits of an address that say where in its volume a record is.
PLACE = 40
_IN_VOLUME = (1 << PLACE) - 1
#: Bytes after which another volume is begun, and those that are held in memory before they are written.
VOLUME, _HELD = 64_000_000, 4_000_000
_NAME = re.compile(r"\d{8}\.records")


class Walked(NamedTuple):
    """A volume read through: bytes up to which it is whole, bytes it has, records in its whole part."""

    end: int
    size: int
    records: int


class RecordAppender:
    """Adds records behind the last volume; one at a time for a folder.

    Args:
        end: address behind the last record, where this process wrote it itself.
    """

    def __init__(self, folder: Path, end: int = 0) -> None:
        self._folder = folder
        self._number, self._end = _last_end(folder, end)
        self._file: IO[bytes] | None = None
        self._batch = bytearray()
        self._records = 0
        self._unsynced = False
        #: Whether a batch may stand behind the end in part, as whoever wrote it was interrupted.
        self._torn = False
        #: How many volumes were begun.
        self.begun = 0

    @property
    def end(self) -> int:
        """The address behind what was written."""
        return self._number << PLACE | self._end

    def add(self, data: bytes, payload: bytes | None = None) -> int:
        """Take a record and return its address; it can be read after ``flush``.

        Args:
            payload: belongs to it, and is read apart.

        Raises:
            OSError: it can't be written.
        """
        if not self._batch and (not self._number or self._end >= VOLUME):
            self._begin()
        place = self._end + _HEADER.size + len(self._batch)
        self._batch += _LENGTH.pack(len(data) if payload is None else len(data) | _HAS_PAYLOAD)
        self._batch += data
        if payload is not None:
            self._batch += _LENGTH.pack(len(payload))
            self._batch += payload
        self._records += 1
        if len(self._batch) >= _HELD:
            self._write()
        return self._number << PLACE | place

    def flush(self) -> None:
        """Make all records durable.

        Raises:
            OSError: they can't be written.
        """
        self._write()
        if self._unsynced and self._file is not None:
            os.fsync(self._file.fileno())
            self._unsynced = False

    def close(self) -> None:
        """Let go of the file; what was not flushed is lost."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self) -> None:
        if not self._batch:
            return
        if self._file is None:
            self._file = open(_path(self._folder, self._number), "ab", buffering=0)  # noqa: SIM115
        covered = _covered(len(self._batch), self._records)
        header = _HEADER.pack(
            _MAGIC, zlib.crc32(self._batch, zlib.crc32(covered)), len(self._batch), self._records
        )
        if self._torn:
            # Addresses go by what was written whole.
            self._file.seek(self._end)
            self._file.truncate()
        self._torn = True
        written = 0
        whole = memoryview(header + self._batch)
        while written < len(whole):
            written += self._file.write(whole[written:])
        self._end += len(whole)
        self._batch, self._records, self._unsynced = bytearray(), 0, True
        self._torn = False

    def _begin(self) -> None:
        self.flush()
        self.close()
        if not self._folder.exists():
            self._folder.mkdir()
            sync_folder(self._folder.parent)
        number = self._number + 1
        # Whoever was interrupted here left an empty file.
        opened = open(_path(self._folder, number), "wb", buffering=0)  # noqa: SIM115
        sync_folder(self._folder)
        self._file, self._number, self._end = opened, number, 0
        self.begun += 1


class RecordFiles:
    """Record files as they were at one moment, open for reading; they stay when others are removed."""

    def __init__(self, maps: Mapping[int, mmap.mmap]) -> None:
        self.maps = maps

    @classmethod
    def of(cls, folder: Path, before: "RecordFiles | None" = None) -> "RecordFiles":
        """Open what there is in a folder; what ``before`` has open already stays so."""
        known = before.maps if before is not None else {}
        maps: dict[int, mmap.mmap] = {}
        for number, file in record_files(folder):
            try:
                size = file.stat().st_size
                if number in known and len(known[number]) == size:
                    maps[number] = known[number]
                elif size:
                    with file.open("rb") as opened:
                        maps[number] = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            except FileNotFoundError:
                continue
        return cls(maps)

    def __or__(self, others: "RecordFiles") -> "RecordFiles":
        """Return these volumes and others; of those that both have, the others."""
        return RecordFiles({**self.maps, **others.maps})

    def read(self, address: int) -> bytes:
        """Return a record, without what belongs to it.

        Raises:
            ValueError: there is none.
        """
        mapped, begin, length = self._found(address)
        return mapped[begin : begin + (length & ~_HAS_PAYLOAD)]

    def payload(self, address: int) -> bytes | None:
        """Return what belongs to a record, None where nothing does.

        Raises:
            ValueError: there is no such record.
        """
        _, _, length = self._found(address)
        return self.read(address + _LENGTH.size + (length & ~_HAS_PAYLOAD)) if length & _HAS_PAYLOAD else None

    def _found(self, address: int) -> tuple[mmap.mmap, int, int]:
        """Return where a record is, and its length with its mark."""
        place = address & _IN_VOLUME
        mapped = self.maps.get(address >> PLACE)
        if mapped is None or place + _LENGTH.size > len(mapped):
            raise ValueError(f"no record at {place} of volume {address >> PLACE}")
        begin = place + _LENGTH.size
        return mapped, begin, int.from_bytes(mapped[place:begin], "little")


def record_files(folder: Path) -> list[tuple[int, Path]]:
    """Return the volumes in a folder by number."""
    try:
        names = sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))
    except FileNotFoundError:
        return []
    return [(int(name.partition(".")[0]), folder / name) for name in names]


def walk(file: Path, contents: bool = True) -> Walked:
    """Read a volume through.

    Args:
        contents: compare all contents with their checksums, and do not believe what batches begin with.

    Cost: about 1 GB/s from memory; without contents 2 µs a batch.
    """
    with file.open("rb") as opened:
        size = opened.seek(0, 2)
        opened.seek(0)
        end = records = 0
        for length, count in _batches(opened, size, contents):
            end += length
            records += count
    return Walked(end, size, records)


def _batches(opened: IO[bytes], size: int, contents: bool) -> Iterator[tuple[int, int]]:
    """Yield bytes and records of each batch up to one that is not whole."""
    while len(header := opened.read(_HEADER.size)) == _HEADER.size:
        magic, checksum, length, count = _HEADER.unpack(header)
        if magic != _MAGIC or length > size - opened.tell():
            return
        if not contents:
            opened.seek(length, 1)
        elif zlib.crc32(opened.read(length), zlib.crc32(_covered(length, count))) != checksum:
            return
        yield _HEADER.size + length, count


def _covered(length: int, count: int) -> bytes:
    return struct.pack("<QI", length, count)


def _last_end(folder: Path, known: int) -> tuple[int, int]:
    """Return the last volume and where to go on in it; behind half a batch another is begun."""
    there = record_files(folder)
    if not there:
        return 0, 0
    number, file = there[-1]
    if known == number << PLACE | file.stat().st_size:
        return number, known & _IN_VOLUME
    found = walk(file)
    return number, found.end if found.end == found.size else VOLUME


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:08d}.records"


#: The folder of the files of heads, beside tantivy's.
FOLDER = "heads"


class Head(NamedTuple):
    """The id of a document and the objects at its top level, by name."""

    id: str
    parts: dict[str, Any]


def read_head(data: bytes) -> Head:
    """Return the head that JSON holds."""
    id_, parts = json.loads(data.decode("utf-8", "surrogatepass"))
    return Head(id_, parts)


class Heads:
    """The heads of an index. Cost: about 1.5 µs each."""

    def __init__(self, records: RecordFiles) -> None:
        self._records = records

    def load(self, searcher: tantivy.Searcher, places: Sequence[tantivy.DocAddress]) -> list[bytes]:
        """Return the heads of documents, as JSON."""
        read = self._records.read
        found = addresses(searcher, places)
        return [b'["", {}]' if address is None else read(address) for address in found]

    def payload(self, searcher: tantivy.Searcher, place: tantivy.DocAddress) -> bytes | None:
        """Return what stands beside the head of a document, None where nothing does."""
        (address,) = addresses(searcher, [place])
        return None if address is None else self._records.payload(address)


def addresses(searcher: tantivy.Searcher, places: Sequence[tantivy.DocAddress]) -> list[int | None]:
    """Return the addresses of the heads of documents."""
    found = searcher.fast_field_values(ADDRESS, list(places))
    return [None if address is None else int(address) for address in found]
