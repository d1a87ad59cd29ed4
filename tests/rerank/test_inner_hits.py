"""Members: in the engines' own form, and from anywhere in the index."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.hits import SCHEME, fill, fingerprint_of, ids, split
from support.random_pages import COUNT, SPECS, alike
from support.taps import Tapped

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError
from shinglefold.rerank import FoldedSearch, FoldOptions, Scope

EVERYONE = FoldOptions(members=60)


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
        (5, "inner_hits"),
        ([{"name": str(number)} for number in range(11)], "too many"),
        ({"collapse": {"field": "host", "inner_hits": {}}}, "nothing below"),
        ({"collapse": {"field": "host", "collapse": {"field": "host"}}}, "nothing below"),
    ],
)
def test_what_can_not_be_meant_is_refused(library, folded, inner, said):
    with pytest.raises(ConfigError, match=said):
        folded.search("pages", asked(library, inner))


#: What the query finds: every tenth page.
FOUND = set(range(0, COUNT, 10))
FROM_INDEX = FoldOptions(members=COUNT, members_from="index")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path_factory.mktemp("members"), split) as engine:
        sources = {f"p{number}": source(number) for number in range(COUNT)}
        fill(engine, "pages", sources, rank="integer", wanted="boolean", host="keyword")
        yield engine


def source(number: int) -> dict[str, object]:
    made = {"rank": number, "wanted": number in FOUND, "_dedup": fingerprint_of(SPECS[number]).to_field()}
    return made | {"host": SPECS[number].host or "none"}


def body(**more: object) -> dict[str, object]:
    query = {"term": {"wanted": True}}
    return {"query": query, "sort": [{"rank": "asc"}], "size": 8, "_source": ["rank"], **more}


def number_of(hit) -> int:
    return int(hit["_id"][1:])


def added(hit) -> list[int]:
    listed = hit["inner_hits"]["duplicates"]["hits"]["hits"]
    return [number_of(one) for one in listed if one.get("found_by_query") is False]


def test_copies_that_the_query_does_not_find_are_attached_and_counted(engine):
    search = FoldedSearch(engine, SCHEME)
    plain = search.search("pages", body(), FoldOptions(members=COUNT))["hits"]["hits"]
    told = search.search("pages", body(), FROM_INDEX)
    claimed: set[int] = set()
    for hit, before in zip(told["hits"]["hits"], plain, strict=True):
        shown = number_of(hit)
        wanted = {other for other in range(COUNT) if other not in FOUND and alike(shown, other)} - claimed
        wanted -= {shown}
        claimed |= wanted
        assert set(added(hit)) == wanted
        old, new = (one["inner_hits"]["duplicates"]["hits"] for one in (before, hit))
        assert new["total"]["value"] == old["total"]["value"] + len(wanted)
        assert new["hits"][: len(old["hits"])] == old["hits"]
    assert told["dedup"]["from_index"] == {"members": len(claimed), "incomplete": 0}
    assert len(claimed) > 20


def test_where_there_are_more_candidates_than_are_looked_at_that_is_told(engine, monkeypatch):
    monkeypatch.setattr("shinglefold.rerank.page.members._CANDIDATES", 2)
    told = FoldedSearch(engine, SCHEME).search("pages", body(), FROM_INDEX)
    totals = [hit["inner_hits"]["duplicates"]["hits"]["total"] for hit in told["hits"]["hits"]]
    relations = [total["relation"] for total in totals]
    assert 0 < told["dedup"]["from_index"]["incomplete"] == relations.count("gte")


def test_a_request_may_return_the_field_of_a_scope(engine):
    shown = {"docvalue_fields": ["host"]}
    search, options = FoldedSearch(engine, SCHEME), replace(FROM_INDEX, scope=(Scope("host"),))
    plain, told = (search.search("pages", {**body(), **more}, options) for more in ({}, shown))
    assert told["dedup"]["from_index"] == plain["dedup"]["from_index"]
    hosts = [
        (hit["fields"]["host"], one["fields"]["host"])
        for hit in told["hits"]["hits"]
        for one in hit["inner_hits"]["duplicates"]["hits"]["hits"]
    ]
    assert hosts
    assert all(one == other for one, other in hosts)


def test_they_have_the_shape_of_members_and_say_that_the_query_did_not_find_them(engine):
    told = FoldedSearch(engine, SCHEME).search("pages", body(docvalue_fields=["host"]), FROM_INDEX)
    copies = [
        one
        for hit in told["hits"]["hits"]
        for one in hit["inner_hits"]["duplicates"]["hits"]["hits"]
        if "found_by_query" in one
    ]
    for one in copies:
        assert one["_source"] == {"rank": number_of(one)}
        assert one["fields"] == {"host": [SPECS[number_of(one)].host or "none"]}
        assert (one["_score"], one["found_by_query"]) == (None, False)


def test_no_more_are_attached_than_members_are_asked_for_and_all_are_counted(engine):
    few = FoldedSearch(engine, SCHEME).search("pages", body(), FoldOptions(members=1, members_from="index"))
    all_of_them = FoldedSearch(engine, SCHEME).search("pages", body(), FROM_INDEX)
    for one, other in zip(few["hits"]["hits"], all_of_them["hits"]["hits"], strict=True):
        less, more = (hit["inner_hits"]["duplicates"]["hits"] for hit in (one, other))
        assert less["total"] == more["total"]
        assert less["hits"] == more["hits"][:2]


def test_a_filter_and_a_scope_hold_for_them_too(engine):
    given = {"members": {"size": COUNT, "from": "index", "filter": {"term": {"host": "a.org"}}}}
    told = FoldedSearch(engine, SCHEME).search("pages", body(ext={"dedup": given}))
    hosts = [SPECS[number].host for hit in told["hits"]["hits"] for number in added(hit)]
    assert hosts
    assert set(hosts) == {"a.org"}
    given = {"members": {"size": COUNT, "from": "index"}, "scope": "host"}
    told = FoldedSearch(engine, SCHEME).search("pages", body(ext={"dedup": given}))
    for hit in told["hits"]["hits"]:
        assert {SPECS[number].host for number in added(hit)} <= {SPECS[number_of(hit)].host}


def test_it_costs_one_request_for_keywords_and_one_for_all_copies(engine):
    tapped = Tapped(engine)
    FoldedSearch(tapped, SCHEME).search("pages", body(), FROM_INDEX)
    assert tapped.names == ["all_mappings", "search", "search", "search", "msearch"]


def test_pages_of_a_cursor_have_them_as_well(engine):
    pages = list(FoldedSearch(engine, SCHEME).pages("pages", body(), FROM_INDEX))
    assert len(pages) > 1
    assert all("from_index" in page["dedup"] for page in pages)


def test_a_filter_of_members_among_the_results_is_refused():
    with pytest.raises(ConfigError, match='"from": "index"'):
        FoldOptions.parse({"members": {"filter": {"match_all": {}}}})


def test_fields_are_fetched_again_only_of_copies_that_are_shown(engine):
    tapped = Tapped(engine)
    options = FoldOptions(members=1, members_from="index", scope=(Scope("host"),))
    told = FoldedSearch(tapped, SCHEME).search("pages", body(docvalue_fields=["host"]), options)
    shown = sum(len(added(hit)) for hit in told["hits"]["hits"])
    assert tapped.searches[-1]["size"] == shown < told["dedup"]["from_index"]["members"]


def test_a_copy_that_is_deleted_before_its_fields_are_fetched_is_not_shown_without_them(engine):
    options, given = replace(FROM_INDEX, scope=(Scope("host"),)), body(docvalue_fields=["host"])
    tapped = Tapped(engine)
    whole = FoldedSearch(tapped, SCHEME).search("pages", given, options)
    last, gone = len(tapped.searches) - 1, next(n for hit in whole["hits"]["hits"] for n in added(hit))

    def delete_before(search):
        if search == last:
            engine.delete_by_query("pages", {"ids": {"values": [f"p{gone}"]}})
            engine.refresh("pages")

    try:
        told = FoldedSearch(Tapped(engine, delete_before), SCHEME).search("pages", given, options)
    finally:
        engine.bulk([{"_index": "pages", "_id": f"p{gone}", "_source": source(gone)}])
        engine.refresh("pages")
    listed = [hit["inner_hits"]["duplicates"]["hits"] for hit in told["hits"]["hits"]]
    assert all(one["fields"]["host"] for several in listed for one in several["hits"])
    assert gone not in [n for hit in told["hits"]["hits"] for n in added(hit)]
    assert all(len(several["hits"]) == several["total"]["value"] for several in listed)
    assert told["dedup"]["from_index"]["members"] == whole["dedup"]["from_index"]["members"] - 1
