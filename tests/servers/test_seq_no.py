"""Windows read without ids, on real servers: the answer is the one that reading ids gives."""

import pytest
from support.taps import Tapped

from shinglefold.contracts.engine import Capabilities
from shinglefold.examples import articles
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.rerank import FoldedSearch

_BODIES = [
    {"query": {"match_all": {}}, "size": 5},
    {"query": {"match": {"body": "в"}}, "size": 5, "from": 2, "_source": ["title"]},
    {"query": {"match": {"body": "и"}}, "highlight": {"fields": {"body": {}}}, "version": True},
    {"query": {"match": {"body": "на"}}, "docvalue_fields": ["_dedup.shingles"], "seq_no_primary_term": True},
    {"query": {"match": {"body": {"query": "на", "_name": "by body"}}}, "_source": False},
]


@pytest.fixture(params=[1, 3], ids=["one shard", "three shards"])
def search(request, engine, new_index):
    """The name of an index of the example articles, and the search with and without ids in its windows."""
    pipeline = Pipeline.from_json(default_definition())
    index = new_index()
    engine.delete_index(index)
    settings = {"number_of_shards": request.param, "number_of_replicas": 0}
    summary = index_documents(engine, index, articles(), pipeline, settings=settings, workers=1)
    assert summary.indexed == summary.read > 0
    with_ids = FoldedSearch(engine, pipeline.scheme)
    assert with_ids._strategies.numbers
    with_ids._strategies.numbers = False
    return index, FoldedSearch(engine, pipeline.scheme), with_ids


@pytest.mark.parametrize("body", _BODIES)
def test_without_ids_the_answer_is_the_same(search, body):
    index, without, with_ids = search
    found, expected = without.search(index, body), with_ids.search(index, body)
    assert found["hits"] == expected["hits"]
    assert found["dedup"] == expected["dedup"]
    assert found["dedup"]["folded"] > 0


class _Numbering(Tapped):
    can = Capabilities(seq_no=True)


def test_ids_are_not_read_for_the_window(search, engine):
    index, without, _ = search
    tap = _Numbering(engine)
    FoldedSearch(tap, without._scheme).search(index, _BODIES[0])
    window, *_, page = tap.searches
    assert window["stored_fields"] == "_none_"
    assert "stored_fields" not in page


def test_a_hit_that_changed_between_window_and_page_is_read_again(search, engine):
    index, without, with_ids = search
    first = without.search(index, _BODIES[0])["hits"]["hits"][0]

    def change(searches):
        if searches == 1:
            engine.bulk([{"_index": index, "_id": first["_id"], "_source": first["_source"]}])
            engine.refresh(index)

    answer = FoldedSearch(_Numbering(engine, change), without._scheme).search(index, _BODIES[0])
    assert answer["dedup"]["vanished"] == 0
    assert answer["hits"]["hits"] == with_ids.search(index, _BODIES[0])["hits"]["hits"]
