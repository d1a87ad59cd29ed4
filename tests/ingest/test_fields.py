"""Fields by dotted path; a field that can't be reached fails its document."""

import copy
import json

import pytest

from shinglefold.documents import MISSING, get, put, render, text, without_path
from shinglefold.errors import ProcessorError
from shinglefold.ingest import Pipeline
from shinglefold.ingest.pipeline.steps import raw_fields

DOCUMENT = {"a": {"b": [{"c": 1}, "x"]}, "t": "text", "f": False, "n": None}


def test_paths_step_into_objects_and_lists():
    assert get(DOCUMENT, "a.b.0.c") == 1
    assert get(DOCUMENT, "_source.t") == "text"
    assert get(DOCUMENT, "a.b.7") is MISSING
    assert get(DOCUMENT, "t.deeper") is MISSING
    assert get(DOCUMENT, "n") is None


def test_changes_are_made_on_copies():
    before = copy.deepcopy(DOCUMENT)
    assert put(DOCUMENT, "a.b.0.c", 2)["a"]["b"][0] == {"c": 2}
    assert put(DOCUMENT, "new.deep.er", 1)["new"] == {"deep": {"er": 1}}
    assert "t" not in without_path(DOCUMENT, "t")
    assert without_path(DOCUMENT, "a.b.1")["a"]["b"] == [{"c": 1}]
    assert without_path(DOCUMENT, "a.b.0.c")["a"]["b"][0] == {}
    assert without_path(DOCUMENT, "no.such") == DOCUMENT
    assert before == DOCUMENT


def test_a_field_inside_a_text_cannot_be_set():
    with pytest.raises(ProcessorError, match=r"cannot set \[t\.x\]"):
        put(DOCUMENT, "t.x", 1)


def test_templates_take_fields_and_leave_nothing_for_missing_ones():
    assert render("<{{{t}}}|{{ a.b.0.c }}|{{{no}}}|{{f}}|{{n}}>", DOCUMENT) == "<text|1||false|>"


@pytest.mark.parametrize("place", range(5))
def test_any_item_of_a_list_can_be_cut_out(place):
    letters = list("abcde")
    left = [letter for letter in letters if letter != letters[place]]
    assert without_path({"all": letters}, f"all.{place}") == {"all": left}
    assert without_path({"in": {"all": letters}, "n": 1}, f"in.all.{place}") == {"in": {"all": left}, "n": 1}
    assert letters == list("abcde")


def test_what_is_not_there_can_not_be_cut_out():
    document = {"all": ["a"], "n": 1}
    for path in ("all.1", "all.x", "no", "n.a", "all.0.a"):
        assert without_path(document, path) == document


@pytest.mark.parametrize(
    ("processors", "raw"),
    [
        ([], ("title", "body")),
        ([{"html_strip": {"field": "body"}}], ("title", "body")),
        ([{"html_strip": {"field": "page", "target_field": "body"}}], ("title",)),
        ([{"set": {"field": "title", "value": "x"}}], ("body",)),
    ],
)
def test_fields_of_documents_are_distinguished_from_those_of_steps(make_pipeline, processors, raw):
    pipeline = make_pipeline(*processors, {"supershingle": {"fields": ["title", "body"]}})
    assert raw_fields(pipeline.steps, "_dedup") == raw


TEXT = "Слово за словом складывается достаточно длинный текст для подписи"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"author": [{"bio": TEXT}]}, r"\[author\] is a list"),
        ({"author": TEXT}, r"\[author\] is text"),
        ({"author": {"bio": {"ru": TEXT}}}, "is an object, expected text"),
        (
            {"author": {"bio": [TEXT]}},
            r'is a list, expected text; to join .* {"join": {"field": "author.bio"',
        ),
        ({"author": {"bio": [5]}}, "is a list, expected text$"),
        ({"author.bio": TEXT}, "one name with dots"),
    ],
)
@pytest.mark.parametrize("missing_ok", [True, False])
def test_the_reason_why_a_field_cannot_be_read_is_reported(document, said, missing_ok):
    with pytest.raises(ProcessorError, match=said):
        text(document, "author.bio", missing_ok)


@pytest.mark.parametrize("document", [{}, {"author": None}, {"author": {}}, {"author": {"bio": None}}])
def test_a_field_that_is_missing_may_be(document):
    assert text(document, "author.bio", True) is None


def test_a_number_steps_into_a_list():
    assert text({"author": [{"bio": TEXT}]}, "author.0.bio", False) == TEXT
    assert text({"author": [{}]}, "author.0.bio", True) is None
    assert text({"author": []}, "author.0.bio", True) is None


def test_a_document_whose_text_can_not_be_reached_gets_no_empty_fingerprint(scheme):
    definition = {"processors": [{"supershingle": {"fields": ["author.bio"]}}]}
    pipeline = Pipeline.from_json(definition, scheme)
    (outcome,) = pipeline.run_block([{"author": [{"bio": TEXT}]}])
    assert outcome.status == "failed"
    assert "[author] is a list" in str(outcome.failure)


def test_texts_of_a_list_are_joined_as_the_message_says(scheme):
    step = {"supershingle": {"fields": ["body"]}}
    given = {"body": [TEXT, TEXT]}
    (failed,) = Pipeline.from_json({"processors": [step]}, scheme).run_block([given])
    told = str(failed.failure)
    remedy = json.loads(told[told.index('{"join"') : told.rindex("}") + 1])
    (done,) = Pipeline.from_json({"processors": [remedy, step]}, scheme).run_block([given])
    assert (done.failure, done.document["body"]) == (None, f"{TEXT}\n{TEXT}")
