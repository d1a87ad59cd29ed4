"""Documents of many fields, names with dots, and mappings that change, as on OpenSearch 3.8."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.one_document import count, index_one

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.errors import UnsupportedQuery

_KILLED = """
import os, sys
from pathlib import Path
from shinglefold.engines.embedded import EmbeddedEngine

left = int(sys.argv[2])
def killed(real):
    def call(self, *arguments):
        global left
        if ".tantivy" in str(self) + str(arguments) and (left := left - 1) < 0:
            os._exit(9)
        return real(self, *arguments)
    return call

engine = EmbeddedEngine(sys.argv[1], str.split)
engine.create_index("pages", {}, {})
engine.bulk([{"_index": "pages", "_id": "first", "_source": {"n": 1}}])
engine.refresh("pages")
Path.rename = killed(Path.rename)
engine.bulk([{"_index": "pages", "_id": "wide", "_source": {f"c{n}": "x" for n in range(60)}}])
engine.refresh("pages")
"""


def _row(number: int, columns: int) -> dict:
    cells = {f"c{column}": f"cell {number} {column}" for column in range(columns)}
    return {"_index": "pages", "_id": str(number), "_source": {"number": number, **cells}}


def _found(engine: EmbeddedEngine, query: dict) -> list[str]:
    hits = engine.search("pages", {"query": query, "size": 100, "sort": ["number"]})["hits"]["hits"]
    return [hit["_id"] for hit in hits]


@pytest.mark.parametrize("columns", [40, 400])
def test_a_table_of_many_columns_is_indexed_and_found_by_each(tmp_path: Path, words, columns):
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {}, {})
        result = engine.bulk(_row(number, columns) for number in range(5))
        assert (result.indexed, result.failures) == (5, ())
    with EmbeddedEngine(tmp_path, words) as engine:
        for column in (0, columns // 2, columns - 1):
            assert _found(engine, {"match_phrase": {f"c{column}": f"3 {column}"}}) == ["3"]
            assert _found(engine, {"term": {f"c{column}.keyword": f"cell 2 {column}"}}) == ["2"]
        assert engine.get("pages", "4")["_source"] == _row(4, columns)["_source"]
        engine.check("pages")


def test_fields_that_come_late_leave_what_was_there_as_it_was(tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words) as engine, EmbeddedEngine(tmp_path, words) as reader:
        engine.create_index("pages", {"_meta": {"a": 1}}, {})
        engine.bulk(_row(number, 3) for number in range(20))
        engine.bulk([{"_index": "pages", "_id": "7", "_op_type": "delete"}])
        engine.refresh("pages")
        pit = engine.open_pit("pages")
        assert len(_found(reader, {"match": {"c1": "cell"}})) == 19
        engine.bulk([_row(30, 3), _row(31, 100)])
        assert len(_found(engine, {"match": {"c1": "cell"}})) == 19
        engine.refresh("pages")
        for one in (engine, reader):
            assert len(_found(one, {"match": {"c1": "cell"}})) == 21
            assert _found(one, {"match": {"c99": "cell"}}) == ["31"]
            assert one.mappings("pages")["_meta"] == {"a": 1}
        old = engine.search(None, {"pit": {"id": pit}, "size": 100})
        assert old["hits"]["total"]["value"] == 19
        engine.put_mappings("pages", {"properties": {f"k{n}": {"type": "keyword"} for n in range(300)}})
        assert _found(engine, {"match": {"c99": "cell"}}) == ["31"]


def test_there_is_a_limit_and_it_is_told(engine: EmbeddedEngine):
    engine.create_index("pages", {}, {})
    (failure,) = engine.bulk([_row(0, 1500)]).failures
    assert failure.status == 400
    assert "processor remove" in failure.reason
    assert '"enabled": false' in failure.reason
    assert engine.bulk([_row(1, 30)]).indexed == 1


def test_objects_that_are_not_searched_take_no_columns(engine: EmbeddedEngine):
    row = {name: value for name, value in _row(0, 1500)["_source"].items() if name != "number"}
    engine.create_index("pages", {"properties": {"cells": {"type": "object", "enabled": False}}}, {})
    action = {"_index": "pages", "_id": "0", "_source": {"number": 0, "cells": row}}
    assert engine.bulk([action]).indexed == 1
    assert engine.get("pages", "0")["_source"]["cells"] == row


@pytest.mark.long(every=3)
@pytest.mark.parametrize("left", [0, 1, 2])
def test_killed_while_columns_are_added_it_is_the_old_index_or_the_new(tmp_path: Path, words, left):
    killed = subprocess.run([sys.executable, "-c", _KILLED, tmp_path, str(left)], check=False)
    assert killed.returncode == 9
    assert (tmp_path / "pages" / "tantivy").exists() == (left < 2)
    with EmbeddedEngine(tmp_path, words) as engine:
        assert engine.get("pages", "first") is not None
        assert engine.bulk([_row(1, 60)]).indexed == 1
        engine.refresh("pages")
        assert _found(engine, {"match": {"c59": "cell"}}) == ["1"]
        assert engine.search("pages", {"size": 0})["hits"]["total"]["value"] == 2
        engine.check("pages")
    assert sorted(os.listdir(tmp_path / "pages")) == ["catalog.json", "heads", "tantivy"]


@pytest.mark.parametrize("dynamic", ["true", "false", "strict"])
def test_a_mapped_name_with_dots_is_a_path(engine, dynamic):
    properties = {"a.b": {"type": "long"}, "a": {"properties": {"c.d": {"type": "keyword"}}}}
    for source in ({"a": {"b": 1, "c": {"d": "x"}}}, {"a.b": 1, "a.c.d": "x"}, {"a": {"b": 1, "c.d": "x"}}):
        assert index_one(engine, source, dynamic=dynamic, properties=properties) == []
        assert count(engine, {"bool": {"must": [{"term": {"a.b": 1}}, {"term": {"a.c.d": "x"}}]}}) == 1
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
    engine.put_mappings("pages", {"properties": _MAPPED})
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
    assert "strict" in index_one(engine, {"o": {"y": 1}})[0]
    assert index_one(engine, {"new": 1, "n": {"m": {"z": 1}}}) == []
    assert "new" not in engine.mappings("pages")["properties"]


@pytest.mark.parametrize("source", [{"a.b": 1}, {"a.b.c": "x"}, {"a": {"b": 1}}, {"a": 5, "a.b": "y"}])
def test_a_disabled_object_is_unread_under_a_name_with_dots(engine, source):
    properties = {"a": {"type": "object", "enabled": False}}
    assert index_one(engine, source, properties=properties) == []
    assert engine.mappings("pages")["properties"] == properties


@pytest.mark.parametrize("value", [None, [], [None], [[], None]])
def test_a_strict_mapping_refuses_new_names_without_a_value(engine, value):
    known = {"k": {"type": "keyword"}, "o": {"properties": {}}}
    assert index_one(engine, {"k": value, "o": value}, dynamic="strict", properties=known) == []
    assert "strict" in index_one(engine, {"new": value})[0]
    assert "strict" in index_one(engine, {"o": {"new": value}})[0]


@pytest.mark.parametrize("source", [{".a": 1}, {"a.": 1}, {"a": {" ": 1}}, {"a. .b": 1}, {"a": {"": 1}}])
def test_a_path_without_a_name_is_refused(engine, source):
    assert "is not a valid field name" in index_one(engine, source)[0]
