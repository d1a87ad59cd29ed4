import copy

import pytest

from shinglefold.errors import ProcessorError
from shinglefold.ingest.paths import MISSING, cut, get, put, render

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
    assert "t" not in cut(DOCUMENT, "t")
    assert cut(DOCUMENT, "a.b.1")["a"]["b"] == [{"c": 1}]
    assert cut(DOCUMENT, "a.b.0.c")["a"]["b"][0] == {}
    assert cut(DOCUMENT, "no.such") == DOCUMENT
    assert before == DOCUMENT


def test_a_field_inside_a_text_cannot_be_set():
    with pytest.raises(ProcessorError, match=r"cannot set \[t\.x\]"):
        put(DOCUMENT, "t.x", 1)


def test_templates_take_fields_and_leave_nothing_for_missing_ones():
    assert render("<{{{t}}}|{{ a.b.0.c }}|{{{no}}}|{{f}}|{{n}}>", DOCUMENT) == "<text|1||false|>"
