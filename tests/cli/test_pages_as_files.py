"""Pages and texts as files: what counts as their text, in an index and beside it."""

import json
import sys
from pathlib import Path

import pytest

_TEXT = (
    "The old bridge over the river is closed for repairs from Monday, and the buses take the road along the "
    "mill until the end of October."
)
_PAGE = f"<html><title>A long title of words of its own</title><body><p>{_TEXT}</p></body></html>"


@pytest.fixture
def site(run):
    """Index two equal texts under two names, and a page whose title is no part of its body."""
    Path("site").mkdir()
    Path("site/one.txt").write_text(_TEXT, "utf-8")
    Path("site/another.txt").write_text(_TEXT, "utf-8")
    Path("site/page.html").write_text(_PAGE, "utf-8")
    assert run("index", "site").code == 0


@pytest.mark.usefixtures("site")
def test_equal_texts_are_equal_whatever_their_files_are_called(run):
    told = run("compare", "one.txt", "another.txt", "--index", "pages", "--json").json()
    assert told["same_text"] is True
    assert run("groups", "--pairs", "site", "--min-resemblance", "1", "--json").out.count("\n") == 1


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("how", ["file", "stdin"])
def test_the_file_of_a_stored_page_is_that_page(run, how):
    stdin = how == "stdin"
    asked = ["-", "--format", "html"] if stdin else ["site/page.html"]
    first = run("similar", *asked, "--json", stdin=_PAGE if stdin else "").json()["matches"][0]
    assert (first["_id"], first["same_text"]) == ("page.html", True)


def test_a_page_beside_an_index_goes_through_the_pipeline_of_the_index(run):
    pipeline = {
        "processors": [
            {"html_strip": {"field": "body"}},
            {"gsub": {"field": "body", "pattern": "Printed on .*", "replacement": ""}},
            {"supershingle": {"fields": ["body"]}},
        ]
    }
    Path("pipeline.json").write_text(json.dumps(pipeline), "utf-8")
    Path("page.html").write_text(_PAGE.replace("</body>", " Printed on Tuesday, the third of May</body>"))
    assert run("index", "page.html", "--pipeline", "pipeline.json").code == 0
    first = run("similar", "page.html", "--json").json()["matches"][0]
    assert first["same_text"] is True


@pytest.mark.parametrize("fields", [["content"], ["title", "content"]])
def test_a_page_beside_an_index_of_other_fields_is_read_by_its_body(run, fields):
    Path("a.jsonl").write_text(json.dumps({"id": "a", "title": "", "content": _TEXT}), "utf-8")
    assert run("index", "a.jsonl", *[part for name in fields for part in ("--field", name)]).code == 0
    Path("page.html").write_text(_PAGE, "utf-8")
    first = run("similar", "page.html", "--json").json()["matches"][0]
    assert (first["_id"], first["same_text"]) == ("a", True)


@pytest.mark.usefixtures("site")
def test_a_document_without_a_title_is_shown_by_its_id_once(run):
    for shown in (run("search", "bridge", "--show-duplicates").out, run("similar", "one.txt").out):
        assert shown.count("another.txt") == 1


def test_the_text_of_a_document_in_a_file_is_what_an_index_reads(run):
    page = {"id": "a", "title": "Bridge", "format": "html", "body": f"<p class=news>{_TEXT}</p>"}
    Path("page.jsonl").write_text(json.dumps(page), "utf-8")
    Path("text.txt").write_text(f"Bridge\n{_TEXT}", "utf-8")
    assert run("index", "page.jsonl", "--passages").code == 0
    assert run("compare", "page.jsonl", "text.txt", "--json").json()["same_text"] is True
    assert run("similar", "page.jsonl", "--json").json()["matches"][0]["same_text"] is True
    assert run("matches", "page.jsonl", "--json").json()["matches"][0]["share"] > 0.9


@pytest.mark.parametrize("command", ["similar", "matches"])
def test_a_document_in_a_file_is_read_by_the_fields_of_the_index(run, command):
    Path("a.jsonl").write_text(json.dumps({"id": "a", "title": "Bridge", "content": _TEXT}), "utf-8")
    assert run("index", "a.jsonl", "--field", "content", "--passages").code == 0
    first = run(command, "a.jsonl", "--json").json()["matches"][0]
    assert (first["_id"], first.get("same_text", True), first.get("share", 1)) == ("a", True, 1)


def test_a_page_beside_an_index_of_titles_is_read_by_its_title(run):
    Path("page.html").write_text(_PAGE, "utf-8")
    assert run("index", "page.html", "--field", "title").code == 0
    assert run("similar", "page.html", "--json").json()["matches"][0]["same_text"] is True


def test_a_field_of_another_type_is_an_error_with_the_file(run):
    Path("a.jsonl").write_text(json.dumps({"title": "Bridge", "body": {"text": _TEXT}}), "utf-8")
    run("compare", "a.jsonl", "a.jsonl").check(1, "error: a.jsonl: ")


@pytest.mark.long(every=2)
@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("command", ["similar", "matches"])
def test_a_plain_text_needs_no_step_of_the_pipeline(run, command, monkeypatch):
    pipeline = {"processors": [{"main_content": {"field": "body"}}, {"supershingle": {"fields": ["body"]}}]}
    Path("pipeline.json").write_text(json.dumps(pipeline), "utf-8")
    asked = ["index", "site", "--index", "articles", "--pipeline", "pipeline.json", "--passages"]
    assert run(*asked).code == 0
    monkeypatch.setitem(sys.modules, "resiliparse.extract.html2text", None)
    Path("question.txt").write_text(_TEXT, "utf-8")
    found = run(command, "question.txt", "--index", "articles", "--json").check(0)
    assert {"one.txt", "another.txt"} <= {match["_id"] for match in found.json()["matches"]}
