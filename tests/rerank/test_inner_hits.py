"""Members in the engines' own form: named, ordered, cut and filtered for themselves."""

import pytest
from support.hits import SCHEME, ids
from support.taps import Tapped

from shinglefold.errors import ConfigError
from shinglefold.rerank import FoldedSearch, FoldOptions

EVERYONE = FoldOptions(members=60)


@pytest.fixture
def folded(library):
    return FoldedSearch(library.engine, SCHEME)


def named(answer, name):
    return [hit["inner_hits"][name]["hits"] for hit in answer["hits"]["hits"]]


def asked(library, inner, number=0, **more):
    return library.body(number, size=60, ext={"dedup": {"inner_hits": inner}}, **more)


def test_each_name_has_its_own_order_and_size(library, folded):
    inner = [
        {"name": "first", "size": 2, "sort": [{"rank": "asc"}]},
        {"name": "last", "size": 1, "sort": [{"rank": "desc"}]},
    ]
    answer = folded.search("pages", asked(library, inner), EVERYONE)
    whole = named(answer, "duplicates")
    for hits, first, last in zip(whole, named(answer, "first"), named(answer, "last"), strict=True):
        ranked = sorted(ids(hits["hits"]), key=lambda name: int(name.split("-")[1]))
        assert ids(first["hits"]) == ranked[:2]
        assert ids(last["hits"]) == ranked[-1:]
        assert first["total"] == last["total"] == hits["total"]
        assert first["hits"][0]["sort"] == [first["hits"][0]["_source"]["rank"]]


def test_from_and_size_cut_the_group(library, folded):
    inner = {"name": "rest", "from": 1, "size": 2, "sort": ["rank"]}
    answer = folded.search("pages", asked(library, inner), EVERYONE)
    for hits, rest in zip(named(answer, "duplicates"), named(answer, "rest"), strict=True):
        assert ids(rest["hits"]) == ids(sorted(hits["hits"], key=lambda hit: hit["_source"]["rank"]))[1:3]


def test_without_a_name_they_stand_for_the_members(library, folded):
    answer = folded.search("pages", asked(library, {"size": 1, "sort": [{"rank": "desc"}]}))
    assert answer["hits"]["hits"][0]["inner_hits"].keys() == {"duplicates"}
    assert all(len(hits["hits"]) == 1 for hits in named(answer, "duplicates"))


@pytest.mark.parametrize(
    ("own", "of_members", "shown"),
    [
        (True, ["rank"], {"rank"}),
        (["title", "rank"], ["rank", "host"], {"rank"}),
        (["title"], True, {"title"}),
        (True, False, None),
        (False, ["title"], None),
    ],
)
def test_they_show_no_more_than_the_request(library, folded, own, of_members, shown):
    inner = {"name": "one", "_source": of_members}
    answer = folded.search("pages", asked(library, inner, _source=own))
    for hits in named(answer, "one"):
        for hit in hits["hits"]:
            assert (set(hit["_source"]) if "_source" in hit else None) == shown


def test_they_bring_fields_and_highlights_of_the_query(library, folded):
    inner = {"name": "one", "docvalue_fields": ["host", "rank"], "highlight": {"fields": {"title": {}}}}
    body = {"query": {"match": {"title": "page 7"}}, "size": 3, "ext": {"dedup": {"inner_hits": inner}}}
    answer = folded.search("pages", body)
    for hits in named(answer, "one"):
        assert all(hit["fields"]["rank"] and "<em>" in hit["highlight"]["title"][0] for hit in hits["hits"])
        scores = [hit["_score"] for hit in hits["hits"]]
        assert scores == sorted(scores, reverse=True)
        assert hits["max_score"] == max(scores)


def test_all_groups_of_a_page_are_asked_for_at_once(library):
    tapped = Tapped(library.engine)
    body = asked(library, [{"name": "a"}, {"name": "b"}]) | {"size": 10}
    FoldedSearch(tapped, SCHEME).search("pages", body)
    assert tapped.names == ["all_mappings", "search", "search", "msearch"]


def test_pages_of_a_cursor_bring_them(library, folded):
    body = asked(library, {"name": "one", "sort": ["rank"]})
    pages = list(folded.pages("pages", body | {"size": 7}))
    assert sum(len(named(page, "one")) for page in pages) == sum(len(page["hits"]["hits"]) for page in pages)
    assert all(hits["hits"] for page in pages for hits in named(page, "one"))


def test_those_of_a_search_among_several_are_the_same(library, folded):
    bodies = [asked(library, {"name": "one", "sort": ["rank"]}, number) for number in (0, 1)]
    answers = folded.msearch([("pages", body) for body in bodies])
    assert [answer["hits"] for answer in answers] == [folded.search("pages", body)["hits"] for body in bodies]


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ([{"name": "a"}, {"name": "a"}], "two are called"),
        ({"nam": "a"}, "'name'"),
        ({"size": -1}, "size"),
        ({"size": 100_000}, "size"),
        ({"size": 1_001}, "size"),
        ({"from": 1_001}, "from"),
        ({"name": 7}, "name"),
        ("a", "inner_hits"),
        ([{"name": str(number)} for number in range(11)], "too many"),
        ({"collapse": {"field": "host", "inner_hits": {}}}, "nothing below"),
        ({"collapse": {"field": "host", "collapse": {"field": "host"}}}, "nothing below"),
    ],
)
def test_what_can_not_be_meant_is_refused(library, folded, inner, said):
    with pytest.raises(ConfigError, match=said):
        folded.search("pages", asked(library, inner))
