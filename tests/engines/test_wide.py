"""Documents of many fields, as wide tables have them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shinglefold.engines.embedded import EmbeddedEngine

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
