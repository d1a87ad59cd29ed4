"""report: the groups of the example site, on the terminal, as JSON and as a page."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from shinglefold.cli.main import main


@pytest.fixture(scope="module")
def site(examples_file, tmp_path_factory) -> tuple[str, ...]:
    """The arguments that name an index of the examples with groups."""
    where = ("site", "--engine", str(tmp_path_factory.mktemp("report")))
    assert main(["index", str(examples_file), "--index", *where, "--groups", "--workers", "1"]) == 0
    return where


def test_the_report_of_the_example_site(run, site):
    ran = run("report", *site, "--page", "report.html", "--most", 3)
    assert (ran.code, ran.err) == (0, "")
    told = run("report", *site, "--json", "--most", 3).json()
    assert told["documents"] == 166
    assert f"{told['groups']:,} groups" in ran.out
    assert told["copies"] == 166 - told["groups"] == sum(one["copies"] for one in told["months"])
    assert len(told["largest"]) == len(told["hosts"]) == 3
    for title in ("groups by size", "the largest groups", "the newest groups", "copies by host"):
        assert title in ran.out
    assert Path("report.html").read_text("utf-8").startswith("<!doctype html>")


def test_a_page_that_can_not_be_written_is_told(run, site):
    run("report", *site, "--page", "no/such/folder.html").check(1, "cannot write no/such/folder.html")


def test_a_field_that_no_document_can_have_is_told_with_the_nearest(run, site):
    for option in ("--host-field", "--date-field", "--title-field"):
        run("report", *site, option, "titel").check(2, "'titel'", "'title'")


def test_a_page_takes_the_place_of_a_page_and_of_nothing_else(run, site):
    Path("notes.md").write_text("dear")
    ran = run("report", *site, "--page", "notes.md")
    assert (ran.code, Path("notes.md").read_text()) == (2, "dear")
    assert "notes.md holds something else" in ran.err
    for _ in range(2):
        assert run("report", *site, "--page", "report.html").code == 0
    assert not list(Path.cwd().glob("*.part"))


def test_a_report_of_files_is_that_of_an_index_of_them(run, site, examples_file):
    stored = run("report", *site, "--json", "--most", 100).json()
    told = run("report", examples_file, "--json", "--most", 100, "--page", "report.html").json()
    for name in ("documents", "groups", "shared", "copies", "sizes", "languages", "months", "linkage"):
        assert told[name] == stored[name], name
    assert _members(told) == _members(stored)
    assert all(one["title"] and one["url"] for group in told["largest"] for one in group["members"])
    page = Path("report.html").read_text("utf-8")
    assert "Мост через Каменку закроют на ремонт" in page
    assert '<a href="http' in page


def _members(report: dict[str, Any]) -> set[frozenset[str]]:
    return {frozenset(one["id"] for one in group["members"]) for group in report["largest"]}


@pytest.mark.parametrize("name", ["site", "a/b"])
def test_files_of_any_kind_are_reported_together(run, name):
    Path(name).mkdir(parents=True)
    text = "The old bridge is closed until Monday because the river rises, buses take another way."
    Path(name, "page.txt").write_text(text)
    Path("a.csv").write_text(f'id,title,body,day\n1,Bridge,"{text}",1.2.2024\n2,"",short,\n')
    ran = run("report", f"{name}/", "a.csv", "--date-field", "day", "--json")
    told = ran.json()
    assert (told["documents"], told["shared"], told["index"]) == (3, 1, "2 files")
    assert told["without"]["months"] == 2
    assert [one["value"] for one in told["months"]] == ["2024-02"]


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("site --field body", "'site' is not a file, but an index: leave --field out"),
        ("site --field body", "Of the files in site: shinglefold report site/ --field body"),
        ("a.csv --engine here", "files need no index: leave --engine out"),
        ("a.csv --host-field hots", "no document has the field 'hots'"),
        ("site other", "'site' and 'other' are not files, and a report is of one index"),
        ("site other --json", "Of the files in site: shinglefold report site/ other --json"),
        ("a.csv --page a.csv", "a.csv holds something else"),
    ],
)
def test_what_does_not_go_together_is_named(run, typed, says):
    Path("a.csv").write_text("id,body\n1,one two three\n")
    Path("site").mkdir()
    run("report", *typed.split()).check(2, says)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("engine", [(), ("--engine", "here")])
def test_a_folder_without_its_slash_is_named_with_the_command_that_reads_it(run, examples_file, engine):
    run("index", examples_file, "--index", "other", *engine)
    for name, why in (("site", "no index"), ("my site", "not a valid index name")):
        Path(name).mkdir()
        Path(name, "a.txt").write_text("The old bridge is closed until Monday because the river rises.")
        ran = run("report", name, *engine, "--most", 3).check(1, why)
        _, _, command = ran.err.strip().partition(f"Of the files in {name}: shinglefold ")
        assert shlex.split(command) == ["report", f"{name}/", "--most", "3"]
        assert run(*shlex.split(command)).code == 0


def test_a_source_that_is_missing_or_empty_is_told(run):
    assert "no/such.jsonl" in run("report", "no/such.jsonl").err
    Path("empty.jsonl").write_text("\n")
    run("report", "empty.jsonl").check(1, "no documents found")
