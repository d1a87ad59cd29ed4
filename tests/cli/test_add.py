"""add, as it is typed: what is let in, and what is said where it can't be."""

import json

import pytest
from support.commands import TEXT, json_lines


def test_adding_to_an_index_that_is_missing_names_the_command_that_makes_it(run):
    line = json.dumps({"id": "a", "body": TEXT})
    of_files = "of files: shinglefold index FILE --index news"
    for flags, make in (
        ((), f"setup news; {of_files}"),
        (("--policy", "tag"), f"setup news --groups; {of_files} --groups"),
    ):
        missing = run("add", "-", "--index", "news", *flags, stdin=line).check(1)
        assert missing.err.rstrip().endswith(f"To make 'news': shinglefold {make}")
    assert run("setup", "news", "--groups").code == 0
    assert run("add", "-", "--index", "news", "--policy", "tag", stdin=line).code == 0


def test_one_reason_of_several_documents_is_told_once(run):
    assert run("setup", "news").code == 0
    wrong = "".join(json.dumps({"id": id_, "body": 5}) + "\n" for id_ in "abc")
    added = run("add", "-", "--index", "news", stdin=wrong)
    first, summary = added.out.splitlines()
    assert first.startswith("failed: 'a' and 2 more (--json lists all): ")
    assert (added.code, summary) == (1, "0 of 3 added to news")
    told = run("add", "-", "--index", "news", "--json", stdin=wrong).json()
    assert [one["_id"] for one in told["documents"]] == ["a", "b", "c"]


def test_an_index_that_numbers_its_groups_from_now_on_takes_tagged_documents(run):
    first, copy = ({"id": id_, "body": TEXT} for id_ in ("a", "b"))
    assert run("index", "-", "--index", "news", stdin=json.dumps(first)).code == 0
    assert run("setup", "news", "--groups").code == 0
    added = run("add", "-", "--index", "news", "--policy", "tag", stdin=json.dumps(copy))
    assert (added.code, added.err) == (0, "")


def test_documents_that_take_the_place_of_others_are_told(run):
    assert run("setup", "news").code == 0
    other = "Potatoes are cooked slowly in a large pot with onions, carrots, bay leaves and pepper."
    twice = "".join(json.dumps({"id": "a", "body": body}) + "\n" for body in (TEXT, other))
    added = run("add", "-", "--index", "news", stdin=twice)
    assert (added.code, added.out) == (0, "2 of 2 added to news\n")
    assert added.err == "note: 1 of them replaced a document with the same id\n"
    again = run("add", "-", "--index", "news", "--json", stdin=json.dumps({"id": "a", "body": TEXT}))
    assert [one.get("replaced") for one in again.json()["documents"]] == [True]


def test_a_scope_that_the_index_lacks_is_a_mistake_in_the_call(run):
    assert run("setup", "news").code == 0
    run("add", "-", "--index", "news", "--scope", "hots", stdin=json.dumps({"id": "a", "body": TEXT})).check(
        2, "the scope 'hots' is not mapped"
    )


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", ["pa*", "pages,other", "page?"])
def test_a_name_that_may_mean_several_indices_is_refused_before_anything_is_stored(run, examples_file, name):
    assert run("index", examples_file).code == 0
    run("add", examples_file, "--index", name).check(2, "may mean several")


def test_a_document_without_an_id_that_is_not_added_is_named_by_its_line(run):
    lines = json_lines(*({"id": "a", "body": TEXT}, {"body": TEXT}, {"body": 5}))
    run("setup", "news", "--field", "body")
    told = run("add", "-", "--index", "news", stdin=lines)
    assert "refused: standard input:2: it resembles 'a'" in told.out
    assert "failed: standard input:3: " in told.out
    documents = run("add", "-", "--index", "news", "--json", stdin=lines).json()["documents"]
    assert [one.get("_id") for one in documents] == ["a", None, None]
