"""search: folded by default, all hits on demand, as text and in the engine's own shape."""

import pytest

from shinglefold.examples import articles, queries

_STORY = {article["id"]: article["story"] for article in articles()}


@pytest.fixture
def search(run, engine_folder):
    return lambda *arguments: run("search", "--engine", engine_folder, *arguments)


@pytest.mark.parametrize("query", [query.text for query in queries()])
def test_no_story_is_shown_twice(search, query):
    found = search(query, "--json").json()
    shown = [_STORY[hit["_id"]] for hit in found["hits"]["hits"]]
    assert len(shown) == len(set(shown)) > 0
    for hit in found["hits"]["hits"]:
        group = hit["inner_hits"]["duplicates"]["hits"]["hits"]
        assert {_STORY[member["_id"]] for member in group} == {_STORY[hit["_id"]]}


def test_without_folding_every_hit_is_shown(search):
    found = search("мост", "--no-fold", "--size", 100, "--json").json()
    assert len(found["hits"]["hits"]) == found["hits"]["total"]["value"] > 5
    assert "dedup" not in found
    assert "not folded" in search("мост", "--no-fold").out


def test_the_page_names_address_snippet_and_folded_hits(search):
    shown = search("закроют", "мост", "--size", 1).out
    assert "https://" in shown
    assert "near-duplicates folded: ru-bridge-repair-" in shown
    assert ".example" in shown.split("folded:")[1]
    assert "1 result from" in shown


def test_duplicates_are_listed_on_demand(search):
    shown = search("закроют", "мост", "--size", 1, "--show-duplicates").out
    assert shown.count("\n    = ") == 4
    assert "+ 4" not in shown


def test_pages_follow_one_another_without_overlap(search):
    whole = search("вода", "--size", 6, "--json").json()["hits"]["hits"]
    parts = [
        search("вода", "--size", 2, "--from", start, "--json").json()["hits"]["hits"] for start in (0, 2, 4)
    ]
    assert [hit["_id"] for part in parts for hit in part] == [hit["_id"] for hit in whole]
    assert " 3. " in search("вода", "--size", 2, "--from", 2).out


def test_fields_and_order_can_be_told(search):
    titled = search("мост автобус", "--field", "title", "--no-fold", "--json").json()
    everywhere = search("мост автобус", "--no-fold", "--json").json()
    assert 0 < titled["hits"]["total"]["value"] < everywhere["hits"]["total"]["value"]
    by_date = search("мост", "--sort", "date:desc", "--no-fold", "--json").json()["hits"]["hits"]
    dates = [hit["_source"]["date"] for hit in by_date]
    assert dates == sorted(dates, reverse=True)
    assert search("мост", "--sort", "date:down").code == 2


def test_bodies_and_fingerprints_stay_in_the_index(search):
    for hit in search("мост", "--json").json()["hits"]["hits"]:
        assert not {"body", "_dedup"} & hit["_source"].keys()
        assert hit["highlight"]["body"]


def test_a_query_without_hits_is_an_empty_page(search):
    shown = search("несуществующееслово")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("0 results from 0 hits")
