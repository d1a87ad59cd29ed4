"""Ids and routings of documents that a gate takes, and documents whose ids are stored."""

import re

import pytest

from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.gate.bulk_run import BulkRun
from shinglefold.ingest.readers.record import Record


def _gate(engine, pipeline, *options):
    return Gate(engine, "texts", Policy(*options), pipeline=pipeline)


def _ids(engine):
    engine.refresh("texts")
    return sorted(hit["_id"] for hit in engine.search("texts", {"size": 100})["hits"]["hits"])


@pytest.mark.parametrize(
    ("routing", "why"),
    [
        (["a"], r"its _routing is \['a'\]"),
        (True, "its _routing is True"),
        ("", "its _routing is ''"),
        ("a", "no _routing; leave it out"),
        (7, "no _routing; leave it out"),
    ],
)
def test_an_invalid_or_unsupported_routing_is_an_error(engine, pipeline, text, routing, why):
    with _gate(engine, pipeline) as gate:
        failed, let_in = gate.add_all(
            [{"id": "first", "_routing": routing, "body": text("a")}, {"id": "second", "body": text("a")}]
        )
    assert (failed.status, let_in.status) == ("failed", "accepted")
    assert re.search(why, failed.reason)


@pytest.mark.parametrize("given", [["a"], {"a": 1}, True, 1.5, b"a"], ids=str)
@pytest.mark.parametrize("name", ["_id", "id"])
def test_an_id_that_is_no_text_and_no_whole_number_is_an_error(engine, pipeline, text, name, given):
    with _gate(engine, pipeline) as gate:
        failed, let_in = gate.add_all([{name: given, "body": text("a")}, {"_id": 7, "body": text("a")}])
        (made,) = pipeline.run_block([{"body": text("b")}])
        (admitted,) = gate.admit([{**made.document, "_id": given}])
    assert (failed.status, admitted.status, let_in.status, let_in.id) == ("failed", "failed", "accepted", "7")
    assert f"its id is {given!r}; give a text or a whole number" in failed.reason
    assert failed.reason == admitted.reason
    assert _ids(engine) == ["7"]


def test_a_document_whose_metadata_has_no_id_has_that_of_its_field(engine, pipeline, text):
    with _gate(engine, pipeline) as gate:
        assert gate.add({"_id": None, "id": "a1", "body": text("a")}).id == "a1"


def test_a_run_names_documents_by_their_own_ids_or_else_by_their_lines(engine, pipeline, text):
    given = [{"id": "own", "body": text("a")}, {"id": "copy", "body": text("a")}, {"body": text("a")}]
    run = BulkRun()
    with _gate(engine, pipeline) as gate:
        run.add_all(gate, (Record(one, "texts", line) for line, one in enumerate(given, 1)))
    told = [(one["status"], one.get("_id"), one["line"]) for one in run.to_json()["documents"]]
    assert told == [("accepted", "own", 1), ("refused", "copy", 2), ("refused", None, 3)]


@pytest.mark.parametrize("kind", ["a", "b"])
def test_a_document_that_is_only_to_be_created_fails_where_its_id_is_stored(engine, pipeline, text, kind):
    made = [outcome.document for outcome in pipeline.run_block([{"body": text("a")}, {"body": text(kind)}])]
    with _gate(engine, pipeline) as gate:
        told = [gate.admit([{**one, "_id": "a", "_op_type": "create"}])[0] for one in made]
    assert [one.status for one in told] == ["accepted", "failed"]
    assert told[1].reason == "a document with its id is stored already"


def test_a_document_without_a_number_that_is_added_again_gets_one(engine, pipeline, text):
    (made,) = pipeline.run_block([{"_id": "a", "body": text("a")}])
    source = {"body": text("a"), "_dedup": made.document["_dedup"]}
    assert not engine.bulk([{"_index": "texts", "_id": "a", "_source": source}]).failures
    with _gate(engine, pipeline, "tag") as gate:
        again = gate.add({"id": "a", "body": text("a")})
    assert (again.leads, again.replaced) == (True, True)
    assert engine.get("texts", "a")["_source"]["_dedup"]["group"] == again.group is not None


def test_a_document_that_the_engine_refuses_fails_with_its_reason_and_takes_no_place(engine, pipeline, text):
    with _gate(engine, pipeline) as gate:
        failed, other = gate.add_all(
            [{"id": "a", "host": {"name": "a.org"}, "body": text("a")}, {"id": "b", "body": text("b")}]
        )
        assert gate.add({"id": "c", "body": text("a")}).status == "accepted"
    assert (failed.status, other.status) == ("failed", "accepted")
    assert "host" in failed.reason
    assert _ids(engine) == ["b", "c"]
