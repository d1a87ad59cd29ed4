"""similar and matches: copies of a text, and of its parts, found anywhere in an index."""

import json
from pathlib import Path

import pytest
from support.commands import json_lines

from shinglefold.examples import articles


@pytest.fixture
def similar(run, engine_folder):
    return lambda *arguments, stdin="": run("similar", *arguments, "--engine", engine_folder, stdin=stdin)


def text_of(name: str) -> str:
    (found,) = [one for one in articles() if one["id"] == name]
    return f"{found['title']}\n{found['body']}"


def test_the_copies_of_a_document_are_listed_the_most_alike_first(similar):
    told = similar("ru-bridge-repair-1", "--json").json()
    assert told["total"] == {"value": len(told["matches"]), "relation": "eq"}
    alike = [one["resemblance"] for one in told["matches"]]
    assert alike == sorted(alike, reverse=True)
    assert {"ru-bridge-repair-2", "ru-bridge-repair-4"} <= {one["_id"] for one in told["matches"]}
    assert "ru-bridge-repair-1" not in {one["_id"] for one in told["matches"]}
    assert told["matches"][0]["_source"]["title"]


def test_the_page_says_how_alike_they_are_and_how_many_there_are(similar):
    shown = similar("ru-bridge-repair-1").out
    assert "ru-bridge-repair-2  resemblance 0." in shown
    assert "± 0.0" in shown
    assert "copies among" in shown


@pytest.mark.parametrize("how", ["file", "stdin", "text"])
def test_a_text_that_is_not_stored_finds_what_it_is_a_copy_of(similar, tmp_path, how):
    text = text_of("en-geese-1")
    if how == "file":
        (tmp_path / "draft.txt").write_text(text)
        ran = similar(tmp_path / "draft.txt", "--json")
    else:
        ran = similar("-", "--json", stdin=text) if how == "stdin" else similar(text, "--text", "--json")
    first = ran.json()["matches"][0]
    assert (first["_id"], first["same_text"]) == ("en-geese-1", True)


def test_pages_go_on_by_the_command_below_them(similar):
    everything = [one["_id"] for one in similar("ru-bridge-repair-1", "--json").json()["matches"]]
    seen, after = [], []
    while len(seen) < len(everything):
        page = similar("ru-bridge-repair-1", "--size", "1", "--json", *after).json()
        seen += [one["_id"] for one in page["matches"]]
        after = ["--after", page["next"]]
    assert seen == everything
    assert (
        "next page: shinglefold similar ru-bridge-repair-1 --size 1"
        in similar("ru-bridge-repair-1", "--size", "1").out
    )


def test_a_filter_and_a_threshold_narrow_what_is_found(similar):
    told = similar("ru-bridge-repair-1", "--filter", "host=vestnik.example", "--json").json()
    assert told["total"]["value"] == 1
    strict = similar("ru-bridge-repair-1", "--min-resemblance", "0.99", "--json").json()
    assert strict["total"]["value"] < similar("ru-bridge-repair-1", "--json").json()["total"]["value"]


def test_a_text_has_no_fields_to_be_compared_within_a_scope(similar):
    similar("--text", text_of("en-geese-1"), "--scope", "host").check(2, "narrow with --filter FIELD=VALUE")
    assert similar("en-geese-1", "--scope", "lang").code == 0


def test_a_file_of_the_name_of_a_document_is_said_to_be_one(similar, tmp_path):
    (tmp_path / "en-geese-1").write_text(text_of("en-boil-notice-1"))
    as_file = similar("en-geese-1", "--json")
    assert as_file.json()["matches"][0]["_id"] == "en-boil-notice-1"
    assert "add --id" in as_file.err
    as_id = similar("en-geese-1", "--id", "--json")
    assert as_id.err == ""
    assert as_id.json() != as_file.json()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere"], 1, "no file 'nowhere', and no document of this id"),
        (["no where"], 1, "no file 'no where' (for this text itself add --text), and no document"),
        (["…", "--text"], 1, "no word to find copies by"),
        (["ru-bridge-repair-1", "--index", "other"], 1, "other"),
        (["ru-bridge-repair-1", "--filter", "host"], 2, "FIELD=VALUE"),
        (["ru-bridge-repair-1", "--filter", "hots=a"], 2, "did you mean 'host'"),
        (["ru-bridge-repair-1", "--after", "x"], 2, "not a place"),
        (["a", "--id", "--text"], 2, "exclude each other"),
    ],
)
def test_what_cannot_be_found_is_told(similar, arguments, code, said):
    similar(*arguments).check(code, said)


PASSAGE = " ".join(f"passage{n}" for n in range(60))
OTHER = " ".join(f"other{n}" for n in range(60))


@pytest.fixture
def files(tmp_path):
    lines = [
        {"id": "whole", "title": "Whole", "host": "a.org", "body": f"{OTHER} {PASSAGE}"},
        {"id": "half", "title": "Half", "host": "b.org", "body": " ".join(PASSAGE.split()[:30])},
        {"id": "none", "title": "None", "host": "a.org", "body": "nothing of it"},
    ]
    (tmp_path / "docs.jsonl").write_text(json_lines(*lines), "utf-8")
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
    run("matches", files / "text.txt", "--index", "lib").check(
        2, "shinglefold setup lib --passages && shinglefold backfill lib"
    )
    run("index", files / "docs.jsonl", "--index", "lib", "--passages").check(
        2, "shinglefold setup lib --passages && shinglefold backfill lib"
    )
    assert run("setup", "lib", "--passages").code == 0
    meanwhile = run("matches", files / "text.txt", "--index", "lib")
    assert "3 documents are not found, without elements" in meanwhile.err
    assert run("backfill", "lib").code == 0
    found = run("matches", files / "text.txt", "--index", "lib", "--json")
    assert [one["_id"] for one in found.json()["matches"]] == ["whole", "half"]
    assert found.err == ""
    assert run("doctor", "lib").code == 0
    # What comes later has them, too, without a word.
    assert run("index", files / "docs.jsonl", "--index", "lib").code == 0
    assert "without elements" not in run("matches", files / "text.txt", "--index", "lib").err


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
    told = run("matches", "--text", "four words it has", "--index", "lib").check(0)
    assert "fewer than five words" in told.out


def test_misuse_is_told(run, library):
    assert run("matches", "--text", "x", "--index", "lib", "--min-share", "0").code == 2
    assert run("matches", "--text", "x", "--index", "lib", "--filter", "host").code == 2
    assert run("matches", "--text", "x", "--index", "lib", "--filter", "hots=a").code == 2
    assert run("matches", library / "nowhere.txt", "--index", "lib").code == 1
    assert run("matches", "--text", "x", "--index", "nowhere").code == 1
    for nothing in ("", " "):
        run("matches", "--text", nothing, "--index", "lib").check(2, "there is no text")


def test_several_titles_are_shown_joined(run):
    body = "The old bridge across the river is closed until Monday because the water rises every day"
    several = {"title": ["One", "Two"], "url": ["http://a.org", "http://b.org"], "host": ["a.org", "b.org"]}
    Path("two.jsonl").write_text("".join(json.dumps({"id": n, "body": body, **several}) + "\n" for n in "ab"))
    named = ("--field", "body")
    assert run("index", "two.jsonl", *named, "--passages", "--groups").code == 0
    shown = {
        "search": run("search", "bridge", "--show-duplicates"),
        "similar": run("similar", "a"),
        "matches": run("matches", "--text", body),
        "groups": run("groups", "two.jsonl", "--titles", *named),
        "report": run("report", "pages"),
        "report of files": run("report", "two.jsonl", *named),
    }
    for command, ran in shown.items():
        assert (ran.code, "One, Two" in ran.out, "['" in ran.out) == (0, True, False), command
    assert "(a.org, b.org)" in run("search", "bridge").out
    assert "http://a.org, http://b.org" in shown["search"].out
