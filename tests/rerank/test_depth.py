"""Numbers that bound how deep an engine looks: raised where that keeps the order, told where not."""

import pytest
from support.hits import SCHEME, Spec, hits_of, ids

from shinglefold.contracts.engine import Capabilities
from shinglefold.ingest import mappings
from shinglefold.rerank import FoldedSearch, FoldOptions
from shinglefold.rerank.request.bodies import (
    has_nearest,
    limit_of,
    raisable_k,
    rank_window,
    with_greater_k,
    with_rank_window,
)

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
