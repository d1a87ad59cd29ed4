"""The options of a request: short forms, limits, names that nobody knows."""

from dataclasses import fields

import pytest
from support.hits import SCHEME

from shinglefold.errors import ConfigError
from shinglefold.grouping import Policy
from shinglefold.rerank import FoldedSearch, FoldOptions, Preference, Scope
from shinglefold.rerank.request.arguments import read_source_filter
from shinglefold.rerank.similar import SimilarOptions


def test_every_option_can_be_said_in_json():
    told = FoldOptions.parse(
        {
            "min_shared": 2,
            "min_resemblance": 0.7,
            "min_length_ratio": 0.5,
            "linkage": "connected",
            "representative": [
                {"prefer": {"field": "host", "values": ["a.org"]}},
                {"newest": "published"},
                "longest",
            ],
            "members": {"size": 3, "_source": ["title"]},
            "window": 50,
            "max_window": 400,
            "scope": [{"field": "published", "within": "7d"}, "host"],
            "fold": False,
            "explain": True,
        }
    )
    assert told == FoldOptions(
        min_shared=2,
        min_resemblance=0.7,
        min_length_ratio=0.5,
        linkage="connected",
        representative=(
            Preference("prefer", "host", ("a.org",)),
            Preference("newest", "published"),
            Preference("longest"),
        ),
        members=3,
        member_source=["title"],
        window=50,
        max_window=400,
        scope=(Scope("published", 604800.0), Scope("host")),
        fold=False,
        explain=True,
    )


def test_short_forms_mean_the_same():
    told = FoldOptions.parse(
        {"representative": "prefer:host=a.org,b.org", "scope": "published:12h", "members": 0}
    )
    assert told.representative == (Preference("prefer", "host", ("a.org", "b.org")),)
    assert told.scope == (Scope("published", 43200.0),)
    assert told.members == 0


def test_what_is_not_said_is_as_in_the_base():
    base = FoldOptions(window=30, members=1)
    assert FoldOptions.parse({"members": 2}, base) == FoldOptions(window=30, members=2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"min_resemblence": 0.5}, "'min_resemblance'"),
        ({"representatives": "rank"}, "'representative'"),
        ({"member_source": ["a"]}, "members"),
        ({"members": {"siz": 1}}, "'size'"),
        ({"scope": {"field": "a", "whithin": "7d"}}, "'within'"),
        ({"representative": {"prefer": {"field": "host", "value": ["a"]}}}, "'values'"),
        ({"linkage": "leaders"}, "'leader'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(given, said):
    with pytest.raises(ConfigError, match=said):
        FoldOptions.parse(given)


@pytest.mark.parametrize(
    "given",
    [
        {"min_shared": -1},
        {"min_shared": 1.5},
        {"min_resemblance": 1.01},
        {"min_resemblance": "0.5"},
        {"min_length_ratio": True},
        {"members": -1},
        {"members": "many"},
        {"window": 0},
        {"window": 1001},
        {"max_window": 10_001},
        {"window": 300, "max_window": 200},
        {"fold": "no"},
        {"explain": 1},
        {"scope": 7},
        {"scope": {"field": "date", "within": "a week"}},
        {"representative": {"a": "b", "c": "d"}},
        {"representative": {"prefer": {"field": "host", "values": "a.org"}}},
        [],
        "fold",
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(given):
    with pytest.raises(ConfigError):
        FoldOptions.parse(given)


@pytest.mark.parametrize("made", [FoldOptions, SimilarOptions])
@pytest.mark.parametrize("scope", ["host", ("host",), [Scope("host"), "lang"], None])
def test_a_scope_that_is_none_is_told_how_one_is_made(made, scope):
    with pytest.raises(ConfigError, match=r"scope: expected a tuple of Scope; Scope\.parse reads text"):
        made(scope=scope)
    assert made(scope=(Scope("host"),)).scope


def test_a_policy_of_choosing_whom_to_show_is_told_likewise():
    with pytest.raises(ConfigError, match=r"Preference\.parse reads text"):
        FoldOptions(representative="newest:date")


@pytest.mark.parametrize("scope", ["host", ("host", 5), None])
def test_the_scope_of_a_gate_is_a_list_of_fields(scope):
    with pytest.raises(ConfigError, match="scope: expected a list of strings"):
        Policy(scope=scope)
    assert Policy(scope=("host",)).scope == ("host",)


OWN = FoldOptions(scope=(Scope("host"),), members=3, window=100, max_window=500)
MAY = {
    "fold": False,
    "members": 2,
    "min_resemblance": 0.8,
    "min_length_ratio": 0.5,
    "window": 50,
    "max_window": 400,
    "cursor": True,
    "renew": True,
}
MAY_NOT = {
    "min_shared": 2,
    "linkage": "connected",
    "representative": "prefer:salary=1",
    "scope": "salary",
    "explain": {"passages": True, "fields": ["salary"]},
    "inner_hits": {"fields": ["salary"]},
    "mode": "native",
    "facets": "groups",
    "verify": "text",
    "on_trouble": "raise",
}


@pytest.mark.parametrize("name", MAY)
def test_a_visitor_may_set_what_shows_no_more(name):
    assert getattr(FoldOptions.untrusted({name: MAY[name]}, OWN), name) == MAY[name]


@pytest.mark.parametrize("name", MAY_NOT)
def test_a_visitor_may_not_name_fields_nor_choose_what_costs_more(name):
    with pytest.raises(ConfigError, match=f"'{name}' is reserved for the application"):
        FoldOptions.untrusted({name: MAY_NOT[name]}, OWN)


def test_every_option_is_either_the_visitors_or_the_applications():
    named = {one.name for one in fields(FoldOptions)} - {"closed"}
    # What an object `members` says beside its size.
    named -= {"member_source", "members_from", "member_filter"}
    assert named == MAY.keys() | MAY_NOT.keys()


@pytest.mark.parametrize("given", [{"from": "index"}, {"size": 1, "filter": {"match_all": {}}}])
def test_a_visitor_does_not_have_members_looked_for_beyond_the_results(given):
    with pytest.raises(ConfigError, match="of members is reserved for the application"):
        FoldOptions.untrusted({"members": given}, OWN)


@pytest.mark.parametrize("given", [{"members": 4}, {"window": 101}, {"max_window": 501}])
def test_a_visitor_has_no_more_attached_or_read_than_the_application(given):
    with pytest.raises(ConfigError, match="at most"):
        FoldOptions.untrusted(given, OWN)


def test_what_a_visitor_leaves_open_is_the_applications():
    told = FoldOptions.untrusted({"members": {"size": 1, "_source": ["title"]}}, OWN)
    assert (told.scope, told.window, told.members) == (OWN.scope, OWN.window, 1)
    assert read_source_filter(told.member_source).includes == ("title",)


def test_the_body_of_a_visitor_is_held_to_the_same(library):
    folded = FoldedSearch(library.engine, SCHEME)
    own = FoldOptions.untrusted({}, FoldOptions(window=100))
    body = library.body(0, ext={"dedup": {"scope": "salary"}})
    with pytest.raises(ConfigError, match="'scope' is reserved for the application"):
        folded.search("pages", body, own)
    body = library.body(0, ext={"dedup": {"window": 20}})
    assert folded.search("pages", body, own)["hits"]["hits"]


def test_no_body_can_open_what_was_closed():
    with pytest.raises(ConfigError, match="unknown dedup option 'closed'"):
        FoldOptions.parse({"closed": False}, FoldOptions.untrusted({}))
