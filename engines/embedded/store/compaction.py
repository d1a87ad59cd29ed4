"""Compaction: record files without live records are removed, and those with few are emptied."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tantivy

from shinglefold.engines.embedded.schema.tantivy_schema import ADDRESS, find
from shinglefold.engines.embedded.store.record_files import PLACE, Heads, RecordFiles, addresses, read_head
from shinglefold.engines.embedded.store.source_codec import stored_sources

#: A file is emptied when at most a quarter of its records are live: one document is rewritten for every three
#: that were replaced.
_SPARSE = 4
#: Documents read at a time.
_AT_ONCE = 1000


def live_counts(searcher: tantivy.Searcher) -> dict[int, int]:
    """Return the number of live records in each file. Cost: a pass over a column."""
    interval = {"histogram": {"field": ADDRESS, "interval": 1 << PLACE, "min_doc_count": 1}}
    told = searcher.aggregate(tantivy.Query.all_query(), {"volumes": interval})
    return {int(bucket["key"]) >> PLACE: bucket["doc_count"] for bucket in told["volumes"]["buckets"]}


def last_place(searcher: tantivy.Searcher, schema: tantivy.Schema, number: int) -> int:
    """Return the offset of the last live record in a file."""
    inside = _inside(schema, number)
    last = searcher.search(inside, 1, count=False, order_by_field=ADDRESS, order=tantivy.Order.Desc).hits
    return int(last[0][0]) - (number << PLACE) if last else 0


def is_own(searcher: tantivy.Searcher, schema: tantivy.Schema, volumes: RecordFiles, address: int) -> bool:
    """Return whether the record at an address is the head of the document with this address."""
    try:
        query = tantivy.Query.term_query(schema, "_id", read_head(volumes.read(address)).id)
    except (ValueError, TypeError):
        return False
    hits = searcher.search(query, 1, count=False).hits
    return bool(hits) and addresses(searcher, [hits[0][1]]) == [address]


def sparse_files(lives: Mapping[int, int], records: Mapping[int, int]) -> list[int]:
    """Return the files worth emptying, given live records and all records of each."""
    return [number for number, count in records.items() if 0 < lives.get(number, 0) * _SPARSE <= count]


def relocate(
    searcher: tantivy.Searcher,
    schema: tantivy.Schema,
    heads: Heads,
    number: int,
    put: Callable[[str, Mapping[str, Any]], None],
) -> None:
    """Write the documents again whose heads are in a file."""
    for places in _several(searcher, schema, number):
        for source in stored_sources(searcher, heads, places):
            put(read_head(source.head).id, source.load())


def _several(
    searcher: tantivy.Searcher, schema: tantivy.Schema, number: int
) -> Iterator[list[tantivy.DocAddress]]:
    inside = _inside(schema, number)
    count, _ = find(searcher, inside, 1)
    _, found = find(searcher, inside, count)
    for begin in range(0, count, _AT_ONCE):
        yield [place for _, place in found[begin : begin + _AT_ONCE]]


def _inside(schema: tantivy.Schema, number: int) -> tantivy.Query:
    first = number << PLACE
    return tantivy.Query.range_query(
        schema, ADDRESS, tantivy.FieldType.Unsigned, first, first + (1 << PLACE), include_upper=False
    )
