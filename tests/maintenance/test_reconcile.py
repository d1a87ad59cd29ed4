import pytest

from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.maintenance.reconcile import document_of, new_fingerprint, stored_fingerprint, update_action
from shinglefold.model.values import Fingerprint

FULL = Fingerprint("sf1-a", "ru", 40, "digest", ("Aaaaaa",), b"\x01").to_field()
SHORT = Fingerprint("sf1-a", "ru", 1, "other").to_field()


def hit(source, **rest):
    return {"_index": "pages", "_id": "7", "_source": source, **rest}


def test_a_pipeline_sees_a_document_as_it_was_before_it_had_a_fingerprint():
    assert document_of(hit({"body": "x", "_dedup": FULL}), "_dedup") == {"_id": "7", "body": "x"}
    assert document_of(hit({"meta": {"a": 1, "d": FULL}}), "meta.d") == {"_id": "7", "meta": {"a": 1}}


def test_an_update_is_guarded_by_the_version_read_and_goes_where_the_document_is():
    action = update_action(hit({}, _seq_no=5, _primary_term=2, _routing="r"), "_dedup", FULL)
    assert action == {
        "_op_type": "update",
        "_index": "pages",
        "_id": "7",
        "doc": {"_dedup": FULL},
        "if_seq_no": 5,
        "if_primary_term": 2,
        "routing": "r",
    }


def test_an_engine_without_versions_gets_no_guard():
    assert update_action(hit({}), "a.b", SHORT)["doc"] == {"a": {"b": SHORT}}
    assert not {"if_seq_no", "if_primary_term", "routing"} & update_action(hit({}), "a.b", SHORT).keys()


def test_a_text_that_became_too_short_keeps_nothing_of_the_text_it_was():
    doc = update_action(hit({"_dedup": FULL}), "_dedup", SHORT)["doc"]["_dedup"]
    assert doc["signature"] is None
    assert doc["supershingles"] is None
    assert Fingerprint.from_field({**FULL, **doc}) == Fingerprint.from_field(SHORT)


@pytest.mark.parametrize("source", [{}, {"_dedup": None}, {"_dedup": "text"}, {"_dedup": [1]}])
def test_what_is_no_fingerprint_counts_as_none(source):
    assert stored_fingerprint(source, "_dedup") == {}


def test_empty_parts_are_no_difference():
    assert stored_fingerprint({"_dedup": {**SHORT, "signature": None}}, "_dedup") == SHORT


@pytest.mark.parametrize("document", [None, {}, {"_dedup": 5}, {"_dedup": {"lang": "ru"}}])
def test_a_pipeline_that_wrote_no_fingerprint_is_noticed(document):
    assert new_fingerprint(Outcome("done", document), "_dedup") is None
