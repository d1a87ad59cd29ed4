import copy

import pytest

from shinglefold.errors import ProcessorError
from shinglefold.ingest.field_paths import MISSING, get, put, render, without_path
from shinglefold.ingest.pipeline.field_usage import raw_fields

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
def test_fields_that_documents_bring_are_told_from_those_that_steps_make(make_pipeline, processors, raw):
    pipeline = make_pipeline(*processors, {"supershingle": {"fields": ["title", "body"]}})
    assert raw_fields(pipeline.steps, "dedup") == raw
