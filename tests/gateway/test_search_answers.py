"""Totals of pages folded unasked: who asks for pages until they have so many hits comes to an end."""

import itertools
from contextlib import closing

import pytest
from support.interceptor import Script, intercept, lines

import shinglefold
from shinglefold.examples import temporary_index
from shinglefold.gateway.rest import RestResponse, Send
from shinglefold.grouping.regroup import regroup
from shinglefold.rerank.request.fold_options import FoldOptions

BODIES = {
    "all": {"query": {"match_all": {}}},
    "some": {"query": {"match": {"title": "мост"}}},
    "none": {"query": {"match": {"title": "такогословавнихнет"}}},
    "all counted": {"query": {"match_all": {}}, "track_total_hits": True},
}
WAYS = {
    "by window": {},
    "by short windows": {"window": 5, "max_window": 40},
    "by texts": {"verify": "text"},
    "by stored groups": {"mode": "native"},
}
_LIST = {"search": "/site/_search", "msearch": "/_msearch"}


@pytest.fixture(scope="module")
def numbered():
    """The example site with the numbers of groups stored."""
    folder = temporary_index("site")
    shinglefold.setup(folder, "site", text=["title", "body"], groups=True)
    with closing(shinglefold.open(folder, "site")) as opened:
        regroup(opened.engine, "site")
        yield opened


def ask(site, body, door, dedup=None, **parameters):
    """Return a page that is folded unasked by one of the ways to search."""
    given = body if door == "search" else lines({"index": "site"}, body)
    found = intercept(site, Script(site), _LIST[door], given, always=True, dedup=dedup, **parameters).body
    return found if door == "search" else found["responses"][0]


#: The size of a page by body and way, and how it is asked for: two Latin squares that are orthogonal, so that
#: each value of one meets each value of all others.
_SIZES = (1, 3, 31, 500)
_ASKED = ((False, "search"), (False, "msearch"), (True, "search"), (True, "msearch"))
CELLS = [
    (name, way, _SIZES[at ^ other], *_ASKED[at ^ (0, 2, 3, 1)[other]])
    for at, name in enumerate(BODIES)
    for other, way in enumerate(WAYS)
]


@pytest.mark.parametrize(("name", "way", "size", "as_int", "door"), CELLS)
def test_asking_until_the_total_ends_with_each_group_once(numbered, name, way, size, as_int, door):
    found = []
    dedup = FoldOptions.parse(WAYS[way])
    parameters = {"rest_total_hits_as_int": "true"} if as_int else {}
    for asked in itertools.count():
        assert asked < 200
        body = {**BODIES[name], "from": len(found), "size": size}
        page = ask(numbered, body, door, dedup, **parameters)
        found += [hit["_id"] for hit in page["hits"]["hits"]]
        total = page["hits"]["total"]
        if len(found) >= (total if as_int else total["value"]):
            break
    if way == "by window" and not as_int:
        assert total["relation"] == "eq"
    assert ("hits_total" in page["dedup"]) is (name != "none")
    whole = numbered.search({**BODIES[name], "size": 500, "ext": {"dedup": WAYS[way]}})
    assert found == [hit["_id"] for hit in whole["hits"]["hits"]]


@pytest.mark.parametrize("door", _LIST)
def test_a_page_beyond_the_last_says_how_many_hits_pages_have(site, door):
    page = ask(site, {"from": 300}, door)
    assert not page["hits"]["hits"]
    assert page["hits"]["total"] == {"value": 62, "relation": "eq"}
    assert page["dedup"]["hits_total"] == {"value": 166, "relation": "eq"}


@pytest.mark.parametrize("door", _LIST)
def test_whoever_asks_for_folding_gets_the_total_of_the_engine(site, door):
    for more in ({}, {"from": 300}, {"size": 500}):
        page = ask(site, {**more, "ext": {"dedup": {}}}, door)
        assert page["hits"]["total"] == {"value": 166, "relation": "eq"}
        assert "hits_total" not in page["dedup"]


def test_a_page_without_a_total_gets_none(site):
    page = ask(site, {"size": 500, "track_total_hits": False}, "search")
    assert "total" not in page["hits"]
    assert "hits_total" not in page["dedup"]


def test_a_page_after_a_hit_that_ranks_behind_its_group_is_the_engines_own(site):
    class Searched(Script):
        def __call__(self, request):
            if isinstance(request, Send):
                return RestResponse(200, site.engine.search("site", request.request.body))
            return super().__call__(request)

    body = {"sort": [{"_score": "desc"}], "search_after": [0.5]}
    longest = FoldOptions.parse({"representative": "longest"})
    found = intercept(site, Searched(site), "/site/_search", body, always=True, dedup=longest).body
    assert found["dedup"]["mode"] == "unfolded"
    assert '"cursor": true' in found["dedup"]["mode_reason"]
