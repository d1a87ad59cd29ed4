"""Checks of indices as a whole: listed, replaced, emptied by a query, their mappings grown."""

from shinglefold.contracts.engine import Capabilities, Engine, GuardedWrites
from shinglefold.errors import IndexMissing, UnsupportedQuery
from shinglefold.testing.engines.subject import (
    IDS,
    MAPPINGS,
    actions,
    document,
    empty,
    found,
    library,
    raises,
)


class Indices:
    """Indices can be seen, exchanged and cleared; what an engine can do it says."""

    def test_says_what_it_can_do(self, engine: Engine) -> None:
        """Check that the engine tells its capabilities, and keeps them."""
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
        """Check that a name means the new index, again and again, and that the old one is gone."""
        with library(engine) as index:
            # The second is what a server has under an alias.
            for number in range(2):
                beside = f"{index}-{number}"
                engine.create_index(beside, MAPPINGS, {})
                engine.bulk([{"_index": beside, "_id": f"new{number}", "_source": document(number)}])
                engine.refresh(beside)
                engine.replace_index(index, by=beside)
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
        """Check that replacing needs no index to be replaced."""
        with library(engine) as index:
            name = f"{index}-named"
            engine.replace_index(name, by=index)
            assert found(engine, name, {"match_all": {}}) == set(IDS)
            for info in engine.indices(name):
                engine.delete_index(info.name)

    def test_what_a_query_finds_is_deleted(self, engine: Engine) -> None:
        """Check that documents found are deleted at once, what was not refreshed too, and the others stay."""
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
        """Check that fields and ``_meta`` can be added to an index, and by which names mappings are found."""
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
