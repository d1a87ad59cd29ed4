"""Folding after real searches for nearest neighbours, which find no more than k."""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from support.maintenance import put

from shinglefold.contracts.engine import Engine
from shinglefold.engines import open_engine
from shinglefold.ingest import Fingerprinter, mappings
from shinglefold.rerank import FoldedSearch, FoldOptions

INDEX = "shinglefold-test-nearest"
GROUPS, COPIES = 30, 4
DOCUMENTS = GROUPS * COPIES


@dataclass(frozen=True)
class Neighbours:
    """An index of vectors on a line, copies of a text next to each other."""

    search: FoldedSearch
    body: dict[str, Any]
    engine: Engine

    def folded(self, size: int, **more: Any) -> dict[str, Any]:
        options = FoldOptions(members=9, window=20, max_window=DOCUMENTS)
        return self.search.search(INDEX, {**self.body, "size": size, "_source": ["group"], **more}, options)


def filled(engine: Engine, vector: dict[str, Any], settings: dict[str, Any], scheme, canonicalizer) -> None:
    if engine.index_exists(INDEX):
        engine.delete_index(INDEX)
    made = mappings(scheme)
    made["properties"] |= {"v": vector, "group": {"type": "integer"}}
    engine.create_index(INDEX, made, {"number_of_replicas": 0, **settings})
    rng = random.Random(3)
    texts = [" ".join(rng.choices("abcdefghijklmnopqrst", k=60)) for _ in range(GROUPS)]
    prints = Fingerprinter(scheme, canonicalizer).fingerprint(texts)
    sources = {
        str(n): {"v": [n + 1, 1], "group": n // COPIES, "_dedup": prints[n // COPIES].to_field()}
        for n in range(DOCUMENTS)
    }
    put(engine, INDEX, sources)


@pytest.fixture(scope="module")
def on_opensearch(knn, scheme, canonicalizer) -> Iterator[Neighbours]:
    method = {"name": "hnsw", "engine": "lucene", "space_type": "l2"}
    with closing(open_engine(knn.url)) as engine:
        vector = {"type": "knn_vector", "dimension": 2, "method": method}
        filled(engine, vector, {"index.knn": True}, scheme, canonicalizer)
        body = {"query": {"knn": {"v": {"vector": [0, 1], "k": 10}}}}
        yield Neighbours(FoldedSearch(engine, scheme), body, engine)
        engine.delete_index(INDEX)


@pytest.fixture(scope="module")
def on_elasticsearch(engine, scheme, canonicalizer) -> Iterator[Neighbours]:
    if engine.info()["distribution"] != "elasticsearch":
        pytest.skip("OpenSearch finds nearest neighbours with its plugin, on a server that stands apart")
    vector = {"type": "dense_vector", "dims": 2, "index": True, "similarity": "l2_norm"}
    filled(engine, vector, {}, scheme, canonicalizer)
    body = {"knn": {"field": "v", "query_vector": [0, 1], "k": 10, "num_candidates": 20}}
    yield Neighbours(FoldedSearch(engine, scheme), body, engine)
    engine.delete_index(INDEX)


def groups_of(answer: dict[str, Any]) -> list[int]:
    return [hit["_source"]["group"] for hit in answer["hits"]["hits"]]


class _Promises:
    """What holds on either product."""

    @pytest.mark.parametrize("size", [2, 8, 25])
    def test_a_page_is_full_in_the_engines_order_and_members_are_attached(self, neighbours, size):
        found = neighbours.folded(size)
        assert groups_of(found) == list(range(size))
        assert found["dedup"]["stopped_by"] == "page_full"
        for hit in found["hits"]["hits"][:-1]:
            assert hit["_score"] > 0
            assert len(hit["inner_hits"]["duplicates"]["hits"]["hits"]) == COPIES

    def test_the_total_is_the_engines_for_the_k_of_the_request(self, neighbours):
        native = neighbours.engine.search(INDEX, {**neighbours.body, "size": 10})
        assert neighbours.folded(20)["hits"]["total"] == native["hits"]["total"]

    def test_pages_follow_each_other(self, neighbours):
        shown = [
            group for start in (0, 7, 14) for group in groups_of(neighbours.folded(7, **{"from": start}))
        ]
        assert shown == list(range(21))

    def test_the_last_page_says_that_the_results_ended(self, neighbours):
        found = neighbours.folded(GROUPS + 5)
        assert groups_of(found) == list(range(GROUPS))
        assert found["dedup"]["stopped_by"] in ("end_of_results", "window_cap")

    def test_members_come_in_orders_of_their_own(self, neighbours):
        inner = {"name": "last", "size": 1, "sort": [{"_doc": "desc"}]}
        found = neighbours.folded(6, ext={"dedup": {"inner_hits": [inner, {"name": "ranked", "size": 9}]}})
        for hit in found["hits"]["hits"][:-1]:
            told = hit["inner_hits"]
            assert len(told["last"]["hits"]["hits"]) == 1
            assert [one["_id"] for one in told["ranked"]["hits"]["hits"]] == [
                one["_id"] for one in told["duplicates"]["hits"]["hits"]
            ]


class TestOnOpenSearch(_Promises):
    """With the k-NN plugin."""

    @pytest.fixture
    def neighbours(self, on_opensearch: Neighbours) -> Neighbours:
        return on_opensearch


class TestOnElasticsearch(_Promises):
    """With vectors as they come."""

    @pytest.fixture
    def neighbours(self, on_elasticsearch: Neighbours) -> Neighbours:
        return on_elasticsearch


def test_beside_a_query_a_short_page_says_that_k_was_reached(on_opensearch):
    body = {
        "query": {
            "bool": {"must": [on_opensearch.body["query"]], "filter": [{"range": {"group": {"lt": 2}}}]}
        }
    }
    options = FoldOptions(members=9)
    found = on_opensearch.search.search(INDEX, {**body, "size": 6, "_source": ["group"]}, options)
    assert groups_of(found) == [0, 1]
    assert found["dedup"]["stopped_by"] == "k_reached"


def test_the_only_clause_of_a_bool_is_read_as_neighbours_alone(on_opensearch):
    # The store of Haystack wraps its searches so.
    found = on_opensearch.folded(25, query={"bool": {"must": [on_opensearch.body["query"]]}})
    assert groups_of(found) == list(range(25))
    assert found["dedup"]["stopped_by"] == "page_full"
