"""Indices made by ``_shrink``, ``_clone`` and ``_split``: documents keep the numbers of their changes."""

import pytest
from support.maintenance import mapped, pages

from shinglefold.ingest import index_documents
from shinglefold.rerank import FoldedSearch

pytestmark = pytest.mark.newest

COUNT = 30
SHARDS = {"number_of_shards": 4, "number_of_routing_shards": 8, "number_of_replicas": 0}


@pytest.fixture(params=[("_shrink", 1), ("_clone", 4), ("_split", 8)], ids=lambda way: way[0])
def resized(request, engine, server, new_index, scheme, pipeline):
    """An index made of another, and its scheme."""
    way, shards = request.param
    source = new_index(mapped(scheme), SHARDS)
    assert index_documents(engine, source, pages(COUNT), pipeline, workers=1).indexed == COUNT
    target = new_index()
    engine.delete_index(target)
    server.ask("PUT", f"/{source}/_settings", {"index.blocks.write": True})
    settings = {"index.number_of_shards": shards, "index.number_of_replicas": 0, "index.blocks.write": None}
    server.ask("POST", f"/{source}/{way}/{target}", {"settings": settings})
    server.ask("GET", f"/_cluster/health/{target}?wait_for_status=green")
    return target


def test_each_hit_is_shown_with_its_own_source(engine, scheme, resized):
    """A shrunk index has in one shard as many documents of a number as there were shards."""
    search = FoldedSearch(engine, scheme)
    for page in pages(COUNT):
        answer = search.search(resized, {"query": {"term": {"id": page["id"]}}, "size": 1})
        assert [(hit["_id"], hit["_source"]["id"]) for hit in answer["hits"]["hits"]] == [(page["id"],) * 2]


def test_a_cursor_shows_every_document_once(engine, scheme, resized):
    search = FoldedSearch(engine, scheme)
    body = {"query": {"match_all": {}}, "size": 7, "ext": {"dedup": {"min_resemblance": 1.0}}}
    shown = [hit["_source"]["id"] for page in search.pages(resized, body) for hit in page["hits"]["hits"]]
    assert sorted(shown) == sorted(page["id"] for page in pages(COUNT))
