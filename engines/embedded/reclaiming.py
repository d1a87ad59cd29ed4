"""Space of heads that no document has any more: volumes without any are removed, those with a few emptied."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tantivy

from shinglefold.engines.embedded.schema import ADDRESS, find
from shinglefold.engines.embedded.sources import stored_sources
from shinglefold.engines.embedded.volumes import PLACE, Heads, RecordFiles, addresses, read_head

#: A volume is emptied when a quarter of its records are of documents: so each is written anew once at most
#: for three that were written over.
_SPARSE = 4
#: Documents read at a time.
_AT_ONCE = 1000


def live_counts(searcher: tantivy.Searcher) -> dict[int, int]:
    """Return how many documents have their heads in each volume. Cost: a pass over a column."""
    interval = {"histogram": {"field": ADDRESS, "interval": 1 << PLACE, "min_doc_count": 1}}
    told = searcher.aggregate(tantivy.Query.all_query(), {"volumes": interval})
    return {int(bucket["key"]) >> PLACE: bucket["doc_count"] for bucket in told["volumes"]["buckets"]}


def last_place(searcher: tantivy.Searcher, schema: tantivy.Schema, number: int) -> int:
    """Return where in a volume the last record is that a document has."""
    inside = _inside(schema, number)
    last = searcher.search(inside, 1, count=False, order_by_field=ADDRESS, order=tantivy.Order.Desc).hits
    return int(last[0][0]) - (number << PLACE) if last else 0


def is_own(searcher: tantivy.Searcher, schema: tantivy.Schema, volumes: RecordFiles, address: int) -> bool:
    """Tell whether what stands at an address is the head of the document that has this address."""
    try:
        query = tantivy.Query.term_query(schema, "_id", read_head(volumes.read(address)).id)
    except (ValueError, TypeError):
        return False
    hits = searcher.search(query, 1, count=False).hits
    return bool(hits) and addresses(searcher, [hits[0][1]]) == [address]


def sparse_files(lives: Mapping[int, int], records: Mapping[int, int]) -> list[int]:
    """Return the volumes that are worth emptying, given how many records each has."""
    return [number for number, count in records.items() if 0 < lives.get(number, 0) * _SPARSE <= count]


def relocate(
    searcher: tantivy.Searcher,
    schema: tantivy.Schema,
    heads: Heads,
    number: int,
    put: Callable[[str, Mapping[str, Any]], None],
) -> None:
    """Have the documents written anew whose heads are in a volume."""
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
