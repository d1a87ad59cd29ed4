"""Checks of indices and of writing to them."""

from typing import Any

from shinglefold.contracts.engine import Engine
from shinglefold.errors import IndexExists, IndexMissing
from shinglefold.testing.engines.subject import (
    IDS,
    MAPPINGS,
    actions,
    document,
    empty,
    found,
    ids,
    library,
    raises,
)


class Writing:
    """Indices come and go; actions are done in order; what is refused comes back."""

    def test_says_what_it_is(self, engine: Engine) -> None:
        """Check that distribution and version are told."""
        assert engine.info().keys() >= {"distribution", "version"}

    def test_creates_and_deletes_an_index(self, engine: Engine) -> None:
        """Check that an index is there from its creation until it is deleted."""
        with empty(engine) as index:
            assert engine.index_exists(index)
            engine.delete_index(index)
            assert not engine.index_exists(index)

    def test_an_index_is_created_once(self, engine: Engine) -> None:
        """Check that creating an index again raises IndexExists and leaves it as it was."""
        with library(engine) as index:
            with raises(IndexExists, of="creating an index that is there"):
                engine.create_index(index, {}, {})
            assert found(engine, index, {"match_all": {}}) == set(IDS)

    def test_a_missing_index_is_told(self, engine: Engine) -> None:
        """Check that whatever needs an index raises IndexMissing without one."""
        absent = "conformance-absent"
        assert not engine.index_exists(absent)
        with raises(IndexMissing, of="deleting an index that is not there"):
            engine.delete_index(absent)
        with raises(IndexMissing, of="searching an index that is not there"):
            engine.search(absent, {})
        with raises(IndexMissing, of="the mappings of an index that is not there"):
            engine.mappings(absent)
        with raises(IndexMissing, of="a point in time of an index that is not there"):
            engine.open_pit(absent)

    def test_gives_mappings_back(self, engine: Engine) -> None:
        """Check that the mappings are those given, with their ``_meta``."""
        with empty(engine) as index:
            mappings = engine.mappings(index)
            assert mappings["_meta"] == MAPPINGS["_meta"]
            assert mappings["properties"]["title"]["fields"] == {"exact": {"type": "keyword"}}
            assert mappings["properties"]["dedup"]["properties"]["signature"]["doc_values"] is True

    def test_learns_fields_from_documents(self, engine: Engine) -> None:
        """Check that fields not in the mappings are mapped by their first value, and searchable."""
        new = {"words": "grey heron", "count": 7, "ratio": 0.5, "open": True, "inner": {"deep": "lake"}}
        with empty(engine) as index:
            assert engine.bulk([{"_index": index, "_id": "1", "_source": new}]).indexed == 1
            engine.refresh(index)
            types = engine.mappings(index)["properties"]
            assert {name: types[name].get("type") for name in ("words", "count", "ratio", "open")} == {
                "words": "text",
                "count": "long",
                "ratio": "float",
                "open": "boolean",
            }
            assert types["inner"]["properties"]["deep"]["type"] == "text"
            queries = (
                {"match": {"words": "heron"}},
                {"term": {"words.keyword": "grey heron"}},
                {"range": {"count": {"gte": 7}}},
                {"term": {"open": True}},
                {"match": {"inner.deep": "lake"}},
            )
            for query in queries:
                assert found(engine, index, query) == {"1"}, query

    def test_documents_are_seen_after_a_refresh(self, engine: Engine) -> None:
        """Check that a refresh makes all documents visible, and that get needs none."""
        with empty(engine) as index:
            engine.bulk(actions(index))
            assert (engine.get(index, "f") or {}).get("_source") == document(0)
            engine.refresh(index)
            assert found(engine, index, {"match_all": {}}) == set(IDS)

    def test_gets_a_document_or_none(self, engine: Engine) -> None:
        """Check that a document comes back as it was given."""
        with library(engine) as index:
            assert engine.get(index, "f") == {"_index": index, "_id": "f", "_source": document(0)}
            assert engine.get(index, "absent") is None

    def test_index_replaces_a_document(self, engine: Engine) -> None:
        """Check that the same id is one document, the last one written."""
        with library(engine) as index:
            engine.bulk([{"_index": index, "_id": "f", "_source": {"title": "new"}}])
            engine.refresh(index)
            assert (engine.get(index, "f") or {})["_source"] == {"title": "new"}
            assert found(engine, index, {"match_all": {}}) == set(IDS)
            assert found(engine, index, {"match": {"body": "waits"}}) == set()

    def test_makes_ids_of_its_own(self, engine: Engine) -> None:
        """Check that documents without an id are all kept."""
        with empty(engine) as index:
            assert engine.bulk([{"_index": index, "_source": document(0)}] * 3).indexed == 3
            engine.refresh(index)
            assert len(set(ids(engine.search(index, {})))) == 3

    def test_actions_are_done_in_order(self, engine: Engine) -> None:
        """Check create, update and delete of one document in one request."""
        with empty(engine) as index:
            same = {"_index": index, "_id": "1"}
            result = engine.bulk(
                [
                    {**same, "_op_type": "create", "_source": {"pages": 1, "dedup": {"shingles": 5}}},
                    {**same, "_op_type": "update", "doc": {"pages": 2, "dedup": {"scheme": "sf1-x"}}},
                    {**same, "_id": "2", "_source": {"pages": 9}},
                    {**same, "_id": "2", "_op_type": "delete"},
                ]
            )
            assert (result.indexed, result.failures) == (4, ())
            engine.refresh(index)
            assert (engine.get(index, "1") or {})["_source"] == {
                "pages": 2,
                "dedup": {"shingles": 5, "scheme": "sf1-x"},
            }
            assert found(engine, index, {"match_all": {}}) == {"1"}
            assert found(engine, index, {"term": {"pages": 2}}) == {"1"}

    def test_refused_actions_come_back_and_the_others_are_done(self, engine: Engine) -> None:
        """Check that failures name their action and status, and do not stop the rest."""
        with library(engine) as index:
            wrong: list[dict[str, Any]] = [
                {"_index": index, "_id": "1", "_source": {"pages": "many"}},
                {"_index": index, "_id": "f", "_op_type": "create", "_source": {"pages": 1}},
                {"_index": index, "_id": "absent", "_op_type": "update", "doc": {"pages": 1}},
                {"_index": index, "_id": "absent", "_op_type": "delete"},
            ]
            right = {"_index": index, "_id": "2", "_source": {"pages": 5}}
            result = engine.bulk([*wrong, right])
            assert result.indexed == 1
            assert [failure.status for failure in result.failures] == [400, 409, 404, 404]
            assert [failure.action["_id"] for failure in result.failures] == ["1", "f", "absent", "absent"]
            assert all(failure.reason for failure in result.failures)
            engine.refresh(index)
            assert found(engine, index, {"match_all": {}}) == {*IDS, "2"}
