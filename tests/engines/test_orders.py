"""Pages of every order, and of collapsed hits, are those that sorting everything by hand gives."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shinglefold.engines.embedded import CommitLimits, EmbeddedEngine
from shinglefold.engines.embedded.search import search
from shinglefold.errors import UnsupportedQuery

_COUNT = 300
_SORTS = (
    ["_shard_doc"],
    [{"_shard_doc": "desc"}],
    ["number"],
    [{"number": "desc"}],
    [{"number": {"order": "asc", "missing": "_first"}}],
    [{"number": {"order": "desc", "missing": 4}}],
    ["several"],
    [{"several": "desc"}],
    ["word"],
    [{"word": "desc"}],
    ["ratio", {"word": "desc"}],
    [{"_score": "asc"}, "number"],
    ["_score", {"number": "desc"}, "word"],
    ["day"],
    ["extreme"],
    [{"extreme": "desc"}],
    [{"extreme": {"missing": "_first"}}, {"word": "desc"}],
    [{"extreme": {"missing": 3}}, "real"],
    ["real"],
    [{"real": "desc"}, {"nowhere": {"unmapped_type": "half_float"}}],
    [{"nowhere": {"unmapped_type": "long", "missing": 7}}, "number"],
)
#: Among them those by which documents without a number are sorted.
_EXTREMES = (-(2**31), -1, 5, 2**31 - 1)


def _source(chance: random.Random) -> dict:
    source = {
        "number": chance.randrange(9),
        "several": [chance.randrange(50) for _ in range(chance.randrange(3))],
        "word": f"w{chance.randrange(12)}",
        "ratio": chance.randrange(4) / 4,
        "day": f"2024-01-{chance.randrange(10, 20)}",
        "body": "page " * chance.randrange(1, 4),
        "extreme": chance.choice(_EXTREMES),
        "real": chance.randrange(40) / 10,
    }
    return {name: value for name, value in source.items() if name == "body" or chance.random() > 0.15}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, words):
    chance = random.Random(5)
    with EmbeddedEngine(tmp_path_factory.mktemp("orders"), words, CommitLimits(actions=70)) as engine:
        types = {"several": "integer", "word": "keyword", "ratio": "double"}
        types |= {"extreme": "integer", "real": "float"}
        properties = {name: {"type": kind} for name, kind in types.items()}
        engine.create_index("pages", {"properties": properties}, {})
        engine.bulk({"_index": "pages", "_id": str(n), "_source": _source(chance)} for n in range(_COUNT))
        engine.bulk({"_index": "pages", "_id": str(n), "_op_type": "delete"} for n in range(0, _COUNT, 11))
        engine.refresh("pages")
        yield engine


def _walk(engine: EmbeddedEngine, body: dict, size: int) -> list[dict]:
    """Return all hits, read page by page with a cursor."""
    hits: list[dict] = []
    body = {**body, "size": size}
    while page := engine.search(None, body)["hits"]["hits"]:
        hits += page
        body["search_after"] = page[-1]["sort"]
    return hits


@pytest.mark.long(every=12)
@pytest.mark.parametrize("sort", _SORTS, ids=str)
@pytest.mark.parametrize("query", [{"match_all": {}}, {"match": {"body": "page"}}, {"term": {"word": "w3"}}])
def test_pages_are_parts_of_one_order(filled: EmbeddedEngine, monkeypatch, query, sort):
    pit = filled.open_pit("pages")
    body = {"pit": {"id": pit}, "query": query, "sort": sort}
    with monkeypatch.context() as patched:
        # All in order, by this engine's own sorting.
        patched.setattr(search, "_NATIVE", 0)
        whole = filled.search(None, {**body, "size": _COUNT})
    hits = whole["hits"]["hits"]
    assert len(hits) == whole["hits"]["total"]["value"] > 5
    for size in (1, 7, 100) if len(hits) < 60 else (13, 100):
        for start in range(0, len(hits) + size, size):
            filled.refresh("pages")
            body["pit"] = {"id": filled.open_pit("pages")}
            # A snapshot that has kept no order yet: the page is tantivy's own where it can be.
            response = filled.search(None, {**body, "from": start, "size": size})["hits"]
            assert response["hits"] == hits[start : start + size]
            assert (response["total"], response["max_score"]) == (
                whole["hits"]["total"],
                whole["hits"]["max_score"],
            )
    for size in (7, 100):
        assert _walk(filled, body, size) == hits


def test_a_walk_sorts_once(filled: EmbeddedEngine, monkeypatch):
    made = []
    real = search._order
    monkeypatch.setattr(search, "_order", lambda *given: made.append(given) or real(*given))
    # What is sorted is kept with what searches see, so let them see it anew.
    filled.put_mappings("pages", {})
    for sort in (["_shard_doc"], [{"number": "desc"}, "word"]):
        made.clear()
        body = {"pit": {"id": filled.open_pit("pages")}, "sort": sort}
        assert len(_walk(filled, body, 10)) == _COUNT - 28
        assert len(made) == 1


def test_a_cursor_between_two_hits_goes_on_with_the_later_one(filled: EmbeddedEngine):
    for cursor, least in (([3.5, 0], 4), ([3, 2**60], 4), ([-7, 0], 0)):
        body = {"pit": {"id": filled.open_pit("pages")}, "sort": ["number", "_shard_doc"], "size": 1}
        (hit,) = filled.search(None, {**body, "search_after": cursor})["hits"]["hits"]
        assert hit["sort"][0] == least
    body = {"sort": ["word"], "search_after": ["w1x"], "size": 1}
    assert filled.search("pages", body)["hits"]["hits"][0]["sort"] == ["w10" if "w10" > "w1x" else "w2"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", [1e300, "1e300", -1e300])
def test_a_cursor_may_be_beyond_what_a_field_can_hold(filled: EmbeddedEngine, far):
    walked = filled.search("pages", {"sort": ["real"], "search_after": [far], "size": 1})["hits"]["hits"]
    # Documents without a value sort as infinite.
    assert [hit["sort"] for hit in walked] == ([] if float(far) > 0 else [[0.0]])


def test_orders_that_are_not_asked_for_give_way(filled: EmbeddedEngine, monkeypatch):
    monkeypatch.setattr("shinglefold.engines.embedded.store.snapshots._CACHED_ROWS", 3 * _COUNT)
    filled.refresh("pages")
    kept = filled._index("pages").snapshot.sort_cache
    for word in range(8):
        body = {"query": {"match": {"body": "page"}}, "sort": ["number", f"missing{word}"], "size": 2}
        body["sort"][1] = {f"missing{word}": {"unmapped_type": "long"}}
        filled.search("pages", body)
    assert 1 <= len(kept._cache) <= 3


def test_what_is_written_is_in_the_next_order(tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {}, {})
        for number in (3, 1, 2):
            engine.bulk([{"_index": "pages", "_id": str(number), "_source": {"number": number}}])
            engine.refresh("pages")
            body = {"sort": [{"number": "desc"}], "search_after": [99]}
            top = engine.search("pages", body)["hits"]["hits"][0]["sort"]
            assert top == [3]
        ids = [hit["_id"] for hit in engine.search("pages", body)["hits"]["hits"]]
        assert ids == ["3", "2", "1"]


COUNT = 300
RNG = random.Random(4)
DOCUMENTS: list[dict[str, Any]] = [
    {"rank": at, "text": " ".join(["heron"] * RNG.randint(1, 3) + ["lake"] * RNG.randint(0, 9))}
    | ({} if RNG.random() < 0.1 else {"group": RNG.randrange(40) - 5})
    for at in range(COUNT)
]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, words) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path_factory.mktemp("collapse"), words) as opened:
        fields = {"rank": {"type": "integer"}, "group": {"type": "long"}, "text": {"type": "text"}}
        opened.create_index("all", {"properties": fields | {"many": {"type": "long"}}}, {})
        for start in range(0, COUNT, 100):
            part = enumerate(DOCUMENTS[start : start + 100], start)
            opened.bulk({"_index": "all", "_id": str(at), "_source": source} for at, source in part)
            opened.refresh("all")
        yield opened


@pytest.mark.parametrize(
    "body",
    [
        {"query": {"match": {"text": "heron lake"}}},
        {"query": {"match_all": {}}, "sort": [{"rank": "desc"}]},
        {"query": {"range": {"rank": {"gte": 40}}}, "sort": [{"group": "asc"}, {"rank": "desc"}]},
    ],
)
@pytest.mark.parametrize(("start", "size"), [(0, 3), (5, 10), (30, 40), (0, 500)])
def test_a_page_has_the_first_of_each_group_in_the_order_of_all_hits(engine, body, start, size):
    everything = engine.search("all", {**body, "size": COUNT})["hits"]
    firsts: dict[Any, dict[str, Any]] = {}
    for hit in everything["hits"]:
        firsts.setdefault(hit["_source"].get("group"), hit)
    told = engine.search("all", {**body, "from": start, "size": size, "collapse": {"field": "group"}})["hits"]
    wanted = list(firsts.items())[start : start + size]
    assert [hit["_id"] for hit in told["hits"]] == [hit["_id"] for _, hit in wanted]
    # As on OpenSearch 3.8, hits without a value have no such field.
    shown = [None if group is None else {"group": [group]} for group, _ in wanted]
    assert [hit.get("fields") for hit in told["hits"]] == shown
    assert [hit.get("sort") for hit in told["hits"]] == [hit.get("sort") for _, hit in wanted]
    assert (told["total"], told["max_score"]) == (everything["total"], everything["max_score"])


def test_the_others_of_a_group_are_found_by_the_same_query_in_an_order_of_their_own(engine):
    inner = [{"name": "late", "size": 2, "sort": [{"rank": "desc"}], "_source": ["rank"]}, {"name": "best"}]
    body = {"query": {"range": {"rank": {"gte": 40}}}, "collapse": {"field": "group", "inner_hits": inner}}
    for hit in engine.search("all", body)["hits"]["hits"]:
        own = [one["rank"] for one in DOCUMENTS[40:] if one.get("group") == hit["_source"].get("group")]
        late, best = (hit["inner_hits"][name]["hits"] for name in ("late", "best"))
        assert [one["_source"]["rank"] for one in late["hits"]] == sorted(own, reverse=True)[:2]
        assert late["total"]["value"] == best["total"]["value"] == len(own)
        assert len(best["hits"]) == min(3, len(own))


def test_a_field_with_several_values_is_refused_as_on_servers(engine):
    engine.bulk([{"_index": "all", "_id": "x", "_source": {"many": [1, 2]}}])
    engine.refresh("all")
    with pytest.raises(UnsupportedQuery, match="several values"):
        engine.search("all", {"query": {"ids": {"values": ["x"]}}, "collapse": {"field": "many"}})
