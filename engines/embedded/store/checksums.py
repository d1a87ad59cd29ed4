"""Whether the files of an index are whole: tantivy believes what it reads, and may panic over damage.

tantivy ends each of its files with a checksum but never looks at it. What has none, its list of segments, is
compared with what the files themselves tell.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import tantivy

from shinglefold.engines.embedded.store.compaction import is_own, last_place, live_counts
from shinglefold.engines.embedded.store.record_files import PLACE, RecordFiles, record_files, walk
from shinglefold.errors import EngineUnavailable, suggest

META = "meta.json"
_PARTS = ("idx", "pos", "term", "store", "fast", "fieldnorm")
_MAGIC = (1337).to_bytes(4, "little")
#: Longer than any footer tantivy writes, in bytes.
_LONGEST_FOOTER = 65_536
#: How the columns of a ``fast`` file end, since tantivy 0.20: number of rows, version, magic bytes.
_COLUMNS_END = b"\x02qwB"
#: Where somebody writes, files come and go while they are looked at.
TRIES = 5


def check_files(folder: Path, schema: int = 0, most: int | None = None) -> None:
    """Check tantivy's files.

    Args:
        folder: tantivy's, in that of the index.
        schema: the checksum of the schema, where it is known; see ``schema_checksum``.
        most: bytes up to which all contents are read, None for any number; beyond, only the files' ends are.

    Raises:
        EngineUnavailable: some are damaged or missing; the message names them.

    Cost: reads everything, at about 4 GB/s from memory.
    """
    if found := problems(folder, schema, most):
        raise damaged(folder.parent, found)


def damaged(folder: Path, found: list[str]) -> EngineUnavailable:
    """Return the error for an index with damaged files."""
    return EngineUnavailable(
        f"the index in {folder} is damaged: {'; '.join(found[:5])}. Restore the folder from a copy, or "
        f"delete the index ({suggest('delete', folder.name)}) and index again"
    )


def problems(folder: Path, schema: int = 0, most: int | None = None) -> list[str]:
    """Return what is wrong with tantivy's files, a line a file; see ``check_files``."""
    found: list[str] = []
    for _ in range(TRIES):
        before = _content(folder / META)
        found = list(_problems(folder, before, schema, most))
        if not found or before == _content(folder / META):
            break
    return found


def head_problems(index: tantivy.Index, folder: Path, most: int | None) -> list[str]:
    """Return what is wrong with the files of heads, a line a file.

    What no document refers to does not count: a killed writer may have left it. A volume that is whole may
    be one of another index, or of another time: the last document in it has to be its own.

    Args:
        most: see ``check_files``.

    Cost: a pass over the column of addresses, and what ``check_files`` costs.
    """
    searcher = index.searcher()
    there = dict(record_files(folder))
    whole = most is None or _size(there.values()) <= most
    opened = RecordFiles.of(folder)
    found = []
    used = sorted(live_counts(searcher))
    for number in used:
        if (file := there.get(number)) is None:
            found.append(f"{folder.name}/{number:08d}.records is missing")
            continue
        if not whole and number != used[-1]:
            # Each costs a pass, and an index is opened for every search of a command.
            continue
        try:
            end = walk(file).end if whole else file.stat().st_size
        except FileNotFoundError:
            end = 0
        last = last_place(searcher, index.schema, number)
        if last >= end or not is_own(searcher, index.schema, opened, number << PLACE | last):
            found.append(f"{folder.name}/{file.name} has another content than was written")
    return found


def segment_files(meta: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name of every file of an index, with its segment's entry in ``meta.json``."""
    for segment in meta["segments"]:
        name = segment["segment_id"].replace("-", "")
        for part in _PARTS:
            yield f"{name}.{part}", segment
        if segment["deletes"] is not None:
            yield f"{name}.{segment['deletes']['opstamp']}.del", segment


def schema_checksum(meta: Mapping[str, Any]) -> int:
    """Return the checksum of the schema in ``meta.json``; never 0."""
    return zlib.crc32(json.dumps(meta["schema"], sort_keys=True).encode()) or 1


def read_meta(folder: Path) -> dict[str, Any]:
    """Read ``meta.json``.

    Raises:
        OSError: it is missing or can't be read.
        ValueError: it is damaged.
    """
    meta: dict[str, Any] = json.loads((folder / META).read_bytes())
    return meta


def _problems(folder: Path, content: bytes, schema: int, most: int | None) -> Iterator[str]:
    try:
        meta = json.loads(content)
        files = list(segment_files(meta))
        wrong_schema = schema not in (0, schema_checksum(meta))
    except (ValueError, KeyError, TypeError, AttributeError):
        yield f"{META} {'can not be read' if content else 'is missing or empty'}"
        return
    if wrong_schema:
        yield f"{META} holds another schema than the index was made with"
    yield from _managed(folder)
    whole = most is None or _size(folder / name for name, _ in files) <= most
    for name, segment in files:
        if problem := _file_problem(folder / name, segment, whole):
            yield f"{name} {problem}"


def _managed(folder: Path) -> Iterator[str]:
    try:
        if not isinstance(json.loads((folder / ".managed.json").read_bytes()), list):
            yield ".managed.json is no list"
    except FileNotFoundError:
        # Reader goes without; a writer makes another.
        return
    except ValueError:
        yield ".managed.json can not be read"
    except OSError:
        # Its owner's alone, where the index is somebody else's.
        return


def _file_problem(file: Path, segment: Mapping[str, Any], whole: bool) -> str:
    """Return what is wrong with a file, or nothing."""
    try:
        with file.open("rb") as opened:
            size = opened.seek(0, 2)
            opened.seek(0 if whole else max(0, size - _LONGEST_FOOTER))
            content = opened.read()
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"can not be read ({error.strerror})"
    try:
        length = int.from_bytes(content[-8:-4], "little")
        footer = json.loads(content[-8 - length : -8])
        body, checksum = memoryview(content)[: -8 - length], footer["crc"]
        if content[-4:] != _MAGIC:
            raise ValueError("no magic bytes")
    except (ValueError, KeyError, TypeError):
        return "is cut off or overwritten"
    if whole and zlib.crc32(body) != checksum:
        return "has another content than was written"
    return _disagreement(file, body, segment, whole)


def _disagreement(file: Path, body: memoryview, segment: Mapping[str, Any], whole: bool) -> str:
    """Return how a file contradicts the list of segments, or nothing."""
    if file.suffix == ".fast" and body[-4:] == _COLUMNS_END:
        rows = int.from_bytes(body[-12:-8], "little")
        if rows != segment["max_doc"]:
            return f"has {rows} documents, {META} says {segment['max_doc']}"
    if file.suffix == ".del" and whole:
        alive = int.from_bytes(body[4:], "little").bit_count()
        deleted = int.from_bytes(body[:4], "little") - alive
        if deleted != segment["deletes"]["num_deleted_docs"]:
            return f"has {deleted} deletions, {META} says {segment['deletes']['num_deleted_docs']}"
    return ""


def _size(files: Iterable[Path]) -> int:
    size = 0
    for file in files:
        # Merges delete files while they are counted.
        with suppress(OSError):
            size += file.stat().st_size
    return size


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
