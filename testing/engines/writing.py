"""Checks of indices and of writing to them: bulk actions, replacing, deleting by query, mappings."""

from typing import Any

from shinglefold.contracts.engine import Capabilities, Engine, GuardedWrites
from shinglefold.errors import IndexExists, IndexMissing, UnsupportedQuery
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
    """Checks that indices can be created and deleted, and that bulk actions are done in order."""

    def test_says_what_it_is(self, engine: Engine) -> None:
        """Check that ``info`` has distribution and version."""
        assert engine.info().keys() >= {"distribution", "version"}

    def test_creates_and_deletes_an_index(self, engine: Engine) -> None:
        """Check that an index exists from its creation to its deletion."""
        with empty(engine) as index:
            assert engine.index_exists(index)
            engine.delete_index(index)
            assert not engine.index_exists(index)

    def test_an_index_is_created_once(self, engine: Engine) -> None:
        """Check that creating an index again raises IndexExists and does not change it."""
        with library(engine) as index:
            with raises(IndexExists, of="creating an index that is there"):
                engine.create_index(index, {}, {})
            assert found(engine, index, {"match_all": {}}) == set(IDS)

    def test_a_missing_index_is_told(self, engine: Engine) -> None:
        """Check that methods raise IndexMissing if there is no index."""
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
        """Check that an index has the given mappings, with their ``_meta``."""
        with empty(engine) as index:
            mappings = engine.mappings(index)
            assert mappings["_meta"] == MAPPINGS["_meta"]
            assert mappings["properties"]["title"]["fields"] == {"exact": {"type": "keyword"}}
            assert mappings["properties"]["_dedup"]["properties"]["signature"]["doc_values"] is True

    def test_learns_fields_from_documents(self, engine: Engine) -> None:
        """Check that unmapped fields are mapped by their first value, and searchable."""
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
        """Check that a refresh makes all documents visible, and that ``get`` needs none."""
        with empty(engine) as index:
            engine.bulk(actions(index))
            assert (engine.get(index, "f") or {}).get("_source") == document(0)
            engine.refresh(index)
            assert found(engine, index, {"match_all": {}}) == set(IDS)

    def test_gets_a_document_or_none(self, engine: Engine) -> None:
        """Check that ``get`` returns the document as it was indexed."""
        with library(engine) as index:
            assert engine.get(index, "f") == {"_index": index, "_id": "f", "_source": document(0)}
            assert engine.get(index, "absent") is None

    def test_index_replaces_a_document(self, engine: Engine) -> None:
        """Check that a document replaces an earlier one with the same id."""
        with library(engine) as index:
            engine.bulk([{"_index": index, "_id": "f", "_source": {"title": "new"}}])
            engine.refresh(index)
            assert (engine.get(index, "f") or {})["_source"] == {"title": "new"}
            assert found(engine, index, {"match_all": {}}) == set(IDS)
            assert found(engine, index, {"match": {"body": "waits"}}) == set()

    def test_makes_ids_of_its_own(self, engine: Engine) -> None:
        """Check that all documents without an id are kept."""
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
                    {**same, "_op_type": "create", "_source": {"pages": 1, "_dedup": {"shingles": 5}}},
                    {**same, "_op_type": "update", "doc": {"pages": 2, "_dedup": {"scheme": "sf1-x"}}},
                    {**same, "_id": "2", "_source": {"pages": 9}},
                    {**same, "_id": "2", "_op_type": "delete"},
                ]
            )
            assert (result.indexed, result.failures) == (4, ())
            engine.refresh(index)
            assert (engine.get(index, "1") or {})["_source"] == {
                "pages": 2,
                "_dedup": {"shingles": 5, "scheme": "sf1-x"},
            }
            assert found(engine, index, {"match_all": {}}) == {"1"}
            assert found(engine, index, {"term": {"pages": 2}}) == {"1"}

    def test_refused_actions_come_back_and_the_others_are_done(self, engine: Engine) -> None:
        """Check that failures have action and status, and do not stop the other actions."""
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


class Indices:
    """Checks that indices can be listed, replaced and emptied, and that capabilities are correct."""

    def test_says_what_it_can_do(self, engine: Engine) -> None:
        """Check that the engine has the capabilities it declares."""
        assert isinstance(engine.can, Capabilities)
        assert engine.can.bulks_at_once >= 1
        assert engine.can.seq_no == isinstance(engine, GuardedWrites)
        with empty(engine) as index:
            source = '{"pages": 7}' if engine.can.takes_json else {"pages": 7}
            assert engine.bulk([{"_index": index, "_id": "1", "_source": source}]).indexed == 1
            engine.refresh(index)
            response = engine.search(index, {"seq_no_primary_term": True} if engine.can.seq_no else {})
            assert ("_seq_no" in response["hits"]["hits"][0]) == engine.can.seq_no
            if engine.templates is not None:
                assert engine.templates.component_template("conformance-absent") is None

    def test_indices_are_listed_with_their_documents(self, engine: Engine) -> None:
        """Check names, documents and sizes, by name and by pattern."""
        with library(engine) as index, empty(engine) as other:
            (info,) = engine.indices(index)
            assert (info.name, info.documents) == (index, len(IDS))
            assert info.size is not None
            assert info.size > 0
            listed = {info.name: info for info in engine.indices("conformance-*")}
            assert {index, other} <= listed.keys()
            assert listed[other].documents == 0
            engine.check(index)
            with raises(IndexMissing, of="checking an index that is not there"):
                engine.check("conformance-absent")
            assert list(listed) == sorted(listed)
            assert {index, other} <= {info.name for info in engine.indices()}
            assert engine.indices("conformance-absent-*") == []
            with raises(IndexMissing, of="listing an index that is not there"):
                engine.indices("conformance-absent")

    def test_an_index_takes_the_place_of_another(self, engine: Engine) -> None:
        """Check that a name leads to the new index, several times, and that the old one is deleted."""
        with library(engine) as index:
            # The second time, the name is an alias on servers.
            for number in range(2):
                replacement = f"{index}-{number}"
                engine.create_index(replacement, MAPPINGS, {})
                engine.bulk([{"_index": replacement, "_id": f"new{number}", "_source": document(number)}])
                engine.refresh(replacement)
                engine.replace_index(index, by=replacement)
                assert found(engine, index, {"match_all": {}}) == {f"new{number}"}
                engine.bulk([{"_index": index, "_id": "more", "_source": document(2)}])
                engine.refresh(index)
                assert found(engine, index, {"match_all": {}}) == {f"new{number}", "more"}
                assert len(engine.indices(f"{index}*")) == 1
            with raises(IndexMissing, of="replacing by an index that is not there"):
                engine.replace_index(index, by="conformance-absent")
            assert found(engine, index, {"match_all": {}}) == {"new1", "more"}
            for info in engine.indices(index):
                engine.delete_index(info.name)
            assert not engine.index_exists(index)

    def test_a_name_that_means_nothing_yet_is_taken(self, engine: Engine) -> None:
        """Check that ``replace_index`` works if there is no index to replace."""
        with library(engine) as index:
            name = f"{index}-named"
            engine.replace_index(name, by=index)
            assert found(engine, name, {"match_all": {}}) == set(IDS)
            for info in engine.indices(name):
                engine.delete_index(info.name)

    def test_what_a_query_finds_is_deleted(self, engine: Engine) -> None:
        """Check that matching documents are deleted, unrefreshed ones included, and others stay."""
        with library(engine) as index:
            engine.bulk([{"_index": index, "_id": "late", "_source": document(0)}])
            result = engine.delete_by_query(index, {"match": {"body": "river"}})
            assert (result.indexed, result.failures) == (3, ())
            assert found(engine, index, {"match_all": {}}) == set(IDS) - {"f", "e"}
            assert engine.delete_by_query(index, {"match": {"body": "river"}}).indexed == 0
            with raises(UnsupportedQuery, of="deleting by a query there is not"):
                engine.delete_by_query(index, {"absent": {}})
            assert engine.delete_by_query(index, {"match_all": {}}).indexed == 4
            engine.bulk(actions(index))
            engine.refresh(index)
            assert found(engine, index, {"match_all": {}}) == set(IDS)

    def test_mappings_grow(self, engine: Engine) -> None:
        """Check that fields and ``_meta`` can be added to an index, and the names of ``all_mappings``."""
        with empty(engine) as index:
            engine.put_mappings(index, {"properties": {"tag": {"type": "keyword"}}, "_meta": {"of": "kit"}})
            mappings = engine.mappings(index)
            assert mappings["properties"]["tag"] == {"type": "keyword"}
            assert mappings["properties"]["shelf"] == {"type": "keyword"}
            assert mappings["_meta"] == {"of": "kit"}
            assert engine.all_mappings(index)[index] == mappings
            assert index in engine.all_mappings(f"{index[:-3]}*")
            with raises(IndexMissing, of="all mappings of an index that is not there"):
                engine.all_mappings("conformance-absent")
            with raises(UnsupportedQuery, of="another type for a field"):
                engine.put_mappings(index, {"properties": {"tag": {"type": "long"}}})
