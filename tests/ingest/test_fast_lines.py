"""Lines of JSON read by the fast reader: the same records as by the standard library."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.ingest.readers import jsonl
from shinglefold.ingest.readers.jsonl import parse_line
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.ingest.readers.streams import Line

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
