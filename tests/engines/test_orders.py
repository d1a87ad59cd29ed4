"""Every page of every order is the one that sorting everything by hand gives, whichever way it was found."""

import random
from pathlib import Path

import pytest

from shinglefold.engines.embedded import CommitLimits, EmbeddedEngine
from shinglefold.engines.embedded.search import search

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


@pytest.mark.long(every=3)
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
