"""Mappings that grow in place, and the guards of servers, which this engine has not and says so."""

from pathlib import Path

import pytest

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import EngineUnavailable, UnsupportedQuery

BEFORE = {"_meta": {"a": 1}, "properties": {"title": {"type": "text"}, "n": {"type": "integer"}}}
NEW = {"properties": {"tag": {"type": "keyword"}, "deep": {"properties": {"n": {"type": "integer"}}}}}


@pytest.fixture
def index(engine: EmbeddedEngine) -> str:
    engine.create_index("i", BEFORE, {})
    engine.bulk([{"_index": "i", "_id": "1", "_source": {"title": "old", "n": 1}}])
    return "i"


def found(engine: EmbeddedEngine, index: str, query: dict) -> list[str]:
    return [hit["_id"] for hit in engine.search(index, {"query": query})["hits"]["hits"]]


def test_new_fields_are_searched_from_then_on(engine, index):
    engine.put_mappings(index, NEW)
    engine.bulk([{"_index": index, "_id": "2", "_source": {"tag": "x", "deep": {"n": 7}}}])
    engine.refresh(index)
    assert found(engine, index, {"term": {"tag": "x"}}) == ["2"]
    assert found(engine, index, {"term": {"deep.n": 7}}) == ["2"]
    assert found(engine, index, {"match": {"title": "old"}}) == ["1"]
    assert engine.mappings(index)["_meta"] == {"a": 1}


def test_meta_is_replaced_where_it_is_given_and_stays_on_disk(engine, index, tmp_path: Path, words):
    engine.put_mappings(index, {"_meta": {"b": 2}})
    engine.close()
    with EmbeddedEngine(tmp_path, words) as again:
        assert again.mappings(index)["_meta"] == {"b": 2}
        assert again.all_mappings(index) == {index: again.mappings(index)}


def test_a_field_can_be_named_again_but_not_changed(engine, index):
    before = engine.mappings(index)
    engine.put_mappings(index, {"properties": {"n": {"type": "integer"}}})
    with pytest.raises(UnsupportedQuery, match="stays so; make a new index"):
        engine.put_mappings(index, {"properties": {"n": {"type": "keyword"}}})
    assert engine.mappings(index) == before


def test_another_process_that_writes_has_to_end_first(engine, index, tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words) as other, pytest.raises(EngineUnavailable):
        other.put_mappings(index, NEW)


@pytest.mark.parametrize("verb", ["index", "update", "delete"])
def test_guards_by_version_are_refused_not_ignored(engine, index, verb):
    body = {"doc": {"n": 2}} if verb == "update" else {"_source": {"n": 2}}
    guarded = {"_op_type": verb, "_index": index, "_id": "1", "if_seq_no": 0, "if_primary_term": 1, **body}
    (failure,) = engine.bulk([guarded]).failures
    assert failure.status == 400
    assert "the embedded engine has no 'if_" in failure.reason
    assert engine.get(index, "1")["_source"] == {"title": "old", "n": 1}


@pytest.mark.parametrize("name", ["_routing", "_id", "_source"])
@pytest.mark.parametrize(
    "body",
    [{"_source": {}}, {"_op_type": "update", "doc": {}}, {"_op_type": "update", "doc": {}, "upsert": {}}],
)
def test_metadata_is_no_field_of_a_document_as_on_servers(engine, index, name, body):
    *_, last = body
    given = {"_index": index, "_id": "1", **body, last: {**body[last], "n": 2, name: "x"}}
    (failure,) = engine.bulk([given]).failures
    assert failure.status == 400
    assert f"{name!r} is metadata and can't be a field of a document" in failure.reason
    assert engine.get(index, "1")["_source"] == {"title": "old", "n": 1}
