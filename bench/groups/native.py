"""Pages by groups beside the engine's own collapse on an ordinary number, taken in turn."""

from collections.abc import Callable, Iterator, Mapping
from statistics import median
from time import perf_counter
from typing import Any

from bench.awake import awake
from bench.groups.places import engines
from bench.groups.similar import INDEX
from bench.groups.stored import SCHEME, count, fill
from bench.table import Row
from shinglefold.contracts import JSON, Engine
from shinglefold.rerank import FoldedSearch, FoldOptions, duplicates

_ROUNDS, _WARM = 200, 30
_SHOWN = ["title", "host"]
_MEMBERS = 5
Page = Callable[[JSON], JSON]


def measure() -> list[Row]:
    """Return medians of pages and their ratios, after asserting that the hits are the same."""
    with engines() as places, awake():
        return [row for name, engine in places for row in _measured(name, engine)]


def _measured(name: str, engine: Engine) -> Iterator[Row]:
    fill(engine, INDEX, count())
    search = FoldedSearch(engine, SCHEME)
    inner = {"name": "others", "size": _MEMBERS + 1, "_source": _SHOWN}
    pages: dict[str, Page] = {
        "collapse": lambda body: _collapsed(engine, body, {}),
        "collapse with members": lambda body: _collapsed(engine, body, {"inner_hits": inner}),
        "native page, members counted": lambda body: _native(search, body, 0),
        "native page with members": lambda body: _native(search, body, _MEMBERS),
        "native page with members, groups not counted": lambda body: _native(
            search, {**body, "track_total_hits": False}, _MEMBERS
        ),
    }
    _assert_same(pages, _body(0))
    taken = _taken(pages)
    note = f"10 of {count():,} documents, those of one host with a word; {name}"
    for what, times in taken.items():
        yield Row(f"{what}, p50", median(times) * 1e3, "ms", note)
    yield _ratio(taken, "native page, members counted", "collapse", note)
    yield _ratio(taken, "native page with members", "collapse with members", note)
    yield _ratio(taken, "native page with members, groups not counted", "collapse with members", note)


def _ratio(taken: Mapping[str, list[float]], one: str, other: str, note: str) -> Row:
    return Row(f"{one} ÷ {other}, p50", median(taken[one]) / median(taken[other]), "", note)


def _taken(pages: Mapping[str, Page]) -> dict[str, list[float]]:
    """Return the times of each kind of page, the kinds in turn, so that what slows one slows all."""
    taken: dict[str, list[float]] = {name: [] for name in pages}
    for turn in range(_WARM + _ROUNDS):
        for name, page in pages.items():
            start = perf_counter()
            page(_body(turn))
            if turn >= _WARM:
                taken[name].append(perf_counter() - start)
    return taken


def _body(turn: int) -> JSON:
    query = {
        "bool": {
            "must": [{"match": {"title": str(turn % 97)}}],
            "filter": [{"term": {"host": f"h{turn % 7}.example"}}],
        }
    }
    return {"query": query, "size": 10, "_source": _SHOWN}


def _collapsed(engine: Engine, body: JSON, more: Mapping[str, Any]) -> JSON:
    return engine.search(INDEX, {**body, "collapse": {"field": "other", **more}})


def _native(search: FoldedSearch, body: JSON, members: int) -> JSON:
    return search.search(INDEX, body, FoldOptions(mode="native", members=members))


def _assert_same(pages: Mapping[str, Page], body: JSON) -> None:
    plain, native = pages["collapse with members"](body), pages["native page with members"](body)
    shown = [[hit["_id"] for hit in one["hits"]["hits"]] for one in (plain, native)]
    assert shown[0] == shown[1]
    for one, other in zip(plain["hits"]["hits"], native["hits"]["hits"], strict=True):
        members = one["inner_hits"]["others"]["hits"]
        assert members["total"] == other["inner_hits"]["duplicates"]["hits"]["total"]
        assert len(members["hits"]) == len(duplicates(other)) + 1
