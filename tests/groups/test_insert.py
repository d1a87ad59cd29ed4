"""Numbers of groups that documents get as they are indexed."""

from shinglefold.groups.insert import Numbering
from shinglefold.groups.numbers import numbers_of
from shinglefold.ingest import index_documents
from shinglefold.model import Fingerprint


def _index(engine, pipeline, documents):
    numbering = Numbering(engine, "texts", pipeline.recipe())
    summary = index_documents(engine, "texts", documents, pipeline, workers=1, groups=numbering)
    assert summary.failed == 0
    hits = engine.search("texts", {"size": 100})["hits"]["hits"]
    return {hit["_id"]: hit["_source"]["dedup"] for hit in hits}


def _documents(text, kinds, begin=0):
    return [{"id": f"{n}", "body": text(kind, n % 3)} for n, kind in enumerate(kinds, begin)]


def test_copies_of_one_run_get_one_number(engine, pipeline, text):
    found = _index(engine, pipeline, _documents(text, "abacab"))
    assert len({print_["group"] for print_ in found.values()}) == 3
    assert found["0"]["group"] == found["2"]["group"] == found["4"]["group"]
    assert [found[id_]["leader"] for id_ in "012345"] == [True, True, False, True, False, False]


def test_copies_of_what_is_stored_join_its_group(engine, pipeline, text):
    before = _index(engine, pipeline, _documents(text, "ab"))
    after = _index(engine, pipeline, _documents(text, "abc", begin=2))
    assert after["2"]["group"] == before["0"]["group"]
    assert after["3"]["group"] == before["1"]["group"]
    assert after["4"]["leader"]


def test_indexing_again_changes_no_number_and_no_leader(engine, pipeline, text):
    documents = _documents(text, "abacab")
    assert _index(engine, pipeline, documents) == _index(engine, pipeline, documents)


def test_a_document_with_another_text_leaves_its_group(engine, pipeline, text):
    before = _index(engine, pipeline, _documents(text, "aab"))
    after = _index(engine, pipeline, [{"id": "1", "body": text("c")}])
    assert after["1"]["group"] != before["1"]["group"]
    assert after["1"]["leader"]
    assert after["0"] == before["0"]


def test_a_number_that_another_group_has_is_passed_over(engine, pipeline, text):
    found = _index(engine, pipeline, [{"id": "a", "body": text("a")}])
    first, second, *_ = numbers_of(Fingerprint.from_field(found["a"]), (), "texts", "a")
    assert found["a"]["group"] == first
    taken = {**_index(engine, pipeline, [{"id": "b", "body": text("b")}])["b"], "group": first}
    engine.delete_by_query("texts", {"match_all": {}})
    engine.bulk([{"_index": "texts", "_id": "b", "_source": {"body": text("b"), "dedup": taken}}])
    engine.refresh("texts")
    assert _index(engine, pipeline, [{"id": "a", "body": text("a")}])["a"]["group"] == second


def test_documents_without_any_text_are_groups_of_their_own(engine, pipeline):
    found = _index(engine, pipeline, [{"id": "a", "body": ""}, {"id": "b", "body": ""}])
    assert found["a"]["group"] != found["b"]["group"]


def test_documents_without_any_text_keep_their_numbers_when_they_are_indexed_again(engine, pipeline):
    documents = [{"id": "a", "body": ""}, {"id": "b", "body": "слово"}]
    assert _index(engine, pipeline, documents) == _index(engine, pipeline, documents)


def test_documents_without_any_text_and_of_one_id_are_told_apart_by_their_index():
    empty = Fingerprint("scheme", "", 0)
    assert not {*numbers_of(empty, (), "one", "a")} & {*numbers_of(empty, (), "other", "a")}
