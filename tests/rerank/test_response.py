"""The answer: the engine's own shape, and nothing in it touched but the hits."""

import asyncio
from itertools import count

import pytest
from support.hits import SCHEME, ids, leader_groups
from support.taps import Awaited, Tapped

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import (
    ConfigError,
    EngineError,
    EngineUnavailable,
    IndexMissing,
    SchemeMismatch,
    ShinglefoldError,
    UnsupportedQuery,
)
from shinglefold.rerank import AsyncFoldedSearch, FoldedSearch, FoldOptions, Preference, duplicates


def rich_body(library, **more):
    return library.body(
        1,
        query={"bool": {"must": [{"match": {"title": "page"}}], "filter": [{"term": {"list": 1}}]}},
        _source=["title"],
        highlight={"fields": {"title": {}}},
        docvalue_fields=["host"],
        aggs={"hosts": {"terms": {"field": "host"}}},
        track_total_hits=True,
        **more,
    )


@pytest.mark.parametrize("window", [8, 200])
@pytest.mark.parametrize("sort", [[{"rank": "asc"}], None, "rank", ["_score", {"rank": "desc"}]])
def test_nothing_but_the_hits_and_our_key_changes(library, folded, window, sort):
    body = rich_body(library, size=12)
    body["sort"] = sort
    if sort is None:
        del body["sort"]
    plain = library.engine.search("pages", body | {"size": 60})
    answer = folded.search("pages", body, FoldOptions(window=window))
    assert answer["dedup"]["window"] >= 12
    assert without(answer, "dedup", "took", "hits") == without(plain, "took", "hits")
    assert without(answer["hits"], "hits") == without(plain["hits"], "hits")
    own = {hit["_id"]: hit for hit in plain["hits"]["hits"]}
    assert [without(hit, "inner_hits") for hit in answer["hits"]["hits"]] == [
        own[hit["_id"]] for hit in answer["hits"]["hits"]
    ]
    assert [id_ for id_ in own if id_ in ids(answer["hits"]["hits"])] == ids(answer["hits"]["hits"])


def without(whole, *names):
    return {name: value for name, value in whole.items() if name not in names}


def test_groups_are_attached_as_native_collapse_attaches_them(library, folded):
    body = library.body(2, size=100)
    answer = folded.search("pages", body, FoldOptions(members=100))
    plain = {hit["_id"]: hit for hit in library.engine.search("pages", body)["hits"]["hits"]}
    for hit, group in zip(answer["hits"]["hits"], leader_groups(library.lists[2]), strict=True):
        inner = hit["inner_hits"]["duplicates"]
        assert inner.keys() == {"hits"}
        assert inner["hits"]["total"] == {"value": len(group), "relation": "eq"}
        assert inner["hits"].keys() == {"total", "max_score", "hits"}
        assert inner["hits"]["hits"] == [plain[f"2-{rank}"] for rank in group]
        assert ids(duplicates(hit)) == [f"2-{rank}" for rank in group[1:]]


def test_the_greatest_score_of_a_group_is_told(library, folded):
    body = {"query": {"match": {"title": "page 7"}}, "size": 3}
    (best, *_) = folded.search("pages", body)["hits"]["hits"]
    assert best["inner_hits"]["duplicates"]["hits"]["max_score"] == best["_score"] > 0


def test_a_group_may_be_longer_than_what_was_read(library, folded):
    answer = folded.search("pages", library.body(0, size=1), FoldOptions(window=5))
    assert answer["hits"]["hits"][0]["inner_hits"]["duplicates"]["hits"]["total"]["relation"] == "gte"


@pytest.mark.parametrize("members", [0, 1, 2])
def test_so_many_members_are_attached_beside_the_one_shown(library, folded, members):
    answer = folded.search("pages", library.body(0), FoldOptions(members=members))
    sizes = [hit["inner_hits"]["duplicates"]["hits"]["total"]["value"] for hit in answer["hits"]["hits"]]
    assert max(sizes) >= 3
    for hit, size in zip(answer["hits"]["hits"], sizes, strict=True):
        assert len(duplicates(hit)) == min(members, size - 1)


def test_the_one_shown_comes_first_wherever_it_is_ranked(library, folded):
    options = FoldOptions(representative=(Preference("oldest", "published"),), members=1)
    hits = folded.search("pages", library.body(0), options)["hits"]["hits"]
    moved = [
        hit
        for hit in hits
        if len(duplicates(hit)) and duplicates(hit)[0]["_source"]["rank"] < hit["_source"]["rank"]
    ]
    assert moved
    assert all(hit["inner_hits"]["duplicates"]["hits"]["hits"][0]["_id"] == hit["_id"] for hit in hits)


@pytest.mark.parametrize(
    ("own", "of_members", "shown"),
    [
        (["title", "rank"], ["rank"], {"rank"}),
        (["title", "rank"], ["host", "rank"], {"rank"}),
        (["title", "rank"], True, {"title", "rank"}),
        (["title", "rank"], {"excludes": ["ti*"]}, {"rank"}),
        (["title", "rank"], "*k", {"rank"}),
        (["title", "rank"], False, None),
        (False, ["title"], None),
        ({"excludes": ["_dedup", "host"]}, ["host", "title", "_dedup.*"], {"title"}),
    ],
)
def test_members_may_show_less_than_the_request_and_never_more(library, folded, own, of_members, shown):
    body = library.body(0, _source=own, ext={"dedup": {"members": {"size": 2, "_source": of_members}}})
    hits = folded.search("pages", body)["hits"]["hits"]
    inner = [other for hit in hits for other in duplicates(hit)]
    assert inner
    for other in inner:
        assert (set(other["_source"]) if "_source" in other else None) == shown
    assert hits[0].get("_source") == library.engine.search("pages", library.body(0, _source=own))["hits"][
        "hits"
    ][0].get("_source")


def test_a_member_is_explained(library, folded):
    answer = folded.search("pages", library.body(0, size=60), FoldOptions(explain=True, members=60))
    told = answer["dedup"]["explain"]
    assert [(one["_id"]) for one in told] == ids(answer["hits"]["hits"])
    members = [member for one in told for member in one["members"]]
    assert len(members) == answer["dedup"]["folded"]
    by_estimate = [member for member in members if not member["same_text"]]
    assert by_estimate
    for member in by_estimate:
        assert member["resemblance"] >= SCHEME.decision.min_resemblance
        assert 0 <= member["standard_error"] < 0.05
        assert member["scheme"] == SCHEME.id
        assert member["lang"] == "ru"
    assert any(member["shared"] for member in members)


def test_a_full_page_of_one_window_costs_two_searches_and_no_point_in_time(library):
    tapped = Tapped(library.engine)
    folded = FoldedSearch(tapped, SCHEME)
    folded.search("pages", rich_body(library))
    assert tapped.names == ["all_mappings", "search", "search"]
    folded.search("pages", rich_body(library))
    assert tapped.names[3:] == ["search", "search"]
    window, page = tapped.searches[:2]
    assert window["_source"] is False
    assert "highlight" not in window
    assert "aggs" not in page
    assert page["highlight"] == {"fields": {"title": {}}}


def test_aggregations_are_asked_for_once_and_the_point_in_time_is_closed(library):
    tapped = Tapped(library.engine)
    FoldedSearch(tapped, SCHEME).search("pages", rich_body(library, size=40), FoldOptions(window=5))
    assert tapped.names.count("open_pit") == tapped.names.count("close_pit") == 1
    assert sum("aggs" in body for body in tapped.searches) == 1
    assert tapped.names[-1] == "close_pit"


def test_the_point_in_time_is_closed_when_a_search_fails(library):
    def fail(number):
        if number >= 2:
            raise EngineError("the wire was cut; try again")

    tapped = Tapped(library.engine, before=fail)
    with pytest.raises(EngineError, match="the wire was cut"):
        FoldedSearch(tapped, SCHEME, on_trouble="raise").search(
            "pages", library.body(0, size=40), FoldOptions(window=5)
        )
    assert tapped.names.count("open_pit") == tapped.names.count("close_pit")


@pytest.mark.parametrize("options", [FoldOptions(window=5), FoldOptions(cursor=True)], ids=["page", "cursor"])
@pytest.mark.parametrize("failing", [0, 1])
def test_a_page_is_folded_though_the_server_fails_once(library, options, failing):
    searches = count()

    def fail(_):
        if next(searches) == failing:
            raise EngineError("a node was lost")

    body = library.body(0, size=40)
    tapped = Tapped(library.engine, before=fail)
    answer = FoldedSearch(tapped, SCHEME).search("pages", body, options)
    assert answer["dedup"]["mode"] == "window"
    assert ids(answer["hits"]["hits"]) == ids(
        FoldedSearch(library.engine, SCHEME).search("pages", body, options)["hits"]["hits"]
    )
    assert tapped.names.count("open_pit") - tapped.names.count("close_pit") == (options.cursor is True)


def test_a_hit_deleted_between_window_and_page_is_left_out_as_the_hits_are_read_again(tmp_path, library):
    with EmbeddedEngine(tmp_path, str.split) as engine:
        engine.create_index("pages", library.engine.mappings("pages"), {})
        engine.bulk({"_index": "pages", "_id": str(n), "_source": {"list": 1, "rank": n}} for n in range(4))
        engine.refresh("pages")

        def delete(number):
            if number == 1:
                engine.bulk([{"_op_type": "delete", "_index": "pages", "_id": "2"}])
                engine.refresh("pages")

        answer = FoldedSearch(Tapped(engine, delete), SCHEME).search("pages", library.body(1))
    assert ids(answer["hits"]["hits"]) == ["0", "1", "3"]
    assert answer["dedup"]["vanished"] == 0
    assert answer["hits"]["total"]["value"] == 3


def test_a_point_in_time_of_the_request_is_used_and_left_open(library):
    pit = library.engine.open_pit("pages")
    tapped = Tapped(library.engine)
    body = library.body(4, size=30, pit={"id": pit, "keep_alive": "1m"})
    answer = FoldedSearch(tapped, SCHEME).search(None, body, FoldOptions(window=10))
    assert set(tapped.names) == {"search"}
    assert answer["pit_id"] == pit
    assert ids(answer["hits"]["hits"]) == [f"4-{group[0]}" for group in leader_groups(library.lists[4])][:30]
    library.engine.close_pit(pit)
    with pytest.raises(ShinglefoldError):
        FoldedSearch(tapped, SCHEME).search(None, {**body, "pit": pit})


def test_a_request_may_go_on_after_a_hit(library, folded):
    expected = [f"5-{group[0] + 20}" for group in leader_groups(library.lists[5][20:])]
    for window in (10, 200):
        answer = folded.search(
            "pages", library.body(5, size=40, search_after=[19]), FoldOptions(window=window)
        )
        assert ids(answer["hits"]["hits"]) == expected[:40]


@pytest.mark.parametrize("policies", ["longest", ["newest:published"], ["longest", "rank"]])
def test_a_request_does_not_go_on_after_a_hit_that_ranks_behind_its_group(library, folded, policies):
    body = library.body(5, size=40, search_after=[19])
    with pytest.raises(ConfigError, match='"cursor": true'):
        folded.search("pages", {**body, "ext": {"dedup": {"representative": policies}}})
    ranked = {**body, "ext": {"dedup": {"representative": ["rank", "longest"]}}}
    assert ids(folded.search("pages", ranked)["hits"]["hits"])


@pytest.mark.parametrize("ours", [False, {"fold": False}, {"fold": False, "window": 3}])
def test_unfolded_the_engine_answers_for_itself(library, folded, ours):
    body = rich_body(library)
    answer = folded.search("pages", body | {"ext": {"dedup": ours}})
    assert without(answer, "took") == without(library.engine.search("pages", body), "took")


def test_a_search_for_no_hits_is_passed_on(library, folded):
    body = rich_body(library, size=0)
    assert without(folded.search("pages", body), "took") == without(
        library.engine.search("pages", body), "took"
    )


def test_options_of_the_body_win_over_those_of_the_call(library, folded):
    body = library.body(0, ext={"dedup": {"window": 7}})
    options = FoldOptions(window=9, max_window=11)
    assert folded.search("pages", body | {"size": 100}, options)["dedup"]["window"] == 11
    assert folded.search("pages", body | {"size": 1}, options)["dedup"]["window"] == 7


def test_the_body_given_is_not_changed(library, folded):
    body = rich_body(library, ext={"dedup": {"window": 7}})
    before = repr(body)
    folded.search("pages", body)
    assert repr(body) == before


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"collapse": {"field": "host"}}, "collapse"),
        ({"ext": {"dedup": {"windw": 7}}}, "'window'"),
        ({"ext": {"dedup": 7}}, "object"),
        ({"size": "ten"}, "size"),
        ({"from": -1}, "from"),
    ],
)
def test_a_request_that_cannot_be_meant_is_refused(folded, body, said):
    with pytest.raises(ConfigError, match=said):
        folded.search("pages", body)


def test_what_else_stands_in_ext_is_the_engines_to_judge(library, folded):
    with pytest.raises(UnsupportedQuery, match="ext"):
        folded.search("pages", library.body(0, ext={"dedup": {}, "other": {}}))


def test_an_index_of_another_scheme_is_refused_with_both_names_and_the_remedy(library):
    other = SCHEME.with_options(word_width=5)
    with pytest.raises(SchemeMismatch) as caught:
        FoldedSearch(library.engine, other, on_trouble="raise").search("pages", library.body(0))
    assert (caught.value.found, caught.value.expected) == (SCHEME.id, other.id)
    assert "again" in str(caught.value)


def test_a_missing_index_is_told_as_the_engine_tells_it(folded):
    with pytest.raises(IndexMissing):
        folded.search("nowhere", {})


def test_hits_of_another_scheme_and_unsigned_ones_are_counted(library, folded):
    made = library.lists[6]
    told = folded.search("pages", library.body(6))["dedup"]
    others = sum(spec.scheme != SCHEME.id for spec in made)
    assert told["other_schemes"] == ({"sf1-other": others} if others else {})
    assert told["unsigned"] == sum(not spec.signed and spec.scheme == SCHEME.id for spec in made)
    assert told["languages"] == {"ru": 60 - others}
    assert told["scheme"] == SCHEME.id


def test_the_awaited_face_answers_the_same(library, folded):
    options = FoldOptions(window=10)
    awaited = AsyncFoldedSearch(Awaited(library.engine), SCHEME)
    answer = asyncio.run(awaited.search("pages", library.body(3, size=20), options))
    assert without(answer, "took") == without(
        folded.search("pages", library.body(3, size=20), options), "took"
    )


def bodies(library, size=7, **more):
    return [library.body(number, size=size, track_total_hits=True, **more) for number in range(5)]


def test_each_is_answered_as_alone_with_two_requests_for_all(library):
    tapped = Tapped(library.engine)
    searches = [("pages", body) for body in bodies(library)]
    answers = FoldedSearch(tapped, SCHEME).msearch(searches, FoldOptions(members=3))
    assert tapped.names == ["all_mappings", "msearch", "msearch"]
    alone = FoldedSearch(library.engine, SCHEME)
    for answer, (index, body) in zip(answers, searches, strict=True):
        expected = alone.search(index, body, FoldOptions(members=3))
        assert without(answer, "took", "pit_id") == without(expected, "took", "pit_id")


def test_searches_of_different_lengths_go_on_as_long_as_each_needs(library):
    tapped = Tapped(library.engine)
    searches = [
        ("pages", library.body(1, size=5)),
        ("pages", library.body(2, size=40, ext={"dedup": {"window": 10}})),
        ("pages", library.body(3, size=3, ext={"dedup": {"fold": False}})),
        ("pages", library.body(4, size=9, ext={"dedup": {"window": 5, "cursor": True}})),
    ]
    answers = FoldedSearch(tapped, SCHEME).msearch(searches)
    alone = FoldedSearch(library.engine, SCHEME)
    for answer, search in zip(answers, searches, strict=True):
        assert answer["hits"] == alone.search(*search)["hits"]
    opened, closed = tapped.names.count("open_pit"), tapped.names.count("close_pit")
    # That of the cursor stays open for its next page.
    assert opened == closed + 1 >= 2


def test_what_one_raises_stands_in_its_place(library):
    searches = [
        ("pages", library.body(1)),
        ("absent", library.body(1)),
        ("pages", library.body(1, ext={"dedup": {"windw": 3}})),
        ("pages", library.body(1, collapse={"field": "host"})),
        ("pages", library.body(2)),
    ]
    first, absent, mistaken, collapsed, last = FoldedSearch(library.engine, SCHEME).msearch(searches)
    assert isinstance(absent, IndexMissing)
    assert isinstance(mistaken, ConfigError)
    assert "window" in str(mistaken)
    assert isinstance(collapsed, ConfigError)
    assert first["hits"]["hits"]
    assert last["hits"]["hits"]


def test_none_are_answered_by_nothing(library):
    tapped = Tapped(library.engine)
    assert FoldedSearch(tapped, SCHEME).msearch([]) == []
    assert tapped.names == []


class Failing(Tapped):
    """Fails at the second request for several searches."""

    def __init__(self, engine, error):
        super().__init__(engine)
        self.error = error

    def msearch(self, searches):
        if "msearch" in self.names:
            raise self.error
        return super().__getattr__("msearch")(searches)


def test_where_the_engine_fails_all_fail_and_give_back_what_they_hold(library):
    engine = Failing(library.engine, EngineUnavailable("gone"))
    searches = [("pages", body) for body in bodies(library, size=50, ext={"dedup": {"window": 10}})]
    answers = FoldedSearch(engine, SCHEME).msearch(searches)
    assert all(isinstance(answer, EngineUnavailable) for answer in answers)
    assert engine.names.count("open_pit") == engine.names.count("close_pit") == len(searches)


def test_an_interrupt_is_raised_after_all_gave_back_what_they_hold(library):
    engine = Failing(library.engine, KeyboardInterrupt())
    searches = [("pages", body) for body in bodies(library, size=50, ext={"dedup": {"window": 10}})]
    with pytest.raises(KeyboardInterrupt):
        FoldedSearch(engine, SCHEME).msearch(searches)
    assert engine.names.count("open_pit") == engine.names.count("close_pit") == len(searches)


def test_several_awaited_searches_are_answered_the_same(library):
    searches = [("pages", body) for body in bodies(library)]
    awaited = asyncio.run(AsyncFoldedSearch(Awaited(library.engine), SCHEME).msearch(searches))
    assert [one["hits"] for one in awaited] == [
        one["hits"] for one in FoldedSearch(library.engine, SCHEME).msearch(searches)
    ]


def test_a_search_without_a_body_finds_all_documents(library, folded):
    awaited = AsyncFoldedSearch(Awaited(library.engine), SCHEME)

    async def first_page():
        return await anext(awaited.pages("pages"))

    expected = folded.search("pages", {})["hits"]
    assert expected["hits"]
    assert folded.search("pages")["hits"] == expected
    assert folded.search("pages", params={"preference": "_local"})["hits"] == expected
    assert asyncio.run(awaited.search("pages"))["hits"] == expected
    assert ids(next(folded.pages("pages"))["hits"]["hits"]) == ids(expected["hits"])
    assert ids(asyncio.run(first_page())["hits"]["hits"]) == ids(expected["hits"])
