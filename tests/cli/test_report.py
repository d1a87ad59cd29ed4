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
