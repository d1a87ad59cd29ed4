"""The lines of a task, read by the worker itself where the task is a range of bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, NamedTuple

from shinglefold.ingest.readers.record import Record
from shinglefold.ingest.readers.streams import Line
from shinglefold.offline.sign.tasks import ByteRange, LineRange

#: Bytes read ahead where a line is longer than its range.
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class RangeRead:
    """The lines of a task; see ``LineRange``. ``count``: of a range, that begin in it, blank ones too."""

    source: str
    encoding: str
    lines: Sequence[Line]
    count: int = 0
    refused: tuple[Record, ...] = ()
    replaced: int = 0
    named: bool = False


def read_lines(task: ByteRange | LineRange, max_bytes: int) -> RangeRead:
    """Return the lines of a task; those of a range are numbered from 1 on there.

    Args:
        max_bytes: a longer line has a reason instead of its bytes.
    """
    if isinstance(task, LineRange):
        return RangeRead(task.source, task.encoding, task.lines, 0, task.refused, task.replaced, task.named)
    found = _span_lines(task, max_bytes)
    return RangeRead(task.source, task.encoding, found, len(found))


class Stretch(NamedTuple):
    """The bytes of a range: whole lines from ``begin`` to ``end``, and the one that begins behind them."""

    data: bytes
    begin: int
    end: int
    last: Line | None


def read_stretch(task: ByteRange, max_bytes: int) -> Stretch:
    """Return the bytes of the lines that begin in a range.

    Args:
        max_bytes: a longer line has a reason instead of its bytes.
    """
    # Unbuffered: the whole range is one read.
    with open(task.source, "rb", buffering=0) as file:
        before = max(0, task.begin - 1)
        file.seek(before)
        data = _whole(file, task.end - before)
        # A line that begins before the range is another task's; what is behind its end begins here.
        begin = data.find(b"\n") + 1 if task.begin else 0
        if task.begin and not begin:
            return Stretch(data, 0, 0, None)
        end = data.rfind(b"\n") + 1
        if end == len(data):
            return Stretch(data, begin, end, None)
        last, reason = _to_its_end(file, data[end:], max_bytes)
        return Stretch(data, begin, end, Line(0, last.rstrip(b"\r"), reason))


def _span_lines(task: ByteRange, max_bytes: int) -> list[Line]:
    data, begin, end, last = read_stretch(task, max_bytes)
    found = _numbered(data[begin:end].split(b"\n")[:-1])
    return found if last is None else [*found, last._replace(number=len(found) + 1)]


def _numbered(raws: Sequence[bytes]) -> list[Line]:
    return [Line(number, raw.rstrip(b"\r"), "") for number, raw in enumerate(raws, 1)]


def _whole(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


def _to_its_end(file: IO[bytes], begun: bytes, max_bytes: int) -> tuple[bytes, str]:
    """Return a line that goes on behind its range, or why it is left out."""
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
