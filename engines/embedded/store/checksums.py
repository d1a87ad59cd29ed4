"""Check that the files of an index are undamaged, and reclaim the space of replaced documents.

tantivy ends each of its files with a checksum but never checks it, and may panic over damaged files. Its list
of segments has no checksum and is compared with the files.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import tantivy

from shinglefold.engines.embedded.schema.tantivy_schema import ADDRESS, search_top
from shinglefold.engines.embedded.store.document_encoder import stored_sources
from shinglefold.engines.embedded.store.record_files import (
    PLACE,
    Heads,
    RecordFiles,
    addresses,
    read_head,
    record_files,
    scan_file,
)
from shinglefold.errors import EngineUnavailable, suggest

#: A file is emptied when at most a quarter of its records are live: one document is rewritten for every three
#: that were replaced.
_SPARSE = 4
#: The number of documents read at a time.
_AT_ONCE = 1000


def live_counts(searcher: tantivy.Searcher) -> dict[int, int]:
    """Return the number of live records in each file. Cost: a pass over a column."""
    interval = {"histogram": {"field": ADDRESS, "interval": 1 << PLACE, "min_doc_count": 1}}
    response = searcher.aggregate(tantivy.Query.all_query(), {"volumes": interval})
    return {int(bucket["key"]) >> PLACE: bucket["doc_count"] for bucket in response["volumes"]["buckets"]}


def last_place(searcher: tantivy.Searcher, schema: tantivy.Schema, number: int) -> int:
    """Return the offset of the last live record in a file."""
    inside = _in_file(schema, number)
    last = searcher.search(inside, 1, count=False, order_by_field=ADDRESS, order=tantivy.Order.Desc).hits
    return int(last[0][0]) - (number << PLACE) if last else 0


def is_current(
    searcher: tantivy.Searcher, schema: tantivy.Schema, records: RecordFiles, address: int
) -> bool:
    """Return whether the record at an address is the head of the document with this address."""
    try:
        query = tantivy.Query.term_query(schema, "_id", read_head(records.read(address)).id)
    except (ValueError, TypeError):
        return False
    hits = searcher.search(query, 1, count=False).hits
    return bool(hits) and addresses(searcher, [hits[0][1]]) == [address]


def sparse_files(lives: Mapping[int, int], records: Mapping[int, int]) -> list[int]:
    """Return the files that are worth emptying, given the live records and all records of each."""
    return [number for number, count in records.items() if 0 < lives.get(number, 0) * _SPARSE <= count]


def relocate(
    searcher: tantivy.Searcher,
    schema: tantivy.Schema,
    heads: Heads,
    number: int,
    put: Callable[[str, Mapping[str, Any]], None],
) -> None:
    """Write the documents whose heads are in this file again."""
    for places in _batches(searcher, schema, number):
        for source in stored_sources(searcher, heads, places):
            put(read_head(source.head).id, source.load())


def _batches(
    searcher: tantivy.Searcher, schema: tantivy.Schema, number: int
) -> Iterator[list[tantivy.DocAddress]]:
    inside = _in_file(schema, number)
    count, _ = search_top(searcher, inside, 1)
    _, found = search_top(searcher, inside, count)
    for begin in range(0, count, _AT_ONCE):
        yield [place for _, place in found[begin : begin + _AT_ONCE]]


def _in_file(schema: tantivy.Schema, number: int) -> tantivy.Query:
    first = number << PLACE
    return tantivy.Query.range_query(
        schema, ADDRESS, tantivy.FieldType.Unsigned, first, first + (1 << PLACE), include_upper=False
    )


META = "meta.json"
_PARTS = ("idx", "pos", "term", "store", "fast", "fieldnorm")
_MAGIC = (1337).to_bytes(4, "little")
#: A number of bytes; no footer of tantivy is longer.
_LONGEST_FOOTER = 65_536
#: The end of the columns in a ``fast`` file since tantivy 0.20: number of rows, version, magic bytes.
_COLUMNS_END = b"\x02qwB"
#: How often a check is tried: a writer may create and remove files meanwhile.
TRIES = 5


def check_files(folder: Path, schema: int = 0, most: int | None = None) -> None:
    """Check tantivy's files.

    Args:
        folder: the folder of tantivy, inside the folder of the index.
        schema: the checksum of the schema if it is known, else 0; see ``schema_checksum``.
        most: read all contents up to this size in bytes, else only the ends of files; None sets no limit.

    Raises:
        EngineUnavailable: some are damaged or missing; the message names them.

    Cost: reads everything, at about 4 GB/s from memory.
    """
    found: list[str] = []
    for _ in range(TRIES):
        before = _content(folder / META)
        found = list(_problems(folder, before, schema, most))
        if not found or before == _content(folder / META):
            break
    if found:
        raise damage_error(folder.parent, found)


def damage_error(folder: Path, found: list[str]) -> EngineUnavailable:
    """Return the error for an index with damaged files."""
    return EngineUnavailable(
        f"the index in {folder} is damaged: {'; '.join(found[:5])}. Restore the folder from a copy, or "
        f"delete the index ({suggest('delete', folder.name)}) and index again"
    )


def head_problems(index: tantivy.Index, folder: Path, most: int | None) -> list[str]:
    """Return the problems of the record files of heads, one line for each file.

    Records without a document do not count: a killed writer may have left them. A file without damage may be
    that of another index or an old copy, so the last document in it must match.

    Args:
        most: see ``check_files``.

    Cost: a pass over the column of addresses, and that of ``check_files``.
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
            # Each file costs a pass, and every search from the command line opens an index.
            continue
        try:
            end = scan_file(file).end if whole else file.stat().st_size
        except FileNotFoundError:
            end = 0
        last = last_place(searcher, index.schema, number)
        if last >= end or not is_current(searcher, index.schema, opened, number << PLACE | last):
            found.append(f"{folder.name}/{file.name} has changed since it was written")
    return found


def segment_files(meta: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name of every file of an index with the entry of its segment in ``meta.json``."""
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
        yield f"{META} is unreadable" if content else f"{META} is missing or empty"
        return
    if wrong_schema:
        yield f"{META} holds another schema than the index was made with"
    yield from _managed_problems(folder)
    whole = most is None or _size(folder / name for name, _ in files) <= most
    for name, segment in files:
        if problem := _file_problem(folder / name, segment, whole):
            yield f"{name} {problem}"


def _managed_problems(folder: Path) -> Iterator[str]:
    try:
        if not isinstance(json.loads((folder / ".managed.json").read_bytes()), list):
            yield ".managed.json is not a list"
    except FileNotFoundError:
        # Readers do not need it, and a writer makes another.
        return
    except ValueError:
        yield ".managed.json can't be read"
    except OSError:
        # Only the owner can read the file, if the index is another user's.
        return


def _file_problem(file: Path, segment: Mapping[str, Any], whole: bool) -> str:
    """Return the problem of a file; empty if there is none."""
    try:
        with file.open("rb") as opened:
            size = opened.seek(0, 2)
            opened.seek(0 if whole else max(0, size - _LONGEST_FOOTER))
            content = opened.read()
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"can't be read ({error.strerror})"
    try:
        length = int.from_bytes(content[-8:-4], "little")
        footer = json.loads(content[-8 - length : -8])
        body, checksum = memoryview(content)[: -8 - length], footer["crc"]
        if content[-4:] != _MAGIC:
            raise ValueError("no magic bytes")
    except (ValueError, KeyError, TypeError):
        return "is cut off or overwritten"
    if whole and zlib.crc32(body) != checksum:
        return "has changed since it was written"
    return _contradiction(file, body, segment, whole)


def _contradiction(file: Path, body: memoryview, segment: Mapping[str, Any], whole: bool) -> str:
    """Return how a file contradicts the list of segments; empty if it does not."""
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
