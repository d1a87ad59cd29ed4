"""What visitors of an application may set: what costs no more and shows no more than it allows."""

from dataclasses import fields

import pytest
from support.hits import SCHEME

from shinglefold.errors import ConfigError
from shinglefold.rerank import FoldedSearch, FoldOptions, Scope
from shinglefold.rerank.request.arguments import read_source_filter

OWN = FoldOptions(scope=(Scope("host"),), members=3, window=100, max_window=500)
MAY = {
    "fold": False,
    "members": 2,
    "min_resemblance": 0.8,
    "min_length_ratio": 0.5,
    "across_languages": True,
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
    "facts": "numbers",
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
