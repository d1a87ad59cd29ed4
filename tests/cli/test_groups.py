"""groups: the stories of the example site, in every form, by either linkage."""

import csv
import io
import json
from pathlib import Path

import pytest
from support.commands import TEXT, write_lines

import shinglefold
from shinglefold.examples import articles


@pytest.fixture(scope="module")
def stories() -> list[list[str]]:
    """The ids of each story that has copies, in the order of the corpus."""
    found: dict[str, list[str]] = {}
    for article in articles():
        found.setdefault(article["story"], []).append(article["id"])
    return [ids for ids in found.values() if len(ids) > 1]


@pytest.mark.long(every=2)
@pytest.mark.parametrize("linkage", ["connected", "leader"])
def test_the_groups_of_the_example_corpus_are_its_stories(run, examples_file, stories, linkage):
    ran = run("groups", examples_file, "--linkage", linkage).check(0)
    assert "166 documents: 38 groups with copies, which have 142 documents; " + linkage in ran.err
    assert [line.split("\t") for line in ran.out.splitlines()] == stories


def test_json_and_csv_tell_the_same(run, examples_file, stories):
    told = [json.loads(line) for line in run("groups", "--json", examples_file).out.splitlines()]
    titles = {article["id"]: article["title"] for article in articles()}
    assert told == [{"size": len(ids), "ids": ids, "titles": [titles[one] for one in ids]} for ids in stories]
    rows = list(csv.DictReader(io.StringIO(run("groups", "--csv", examples_file).out)))
    assert [(row["group"], row["id"], row["title"]) for row in rows] == [
        (str(number), one, titles[one]) for number, ids in enumerate(stories, 1) for one in ids
    ]
    shown = run("groups", "--titles", examples_file).out
    assert shown == "".join("".join(f"{one}\t{titles[one]}\n" for one in ids) + "\n" for ids in stories)


def test_titles_are_those_of_the_field_and_where_a_document_has_one(run):
    given = [{"id": 1, "head": "Its\ttitle", "body": TEXT}, {"id": 2, "body": TEXT}]
    write_lines("a.jsonl", *given)
    command = ("a.jsonl", "--title-field", "head")
    assert run("groups", *command, "--json").json()["titles"] == ["Its\ttitle", ""]
    assert run("groups", *command, "--titles").out == "1\tIts title\n2\t\n\n"
    pair = run("groups", "--pairs", *command, "--json").json()
    assert (pair["title_a"], pair["title_b"]) == ("Its\ttitle", "")
    assert run("groups", "--pairs", *command).out == "1\t2\t1.0000\t1.0000\tsame_text\n"
    assert run("groups", "--pairs", *command, "--titles").out.endswith("same_text\tIts title\t\n")


def test_counts_say_what_an_index_of_the_same_documents_counts_otherwise(run):
    """Chains, equal ids and short texts: each difference between groups and a report is told by both."""
    words = [f"word{number}" for number in range(100)]
    given = [{"id": "same", "body": TEXT}, {"id": "same", "body": TEXT}, {"id": "short", "body": "a b"}]
    for number in range(6):
        given.append({"id": f"chain{number}", "body": " ".join(words)})
        words[number * 17 : number * 17 + 17] = [f"new{number}x{at}" for at in range(17)]
    write_lines("a.jsonl", *given)
    chained = run("groups", "a.jsonl", "--linkage", "connected").err
    assert "9 documents: 2 groups with copies, which have 8 documents; connected: chains of copies" in chained
    assert "1 document has the id of another one" in chained
    assert "an index keeps only the last one of an id" in chained
    assert "1 with too little text for a signature" in chained
    files = run("report", "a.jsonl", "--json").json()
    groups = run("groups", "a.jsonl", "--json").out.splitlines()
    listed = [json.loads(one) for one in groups]
    assert f"9 documents: {len(listed)} groups" in run("groups", "a.jsonl", "--linkage", "leader").err
    assert files["shared"] + files["copies"] == sum(one["size"] for one in listed)
    assert run("index", "a.jsonl", "--groups").code == 0
    stored = run("report", "pages", "--json").json()
    assert (stored["documents"], stored["linkage"]) == (8, "leader")
    shown = run("report", "pages").out
    assert f"which have {stored['shared'] + stored['copies']} documents" in shown
    assert "leader: every member resembles the original of its group" in shown
    assert "of equal ids the index has the last document" in shown
    assert run("regroup", "pages", "--linkage", "connected").code == 0
    again = run("report", "pages").out
    assert "8 documents in pages: 3 groups, 1 of them with copies, which have 6 documents" in again
    assert "connected: chains of copies are one group" in again


def test_files_texts_and_searches_show_the_same_groups_of_a_chain(run):
    words = [f"word{number}" for number in range(100)]
    given = []
    for number in range(6):
        given.append({"id": f"{number}", "number": number, "body": " ".join(words)})
        words[number * 17 : number * 17 + 17] = [f"new{number}x{at}" for at in range(17)]
    write_lines("chain.jsonl", *given)
    listed = run("groups", "chain.jsonl", "--json").out.splitlines()
    found = [[int(one) for one in json.loads(line)["ids"]] for line in listed]
    texts = shinglefold.groups([one["body"] for one in given], languages=["en"])
    assert run("index", "chain.jsonl", "--index", "chain").code == 0
    body = {"query": {"match_all": {}}, "sort": ["number"], "ext": {"dedup": {"verify": "text"}}}
    with shinglefold.open(Path(".shinglefold"), "chain") as site:
        hits = site.search(body)["hits"]["hits"]
    shown = [hit["inner_hits"]["duplicates"]["hits"]["hits"] for hit in hits]
    searched = [sorted(int(one["_id"]) for one in group) for group in shown]
    assert found == texts == [group for group in searched if len(group) > 1]
    assert len(found) > 1


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
    run("groups", "--pairs", *option.split(), examples_file).check(
        2, f"{option.partition(' ')[0]}", "is for groups: leave it or --pairs out"
    )


def test_an_order_of_pairs_is_refused_of_groups(run, examples_file):
    run("groups", "--sort", "resemblance", examples_file).check(
        2, "--sort resemblance is for pairs: add --pairs"
    )


def test_two_forms_at_once_are_refused(run, examples_file):
    run("groups", "--csv", "--json", examples_file).check(2, "give one of them")


def test_what_can_not_be_read_is_told(run):
    Path("pages.jsonl").write_text('{"id": 1, "body": "a b c d e f g h"}\nnonsense\n')
    run("groups", "pages.jsonl").check(3, "1 document left out", "pages.jsonl:2")


@pytest.mark.parametrize("command", [("groups", "--pairs"), ("groups",), ("advise", "sample")])
def test_a_collection_without_a_document_is_told(run, command):
    Path("empty.jsonl").write_text("\n")
    ran = run(*command, "empty.jsonl").check(1)
    assert ran.err.splitlines()[-1].startswith("no documents found; check the sources, or say their --format")


def test_an_index_in_the_place_of_a_file_leads_to_its_report(run):
    told = run("groups", "pages").check(1, "no such file or folder")
    assert told.err.rstrip().endswith("Of an index: shinglefold report pages")
    assert "index" not in run("groups", "pages.jsonl").err
