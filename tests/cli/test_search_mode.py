"""search --mode: by the engine's own collapse where documents have numbers of groups."""

import pytest

from shinglefold.cli.main import main


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
