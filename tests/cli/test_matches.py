"""matches: who contains a part of a text, on the terminal and as JSON, and what an index must have for it."""

import json

import pytest

PASSAGE = " ".join(f"passage{n}" for n in range(60))
OTHER = " ".join(f"other{n}" for n in range(60))


@pytest.fixture
def files(tmp_path):
    lines = [
        {"id": "whole", "title": "Whole", "host": "a.org", "body": f"{OTHER} {PASSAGE}"},
        {"id": "half", "title": "Half", "host": "b.org", "body": " ".join(PASSAGE.split()[:30])},
        {"id": "none", "title": "None", "host": "a.org", "body": "nothing of it"},
    ]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    (tmp_path / "text.txt").write_text(PASSAGE, "utf-8")
    return tmp_path


@pytest.fixture
def library(run, files):
    assert run("index", files / "docs.jsonl", "--index", "lib", "--passages").code == 0
    return files


def test_documents_come_by_their_share_with_their_passages(run, library):
    told = run("matches", library / "text.txt", "--index", "lib", "--json").json()
    assert [(one["_id"], one["share"]) for one in told["matches"]] == [("whole", 1), ("half", 0.5)]
    assert told["matches"][1]["of_document"] == pytest.approx(30 / 31, abs=1e-3)
    (passage,) = told["matches"][0]["passages"]
    assert (passage["document"]["field"], passage["document"]["text"]) == ("body", PASSAGE)
    shown = run("matches", library / "text.txt", "--index", "lib").out
    assert "1. Whole" in shown
    assert "has 50.0% of the text" in shown
    assert "2 documents among 2" in shown


def test_share_size_filter_and_pages(run, library):
    def ids(*more):
        return [
            one["_id"]
            for one in run("matches", "--text", PASSAGE, "--index", "lib", "--json", *more).json()["matches"]
        ]

    assert ids("--min-share", "0.6") == ["whole"]
    assert ids("--filter", "host=b.org") == ["half"]
    first = run("matches", "--text", PASSAGE, "--index", "lib", "--size", "1", "--json").json()
    assert ids("--size", "1", "--after", first["next"]) == ["half"]
    shown = run("matches", "--text", PASSAGE, "--index", "lib", "--size", "1").out
    assert f"--after {first['next']}" in shown


def test_an_index_without_elements_is_refused_and_the_commands_make_them(run, files):
    assert run("index", files / "docs.jsonl", "--index", "lib").code == 0
    refused = run("matches", files / "text.txt", "--index", "lib")
    assert refused.code == 2
    assert "shinglefold setup lib --passages && shinglefold backfill lib" in refused.err
    again = run("index", files / "docs.jsonl", "--index", "lib", "--passages")
    assert again.code == 2
    assert "shinglefold setup lib --passages && shinglefold backfill lib" in again.err
    assert run("setup", "lib", "--passages").code == 0
    meanwhile = run("matches", files / "text.txt", "--index", "lib")
    assert "3 documents store no elements" in meanwhile.err
    assert run("backfill", "lib").code == 0
    found = run("matches", files / "text.txt", "--index", "lib", "--json")
    assert [one["_id"] for one in found.json()["matches"]] == ["whole", "half"]
    assert found.err == ""
    assert run("doctor", "lib").code == 0
    # What comes later has them, too, without a word.
    assert run("index", files / "docs.jsonl", "--index", "lib").code == 0
    assert "store no elements" not in run("matches", files / "text.txt", "--index", "lib").err


def test_an_index_is_built_anew_with_elements(run, files):
    assert run("index", files / "docs.jsonl", "--index", "lib").code == 0
    assert run("index", files / "docs.jsonl", "--index", "lib", "--passages", "--recreate").code == 0
    assert run("matches", files / "text.txt", "--index", "lib", "--json").json()["total"]["value"] == 2


def test_fingerprints_stay_those_of_an_index_without_elements(run, files):
    for name, more in (("one", ()), ("other", ("--passages",))):
        assert run("index", files / "docs.jsonl", "--index", name, *more).code == 0
    told = [run("similar", "--id", "half", "--index", name, "--json").json() for name in ("one", "other")]
    assert told[0]["total"] == told[1]["total"]


def test_a_text_without_an_element_is_told(run, library):
    told = run("matches", "--text", "four words it has", "--index", "lib")
    assert told.code == 0
    assert "fewer than five words" in told.out


def test_misuse_is_told(run, library):
    assert run("matches", "--text", "x", "--index", "lib", "--min-share", "0").code == 2
    assert run("matches", "--text", "x", "--index", "lib", "--filter", "host").code == 2
    assert run("matches", "--text", "x", "--index", "lib", "--filter", "hots=a").code == 2
    assert run("matches", library / "nowhere.txt", "--index", "lib").code == 1
    assert run("matches", "--text", "x", "--index", "nowhere").code == 1
    for nothing in ("", " "):
        told = run("matches", "--text", nothing, "--index", "lib")
        assert (told.code, "there is no text" in told.err) == (2, True)
