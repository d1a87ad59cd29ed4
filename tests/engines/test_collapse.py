"""Collapse on a number in the embedded engine, against a list walked hit by hit."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import UnsupportedQuery

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
