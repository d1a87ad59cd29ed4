"""Hits of a page are fetched by sequence number, or by id: each once, in requests of a limited size."""

from functools import partial
from types import SimpleNamespace

import pytest

from shinglefold.rerank.hits import PartialAnswer
from shinglefold.rerank.page import fetch
from shinglefold.rerank.page.fetch import AmbiguousSeqNo, HitsVanished, SeqNoFetch, are_numbered, without_ids
from shinglefold.rerank.page.window import WindowReader

_QUERY = {"match": {"title": "страница"}}


def _read(number, digest="a", index="pages"):
    return {"_index": index, "_score": 1.0, "fields": {"_seq_no": [number], "_dedup.digest": [digest]}}


def _fetched(number, digest="a", index="pages"):
    return _read(number, digest, index) | {"_id": f"{number}{digest}", "_seq_no": number, "_primary_term": 1}


def test_a_window_of_doc_values_needs_no_ids():
    window = {"size": 200, "_source": False, "docvalue_fields": ["_dedup.signature"]}
    lean = without_ids(window)
    assert lean["stored_fields"] == "_none_"
    assert lean["docvalue_fields"] == ["_dedup.signature", "_seq_no"]


def test_a_window_that_needs_sources_keeps_its_ids():
    window = {"size": 200, "_source": ["_dedup.supershingles"], "docvalue_fields": []}
    assert without_ids(window) == window


def test_hits_without_ids_are_known():
    assert are_numbered([_read(1)])
    assert not are_numbered([_fetched(1)])
    assert not are_numbered([])


def test_one_shard_is_asked_for_numbers_alone():
    request = SeqNoFetch({"query": _QUERY}, 1, "_dedup").request([_read(7), _read(3)], None)
    assert request["query"] == {"bool": {"filter": [{"terms": {"_seq_no": [3, 7]}}]}}
    assert request["size"] == 3


def test_in_one_shard_made_of_several_another_document_of_a_number_stands_for_none():
    """An index made by ``_shrink`` has each number as often as the other had shards."""
    numbered = SeqNoFetch({"query": _QUERY}, 1, "_dedup")
    for others in ([_fetched(1, "b")], [_fetched(1), _fetched(1, "b")], [_fetched(1), _fetched(1)]):
        with pytest.raises(AmbiguousSeqNo):
            numbered.found([_read(1)], others)
    (hit,) = numbered.found([_read(1)], [_fetched(1)])
    assert hit["_id"] == "1a"


def test_several_shards_are_asked_for_the_texts_too():
    request = SeqNoFetch({"query": _QUERY}, 3, "_dedup").request([_read(7, "b"), _read(3, "c")], None)
    digests = {"terms": {"_dedup.digest": ["b", "c"]}}
    assert digests in request["query"]["bool"]["filter"]
    assert request["docvalue_fields"] == ["_dedup.digest"]


def test_where_a_hit_has_no_text_several_shards_are_asked_for_numbers_alone():
    bare = {"_index": "pages", "fields": {"_seq_no": [3]}}
    request = SeqNoFetch({"query": _QUERY}, 3, "_dedup").request([_read(7, "b"), bare], None)
    assert request["query"] == {"bool": {"filter": [{"terms": {"_seq_no": [3, 7]}}]}}


@pytest.mark.parametrize("hits", [1, 2])
def test_an_answer_that_has_all_it_may_have_is_untold_as_there_may_be_more(hits):
    numbered, read = SeqNoFetch({"query": _QUERY}, 3, "_dedup"), [_read(number) for number in range(hits)]
    size = numbered.request(read, None)["size"]
    # A document of each number in each shard, all of the same texts.
    copies = [_fetched(0, index=f"other{at}") for at in range(3 * hits - hits)]
    several = [*(_fetched(number) for number in range(hits)), *copies]
    assert len(numbered.found(read, several)) == hits
    with pytest.raises(AmbiguousSeqNo):
        numbered.found(read, [*several, _fetched(0, index="one more")])
    assert size == len(several) + 1


@pytest.mark.parametrize(
    "more",
    [
        {"highlight": {"fields": {"title": {}}}},
        {"script_fields": {}},
        {"query": {"match": {"title": {"query": "страница", "_name": "by title"}}}},
    ],
)
def test_the_query_stays_where_the_page_depends_on_it(more):
    body = {"query": _QUERY, **more}
    request = SeqNoFetch(body, 1, "_dedup").request([_read(1)], None)
    assert request["query"]["bool"]["must"] == [body["query"]]


def test_hits_come_in_the_order_asked_for_without_what_finding_them_needed():
    numbered = SeqNoFetch({"query": _QUERY}, 3, "_dedup")
    found = numbered.found([_read(2, "b"), _read(1)], [_fetched(1), _fetched(2, "b"), _fetched(1, "b")])
    assert found == [
        {"_index": "pages", "_score": 1.0, "fields": {"_seq_no": [2]}, "_id": "2b"},
        {"_index": "pages", "_score": 1.0, "fields": {"_seq_no": [1]}, "_id": "1a"},
    ]


def test_what_was_asked_for_is_kept():
    body = {"query": _QUERY, "seq_no_primary_term": True, "docvalue_fields": ["_dedup.*"]}
    (hit,) = SeqNoFetch(body, 3, "_dedup").found([_read(1)], [_fetched(1)])
    assert hit == _fetched(1)


def test_a_hit_that_changed_meanwhile_is_untold():
    with pytest.raises(HitsVanished):
        SeqNoFetch({}, 1, "_dedup").found([_read(1)], [])


def test_copies_of_one_number_in_two_shards_are_untold():
    numbered = SeqNoFetch({}, 2, "_dedup")
    with pytest.raises(AmbiguousSeqNo):
        numbered.request([_read(1), _read(1)], None)
    with pytest.raises(AmbiguousSeqNo):
        numbered.found([_read(1)], [_fetched(1), _fetched(1)])


def test_equal_numbers_in_two_indices_are_told_apart():
    numbered = SeqNoFetch({}, 2, "_dedup")
    hits = [_read(1), _read(1, index="others")]
    found = numbered.found(hits, [_fetched(1, index="others"), _fetched(1)])
    assert [hit["_index"] for hit in found] == ["pages", "others"]


def _read_hit(number):
    return {
        "_index": "pages",
        "_score": 1.0,
        "fields": {"_seq_no": [number], "_dedup.digest": [f"d{number}"]},
    }


def _stored(number):
    fields = {"_dedup.digest": [f"d{number}"]}
    return {
        "_index": "pages",
        "_id": f"page-{number}",
        "_seq_no": number,
        "_primary_term": 1,
        "fields": fields,
    }


@pytest.mark.parametrize(
    ("at_once", "requests"), [(1000, [[3, 5, 8]]), (2, [[5, 8], [3]]), (1, [[8], [5], [3]])]
)
@pytest.mark.parametrize("pit", [None, "p1"])
def test_each_hit_is_fetched_once_and_stands_at_its_place(monkeypatch, at_once, requests, pit):
    monkeypatch.setattr(fetch, "_AT_ONCE", at_once)
    hits = [_read_hit(8), _read_hit(1), _read_hit(5), _read_hit(3)]
    reading = SimpleNamespace(
        hits=hits,
        index="pages",
        shards=1,
        field="_dedup",
        pit=pit,
        keep={"keep_alive": "1m"},
        record_response=PartialAnswer().note,
        pipeline=None,
    )
    reading.under_pit = partial(WindowReader.under_pit, reading)
    steps = fetch._by_seq_no(reading, {"query": {"match_all": {}}}, [0, 2, 3], None)
    asked = []
    call = next(steps)
    try:
        while True:
            index, body = call.arguments
            assert index == (None if pit else "pages")
            assert body.get("pit") == ({"keep_alive": "1m", "id": "p1"} if pit else None)
            numbers = body["query"]["bool"]["filter"][0]["terms"]["_seq_no"]
            asked.append(numbers)
            answer = [_stored(number) for number in reversed(numbers)]
            call = steps.send(
                {"hits": {"hits": answer}, "_shards": {"total": 1, "successful": 1, "failed": 0}}
            )
    except StopIteration as stop:
        found = stop.value
    assert asked == requests
    assert {place: hit["_id"] for place, hit in found.items()} == {0: "page-8", 2: "page-5", 3: "page-3"}
