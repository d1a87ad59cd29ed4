"""search: folded by default, all hits on demand, by windows or by the engine's own collapse."""

import dataclasses
import re

import pytest

from shinglefold.cli.commands.searching.search import parse_fold_options
from shinglefold.cli.main import cli, main
from shinglefold.examples import articles, queries
from shinglefold.rerank import FoldOptions, Preference, Scope
from shinglefold.rerank.request.fold_options import Explain

_STORY = {article["id"]: article["story"] for article in articles()}


@pytest.fixture
def search(run, engine_folder):
    return lambda *arguments: run("search", "--engine", engine_folder, *arguments)


@pytest.mark.long(every=4)
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


@pytest.fixture(scope="module")
def groups_folder(examples_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("groups")
    assert main(["index", str(examples_file), "--engine", str(folder), "--groups", "--workers", "1"]) == 0
    return folder


@pytest.fixture
def grouped(run, groups_folder):
    return lambda *arguments: run("search", *arguments, "--engine", groups_folder)


def test_documents_indexed_with_groups_are_collapsed_by_the_engine(grouped):
    native = grouped("ремонт", "моста", "--mode", "auto", "--json").json()
    window = grouped("ремонт", "моста", "--json").json()
    assert native["dedup"]["mode"] == "native"
    shown = [[hit["_id"] for hit in one["hits"]["hits"]] for one in (native, window)]
    assert shown[0] == shown[1]
    assert "groups, collapsed by the engine" in grouped("ремонт", "моста", "--mode", "native").out


def test_what_cannot_be_said_natively_is_folded_by_a_window_and_the_page_says_why(grouped):
    told = grouped("ремонт", "моста", "--mode", "auto", "--min-resemblance", "0.8").out
    assert "folded by window: " in told
    assert "min_resemblance was applied" in told
    assert grouped("ремонт", "моста", "--mode", "native", "--explain").code == 2


def test_copies_that_the_query_did_not_find_are_shown_on_request(run, engine_folder):
    command = ("search", "ремонт", "моста", "--engine", engine_folder, "--json")
    plain, told = run(*command).json(), run(*command, "--members-from", "index").json()
    assert [hit["_id"] for hit in plain["hits"]["hits"]] == [hit["_id"] for hit in told["hits"]["hits"]]
    assert "from_index" in told["dedup"]
    assert "from_index" not in plain["dedup"]


#: Flags with other names than the options they set.
_NAMED = {"fold": "no_fold", "member_source": "member_field"}


def _given(*arguments):
    command = cli.commands["search"]
    context = command.make_context("search", [*arguments, "query"])
    own = {"query", "index", "engine", "size", "start", "fields", "sorts", "show_duplicates"}
    return {name: value for name, value in context.params.items() if name not in own}


def test_every_option_of_a_request_has_a_flag():
    names = {_NAMED.get(field.name, field.name) for field in dataclasses.fields(FoldOptions)} - {
        "closed",
        "inner_hits",
        # A command always says what is wrong.
        "on_trouble",
        # A search that counts terms, or has a query beside its own, is no line to type.
        "facets",
        "member_filter",
    }
    assert names <= _given().keys()


def test_flags_are_read_as_the_options_they_name():
    told = parse_fold_options(
        _given(
            *("--representative", "newest:date", "--representative", "rank", "--linkage", "leader"),
            *("--min-resemblance", "0.7", "--min-shared", "2", "--min-length-ratio", "0.5"),
            *("--scope", "host", "--scope", "date:7d", "--members", "3"),
            *("--member-field", "title", "--window", "50", "--max-window", "60", "--passages"),
            *("--passage-field", "body", "--cursor", "abc", "--renew"),
        ),
        show_duplicates=True,
    )
    assert told == FoldOptions(
        min_shared=2,
        min_resemblance=0.7,
        min_length_ratio=0.5,
        linkage="leader",
        representative=(Preference("newest", "date"), Preference("rank")),
        members=3,
        member_source=["title"],
        window=50,
        max_window=60,
        scope=(Scope("host"), Scope("date", 604800.0)),
        explain=Explain(passages=True, fields=("body",)),
        cursor="abc",
        renew=True,
    )


def test_without_flags_the_defaults_of_a_request_hold():
    assert parse_fold_options(_given(), show_duplicates=False) == FoldOptions()
    assert parse_fold_options(_given("--no-fold"), show_duplicates=False) == FoldOptions(fold=False)
    assert parse_fold_options(_given(), show_duplicates=True) == FoldOptions(members=1000)
    assert parse_fold_options(_given("--explain", "--cursor", "new"), show_duplicates=False) == FoldOptions(
        explain=True, cursor=True
    )


def test_duplicates_are_explained_on_demand(search):
    shown = search("закроют", "мост", "--size", 1, "--explain").out
    assert shown.count("\n    = ") == 4
    assert shown.count("by estimate") == 4
    assert "supershingles shared" in shown
    told = search("закроют", "мост", "--size", 1, "--explain", "--json").json()["dedup"]["explain"]
    assert all(0 < member["resemblance"] <= 1 for member in told[0]["members"])
    assert "passages" not in told[0]["members"][0]


def test_matching_passages_are_shown_side_by_side_and_have_places_in_json(search):
    arguments = ("закроют", "мост", "--size", 1, "--passages", "--passage-field", "body")
    shown = search(*arguments).out
    assert "[" in shown
    assert "│" in shown
    found = search(*arguments, "--json").json()
    (group,) = found["dedup"]["explain"]
    for member in group["members"]:
        for passage in member["passages"]:
            assert passage["shown"]["field"] == passage["member"]["field"] == "body"
            assert passage["shown"]["end"] - passage["shown"]["start"] == len(passage["shown"]["text"])


def test_a_cursor_goes_on_where_a_page_ended(search):
    whole = [hit["_id"] for hit in search("вода", "--size", 20, "--json").json()["hits"]["hits"]]
    first = search("вода", "--size", 2, "--cursor", "new", "--json").json()
    cursor = first["dedup"]["cursor"]
    told = search("вода", "--size", 2, "--cursor", "new").out
    assert re.search(r"^next page: shinglefold search .*--size 2 --cursor \S+ --renew$", told, re.MULTILINE)
    second = search("вода", "--size", 2, "--cursor", cursor, "--renew", "--json").json()
    assert [hit["_id"] for page in (first, second) for hit in page["hits"]["hits"]] == whole[:4]


def test_a_cursor_of_another_query_or_a_changed_one_is_refused(search):
    cursor = search("вода", "--size", 2, "--cursor", "new", "--json").json()["dedup"]["cursor"]
    search("мост", "--cursor", cursor, "--renew").check(2, "another search")
    search("вода", "--cursor", cursor[:-2] + "AA", "--renew").check(2, "changed")


def test_an_ended_point_in_time_says_how_to_go_on(search):
    cursor = search("вода", "--size", 2, "--cursor", "new", "--json").json()["dedup"]["cursor"]
    search("вода", "--cursor", cursor).check(1, "renew")
