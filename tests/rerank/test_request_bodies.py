"""The requests a search is cut into."""

import random

import pytest

from shinglefold.errors import ConfigError
from shinglefold.rerank import FoldOptions
from shinglefold.rerank.request.bodies import (
    chosen_body,
    complete_tie_groups,
    hits_query,
    resumable,
    split_request,
    total_order,
    window_body,
    window_fields,
)


def test_tuples_are_read_as_the_lists_that_clients_send():
    body = {"query": {"bool": {"must": ({"term": {"a": 1}},)}}, "sort": ({"date": "desc"},)}
    read, options = split_request({**body, "ext": {"dedup": {"scope": ("host",)}}})
    assert read == {"query": {"bool": {"must": [{"term": {"a": 1}}]}}, "sort": [{"date": "desc"}]}
    assert FoldOptions.parse(options).scope[0].field == "host"


HITS = [{"_index": "a", "_id": "1"}, {"_index": "b", "_id": "2"}]


def page_body(body):
    return chosen_body(body, hits_query(HITS, shards=1), len(HITS))


@pytest.mark.parametrize(
    ("sort", "total"),
    [
        (None, [{"_score": "desc"}, {"_shard_doc": "asc"}]),
        ([], [{"_score": "desc"}, {"_shard_doc": "asc"}]),
        ("date", [{"date": {"missing": "_last"}}, {"_shard_doc": "asc"}]),
        (
            {"date": "desc", "rank": {"order": "asc"}},
            [
                {"date": {"order": "desc", "missing": "_last"}},
                {"rank": {"order": "asc"}},
                {"_shard_doc": "asc"},
            ],
        ),
        (
            [{"date": {"missing": "_first"}}, {"_shard_doc": "desc"}],
            [{"date": {"missing": "_first"}}, {"_shard_doc": "desc"}],
        ),
    ],
)
def test_an_order_is_made_total_once(sort, total):
    assert total_order({"sort": sort}, "_shard_doc") == total


def test_our_options_leave_the_body_and_others_stay():
    assert split_request({"size": 1, "ext": {"dedup": {"fold": True}}}) == ({"size": 1}, {"fold": True})
    assert split_request({"ext": {"dedup": {}, "else": 1}}) == ({"ext": {"else": 1}}, {})
    assert split_request({}) == ({}, {})


def test_a_window_reads_only_what_folding_needs():
    options = FoldOptions.parse({"scope": "host", "representative": ["newest:date", "prefer:host=a"]})
    fields = window_fields(options, "_dedup", shared=False)
    assert fields == [
        "_dedup.digest",
        "_dedup.signature",
        "date",
        "host",
    ]
    body = {
        "query": {"match_all": {}},
        "from": 20,
        "size": 5,
        "_source": ["a"],
        "highlight": {},
        "aggs": {"x": {}},
    }
    window = window_body(body, 200, fields)
    assert window == {
        "query": {"match_all": {}},
        "aggs": {"x": {}},
        "size": 200,
        "_source": False,
        "docvalue_fields": fields,
    }
    again = window_body(body, 200, fields, first=False)
    assert "aggs" not in again
    assert again["track_total_hits"] is False


NESTED = {"path": "parts", "query": {"match_all": {}}}
CHILD = {"type": "comment", "query": {"match_all": {}}}
VECTOR = {"field": "parts.vector", "query_vector": [1.0], "k": 3}
#: Queries to which inner hits are added, each by a function of the part that may have them.
WITH_INNER_HITS = [
    lambda more: {"query": {"nested": NESTED | more}},
    lambda more: {"query": {"bool": {"should": [{"nested": NESTED | more}, {"has_child": CHILD | more}]}}},
    lambda more: {
        "query": {"has_parent": {"parent_type": "page", "query": {"nested": NESTED | more}} | more}
    },
    lambda more: {"post_filter": {"nested": NESTED | more}},
]
#: Queries that can't be sent again for some of their hits.
FOUND_ONCE = [
    lambda more: {"query": {"knn": VECTOR | more}},
    lambda more: {"knn": VECTOR | more},
    lambda more: {"knn": [VECTOR, VECTOR | more]},
    lambda more: {"retriever": {"rrf": {"retrievers": [{"standard": {"query": {"nested": NESTED | more}}}]}}},
    lambda more: {"retriever": {"knn": VECTOR | more}},
]


@pytest.mark.parametrize("body", WITH_INNER_HITS)
def test_a_window_has_no_inner_hits(body):
    assert window_body(body({"inner_hits": {"size": 1}}), 200, []) == window_body(body({}), 200, [])


@pytest.mark.parametrize("body", FOUND_ONCE)
def test_inner_hits_come_with_the_window_where_no_later_request_finds_them(body):
    window = window_body(body({"inner_hits": {"size": 1}}), 200, [])
    assert "inner_hits" in str(window)
    assert "_source" not in window


@pytest.mark.parametrize(
    "query",
    [
        {"term": {"inner_hits": "x"}},
        {"bool": {"filter": [{"term": {"nested.inner_hits": 1}}, {"term": {"inner_hits": {"value": 1}}}]}},
        {"nested": {"path": "inner_hits", "query": {"term": {"inner_hits": {"value": "nested"}}}}},
    ],
)
def test_fields_of_these_names_stay(query):
    assert window_body({"query": query}, 200, [])["query"] == query


def test_supershingles_are_read_only_where_they_are_needed():
    assert "_dedup.supershingles" in window_fields(FoldOptions(), "_dedup", shared=True)
    assert "_dedup.supershingles" in window_fields(FoldOptions(explain=True), "_dedup", shared=False)
    assert "_dedup.supershingles" not in window_fields(FoldOptions(), "_dedup", shared=False)


def test_a_page_keeps_the_query_and_narrows_it_to_its_hits():
    query = {"match": {"title": "page"}}
    body = {
        "query": query,
        "from": 10,
        "sort": "date",
        "highlight": {"fields": {"title": {}}},
        "rescore": {"x": 1},
    }
    assert page_body(body) == {
        "query": {"bool": {"must": [query], "filter": [{"ids": {"values": ["1", "2"]}}]}},
        "highlight": {"fields": {"title": {}}},
        "size": 2,
        "track_total_hits": False,
    }


def test_beside_other_ways_of_finding_the_query_stays_for_the_highlighter():
    body = {"query": {"match": {"a": "b"}}, "knn": {"field": "v"}, "highlight": {"fields": {"a": {}}}}
    page = page_body(body)
    assert page["query"] == {"ids": {"values": ["1", "2"]}}
    assert page["highlight"]["highlight_query"] == {"match": {"a": "b"}}
    assert "knn" not in page


@pytest.mark.parametrize(
    "body",
    [
        {"query": {"hybrid": {"queries": []}}, "highlight": {"fields": {"a": {}}}},
        {"retriever": {"standard": {"query": {"match": {"a": "b"}}}}, "highlight": {"fields": {"a": {}}}},
        {"query": {"match": {"a": "b"}}, "knn": {"field": "v", "_name": "near"}},
        {"query": {"match": {"a": "b"}}, "explain": True},
        {"query": {"percolate": {"field": "a", "document": {}}}, "highlight": {"fields": {"a": {}}}},
    ],
)
def test_what_only_the_search_itself_says_of_hits_comes_with_the_window(body):
    window = window_body(body, 200, ["_dedup.digest", "_dedup.supershingles"])
    assert {name: window[name] for name in body} == body
    assert window["docvalue_fields"] == ["_dedup.digest"]
    assert window["fields"] == ["_dedup.supershingles"]
    assert "_source" not in window


@pytest.mark.parametrize(
    "body",
    [{"knn": {}}, {"retriever": {}}, {"rank": {}}, {"query": {"hybrid": {}}}, {"rescore": {"query": {}}}],
)
def test_what_is_ranked_by_more_than_a_sort_is_not_read_on(body):
    assert not resumable(body)
    assert resumable({"query": {"match_all": {}}, "sort": "date"})


def walk(keys, size):
    """Walk as a server answers: what is sorted behind the last hit taken, one more than is to be taken."""
    taken, after = [], None
    while True:
        wanted = size
        left = [{"sort": [key]} for key in keys if after is None or key > after]
        while not (count := complete_tie_groups(left[: wanted + 1], wanted)) and left:
            wanted *= 2
        taken += [hit["sort"][0] for hit in left[:count]]
        if len(left) <= wanted:
            return taken
        after = taken[-1]


@pytest.mark.parametrize("seed", range(50))
def test_every_hit_comes_once_whatever_ties_there_are(seed):
    rng = random.Random(seed)
    keys = sorted(rng.randrange(rng.choice([1, 5, 60])) for _ in range(rng.randrange(40)))
    assert walk(keys, rng.randrange(1, 12)) == keys


def test_a_page_ends_between_hits_that_differ():
    hits = [{"sort": [key]} for key in (1, 2, 2, 3)]
    assert [complete_tie_groups(hits[: most + 1], most) for most in (1, 2, 3, 4)] == [1, 1, 3, 4]
    assert complete_tie_groups(hits[1:3], 1) == 0


@pytest.mark.parametrize(
    "body", [{"dedup": {"fold": False}}, {"ext": {"dedupe": {}}}, {"ext": {"dedup": {}, "deduped": 1}}]
)
def test_options_in_another_place_name_theirs(body):
    with pytest.raises(ConfigError, match=r'options of folding are in ext\.dedup: \{"ext": \{"dedup"'):
        split_request(body)
