"""A request: its body, what its address says, and what callers pass by mistake."""

import asyncio
import random

import pytest
from support.hits import SCHEME
from support.taps import Awaited, Tapped

from shinglefold.errors import ConfigError, UnsupportedQuery
from shinglefold.rerank import AsyncFoldedSearch, FoldedSearch, FoldOptions, collapse
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
from shinglefold.rerank.request.url_parameters import read_parameters


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


HARMLESS = {"preference": "_local", "request_cache": True, "search_type": "dfs_query_then_fetch"}


@pytest.fixture
def tapped(library):
    return Tapped(library.engine)


@pytest.fixture
def folded(tapped):
    return FoldedSearch(tapped, SCHEME)


def given(tapped, name):
    """The parameters of each call of a method."""
    return [
        arguments[2] if len(arguments) > 2 else None for called, arguments in tapped.calls if called == name
    ]


def test_parameters_go_with_window_and_page_alike(library, folded, tapped):
    folded.search("pages", library.body(0), **HARMLESS)
    assert given(tapped, "search") == [HARMLESS, HARMLESS]


def test_keywords_and_an_object_mean_the_same(library, folded):
    body = library.body(0)
    plain = folded.search("pages", body)
    for answer in (folded.search("pages", body, params=HARMLESS), folded.search("pages", body, **HARMLESS)):
        assert answer["hits"] == plain["hits"]


def test_none_means_that_a_parameter_is_not_given(library, folded, tapped):
    body = library.body(0)
    plain = folded.search("pages", body)
    none = folded.search("pages", body, params={"preference": None}, routing=None, size=None, q=None)
    assert none["hits"] == plain["hits"]
    assert given(tapped, "search") == [None] * 4


def test_under_a_point_in_time_only_opening_it_says_where(library, folded, tapped):
    options = FoldOptions(window=5, max_window=60)
    folded.search("pages", library.body(0, size=20), options, **HARMLESS)
    assert given(tapped, "open_pit") == [{"preference": "_local"}]
    settled = {name: value for name, value in HARMLESS.items() if name != "preference"}
    assert given(tapped, "search")[0] == HARMLESS
    assert given(tapped, "search")[1:] == [settled] * (len(tapped.searches) - 1)


def test_pages_of_a_cursor_take_them_too(library, folded, tapped):
    pages = list(folded.pages("pages", library.body(0, size=30), preference="_local"))
    assert len(pages) > 1
    assert given(tapped, "open_pit") == [{"preference": "_local"}]


def test_several_searches_have_their_own_beside_those_of_all(library, folded, tapped):
    searches = [("pages", library.body(0)), ("pages", library.body(1), {"request_cache": False})]
    answers = folded.msearch(searches, preference="_local")
    assert [answer["hits"] for answer in answers] == [
        folded.search("pages", library.body(number))["hits"] for number in (0, 1)
    ]
    (sent, *_) = [arguments[0] for name, arguments in tapped.calls if name == "msearch"]
    assert [search[2] for search in sent] == [
        {"preference": "_local"},
        {"preference": "_local", "request_cache": False},
    ]


def test_what_one_of_several_can_not_mean_stands_in_its_place(library, folded):
    first, second = folded.msearch([("pages", library.body(0)), ("pages", {}, {"rooting": "a"})])
    assert first["hits"]["hits"]
    assert isinstance(second, ConfigError)


def test_awaited_searches_take_them(library):
    folded = AsyncFoldedSearch(Awaited(library.engine), SCHEME)
    answer = asyncio.run(folded.search("pages", library.body(0), preference="_local"))
    assert answer["hits"]["hits"]


@pytest.mark.parametrize(
    ("parameters", "body"),
    [
        ({"size": 3}, {"size": 3}),
        ({"size": "3", "from": "2"}, {"size": 3, "from": 2}),
        ({"from_": 2}, {"from": 2}),
        ({"track_total_hits": "true"}, {"track_total_hits": True}),
        ({"sort": "rank:desc,host"}, {"sort": [{"rank": "desc"}, "host"]}),
        ({"_source": "title,host"}, {"_source": ["title", "host"]}),
        ({"_source": "false"}, {"_source": False}),
        ({"_source_excludes": "_dedup"}, {"_source": {"excludes": ["_dedup"]}}),
        (
            {"_source_includes": ["a"], "source_excludes": "b"},
            {"_source": {"includes": ["a"], "excludes": ["b"]}},
        ),
        ({"docvalue_fields": "a,b"}, {"docvalue_fields": ["a", "b"]}),
        ({"timeout": "2s"}, {"timeout": "2s"}),
        (
            {"q": "bridge", "df": "title"},
            {"query": {"query_string": {"query": "bridge", "default_field": "title"}}},
        ),
    ],
)
def test_what_a_body_says_better_is_said_there(parameters, body):
    assert read_parameters(parameters).body == body
    assert not read_parameters(parameters).url


def test_what_the_address_says_of_the_page_wins(library, folded):
    answer = folded.search("pages", library.body(0, size=5), size=2, _source="title")
    assert len(answer["hits"]["hits"]) == 2
    assert answer["hits"]["hits"][0]["_source"].keys() == {"title"}


def test_totals_may_be_plain_numbers(library, folded):
    plain = folded.search("pages", library.body(0))
    told = folded.search("pages", library.body(0), rest_total_hits_as_int=True)
    assert told["hits"]["total"] == plain["hits"]["total"]["value"]
    for one, other in zip(told["hits"]["hits"], plain["hits"]["hits"], strict=True):
        total = other["inner_hits"]["duplicates"]["hits"]["total"]["value"]
        assert one["inner_hits"]["duplicates"]["hits"]["total"] == total


def test_scroll_is_refused_with_the_way_to_the_cursor(folded):
    with pytest.raises(ConfigError, match=r'cursor.*"ext": \{"dedup": \{"cursor": true\}\}'):
        folded.search("pages", {}, scroll="1m")


@pytest.mark.parametrize("name", ["rooting", "filter_path", "format"])
def test_a_parameter_that_nobody_knows_is_refused(folded, name):
    with pytest.raises(ConfigError, match=f"unknown search parameter '{name}'"):
        folded.search("pages", {}, **{name: "x"})


@pytest.mark.parametrize("name", ["query", "aggs", "highlight", "post_filter", "ext"])
def test_a_part_of_the_body_that_is_given_as_a_parameter_is_shown_in_its_place(folded, name):
    with pytest.raises(ConfigError, match=rf"{name} belongs into the body: search\(\{{'{name}': …\}}\)"):
        folded.search("pages", **{name: {}})


@pytest.mark.parametrize(
    "parameters",
    [{"routing": "a"}, {"typed_keys": True}, {"search_pipeline": "p"}, {"ignore_unavailable": True}],
)
def test_the_embedded_engine_refuses_by_name_what_would_mean_something(folded, parameters):
    (name,) = parameters
    with pytest.raises(UnsupportedQuery, match=name):
        folded.search("pages", {}, **parameters)


def test_a_whole_response_is_collapsed_as_its_hits_are(library):
    body = {"query": {"match_all": {}}, "size": 50}
    page = library.engine.search("pages", body)
    assert collapse(page, SCHEME) == collapse(page["hits"]["hits"], SCHEME)
    assert collapse(page["hits"], SCHEME) == collapse(page["hits"]["hits"], SCHEME)
    assert len(collapse(page, SCHEME).groups) > 1


@pytest.mark.parametrize("wrong", ["hits", {}, {"error": "x"}, None, ["a"], 5])
def test_what_holds_no_hits_is_refused(wrong):
    with pytest.raises(ConfigError, match="not a list of hits"):
        collapse(wrong, SCHEME)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ([{"query": {"match_all": {}}, "size": 1, "from": 0}], "search 0 names no index"),
        ([("pages", {}), {"query": {}}], "search 1 names no index"),
        ([("pages",)], "search 0 names no index"),
        ([("pages", "bridge")], "search 0 has no body"),
        ([(None, {"query": {"match_all": {}}})], "neither an index nor a point in time"),
        ({"query": {}}, "one search instead of a list"),
        (["pages"], "search 0 names no index"),
    ],
)
def test_a_search_without_an_index_is_refused_with_what_to_give(library, wrong, told):
    with pytest.raises(ConfigError, match=told):
        FoldedSearch(library.engine, SCHEME).msearch(wrong)
