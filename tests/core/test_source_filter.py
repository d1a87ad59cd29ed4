"""Which parts of a document a hit gives back, and where values stand in documents."""

import pytest

from shinglefold.documents import SourceFilter, values_at

_SOURCE = {
    "title": "t",
    "host": {"name": "n", "port": 0},
    "tags": ["a", {"word": "b", "rank": 1}, None],
    "note": None,
}


@pytest.mark.parametrize(
    ("includes", "excludes", "kept"),
    [
        ((), (), _SOURCE),
        (("title",), (), {"title": "t"}),
        (("host",), (), {"host": {"name": "n", "port": 0}}),
        (("host.name",), (), {"host": {"name": "n"}}),
        (("host.p*",), (), {"host": {"port": 0}}),
        (("*e",), (), {"title": "t", "host": {"name": "n"}, "note": None}),
        (("tags.word",), (), {"tags": [{"word": "b"}]}),
        (("tags",), ("tags.word",), {"tags": ["a", {"rank": 1}, None]}),
        ((), ("host", "tags"), {"title": "t", "note": None}),
        ((), ("host.*",), {"title": "t", "host": {}, "tags": _SOURCE["tags"], "note": None}),
        (("host.*",), ("host.name",), {"host": {"port": 0}}),
        (("none", "ti*le", "t*i*t*e"), (), {"title": "t"}),
        (("titl", "itle", "t*tle*e", "tit*le*", "hos"), (), {"title": "t"}),
        (("ti*itle", "tl*ti"), (), {}),
    ],
)
def test_patterns_say_what_is_given_back(includes, excludes, kept):
    wanted = SourceFilter(includes=includes, excludes=excludes)
    assert wanted.apply(_SOURCE) == kept
    assert wanted.whole == (not includes and not excludes)


def test_what_is_shown_is_what_would_be_given_back():
    wanted = SourceFilter(includes=("host", "t*"), excludes=("tags", "*.port"))
    shown = {path for path in ("title", "host", "host.name", "host.port", "tags.word", "note")
             if wanted.shows(path)}  # fmt: skip
    assert shown == {"title", "host", "host.name"}
    assert not SourceFilter(wanted=False).shows("title")
    assert not SourceFilter(wanted=False).whole
    assert SourceFilter().shows("anything")


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ({"a": {"b": "x"}}, ["x"]),
        ({"a.b": "x"}, ["x"]),
        ({"a": [{"b": "x"}, {"b": ["y", [0]]}, {"c": 1}, 7]}, ["x", "y", 0]),
        ({"a": {"b": ["x", "y"]}}, ["x", "y"]),
        ({"a": {"b": None}, "a.b": [None, "x"]}, ["x"]),
        ({"a": "x"}, []),
        ({}, []),
        ({"a": {"b": False}}, [False]),
        ({"a": {"b": {"c": 1}}}, [{"c": 1}]),
    ],
)
def test_values_are_found_through_lists_and_names_with_dots(source, values):
    assert values_at(source, "a.b") == values


def test_a_path_of_three_names_is_found_however_they_are_joined():
    each = ({"a": {"b": {"c": 1}}}, {"a.b": {"c": 1}}, {"a": {"b.c": 1}}, {"a.b.c": 1}, [{"a": [{"b.c": 1}]}])
    assert [values_at({"list": one}, "list.a.b.c") for one in each] == [[1]] * 5
