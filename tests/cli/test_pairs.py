"""groups --pairs: exactly the stories, in a stated order, whatever the form of the input."""

import csv
import json
from itertools import combinations
from pathlib import Path

import pytest

from shinglefold.examples import articles


def _lines(out: str) -> list[tuple[str, str, float]]:
    rows = [line.split("\t") for line in out.splitlines()]
    return [(a, b, float(resemblance)) for a, b, resemblance, *_ in rows]


@pytest.fixture(scope="module")
def stories() -> set[frozenset[str]]:
    """The labelled pairs: copies of one story."""
    return {
        frozenset((one["id"], other["id"]))
        for one, other in combinations(articles(), 2)
        if one["story"] == other["story"]
    }


@pytest.mark.long(every=2)
@pytest.mark.parametrize("workers", [1, 2])
def test_the_pairs_of_the_example_corpus_are_its_stories(run, examples_file, stories, workers):
    ran = run("groups", "--pairs", examples_file, "--workers", workers)
    assert (ran.code, ran.err) == (0, "")
    found = _lines(ran.out)
    assert {frozenset(pair[:2]) for pair in found} == stories
    assert len(found) == len(stories)
    assert all(0.55 < resemblance <= 1 for *_, resemblance in found)


def test_pairs_stand_in_document_order_or_by_resemblance(run, examples_file):
    order = {article["id"]: place for place, article in enumerate(articles())}
    found = _lines(run("groups", "--pairs", examples_file).out)
    places = [(order[a], order[b]) for a, b, _ in found]
    assert places == sorted(places)
    assert all(a < b for a, b in places)
    ranked = _lines(run("groups", "--pairs", examples_file, "--sort", "resemblance").out)
    assert sorted(ranked) == sorted(found)
    assert [row[2] for row in ranked] == sorted((row[2] for row in found), reverse=True)


def test_json_lines_tell_the_same(run, examples_file):
    told = [json.loads(line) for line in run("groups", "--pairs", "--json", examples_file).out.splitlines()]
    assert [(one["a"], one["b"], one["resemblance"]) for one in told] == _lines(
        run("groups", "--pairs", examples_file).out
    )


_TEXT = "The quick brown fox jumps over the lazy dog near the bank of the river every morning"


def test_pairs_are_found_across_files_of_all_kinds(run):
    Path("one.jsonl").write_text(json.dumps({"id": "json", "body": _TEXT}) + "\n")
    with Path("two.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "body"], ["csv", _TEXT]])
    Path("pages").mkdir()
    Path("pages/three.html").write_text(f"<body><p>{_TEXT}</p></body>")
    found = _lines(run("groups", "--pairs", "one.jsonl", "two.csv", "pages", "--field", "body").out)
    assert {frozenset(row[:2]) for row in found} == {
        frozenset(pair) for pair in combinations(("json", "csv", "three.html"), 2)
    }


def test_standard_input_is_read_and_documents_without_an_id_are_named_by_line(run):
    lines = "".join(json.dumps({"body": _TEXT}) + "\n" for _ in range(2))
    assert _lines(run("groups", "--pairs", "-", stdin=lines).out) == [
        ("standard input:1", "standard input:2", 1.0)
    ]


def test_fields_id_and_markup_can_be_told(run):
    lines = (
        json.dumps({"n": 1, "text": f"<b>{_TEXT}</b>"}) + "\n" + json.dumps({"n": 2, "text": _TEXT}) + "\n"
    )
    ran = run("groups", "--pairs", "-", "--id-field", "n", "--field", "text", "--html", stdin=lines)
    assert _lines(ran.out) == [("1", "2", 1.0)]
    assert _lines(run("groups", "--pairs", "-", "--id-field", "n", stdin=lines).out) == []


def test_the_decision_can_be_given(run, examples_file):
    all_of_them = run("groups", "--pairs", examples_file).out.splitlines()
    strict = run("groups", "--pairs", examples_file, "--min-similarity", "0.95").out.splitlines()
    assert 0 < len(strict) < len(all_of_them)
    # What decides on a pair may be another: fewer tokens are left to decide by.
    assert {tuple(line.split("\t")[:4]) for line in strict} < {
        tuple(line.split("\t")[:4]) for line in all_of_them
    }
    assert len(run("groups", "--pairs", examples_file, "--preset", "fetterly").out.splitlines()) < len(
        all_of_them
    )


def test_the_signature_decides_where_it_is_to_or_its_threshold_is_given(run, examples_file):
    asked = [
        run("groups", "--pairs", examples_file, *way).out
        for way in (("--verify", "signature"), ("--min-resemblance", 0.61))
    ]
    assert asked[0] == asked[1]
    assert {line.split("\t")[3] for line in asked[0].splitlines()} == {"same_text", "estimate"}
    strict = run("groups", "--pairs", examples_file, "--min-resemblance", "0.9").out.splitlines()
    assert set(strict) < set(asked[0].splitlines())
    run("groups", "--pairs", examples_file, "--min-resemblance", "0.9", "--min-similarity", 0.7).check(
        2, "one of them decides"
    )


def test_the_similarity_of_the_texts_is_told_and_sorted_by(run, examples_file):
    told = [
        json.loads(line)
        for line in run("groups", "--pairs", "--json", "--sort", "similarity", examples_file).out.splitlines()
    ]
    shares = [one["similarity"] for one in told]
    assert shares == sorted(shares, reverse=True)
    # Copies with other endings have few words in common as they are written: all their tokens decide.
    assert 0.5 < shares[-1] < 0.8 < shares[0] == 1
    for one in told:
        share = one["similarity"]
        ways = {"tokens"} if share < 0.8 else {"same_text", "similarity"} if share == 1 else {"similarity"}
        assert one["decided_by"] in ways
    run("groups", "--pairs", "--sort", "similarity", "--verify", "signature", examples_file).check(
        2, "add --verify text"
    )


@pytest.mark.long
def test_a_text_too_long_to_compare_is_told_as_such(run):
    words = [f"word{n}" for n in range(20_001)]
    lines = "".join(json.dumps({"id": n, "body": " ".join(words[n:])}) + "\n" for n in (0, 2))
    assert run("groups", "--pairs", "-", stdin=lines).out.endswith("\t-\testimate\n")
    assert json.loads(run("groups", "--pairs", "--json", "-", stdin=lines).out)["similarity"] is None


def test_empty_and_one_word_documents_never_fold(run):
    lines = "".join(
        json.dumps({"id": str(n), "body": body}) + "\n" for n, body in enumerate(["", "", "word", "word"])
    )
    ran = run("groups", "--pairs", "-", stdin=lines)
    assert (ran.code, ran.out) == (0, "")


def test_bad_lines_are_told_and_the_others_compared(run):
    good = json.dumps({"body": _TEXT})
    ran = run("groups", "--pairs", "-", stdin=f"{good}\n{{broken\n{good}\n[1]\n").check(3)
    assert _lines(ran.out) == [("standard input:1", "standard input:3", 1.0)]
    assert ran.err.startswith("2 documents left out; first: standard input:2: invalid JSON")
    assert run("groups", "--pairs", "-", stdin="{broken\n").code == 1


def test_ids_with_tabs_do_not_break_the_columns(run):
    lines = "".join(json.dumps({"id": f"a\tb\n{n}", "body": _TEXT}) + "\n" for n in range(2))
    assert _lines(run("groups", "--pairs", "-", stdin=lines).out) == [("a b 0", "a b 1", 1.0)]


def test_texts_of_a_nested_field_are_compared(run):
    lines = "".join(json.dumps({"id": n, "page": {"text": _TEXT}}) + "\n" for n in range(2))
    ran = run("groups", "--pairs", "-", "--field", "page.text", stdin=lines)
    assert (ran.err, _lines(ran.out)) == ("", [("0", "1", 1.0)])


def test_the_first_failure_is_told_though_a_later_file_is_refused_as_a_whole(run):
    good = json.dumps({"id": "a", "body": _TEXT})
    Path("bad.jsonl").write_text(f"{good}\n{{broken\n")
    Path("array.jsonl").write_text(f"[{good},{good}]\n")
    ran = run("groups", "--pairs", "bad.jsonl", "array.jsonl")
    assert ran.err.startswith("2 documents left out; first: bad.jsonl:2: invalid JSON")
    run("groups", "--pairs", "array.jsonl").check(1, "the input holds an array, not an object a line")
