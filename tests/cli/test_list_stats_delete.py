"""list, stats and delete: what there is, what it is made of, and how it goes."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from support.commands import PROGRAM, TEXT, json_lines


@pytest.fixture
def site(run):
    """An index of three pages, one of them too short to sign."""
    pages = [
        {"id": "a", "title": "Bridge", "body": TEXT, "host": "one"},
        {"id": "b", "title": "Bridge", "body": TEXT.replace("old", "new"), "host": "two"},
        {"id": "c", "title": "Yes", "body": "no", "host": "two"},
    ]
    lines = json_lines(*pages)
    assert run("index", "-", "--index", "site", stdin=lines).code == 0
    return "site"


def _ids(run):
    return {
        hit["_id"] for hit in run("search", "bridge yes", "--index", "site", "--json").json()["hits"]["hits"]
    }


def test_an_engine_without_indices_says_how_to_make_one(run):
    ran = run("stats")
    assert (ran.code, ran.out) == (0, "no index; make one: shinglefold index FILE\n")
    assert run("stats", "--json").json() == {"indices": []}


def test_indices_are_listed_with_documents_signed_share_size_and_scheme(run, site):
    (heading, row) = run("stats").out.splitlines()
    assert heading.split() == ["index", "documents", "signed", "size", "scheme", "also", "called"]
    assert row.split()[:3] == ["site", "3", "66.7"]
    (told,) = run("stats", "s*", "--json").json()["indices"]
    assert (told["documents"], told["fingerprints"], told["signed"]) == (3, 3, 2)
    assert told["bytes"] > 0
    assert told["scheme"] in row


@pytest.mark.parametrize(
    "arguments",
    [
        ["stats", "x*"], ["report", "x*"], ["doctor", "x*"], ["backfill", "x*"], ["regroup", "x*"],
        ["serve", "x*"], ["setup", "x*"], ["search", "a", "--index", "x*"], ["similar", "1", "--index", "x*"],
        ["matches", "--text", "a", "--index", "x*"], ["compare", "1", "2", "--index", "x*"],
    ],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_a_pattern_that_no_index_fits_is_a_missing_index_for_every_command(run, site, arguments):
    ran = run(*arguments, "--json").check(1)
    error = ran.json()["error"]
    assert (error["type"], error["exit_code"]) == ("IndexMissing", 1)
    assert error["message"].startswith("no index fits 'x*'")
    assert "this lists all: shinglefold stats" in error["message"]


def test_statistics_tell_who_has_no_number_of_a_group_and_how_to_number_them(run, site):
    assert run("setup", site, "--groups").code == 0
    shown = run("stats", site).out
    assert "in groups     0" in shown
    assert "ungrouped     3 have no number of a group; to number them: shinglefold regroup site" in shown
    assert run("regroup", site).code == 0
    shown = run("stats", site).out
    assert "in groups     3" in shown
    assert "ungrouped" not in shown


def test_statistics_tell_languages_and_recipe(run, site):
    shown = run("stats", site).out
    for told in (
        "documents     3",
        "signed        2 (66.7 %)",
        "languages     en 3",
        "too short     1",
        "title, body",
    ):
        assert told in shown
    (told,) = run("stats", site, "--json").json()["indices"]
    assert told["languages"] == {"en": 3}
    assert told["recipe"]["fields"] == ["title", "body"]
    assert run("stats", "nowhere").code == 1


def test_an_index_without_fingerprints_is_shown_with_the_command_that_sets_it_up(run):
    from shinglefold.engines import open_engine

    engine = open_engine(".shinglefold")
    engine.create_index("plain", {"properties": {"x": {"type": "keyword"}}}, {})
    engine.close()
    assert "shinglefold setup plain" in run("stats", "plain").out
    assert "none: not made for fingerprints" in run("stats").out
    assert run("delete", "plain", "--yes").code == 0


def test_documents_are_deleted_by_id_and_missing_ones_are_told(run, site):
    dry = run("delete", site, "--id", "a", "--id", "x", "--dry-run")
    assert (dry.code, "not there: x" in dry.out) == (3, True)
    assert "a" in run("search", "bridge", "--index", site, "--no-fold", "--json").out
    told = run("delete", site, "--id", "a", "--id", "x", "--yes", "--json").check(3)
    assert (told.json()["deleted"], told.json()["missing"]) == (1, ["x"])
    assert _ids(run) == {"b", "c"}


def test_documents_that_a_query_finds_are_deleted(run, site):
    query = '{"term": {"host": "two"}}'
    assert run("delete", site, "--query", query, "--dry-run").out.startswith(
        "2 documents of the index site: "
    )
    assert run("delete", site, "--query", query, "--yes").out.endswith("2 deleted\n")
    assert _ids(run) == {"a"}
    assert run("delete", site, "--query", '{"query": {"match": {"body": "bridges"}}}', "--yes").code == 0
    assert _ids(run) == set()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["site"], "the whole index site with 3 documents"),
        (["site", "--id", "a"], "1 document of the index site"),
        (["s*", "--yes"], "name the one to delete"),
        (["site", "--query", "{", "--yes"], "no JSON"),
        (["site", "--query", "{}", "--yes"], "wants a query"),
        (["site", "--query", '{"match_all": {}}', "--id", "a", "--yes"], "one of the two"),
    ],
)
def test_nothing_is_deleted_unasked_or_by_mistake(run, site, arguments, told):
    run("delete", *arguments).check(2, told)
    assert _ids(run) >= {"c"}


def test_a_whole_index_is_deleted_with_yes(run, site):
    assert "the whole index site with 3 documents" in run("delete", site, "--yes").out
    assert run("stats", "--json").json() == {"indices": []}
    assert run("delete", site, "--yes").code == 1


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    ("answer", "code", "left"), [("y\n", 0, []), ("n\n", 130, ["site"]), ("\n", 130, ["site"])]
)
def test_on_a_terminal_it_asks(run, site, answer, code, left):
    ours, theirs = pty.openpty()
    command = subprocess.Popen(
        [*PROGRAM, "delete", site], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    command.communicate(timeout=60)
    asked = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "Delete the whole index site with 3 documents" in asked
    assert command.returncode == code
    assert [one["index"] for one in run("stats", "--json").json()["indices"]] == left


def test_the_words_found_are_marked_on_demand(run, site):
    plain = run("search", "bridges", "--index", site)
    assert "[" not in plain.out
    marked = run("search", "bridges", "--index", site, "--highlight").out
    assert " 1. [Bridge]  (" in marked
    assert "The old [bridge] is closed" in marked
    hits = run("search", "bridges", "--index", site, "--highlight", "--json").json()["hits"]["hits"]
    assert hits[0]["highlight"]["title"] == ["<em>Bridge</em>"]
    assert "<em>" not in run("search", "bridges", "--index", site, "--json").out


def test_on_a_terminal_the_words_found_are_bold(site):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    command = [*PROGRAM, "search", "bridge", "--index", site]
    done = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 10_000)
        except OSError:
            break
        if not part:
            break
        shown += part
    done.wait(timeout=60)
    os.close(ours)
    assert "\x1b[1;31mBridge\x1b[0m" in shown.decode()
    assert Path(".shinglefold").is_dir()


def _whole(run, *names):
    for name in names:
        assert run("index", "-", "--index", name, stdin=_PAGE).code == 0


_PAGE = '{"id": "a", "body": "The old bridge is closed until Monday because the river rises."}\n'


@pytest.mark.parametrize("damage", ["catalog", "no catalog", "list of segments", "segments"])
def test_a_damaged_index_is_deleted_as_its_message_says(run, damage):
    _whole(run, "news")
    folder = Path(".shinglefold/news")
    if damage == "no catalog":
        (folder / "catalog.json").unlink()
    elif damage == "segments":
        for file in folder.glob("tantivy/*.store"):
            file.write_bytes(b"x")
    else:
        (folder / {"catalog": "catalog.json", "list of segments": "tantivy/meta.json"}[damage]).write_text(
            "x"
        )
    run("search", "bridge", "--index", "news").check(
        1, "is damaged", "delete the index (shinglefold delete news) and index again"
    )
    run("delete", "news").check(
        2, "with an unknown number of documents, as it can't be read", "news can't be read: "
    )
    assert "`" not in run("delete", "news", "--dry-run", "--json").json()["unread"]
    told = run("delete", "news", "--yes", "--json").json()
    assert (told["documents"], told["deleted"]) == (None, None)
    _whole(run, "news")


def test_an_index_of_a_later_version_tells_before_it_is_deleted_what_else_could_be_done(run):
    _whole(run, "news")
    catalog = Path(".shinglefold/news/catalog.json")
    catalog.write_text(json.dumps({**json.loads(catalog.read_text()), "format": 99}))
    tried = run("delete", "news", "--dry-run")
    assert (
        "nothing was deleted: this was a dry run; without --dry-run it is deleted all the same" in tried.out
    )
    assert "news can't be read: the index in .shinglefold/news was written by a later version" in tried.err
    assert "Upgrade shinglefold: pip install --upgrade" in tried.err
    assert "written by a later version" in run("delete", "news", "--dry-run", "--json").json()["unread"]
    assert run("delete", "news", "--yes").code == 0


def test_what_an_index_was_made_for_is_not_guessed_where_it_can_not_be_read(run):
    _whole(run, "news")
    Path(".shinglefold/news/catalog.json").write_text("x")
    for command in (["stats"], ["stats", "news"]):
        ran = run(*command).check(3, "is damaged")
        assert "not made for fingerprints" not in ran.out
    assert run("stats").out.splitlines()[1].split()[-1] == "?"


def test_folders_that_are_no_indices_are_neither_listed_nor_deleted_nor_written_to(run):
    _whole(run, "news")
    Path(".shinglefold/photos").mkdir()
    picture = Path(".shinglefold/photos/a.jpg")
    picture.write_text("picture")
    assert [one["index"] for one in run("stats", "--json").json()["indices"]] == ["news"]
    make = "To make 'photos': shinglefold setup photos; of files: shinglefold index FILE --index photos"
    for command, remedy in (
        (["delete", "photos", "--yes"], "Check the name."),
        (["stats", "photos"], make),
        (["search", "x", "--index", "photos"], make),
    ):
        ran = run(*command).check(1)
        assert ran.err == f"error: no index 'photos' in .shinglefold; there are: news. {remedy}\n"
    for more in ([], ["--recreate"]):
        run("index", "-", "--index", "photos", *more, stdin=_PAGE).check(
            1, "photos exists and is not an index: give the index another name"
        )
    assert picture.read_text() == "picture"
    Path(".shinglefold/empty").mkdir()
    _whole(run, "empty")


@pytest.mark.parametrize("command", [["stats"], ["search", "x"], ["index", "-"], ["stats", "pages"]])
def test_a_file_in_the_place_of_the_engines_folder_is_misuse(run, command):
    Path("pages.csv").write_text("id,body\n")
    ran = run(*command, "--engine", "pages.csv", stdin=_PAGE)
    assert (ran.code, ran.out) == (2, "")
    assert "pages.csv is a file: name the folder of the indices" in ran.err
