"""search: every option of a request has its flag, and they do what the request's do."""

import dataclasses
import re

import pytest

from shinglefold.cli.commands.searching.search import parse_fold_options
from shinglefold.cli.main import cli
from shinglefold.rerank import FoldOptions, Preference, Scope
from shinglefold.rerank.request.fold_options import Explain

#: Flags with other names than the options they set.
_NAMED = {"fold": "no_fold", "member_source": "member_field"}


@pytest.fixture
def search(run, engine_folder):
    return lambda *arguments: run("search", "--engine", engine_folder, *arguments)


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
    other = search("мост", "--cursor", cursor, "--renew")
    assert (other.code, "another search" in other.err) == (2, True)
    changed = search("вода", "--cursor", cursor[:-2] + "AA", "--renew")
    assert (changed.code, "changed" in changed.err) == (2, True)


def test_an_ended_point_in_time_says_how_to_go_on(search):
    cursor = search("вода", "--size", 2, "--cursor", "new", "--json").json()["dedup"]["cursor"]
    ended = search("вода", "--cursor", cursor)
    assert ended.code == 1
    assert "renew" in ended.err
