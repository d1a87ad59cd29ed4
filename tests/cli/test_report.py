"""report: the groups of the example site, on the terminal, as JSON and as a page."""

from pathlib import Path


def test_the_report_of_the_example_site(run, examples_file):
    run("index", examples_file, "--index", "site", "--engine", "here", "--groups", "--workers", 1)
    ran = run("report", "site", "--engine", "here", "--html", "report.html", "--most", 3)
    assert (ran.code, ran.err) == (0, "")
    told = run("report", "site", "--engine", "here", "--json", "--most", 3).json()
    assert told["documents"] == 166
    assert f"{told['groups']:,} groups" in ran.out
    assert told["copies"] == 166 - told["groups"] == sum(one["copies"] for one in told["months"])
    assert len(told["largest"]) == len(told["hosts"]) == 3
    for title in ("groups by size", "the largest groups", "the newest groups", "copies by host"):
        assert title in ran.out
    assert Path("report.html").read_text("utf-8").startswith("<!doctype html>")


def test_an_index_without_numbers_says_how_to_get_them(run, examples_file):
    run("index", examples_file, "--index", "site", "--engine", "here", "--workers", 1)
    ran = run("report", "site", "--engine", "here")
    assert ran.code == 2
    assert (
        "shinglefold setup site --groups --engine here && shinglefold regroup site --engine here" in ran.err
    )


def test_a_page_that_can_not_be_written_is_told(run, examples_file):
    run("index", examples_file, "--index", "site", "--engine", "here", "--groups", "--workers", 1)
    ran = run("report", "site", "--engine", "here", "--html", "no/such/folder.html")
    assert ran.code == 1
    assert "cannot write no/such/folder.html" in ran.err


def test_a_field_that_no_document_can_have_is_told_with_the_nearest(run, examples_file):
    run("index", examples_file, "--index", "site", "--engine", "here", "--groups", "--workers", 1)
    for option in ("--host-field", "--date-field", "--title-field"):
        ran = run("report", "site", "--engine", "here", option, "titel")
        assert ran.code == 2
        assert "'titel'" in ran.err
        assert "'title'" in ran.err


def test_a_page_takes_the_place_of_a_page_and_of_nothing_else(run, examples_file):
    run("index", examples_file, "--index", "site", "--engine", "here", "--groups", "--workers", 1)
    Path("notes.md").write_text("dear")
    ran = run("report", "site", "--engine", "here", "--html", "notes.md")
    assert (ran.code, Path("notes.md").read_text()) == (2, "dear")
    assert "notes.md holds something else" in ran.err
    for _ in range(2):
        assert run("report", "site", "--engine", "here", "--html", "report.html").code == 0
    assert not list(Path.cwd().glob("*.part"))
