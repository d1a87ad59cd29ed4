"""JSON lines: documents sent to workers as lines, and the fast reader."""

import gc
import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.ingest import read
from shinglefold.ingest.readers import jsonl
from shinglefold.ingest.readers.jsonl import LazyLineDocument, parse_line
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.ingest.readers.streams import Line
from shinglefold.ingest.writing.worker_pool import infrequent_gc

_LINE = '{"id": 7, "title": "Кот", "size": 1.5, "none": null}'


def _document(tmp_path, line=_LINE):
    path = tmp_path / "a.jsonl"
    path.write_text(f"{line}\n", "utf-8")
    (record,) = read(path)
    return record.document


def test_a_document_travels_as_its_line_and_arrives_as_it_was_read(tmp_path):
    document = _document(tmp_path)
    sent = pickle.dumps(document)
    assert _LINE.encode() in sent
    assert pickle.loads(sent) == document == {"_id": "7", "id": 7, "title": "Кот", "size": 1.5, "none": None}
    assert type(pickle.loads(sent)) is type(dict(document)) is dict


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.__setitem__("title", "Пёс"),
        lambda one: one.__delitem__("title"),
        lambda one: one.__ior__({"new": 1}),
        lambda one: one.update(new=1),
        lambda one: one.setdefault("new", 1),
        lambda one: one.pop("size"),
        lambda one: one.popitem(),
        lambda one: one.clear(),
    ],
)
def test_a_document_that_was_changed_arrives_as_it_was_changed(tmp_path, change):
    document = _document(tmp_path)
    before = dict(document)
    change(document)
    assert pickle.loads(pickle.dumps(document)) == document != before


def test_every_method_that_changes_a_dictionary_is_watched():
    own = {name for name, method in vars(LazyLineDocument).items() if callable(method)}
    reading = {"copy", "fromkeys", "get", "items", "keys", "values"}
    assert {name for name in vars(dict) if not name.startswith("_")} <= own | reading


@pytest.mark.parametrize("line", ['{"tags": ["a"]}', '{"at": {"x": 1}}', f'{{"body": "{"а" * (1 << 21)}"}}'])
def test_mutable_values_and_long_lines_are_pickled_as_dictionaries(tmp_path, line):
    assert type(_document(tmp_path, line)) is dict


def test_garbage_is_looked_for_among_what_is_new_and_afterwards_everywhere():
    # Python 3.12 freezes some hundred objects by itself.
    assert gc.get_freeze_count() < 1_000
    with infrequent_gc():
        assert gc.get_freeze_count() > 1_000
    assert gc.get_freeze_count() < 1_000


def test_frozen_objects_stay_frozen():
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        # Other threads may free some frozen objects meanwhile.
        with infrequent_gc():
            assert before - 1_000 < gc.get_freeze_count() <= before
        assert before - 1_000 < gc.get_freeze_count() <= before
    finally:
        gc.unfreeze()


def test_garbage_is_collected_rarely_unless_collection_is_off():
    often = gc.get_threshold()
    try:
        for first, meanwhile in ((700, 10_000), (20_000, 20_000), (0, 0)):
            gc.set_threshold(first, *often[1:])
            with infrequent_gc():
                assert gc.get_threshold()[0] == meanwhile
            assert gc.get_threshold() == (first, *often[1:])
    finally:
        gc.set_threshold(*often)


def test_objects_frozen_by_the_caller_stay_frozen():
    gc.freeze()
    try:
        with infrequent_gc():
            pass
        assert gc.get_freeze_count() > 1_000
    finally:
        gc.unfreeze()


_QUICK, _CAREFUL = ReadOptions(encoding="utf-8"), ReadOptions(encoding="utf_8")


def _same(raw: bytes) -> None:
    line = Line(7, raw, "")
    assert repr(parse_line(line, "a", _QUICK, 0.5)) == repr(parse_line(line, "a", _CAREFUL, 0.5)).replace(
        "utf_8", "utf-8"
    )


@pytest.mark.parametrize(
    "value",
    [
        *(f"1{'0' * digits}" for digits in (0, 18, 19, 20, 400, 4_299, 4_300, 5_000)),
        *(
            "1e400",
            "-1e400",
            "1e-400",
            "1.7976931348623159e308",
            "2.2250738585072011e-308",
            "-0",
            "-0.0",
            "1E5",
        ),
        *("NaN", "-Infinity", "01", "1.", ".5", "+1", "tru", "null", "[1,]", '{"a":1,}', '{"a":1,"a":2}'),
        *(r'"\ud800"', r'"\ud83d\ude00"', r'"\ude00\ud83d"', r'"\u0000"', r'"\x"', '"\t"', '"\x7f"', "'a'"),
        *('"\ufeff"', '"\u2028"', "[" * 99 + "]" * 99, "[" * 100 + "]" * 100, "[" * 5_000 + "]" * 5_000, ""),
    ],
)
def test_odd_values_are_read_alike(value):
    _same(f'{{"id": "1", "field": {value}}}'.encode())
    _same(value.encode())


@pytest.mark.parametrize(
    "text", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xd0", b"\xef\xbf\xbf"]
)
def test_bytes_that_are_no_utf_8_are_read_alike(text):
    _same(b'{"id": "1", "text": "' + text + b'"}')


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["id", "_id", "_source", "a"]), _JSON), st.booleans())
def test_documents_are_read_alike(document, ascii_only):
    _same(json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"))


def test_most_lines_are_read_fast(monkeypatch):
    monkeypatch.setattr(jsonl.json, "loads", None)
    raw = '{"id": 5, "title": "Кот", "tags": ["a", 1, 0.5, null], "at": {"x": true}}'.encode()
    assert parse_line(Line(1, raw, ""), "a", _QUICK).document == {
        "_id": "5", "id": 5, "title": "Кот", "tags": ["a", 1, 0.5, None], "at": {"x": True},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('{"id": "1", "body": "a", "body": "b"}', "body"),
        ('{"id": "1", "body": "body", "id": "2"}', "id"),
        ('{"id": "1", "body": "a", "bod\\u0079": "b"}', "body"),
        ('{"id": "1", "meta": {"host": "a", "host": "b"}}', "host"),
        ('{"id": "1", "meta": [{"a": 1}, {"host": "a", "n": 1, "host": "b"}]}', "host"),
        ('{"_id": "1", "_source": {"body": "a", "body": "b"}}', "body"),
        ('{"id": "1", "é": 1, "é": 2}', "é"),
        # However many colons stand apart from their keys.
        ('{"id" : "1", "body": "a", "body": "b"}', "body"),
        ('{"id"\t: "1", "body": "a", "body": "b"}', "body"),
        ('{"id"  : "1", "body" : "a", "body": "b"}', "body"),
        ('{"id" \t: "1", "body": "a", "body": "b"}', "body"),
    ],
)
def test_a_key_that_occurs_twice_in_an_object_is_refused_by_name(tmp_path: Path, line: str, name: str):
    file = tmp_path / "x.jsonl"
    file.write_text(line, "utf-8")
    (record,) = read(file)
    assert record.document is None
    assert record.raw == line
    assert f"the key {name!r} occurs twice" in record.reason


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "body", "body": "id"}',
        '{"id": "1", "body": "\\"body\\": 1, \\"body\\": 2"}',
        '{"id": "1", "meta": [{"host": "a"}, {"host": "b"}], "host": {"host": "c"}}',
        '{"id": "1", "bod\\u0079": "b"}',
    ],
)
def test_equal_keys_of_several_objects_and_equal_values_are_read(tmp_path: Path, line: str):
    file = tmp_path / "x.jsonl"
    file.write_text(line, "utf-8")
    (record,) = read(file)
    assert dict(record.document or {}).items() >= json.loads(line).items()
