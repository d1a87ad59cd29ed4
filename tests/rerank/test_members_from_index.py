"""Members that the query did not find: copies from anywhere in the index, counted and attached."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.hits import SCHEME, fingerprint_of, split
from support.random_pages import COUNT, SPECS, alike
from support.taps import Tapped

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import ConfigError
from shinglefold.ingest import mappings
from shinglefold.rerank import FoldedSearch, FoldOptions, Scope

#: What the query finds: every tenth page.
FOUND = set(range(0, COUNT, 10))
FROM_INDEX = FoldOptions(members=COUNT, members_from="index")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine(tmp_path_factory.mktemp("members"), split) as engine:
        made = mappings(SCHEME)
        made["properties"] |= {"rank": {"type": "integer"}, "wanted": {"type": "boolean"}}
        made["properties"] |= {"host": {"type": "keyword"}}
        engine.create_index("pages", made, {})
        engine.bulk(
            {"_index": "pages", "_id": f"p{number}", "_source": source(number)} for number in range(COUNT)
        )
        engine.refresh("pages")
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


def test_where_there_are_more_candidates_than_are_looked_at_that_is_told(engine, monkeypatch):
    monkeypatch.setattr("shinglefold.rerank.page.members._CANDIDATES", 2)
    told = FoldedSearch(engine, SCHEME).search("pages", body(), FROM_INDEX)
    totals = [hit["inner_hits"]["duplicates"]["hits"]["total"] for hit in told["hits"]["hits"]]
    relations = [total["relation"] for total in totals]
    assert 0 < told["dedup"]["from_index"]["incomplete"] == relations.count("gte")


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
