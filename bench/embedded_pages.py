"""What a sorted page of the embedded engine costs: at the top, in a walk, and the walk itself."""

import random
from collections.abc import Iterator
from contextlib import closing
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from bench.table import Row
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.model.values import Token

SIZES = (10_000, 40_000, 160_000)
_PAGE = 200
#: Pages of a walk that are timed; the walk as a whole is these times the pages there are.
_TIMED = 20
_SORTS: dict[str, list[Any]] = {
    "place": [{"_shard_doc": "asc"}],
    "date": [{"day": "desc"}],
    "keyword": [{"host": "asc"}],
    "number and keyword": [{"number": "desc"}, {"host": "asc"}],
}


def measure() -> list[Row]:
    """Return milliseconds of pages of 200 hits without sources, by order and documents of the index."""
    return [row for count in SIZES for row in _measure(count)]


def _measure(count: int) -> Iterator[Row]:
    with TemporaryDirectory() as path, closing(EmbeddedEngine(path, _words)) as engine:
        _fill(engine, count)
        for name, sort in _SORTS.items():
            first, next_, pages = _walk(engine, sort)
            note = f"{count:,} documents, all of them found, under a point in time"
            yield Row(f"{count:,} by {name}, top page", first, "ms", note)
            yield Row(f"{count:,} by {name}, page with a cursor", median(next_), "ms", f"median of {_TIMED}")
            whole = (first + max(next_) + median(next_) * (count // _PAGE - 2)) / 1000
            yield Row(f"{count:,} by {name}, walk of all", whole, "s", f"reckoned from {pages} pages")


def _walk(engine: EmbeddedEngine, sort: list[Any]) -> tuple[float, list[float], int]:
    """Return the times of the top page and of those behind it, in milliseconds, and how many were read."""
    body: dict[str, Any] = {
        "pit": {"id": engine.open_pit("pages")},
        "sort": sort,
        "size": _PAGE,
        "_source": False,
        "track_total_hits": False,
    }
    times = []
    seen: set[str] = set()
    for _ in range(_TIMED + 1):
        began = perf_counter()
        hits = engine.search(None, body)["hits"]["hits"]
        times.append((perf_counter() - began) * 1000)
        body["search_after"] = hits[-1]["sort"]
        seen.update(hit["_id"] for hit in hits)
    engine.close_pit(body["pit"]["id"])
    assert len(seen) == _PAGE * len(times)
    return times[0], times[1:], len(times)


def _fill(engine: EmbeddedEngine, count: int) -> None:
    chance = random.Random(1)
    properties = {"day": {"type": "date"}, "host": {"type": "keyword"}, "number": {"type": "long"}}
    engine.create_index("pages", {"properties": properties}, {})
    done = engine.bulk(
        {
            "_index": "pages",
            "_id": str(number),
            "_source": {
                "day": 1_700_000_000_000 + chance.randrange(10**9) * 100,
                "host": f"host{chance.randrange(500)}",
                "number": chance.randrange(1000),
            },
        }
        for number in range(count)
    )
    assert done.indexed == count
    engine.refresh("pages")


def _words(text: str) -> list[Token]:
    return [Token(text, 0, len(text), "any")]
