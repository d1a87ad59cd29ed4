"""Hits of a page are fetched once each, and no deeper than an engine looks; answers may lack shards."""

from functools import partial
from types import SimpleNamespace

import pytest
from support.hits import SCHEME, Spec, hits_of, ids

from shinglefold.contracts.engine import Capabilities
from shinglefold.errors import EngineUnavailable, PitExpired, UnsupportedQuery, WindowTooLarge
from shinglefold.ingest import mappings
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.hits import PartialAnswer, check_complete, lost_shards, refuse_small_windows
from shinglefold.rerank.page import fetch
from shinglefold.rerank.page.fetch import AmbiguousSeqNo, HitsVanished, SeqNoFetch, are_numbered, without_ids
from shinglefold.rerank.page.window import WindowReader
from shinglefold.rerank.request.bodies import (
    has_nearest,
    limit_of,
    raisable_k,
    rank_window,
    with_greater_k,
    with_rank_window,
)
from shinglefold.runtime.sans_io import run

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
            numbered.hits_in_order([_read(1)], others)
    (hit,) = numbered.hits_in_order([_read(1)], [_fetched(1)])
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
    assert len(numbered.hits_in_order(read, several)) == hits
    with pytest.raises(AmbiguousSeqNo):
        numbered.hits_in_order(read, [*several, _fetched(0, index="one more")])
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
    found = numbered.hits_in_order(
        [_read(2, "b"), _read(1)], [_fetched(1), _fetched(2, "b"), _fetched(1, "b")]
    )
    assert found == [
        {"_index": "pages", "_score": 1.0, "fields": {"_seq_no": [2]}, "_id": "2b"},
        {"_index": "pages", "_score": 1.0, "fields": {"_seq_no": [1]}, "_id": "1a"},
    ]


def test_what_was_asked_for_is_kept():
    body = {"query": _QUERY, "seq_no_primary_term": True, "docvalue_fields": ["_dedup.*"]}
    (hit,) = SeqNoFetch(body, 3, "_dedup").hits_in_order([_read(1)], [_fetched(1)])
    assert hit == _fetched(1)


def test_a_hit_that_changed_meanwhile_is_untold():
    with pytest.raises(HitsVanished):
        SeqNoFetch({}, 1, "_dedup").hits_in_order([_read(1)], [])


def test_copies_of_one_number_in_two_shards_are_untold():
    numbered = SeqNoFetch({}, 2, "_dedup")
    with pytest.raises(AmbiguousSeqNo):
        numbered.request([_read(1), _read(1)], None)
    with pytest.raises(AmbiguousSeqNo):
        numbered.hits_in_order([_read(1)], [_fetched(1), _fetched(1)])


def test_equal_numbers_in_two_indices_are_told_apart():
    numbered = SeqNoFetch({}, 2, "_dedup")
    hits = [_read(1), _read(1, index="others")]
    found = numbered.hits_in_order(hits, [_fetched(1, index="others"), _fetched(1)])
    assert [hit["_index"] for hit in found] == ["pages", "others"]


@pytest.mark.parametrize(
    ("at_once", "requests"), [(1000, [[3, 5, 8]]), (2, [[5, 8], [3]]), (1, [[8], [5], [3]])]
)
@pytest.mark.parametrize("pit", [None, "p1"])
def test_each_hit_is_fetched_once_and_stands_at_its_place(monkeypatch, at_once, requests, pit):
    monkeypatch.setattr(fetch, "_AT_ONCE", at_once)
    reading = SimpleNamespace(
        hits=[_read(8), _read(1), _read(5), _read(3)],
        index="pages",
        shards=1,
        field="_dedup",
        pit=pit,
        keep={"keep_alive": "1m"},
        record_response=PartialAnswer().note,
        pipeline=None,
    )
    reading.under_pit = partial(WindowReader.under_pit, reading)
    asked = []

    def answer(call):
        index, body = call.arguments
        assert index == (None if pit else "pages")
        assert body.get("pit") == ({"keep_alive": "1m", "id": "p1"} if pit else None)
        numbers = body["query"]["bool"]["filter"][0]["terms"]["_seq_no"]
        asked.append(numbers)
        hits = [_fetched(number) for number in reversed(numbers)]
        return {"hits": {"hits": hits}, "_shards": {"total": 1, "successful": 1, "failed": 0}}

    found = run(fetch._by_seq_no(reading, {"query": {"match_all": {}}}, [0, 2, 3], None), answer)
    assert asked == requests
    assert {place: hit["_id"] for place, hit in found.items()} == {0: "8a", 2: "5a", 3: "3a"}


VECTOR = [1.0, 0.0]
OPENSEARCH = {"query": {"knn": {"v": {"vector": VECTOR, "k": 5}}}}
NEURAL = {"query": {"neural": {"v": {"query_text": "bridge", "k": 5}}}}
ELASTICSEARCH = {"knn": {"field": "v", "query_vector": VECTOR, "k": 5, "num_candidates": 50}}
IN_QUERY = {"query": {"knn": {"field": "v", "query_vector": VECTOR, "k": 5, "num_candidates": 50}}}
RETRIEVER = {"retriever": {"knn": {"field": "v", "query_vector": VECTOR, "k": 5, "num_candidates": 50}}}
ALONE = {
    "OpenSearch": OPENSEARCH,
    "neural": NEURAL,
    "Elasticsearch": ELASTICSEARCH,
    "in a query": IN_QUERY,
    "retriever": RETRIEVER,
    "the only clause": {"query": {"bool": {"must": [OPENSEARCH["query"]], "boost": 2}}},
    "no list": {"query": {"bool": {"must": IN_QUERY["query"]}}},
    "twice wrapped": {"query": {"bool": {"must": [{"bool": {"must": [NEURAL["query"]], "boost": 3}}]}}},
}
BESIDE = {
    "bool": {"query": {"bool": {"must": [OPENSEARCH["query"], {"term": {"lang": "ru"}}]}}},
    # A filter may remove all of the nearest k, so a short answer is no end of results.
    "filtered": {"query": {"bool": {"must": [OPENSEARCH["query"]], "filter": [{"term": {"lang": "ru"}}]}}},
    "excluded": {"query": {"bool": {"must": OPENSEARCH["query"], "must_not": {"term": {"lang": "ru"}}}}},
    "no clause": {"query": {"bool": {"must": [], "should": [OPENSEARCH["query"], {"match_all": {}}]}}},
    "hybrid": {"query": {"hybrid": {"queries": [OPENSEARCH["query"], {"match": {"a": "b"}}]}}},
    "with a query": {**ELASTICSEARCH, "query": {"match": {"a": "b"}}},
    "several": {"knn": [ELASTICSEARCH["knn"]]},
}
FUSED = {"retriever": {"rrf": {"retrievers": [], "rank_window_size": 30}}}


@pytest.mark.parametrize("body", ALONE.values(), ids=ALONE)
def test_a_search_for_neighbours_alone_may_look_deeper(body):
    assert (limit_of(body), raisable_k(body)) == ("k", 5)
    deeper = with_greater_k(body, 80)
    assert raisable_k(deeper) == 80
    assert with_greater_k(body, 3) == body
    assert raisable_k(with_greater_k(body, 100_000)) == 10_000
    assert "'num_candidates': 50" not in str(deeper)


@pytest.mark.parametrize("body", BESIDE.values(), ids=BESIDE)
def test_beside_a_query_the_number_stays(body):
    assert (limit_of(body), raisable_k(body)) == ("k", None)
    assert with_greater_k(body, 80) == body


@pytest.mark.parametrize("field", ["knn", "neural"])
def test_a_field_of_that_name_is_no_search_for_neighbours(field):
    body = {"query": {"term": {field: "x"}}}
    assert limit_of(body) is None
    assert not has_nearest(body["query"])


def test_fused_lists_are_looked_at_as_far_as_the_window_where_nothing_is_said():
    open_ = {"retriever": {"rrf": {"retrievers": []}}}
    assert rank_window(open_) is None
    assert rank_window(with_rank_window(open_, 200)) == 200
    assert with_rank_window(FUSED, 200) == FUSED
    assert rank_window(FUSED) == 30


class Nearest:
    """Answers as an engine without over-fetching: no more hits than k, or than lists are looked at.

    The servers at hand have no retrievers; tests/servers/test_nearest.py asks real ones for neighbours.
    """

    can = Capabilities()

    def __init__(self, specs):
        self.hits = hits_of(specs)
        self.windows = []

    def all_mappings(self, _):
        return {"pages": mappings(SCHEME)}

    def search(self, _, body):
        ids_ = body.get("query", {}).get("ids", {}).get("values")
        if ids_ is not None:
            return self._answer([hit for hit in self.hits if hit["_id"] in ids_])
        self.windows.append(body)
        window = rank_window(body)
        assert window is None or window >= body["size"]
        found = {None: len(self.hits), "k": raisable_k(body) or 8, "rank_window_size": window}[limit_of(body)]
        return self._answer(self.hits[: min(found, body["size"])], found)

    def _answer(self, hits, found=0):
        total = {"value": found, "relation": "eq"}
        return {"_shards": {"total": 1}, "hits": {"total": total, "max_score": None, "hits": hits}}


#: Four copies of each text after another, so that five neighbours are two groups.
COPIES = [Spec(original=number // 4, seed=number) for number in range(40)]


@pytest.mark.parametrize("body", ALONE.values(), ids=ALONE)
def test_pages_after_neighbours_are_full_and_members_attached(body):
    engine = Nearest(COPIES)
    found = FoldedSearch(engine, SCHEME).search("pages", {**body, "size": 6}, FoldOptions(members=9))
    assert ids(found["hits"]["hits"]) == ["0", "4", "8", "12", "16", "20"]
    assert found["dedup"]["stopped_by"] == "page_full"
    assert found["hits"]["total"] == {"value": 5, "relation": "eq"}
    sizes = [hit["inner_hits"]["duplicates"]["hits"]["total"]["value"] for hit in found["hits"]["hits"]]
    assert sizes == [4] * 6
    assert found["dedup"]["groups_total"] == {"value": 10, "relation": "eq"}


def test_a_page_that_k_fills_is_read_once():
    engine = Nearest(COPIES)
    found = FoldedSearch(engine, SCHEME).search("pages", {**OPENSEARCH, "size": 2})
    assert len(found["hits"]["hits"]) == 2
    assert [raisable_k(window) for window in engine.windows] == [5]


def test_the_results_end_where_there_are_no_more_neighbours():
    found = FoldedSearch(Nearest(COPIES[:12]), SCHEME).search("pages", {**OPENSEARCH, "size": 6})
    assert (len(found["hits"]["hits"]), found["dedup"]["stopped_by"]) == (3, "end_of_results")


@pytest.mark.parametrize("body", BESIDE.values(), ids=BESIDE)
def test_a_page_says_that_k_was_reached(body):
    found = FoldedSearch(Nearest(COPIES), SCHEME).search("pages", {**body, "size": 6})
    assert (len(found["hits"]["hits"]), found["dedup"]["stopped_by"]) == (2, "k_reached")


def test_a_page_says_that_fused_lists_were_looked_at_no_further():
    found = FoldedSearch(Nearest(COPIES), SCHEME).search("pages", {**FUSED, "size": 9})
    assert (len(found["hits"]["hits"]), found["dedup"]["stopped_by"]) == (8, "rank_window_reached")


def _failed(kind: str, reason: str, **cause: object) -> dict:
    failure = {"index": "pages", "reason": {"type": kind, "reason": reason, **cause}}
    return {"_shards": {"total": 3, "successful": 2, "failed": 1, "failures": [failure]}}


_WINDOW = "Result window is too large, from + size must be less than or equal to: [100]"


@pytest.mark.parametrize(
    ("shards", "lost"),
    [
        ({"total": 3, "successful": 3, "failed": 0}, 0),
        ({"total": 3, "successful": 1, "failed": 0}, 2),
        ({"total": 3, "successful": 1, "failed": 1}, 2),
        ({"total": 3, "successful": 3, "failed": 1}, 1),
        ({"failed": 2}, 2),
        ({}, 0),
        (None, 0),
    ],
)
def test_a_shard_that_no_node_has_is_lost_like_one_that_failed(shards, lost):
    assert lost_shards({"_shards": shards}) == lost


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (_failed("search_context_missing_exception", "No search context"), PitExpired, "lost the point"),
        (_failed("illegal_state_exception", "no node found for id [x]"), PitExpired, "lost the point"),
        (_failed("illegal_argument_exception", "no such sort"), UnsupportedQuery, "no such sort"),
        (_failed("illegal_argument_exception", _WINDOW), WindowTooLarge, "'pages' allows fewer"),
        (_failed("circuit_breaking_exception", "full"), EngineUnavailable, "not all shards answered: full"),
        (_failed("node_closed", "long " * 500), EngineUnavailable, "long"),
        ({"_shards": {"total": 2, "successful": 1, "failed": 0}}, EngineUnavailable, "not all shards"),
        ({"timed_out": True, "_shards": {"total": 1, "successful": 1}}, EngineUnavailable, "timed out"),
    ],
)
def test_an_answer_that_is_not_whole_is_refused_with_what_went_wrong(answer, error, said):
    with pytest.raises(error, match=said) as told:
        check_complete(answer)
    assert type(told.value) is error
    assert len(str(told.value)) < 400


def test_a_whole_answer_comes_back_as_it_is():
    answer = {"timed_out": False, "_shards": {"total": 2, "successful": 2, "failed": 0}, "hits": {}}
    assert check_complete(answer) is answer


def test_a_small_window_is_found_in_what_an_error_was_caused_by():
    inner = {"type": "illegal_argument_exception", "reason": _WINDOW}
    with pytest.raises(WindowTooLarge):
        refuse_small_windows(_failed("query_phase_execution_exception", "failed", caused_by=inner))
    refuse_small_windows(_failed("query_phase_execution_exception", "failed", caused_by={"reason": "x"}))
