"""What a request says in its address goes with the requests made of it, or is refused by name."""

import asyncio

import pytest
from support.hits import SCHEME
from support.taps import Awaited, Tapped

from shinglefold.errors import ConfigError, UnsupportedQuery
from shinglefold.rerank import AsyncFoldedSearch, FoldedSearch, FoldOptions
from shinglefold.rerank.request.url_parameters import read_parameters

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


@pytest.mark.parametrize(
    "parameters",
    [{"routing": "a"}, {"typed_keys": True}, {"search_pipeline": "p"}, {"ignore_unavailable": True}],
)
def test_the_embedded_engine_refuses_by_name_what_would_mean_something(folded, parameters):
    (name,) = parameters
    with pytest.raises(UnsupportedQuery, match=name):
        folded.search("pages", {}, **parameters)
