"""Pages by groups beside the engine's own collapse on an ordinary number, in turn and in any order."""

import random
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from time import perf_counter
from typing import Any

from bench.clock import awake
from bench.groups.stored import INDEX, SCHEME, count, engines, fill
from bench.table import Row
from shinglefold.contracts.engine import JSON, Engine
from shinglefold.rerank import FoldedSearch, FoldOptions, duplicates

_ROUNDS, _WARM = 160, 40
_SHOWN = ["title", "host"]
_MEMBERS = 5
Page = Callable[[JSON], JSON]
#: What pages are compared with.
_BARE, _INNER = "collapse", "collapse with members"
_SEARCHES: Mapping[str, Callable[[int], JSON]] = {
    "of one host with a word": lambda turn: {
        "bool": {
            "must": [{"match": {"title": str(turn % 97)}}],
            "filter": [{"term": {"host": f"h{turn % 7}.example"}}],
        }
    },
    "of one host": lambda turn: {"term": {"host": f"h{turn % 7}.example"}},
}


def measure() -> list[Row]:
    """Return medians of pages and their ratios, after asserting that the hits are the same."""
    with engines() as places, awake():
        return [row for name, engine in places for row in _measured(name, engine)]


def _measured(name: str, engine: Engine) -> Iterator[Row]:
    fill(engine, INDEX, count())
    search = FoldedSearch(engine, SCHEME)
    pages = _pages(engine, search)
    for what, query in _SEARCHES.items():
        _assert_same(pages, _body(query(0)))
        taken = _taken(pages, query)
        found = engine.search(INDEX, {"query": query(0), "size": 0, "track_total_hits": True})
        note = f"10 of {found['hits']['total']['value']:,}, {what}, of {count():,} documents; {name}"
        for page, times in taken.items():
            yield Row(f"{page}, p50", median(times) * 1e3, "ms", note)
        for page in taken:
            rival = _INNER if "with members" in page else _BARE
            if page != rival:
                yield Row(f"{page} ÷ {rival}, p50", median(taken[page]) / median(taken[rival]), "", note)


def _pages(engine: Engine, search: FoldedSearch) -> dict[str, Page]:
    inner = {"name": "others", "size": _MEMBERS + 1, "_source": _SHOWN}
    return {
        _BARE: lambda body: _collapsed(engine, body, {}),
        _INNER: lambda body: _collapsed(engine, body, {"inner_hits": inner}),
        "native page, members counted": lambda body: _native(search, body, 0),
        "native page, members counted, groups not": lambda body: _native(
            search, {**body, "track_total_hits": False}, 0
        ),
        "native page with members": lambda body: _native(search, body, _MEMBERS),
        "native page with members, groups not counted": lambda body: _native(
            search, {**body, "track_total_hits": False}, _MEMBERS
        ),
    }


def _taken(pages: Mapping[str, Page], query: Callable[[int], JSON]) -> dict[str, list[float]]:
    """Return the times of each kind of page, the kinds in turn, so that what slows one slows all."""
    taken: dict[str, list[float]] = {name: [] for name in pages}
    chance, order = random.Random(1), list(pages)
    for turn in range(_WARM + _ROUNDS):
        chance.shuffle(order)
        for name in order:
            start = perf_counter()
            pages[name](_body(query(turn)))
            if turn >= _WARM:
                taken[name].append(perf_counter() - start)
    return taken


def _body(query: JSON) -> JSON:
    return {"query": query, "size": 10, "_source": _SHOWN}


def _collapsed(engine: Engine, body: JSON, more: Mapping[str, Any]) -> JSON:
    return engine.search(INDEX, {**body, "collapse": {"field": "other", **more}})


def _native(search: FoldedSearch, body: JSON, members: int) -> JSON:
    return search.search(INDEX, body, FoldOptions(mode="native", members=members))


def _assert_same(pages: Mapping[str, Page], body: JSON) -> None:
    plain, native = pages[_INNER](body), pages["native page with members"](body)
    shown = [[hit["_id"] for hit in one["hits"]["hits"]] for one in (plain, native)]
    assert shown[0] == shown[1]
    counted = pages["native page, members counted"](body)["hits"]["hits"]
    for one, other, third in zip(plain["hits"]["hits"], native["hits"]["hits"], counted, strict=True):
        members = one["inner_hits"]["others"]["hits"]
        assert members["total"] == other["inner_hits"]["duplicates"]["hits"]["total"]
        assert members["total"] == third["inner_hits"]["duplicates"]["hits"]["total"]
        assert len(members["hits"]) == len(duplicates(other)) + 1
