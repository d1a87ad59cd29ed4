"""Mappings with dots in names, and mappings that change, as on OpenSearch 3.8, where each case was tried."""

import pytest

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import UnsupportedQuery


def _index(engine: EmbeddedEngine, source: object, **mappings: object) -> list[str]:
    """Index one document; return why it was refused, if it was."""
    if not engine.index_exists("pages"):
        engine.create_index("pages", mappings, {})
    result = engine.bulk([{"_index": "pages", "_id": "1", "_source": source}])
    engine.refresh("pages")
    return [failure.reason for failure in result.failures]


def _count(engine: EmbeddedEngine, query: dict) -> int:
    return engine.search("pages", {"query": query})["hits"]["total"]["value"]


@pytest.mark.parametrize("dynamic", ["true", "false", "strict"])
def test_a_mapped_name_with_dots_is_a_path(engine, dynamic):
    properties = {"a.b": {"type": "long"}, "a": {"properties": {"c.d": {"type": "keyword"}}}}
    for source in ({"a": {"b": 1, "c": {"d": "x"}}}, {"a.b": 1, "a.c.d": "x"}, {"a": {"b": 1, "c.d": "x"}}):
        assert _index(engine, source, dynamic=dynamic, properties=properties) == []
        assert _count(engine, {"bool": {"must": [{"term": {"a.b": 1}}, {"term": {"a.c.d": "x"}}]}}) == 1
    assert engine.mappings("pages")["properties"] == {
        "a": {"properties": {"b": {"type": "long"}, "c": {"properties": {"d": {"type": "keyword"}}}}}
    }


_LONG = {"type": "long"}


@pytest.mark.parametrize(
    "properties",
    [
        {"a": {"type": "keyword"}, "a.b": _LONG},
        {"a.b": _LONG, "a": {"type": "keyword"}},
        {"a": {"properties": {"b": _LONG}}, "a.b": {"type": "keyword"}},
        {"a": {"type": "text", "fields": {"b": {"type": "keyword"}}}, "a.b": _LONG},
        {"a": {"type": "text", "fields": {"b.c": {"type": "keyword"}}}},
        {"a": {}},
        {"a": {"dynamic": "strict"}},
        {".a": _LONG},
        {"a.": _LONG},
        {"a..b": _LONG},
        {"a. .b": _LONG},
        {"_doc_count": _LONG},
    ],
)
def test_a_mapping_that_contradicts_itself_or_names_nothing_is_refused(engine, properties):
    with pytest.raises(
        UnsupportedQuery, match=r"make a new index|expected a name|type is missing|dots|metadata"
    ):
        engine.create_index("pages", {"properties": properties}, {})


@pytest.mark.parametrize("meta", [5, None, []])
def test_meta_is_an_object(engine, meta):
    with pytest.raises(UnsupportedQuery, match="_meta: expected an object"):
        engine.create_index("pages", {"_meta": meta}, {})


_MAPPED = {"k": {"type": "keyword"}, "o": {"properties": {"x": _LONG}}}


@pytest.mark.parametrize(
    "properties",
    [
        {"o": {"type": "keyword"}},
        {"o": {"type": "object", "enabled": False}},
        {"k": {"properties": {"z": _LONG}}},
        {"k.z": _LONG},
        {"k": {"type": "object", "enabled": False}},
        {"o.x": {"type": "keyword"}},
    ],
)
def test_no_field_becomes_another(engine, properties):
    engine.create_index("pages", {"properties": _MAPPED}, {})
    with pytest.raises(UnsupportedQuery, match="stays so; make a new index"):
        engine.put_mappings("pages", {"properties": {"new": _LONG, **properties}})
    assert engine.mappings("pages")["properties"] == _MAPPED


def test_put_mappings_changes_the_options_that_it_names(engine):
    engine.create_index("pages", {"properties": _MAPPED, "_meta": {"a": 1}}, {})
    strict = {"o": {"type": "object", "dynamic": "strict"}, "n.m": {"type": "object", "dynamic": "false"}}
    engine.put_mappings("pages", {"dynamic": "false", "date_detection": False, "properties": strict})
    assert engine.mappings("pages") == {
        "properties": {
            "k": {"type": "keyword"},
            "o": {"properties": {"x": _LONG}, "dynamic": "strict"},
            "n": {"properties": {"m": {"type": "object", "dynamic": "false"}}},
        },
        "_meta": {"a": 1},
        "dynamic": "false",
        "date_detection": False,
    }
    assert "strict" in _index(engine, {"o": {"y": 1}})[0]
    assert _index(engine, {"new": 1, "n": {"m": {"z": 1}}}) == []
    assert "new" not in engine.mappings("pages")["properties"]


@pytest.mark.parametrize("source", [{"a.b": 1}, {"a.b.c": "x"}, {"a": {"b": 1}}, {"a": 5, "a.b": "y"}])
def test_a_disabled_object_is_unread_under_a_name_with_dots(engine, source):
    properties = {"a": {"type": "object", "enabled": False}}
    assert _index(engine, source, properties=properties) == []
    assert engine.mappings("pages")["properties"] == properties


@pytest.mark.parametrize("value", [None, [], [None], [[], None]])
def test_a_strict_mapping_refuses_new_names_without_a_value(engine, value):
    known = {"k": {"type": "keyword"}, "o": {"properties": {}}}
    assert _index(engine, {"k": value, "o": value}, dynamic="strict", properties=known) == []
    assert "strict" in _index(engine, {"new": value})[0]
    assert "strict" in _index(engine, {"o": {"new": value}})[0]


@pytest.mark.parametrize("source", [{".a": 1}, {"a.": 1}, {"a": {" ": 1}}, {"a. .b": 1}, {"a": {"": 1}}])
def test_a_path_without_a_name_is_refused(engine, source):
    assert "is not a valid field name" in _index(engine, source)[0]
