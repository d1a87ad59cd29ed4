"""Group numbers that documents get when they are indexed."""

import pytest
from support.maintenance import put, stored

from shinglefold.grouping import numbering as insert
from shinglefold.grouping.gate.protocol.pending_document import numbers_of
from shinglefold.grouping.numbering import Numbering
from shinglefold.ingest import index_documents
from shinglefold.model.values import Fingerprint


def _index(engine, pipeline, documents, numbering=None):
    numbering = numbering or Numbering(engine, "texts", pipeline.recipe())
    assert index_documents(engine, "texts", documents, pipeline, workers=1, groups=numbering).failed == 0
    return {id_: source["_dedup"] for id_, source in stored(engine, "texts").items()}


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


@pytest.mark.parametrize("limit", ["_RECENT", "_CHARACTERS"])
def test_leaders_that_left_memory_are_found_by_search(engine, pipeline, text, monkeypatch, limit):
    monkeypatch.setattr(insert, limit, 1)
    kinds = "abcdefghhgfedcbaiabcjhi"
    given = [{"_id": f"{n:02}", "body": text(kind, n % 3)} for n, kind in enumerate(kinds)]
    made = [dict(outcome.document) for outcome in pipeline.run_block(given)]
    actions = [{"_index": "texts", "_id": one.pop("_id"), "_source": one} for one in made]
    numbering = Numbering(engine, "texts", pipeline.recipe())
    told, travelling = [], []
    for begin in range(0, len(actions), 2):
        numbered = numbering.number(actions[begin : begin + 2])
        told += [action["_source"]["_dedup"] for action in numbered]
        # One batch is on its way while the next one is numbered.
        assert not engine.bulk(travelling).failures
        travelling = numbered
        assert sum(len(numbered.leaders) for numbered in numbering._batches) <= 6
    firsts = {kind: told[kinds.index(kind)]["group"] for kind in kinds}
    assert [one["group"] for one in told] == [firsts[kind] for kind in kinds]
    assert [one["leader"] for one in told] == [kinds.index(kind) == n for n, kind in enumerate(kinds)]
    assert len({*firsts.values()}) == 10


def test_a_leader_whose_text_changes_in_a_run_is_compared_by_the_new_text(engine, pipeline, text):
    numbering = Numbering(engine, "texts", pipeline.recipe())
    _index(engine, pipeline, [{"id": "1", "body": text("a")}])
    for documents in ([{"id": "1", "body": text("b")}], [{"id": "2", "body": text("a", 1)}]):
        found = _index(engine, pipeline, documents, numbering)
    assert found["1"]["group"] != found["2"]["group"]
    assert found["1"]["leader"]
    assert found["2"]["leader"]


def test_an_outdated_version_of_a_leader_in_searches_is_not_joined(engine, pipeline, text):
    before = _index(engine, pipeline, [{"id": "1", "body": text("a")}])["1"]
    given = [{"_id": "1", "body": text("b")}, {"_id": "2", "body": text("a", 1)}]
    made = [outcome.document for outcome in pipeline.run_block(given)]
    numbering = Numbering(engine, "texts", pipeline.recipe())
    told = []
    for one in made:
        numbered = numbering.number([{"_index": "texts", "_id": one["_id"], "_source": one}])
        told += [action["_source"]["_dedup"] for action in numbered]
    assert [one["leader"] for one in told] == [True, True]
    assert len({before["group"], *(one["group"] for one in told)}) == 3


@pytest.mark.parametrize("batches", ["one batch", "a batch each"])
@pytest.mark.parametrize("stored", ["by another run", "by this run"])
def test_a_leader_that_follows_another_now_attracts_no_documents(engine, pipeline, text, stored, batches):
    first = [{"_id": "0", "body": text("z")}, {"_id": "1", "body": text("a")}]
    later = [{"_id": "1", "body": text("z", 1)}, {"_id": "2", "body": text("a", 1)}]
    numbering = Numbering(engine, "texts", pipeline.recipe())

    def number(documents):
        made = [outcome.document for outcome in pipeline.run_block(documents)]
        actions = [{"_index": "texts", "_id": one["_id"], "_source": one} for one in made]
        return {one["_id"]: one["_source"]["_dedup"] for one in numbering.number(actions)}

    if stored == "by another run":
        _index(engine, pipeline, first)
    else:
        number(first)
    told = {}
    for documents in [later] if batches == "one batch" else [[one] for one in later]:
        told |= number(documents)
    assert not told["1"]["leader"]
    assert told["2"]["leader"]


def test_indexing_again_changes_no_number_and_no_leader(engine, pipeline, text):
    documents = _documents(text, "abacab")
    assert _index(engine, pipeline, documents) == _index(engine, pipeline, documents)


def test_a_document_with_another_text_leaves_its_group(engine, pipeline, text):
    before = _index(engine, pipeline, _documents(text, "aab"))
    after = _index(engine, pipeline, [{"id": "1", "body": text("c")}])
    assert after["1"]["group"] != before["1"]["group"]
    assert after["1"]["leader"]
    assert after["0"] == before["0"]


def test_a_leader_whose_text_is_changed_a_little_founds_another_group(engine, pipeline, text):
    before = _index(engine, pipeline, _documents(text, "aa"))
    after = _index(engine, pipeline, [{"id": "0", "body": text("a", 2)}])
    assert (before["0"]["leader"], after["0"]["leader"]) == (True, True)
    assert after["0"]["group"] != before["0"]["group"]


def test_a_number_that_another_group_has_is_skipped(engine, pipeline, text):
    found = _index(engine, pipeline, [{"id": "a", "body": text("a")}])
    first, second, *_ = numbers_of(Fingerprint.from_field(found["a"]), (), "texts", "a")
    assert found["a"]["group"] == first
    taken = {**_index(engine, pipeline, [{"id": "b", "body": text("b")}])["b"], "group": first}
    engine.delete_by_query("texts", {"match_all": {}})
    put(engine, "texts", {"b": {"body": text("b"), "_dedup": taken}})
    assert _index(engine, pipeline, [{"id": "a", "body": text("a")}])["a"]["group"] == second


def test_a_document_without_a_fingerprint_gets_no_group(engine, pipeline, text):
    (outcome,) = pipeline.run_block([{"_id": "b", "body": text("b")}])
    given = [
        {"_index": "texts", "_id": "a", "_source": {"body": text("a")}},
        {"_index": "texts", "_id": "b", "_source": {"_dedup": outcome.document["_dedup"]}},
    ]
    bare, numbered = Numbering(engine, "texts", pipeline.recipe()).number(given)
    assert bare == given[0]
    assert numbered["_source"]["_dedup"]["leader"] is True


def test_documents_without_any_text_are_groups_of_their_own(engine, pipeline):
    found = _index(engine, pipeline, [{"id": "a", "body": ""}, {"id": "b", "body": ""}])
    assert found["a"]["group"] != found["b"]["group"]


def test_documents_without_any_text_keep_their_numbers_when_they_are_indexed_again(engine, pipeline):
    documents = [{"id": "a", "body": ""}, {"id": "b", "body": "слово"}]
    assert _index(engine, pipeline, documents) == _index(engine, pipeline, documents)


def test_empty_documents_of_one_id_in_two_indices_get_two_numbers():
    empty = Fingerprint("scheme", "", 0)
    assert not {*numbers_of(empty, (), "one", "a")} & {*numbers_of(empty, (), "other", "a")}


def _words(prefix, count):
    return [f"{prefix}{chr(0x430 + n // 30)}{chr(0x430 + n % 30)}но" for n in range(count)]


def _with_others(count):
    """Return a text of 120 words, the first of which differ."""
    return " ".join(_words("ст", 120)[count:] + _words("мк", count))


#: Edit similarities: .86 from one to the next, .71 from the first to the last.
CHAIN = {"first": 0, "middle": 17, "last": 35}


@pytest.mark.parametrize("apart", [False, True], ids=["in one run", "one run each"])
def test_a_follower_attracts_no_documents_to_its_group(engine, pipeline, apart):
    given = [{"id": id_, "body": _with_others(count)} for id_, count in CHAIN.items()]
    for documents in [[one] for one in given] if apart else [given]:
        found = _index(engine, pipeline, documents)
    assert found["middle"]["group"] == found["first"]["group"] != found["last"]["group"]
    assert [found[id_]["leader"] for id_ in CHAIN] == [True, False, True]


@pytest.mark.parametrize("apart", [False, True], ids=["in one run", "one run each"])
@pytest.mark.parametrize("nearer", ["first", "last"])
def test_a_document_joins_the_more_similar_of_two_leaders(engine, pipeline, apart, nearer):
    between = {"first": 14, "last": 21}[nearer]
    counts = {"first": 0, "last": 35, "between": between}
    given = [{"id": id_, "body": _with_others(count)} for id_, count in counts.items()]
    for documents in [[one] for one in given] if apart else [given]:
        found = _index(engine, pipeline, documents)
    assert found["first"]["leader"]
    assert found["last"]["leader"]
    assert found["between"]["group"] == found[nearer]["group"]


def test_documents_without_an_id_join_leaders_of_earlier_batches(engine, pipeline, text):
    numbering = Numbering(engine, "texts", pipeline.recipe())
    told = []
    for kinds in ("ab", "bca", "dd"):
        made = pipeline.run_block([{"body": text(kind, len(told))} for kind in kinds])
        numbered = numbering.number([{"_index": "texts", "_source": one.document} for one in made])
        told += [action["_source"]["_dedup"] for action in numbered]
    assert [one["leader"] for one in told] == [True, True, False, True, False, True, False]
    assert told[2]["group"] == told[1]["group"]
    assert told[4]["group"] == told[0]["group"]


def test_documents_without_an_id_and_without_a_text_are_in_no_common_group(engine, pipeline):
    made = pipeline.run_block([{"body": ""}, {"body": ""}])
    numbering = Numbering(engine, "texts", pipeline.recipe())
    one, other = numbering.number([{"_index": "texts", "_source": each.document} for each in made])
    assert one["_source"]["_dedup"]["group"] != other["_source"]["_dedup"]["group"]


@pytest.mark.parametrize("stored", [False, True])
def test_no_document_follows_a_leader_that_its_batch_replaces(engine, pipeline, text, stored):
    given = [{"_id": "1", "body": text("a")}]
    if stored:
        _index(engine, pipeline, given)
        given = []
    given += [{"_id": "2", "body": text("a", 1)}, {"_id": "1", "body": text("b")}]
    given += [{"_id": "3", "body": text("a", 2)}, {"_id": "4", "body": text("b", 1)}]
    found = _index(engine, pipeline, given)
    assert [found[id_]["leader"] for id_ in "1234"] == [True, True, False, False]
    assert found["2"]["group"] == found["3"]["group"]
    assert found["1"]["group"] == found["4"]["group"] != found["2"]["group"]


def test_a_document_twice_in_a_batch_has_the_number_of_its_text(engine, pipeline, text):
    once = _index(engine, pipeline, [{"id": "1", "body": text("a")}])["1"]
    engine.delete_by_query("texts", {"match_all": {}})
    engine.refresh("texts")
    twice = [{"id": "1", "body": text("a")}, {"id": "1", "body": text("a")}]
    assert _index(engine, pipeline, twice)["1"] == once
