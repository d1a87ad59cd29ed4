"""groups: the stories of the example site, in every form, by either linkage."""

import csv
import io
import json
from pathlib import Path

import pytest

from shinglefold.examples import articles


@pytest.fixture(scope="module")
def stories() -> list[list[str]]:
    """The ids of each story that has copies, in the order of the corpus."""
    found: dict[str, list[str]] = {}
    for article in articles():
        found.setdefault(article["story"], []).append(article["id"])
    return [ids for ids in found.values() if len(ids) > 1]


@pytest.mark.parametrize("linkage", ["connected", "leader"])
def test_the_groups_of_the_example_corpus_are_its_stories(run, examples_file, stories, linkage):
    ran = run("groups", examples_file, "--linkage", linkage)
    assert (ran.code, ran.err) == (0, "")
    assert [line.split("\t") for line in ran.out.splitlines()] == stories


def test_json_and_csv_tell_the_same(run, examples_file, stories):
    told = [json.loads(line) for line in run("groups", "--json", examples_file).out.splitlines()]
    assert told == [{"size": len(ids), "ids": ids} for ids in stories]
    rows = list(csv.DictReader(io.StringIO(run("groups", "--csv", examples_file).out)))
    assert [(row["group"], row["id"]) for row in rows] == [
        (str(number), one) for number, ids in enumerate(stories, 1) for one in ids
    ]


def test_groups_can_be_sorted_by_size_and_small_ones_left_out(run, examples_file, stories):
    told = run("groups", "--json", "--sort", "size", "--min-size", 4, examples_file).out.splitlines()
    sizes = [json.loads(line)["size"] for line in told]
    assert sizes == sorted((len(ids) for ids in stories if len(ids) >= 4), reverse=True)


def test_documents_without_a_copy_are_groups_of_one(run, examples_file):
    ran = run("groups", "--min-size", 1, examples_file)
    ids = [one for line in ran.out.splitlines() for one in line.split("\t")]
    assert sorted(ids) == sorted(article["id"] for article in articles())


@pytest.mark.parametrize("option", ["--linkage leader", "--min-size 2", "--csv", "--sort size"])
def test_options_of_groups_are_refused_of_pairs(run, examples_file, option):
    ran = run("groups", "--pairs", *option.split(), examples_file)
    assert ran.code == 2
    assert f"{option.partition(' ')[0]}" in ran.err
    assert "is for groups: leave it or --pairs out" in ran.err


def test_an_order_of_pairs_is_refused_of_groups(run, examples_file):
    ran = run("groups", "--sort", "resemblance", examples_file)
    assert (ran.code, "--sort resemblance is for pairs: add --pairs" in ran.err) == (2, True)


def test_two_forms_at_once_are_refused(run, examples_file):
    ran = run("groups", "--csv", "--json", examples_file)
    assert ran.code == 2
    assert "give one of them" in ran.err


def test_what_can_not_be_read_is_told(run):
    Path("pages.jsonl").write_text('{"id": 1, "body": "a b c d e f g h"}\nnonsense\n')
    ran = run("groups", "pages.jsonl")
    assert ran.code == 3
    assert "1 document left out" in ran.err
    assert "pages.jsonl:2" in ran.err


@pytest.mark.parametrize("command", [("groups", "--pairs"), ("groups",), ("advise", "sample")])
def test_a_collection_without_a_document_is_told(run, command):
    Path("empty.jsonl").write_text("\n")
    ran = run(*command, "empty.jsonl", "--workers", 1)
    assert ran.code == 1
    assert ran.err.splitlines()[-1].startswith("no documents found; check the sources, or say their --format")
