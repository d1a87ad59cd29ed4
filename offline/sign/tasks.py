"""The tasks that a worker signs: a range of bytes, some lines, or a row group."""

from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from shinglefold.ingest.readers.encodings import codec_of, detect_encoding
from shinglefold.ingest.readers.jsonl import parse_line
from shinglefold.ingest.readers.read import format_of, read
from shinglefold.ingest.readers.record import ReadOptions, Record
from shinglefold.ingest.readers.streams import (
    STANDARD_INPUT,
    Line,
    is_compressed,
    lines,
    newline_stream,
    open_source,
    read_errors,
)
from shinglefold.offline.sign.parquet_file import parquet_file

#: Bytes of a range. The first ranges are smaller, so that the first document is out at once.
LARGEST, _SMALLEST = 1 << 22, 1 << 16
PARQUET = (".parquet", ".pq")
_UTF8 = "utf-8"


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The lines of a file that begin in a range of its bytes; ``begin`` may be inside a line."""

    source: str
    begin: int
    end: int
    encoding: str
    fraction: float


@dataclass(frozen=True, slots=True)
class LineRange:
    """Lines that must be read in order, from a pipe, a compressed file, CSV or a folder.

    ``refused``: records among them without a document. ``named``: the reader has added the ``_id``, which is
    not written if another field has it. ``count``: if they are from a range of bytes, how many lines begin in
    it, blank ones too.
    """

    source: str
    lines: tuple[Line, ...]
    encoding: str
    fraction: float
    refused: tuple[Record, ...] = ()
    replaced: int = 0
    named: bool = False
    count: int = 0


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a Parquet file; ``first`` is the number of its first row in the file."""

    source: str
    number: int
    first: int
    fraction: float


Task = ByteRange | LineRange | RowGroup


def tasks(sources: Sequence[str], options: ReadOptions, prefixes: dict[int, str]) -> Iterator[Task]:
    """Yield the tasks of all sources, in order; the same files always give the same tasks.

    Args:
        prefixes: prefixes of the ids of pages, by the number of their source.
    """
    for number, source in enumerate(sources):
        own = replace(options, prefix=prefixes.get(number, ""))
        for task in source_tasks(source, own):
            yield replace(task, fraction=(number + task.fraction) / len(sources))


def is_repeatable(source: str) -> bool:
    """Return whether a source can be read twice, which a pipe cannot."""
    return source != STANDARD_INPUT and (Path(source).is_file() or Path(source).is_dir())


def is_parquet(source: str) -> bool:
    """Return whether a source is a Parquet file by its name."""
    return source.lower().endswith(PARQUET)


def known_size(sources: Sequence[str]) -> int:
    """Return the bytes of the sources that are files."""
    return sum(Path(source).stat().st_size for source in sources if Path(source).is_file())


def source_tasks(source: str, options: ReadOptions) -> Iterator[Task]:
    """Yield the tasks of one source."""
    if is_parquet(source):
        yield from row_groups(source)
    elif Path(source).is_dir() or format_of(source, options) != "jsonl":
        yield from record_tasks(source, read(source, options))
    elif encoding := _spannable(source, options):
        yield from _spans(source, encoding)
    else:
        yield from _of_stream(source, options)


def row_groups(source: str) -> Iterator[Task]:
    """Yield the row groups of a Parquet file; raises as ``parquet_file``."""
    metadata, first = parquet_file(source).metadata, 1
    for number in range(metadata.num_row_groups):
        after = first + metadata.row_group(number).num_rows
        yield RowGroup(source, number, first, (after - 1) / (metadata.num_rows or 1))
        first = after


def _spannable(source: str, options: ReadOptions) -> str:
    """Return the encoding of a file whose lines can be found from any byte on; empty for other sources."""
    if not Path(source).is_file():
        return ""
    with read_errors(source), open(source, "rb") as file:
        head = file.read(4)
    name = codec_of(options.encoding) if options.encoding else detect_encoding(head)
    return name if "\n".encode(name) == b"\n" and not is_compressed(head) else ""


def _spans(source: str, encoding: str) -> Iterator[Task]:
    size, begin = Path(source).stat().st_size, 0
    while begin < size:
        end = min(size, begin + min(LARGEST, max(_SMALLEST, begin)))
        yield ByteRange(source, begin, end, encoding, end / size)
        begin = end


class _Block:
    """Lines collected for a task."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.refused: list[Record] = []
        self.replaced = 0
        self.size = 0
        self._budget = _SMALLEST

    @property
    def full(self) -> bool:
        return self.size > self._budget or len(self.refused) > 1_000

    def add(self, line: Line) -> None:
        self.lines.append(line)
        self.size += len(line.raw)

    def take(self, source: str, encoding: str, fraction: float, named: bool = False) -> LineRange:
        taken = LineRange(
            source, tuple(self.lines), encoding, fraction, tuple(self.refused), self.replaced, named
        )
        self.lines, self.refused, self.replaced, self.size = [], [], 0, 0
        self._budget = min(LARGEST, 2 * self._budget)
        return taken

    @property
    def empty(self) -> bool:
        return not (self.lines or self.refused)


def _of_stream(source: str, options: ReadOptions) -> Iterator[Task]:
    with open_source(source) as found:
        stream, encoding = newline_stream(found.stream, options.encoding)
        block = _Block()
        for line in lines(stream, options.max_bytes):
            block.add(line)
            if block.full:
                yield block.take(found.name, encoding, found.fraction())
        if not block.empty:
            yield block.take(found.name, encoding, 1.0)


def record_tasks(source: str, records: Iterator[Record]) -> Iterator[Task]:
    """Yield tasks of records, encoded as JSON lines again."""
    encode = msgspec.json.Encoder().encode
    block = _Block()
    for record in records:
        block.replaced += record.replaced
        if record.document is None:
            block.refused.append(record)
        else:
            block.add(Line(record.line, encode(record.document), "", record.source))
        if block.full:
            yield block.take(source, _UTF8, record.fraction, named=True)
    if not block.empty:
        yield block.take(source, _UTF8, 1.0, named=True)


#: How many bytes are read at a time beyond a range, to find the end of its last line.
_CHUNK = 1 << 20


def read_lines(task: ByteRange | LineRange, max_bytes: int) -> LineRange:
    """Return the lines of a task; the lines of a range of bytes are numbered from 1.

    Args:
        max_bytes: a longer line gets a reason instead of its bytes.
    """
    if isinstance(task, LineRange):
        return task
    data, begin, end, last = read_range(task, max_bytes)
    raws = data[begin:end].split(b"\n")[:-1]
    found = [Line(number, raw.rstrip(b"\r"), "") for number, raw in enumerate(raws, 1)]
    if last is not None:
        found.append(last._replace(number=len(found) + 1))
    return LineRange(task.source, tuple(found), task.encoding, task.fraction, count=len(found))


def record_of(line: Line, source: str, options: ReadOptions) -> Record | None:
    """Return the record of a line, whose encoding is that of ``options``; None for a blank line."""
    raw = line.raw.removeprefix(BOM_UTF8) if options.encoding == _UTF8 else line.raw
    if not raw.strip() and not line.reason:
        return None
    return parse_line(line._replace(raw=raw), line.file or source, options)


class RangeBytes(NamedTuple):
    """The bytes of a range: complete lines from ``begin`` to ``end``, and ``last``, which ends after it."""

    data: bytes
    begin: int
    end: int
    last: Line | None


def read_range(task: ByteRange, max_bytes: int) -> RangeBytes:
    """Return the bytes of the lines that begin in a range.

    Args:
        max_bytes: a longer last line gets a reason instead of its bytes.
    """
    # Unbuffered: the whole range is one read.
    with read_errors(task.source), open(task.source, "rb", buffering=0) as file:
        before = max(0, task.begin - 1)
        file.seek(before)
        data = _whole(file, task.end - before)
        # A line that begins before the range belongs to the task before.
        begin = data.find(b"\n") + 1 if task.begin else 0
        if task.begin and not begin:
            return RangeBytes(data, 0, 0, None)
        end = data.rfind(b"\n") + 1
        if end == len(data):
            return RangeBytes(data, begin, end, None)
        last, reason = _to_its_end(file, data[end:], max_bytes)
        return RangeBytes(data, begin, end, Line(0, last.rstrip(b"\r"), reason))


def _whole(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


def _to_its_end(file: IO[bytes], begun: bytes, max_bytes: int) -> tuple[bytes, str]:
    """Return a line that ends after its range, or the reason why it is left out."""
    pieces, size = [begun], len(begun)
    while more := file.read(_CHUNK):
        head, newline, _ = more.partition(b"\n")
        pieces.append(head)
        size += len(head)
        if newline or size > max_bytes:
            break
    if size > max_bytes:
        return b"", f"longer than {max_bytes:,} bytes"
    return b"".join(pieces), ""
