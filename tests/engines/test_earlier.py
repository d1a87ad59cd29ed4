"""An index made by an earlier version, which kept heads in columns, is read and written as it is."""

import os
import shutil
from pathlib import Path

import pytest
from support.earlier import unpack_first_format

from shinglefold.engines.embedded import EmbeddedEngine

_TAGS = ["inner.tags.keyword"]


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """Twelve documents, the fourth of them deleted; heads of 10 to 2,000 bytes."""
    unpack_first_format(tmp_path)
    return tmp_path


def _source(number: int) -> dict:
    return {
        "n": number,
        "keys": [f"k{number % 4}", "all"],
        "body": f"page {number} of many",
        "inner": {"tags": [f"t{at:05d}" for at in range(number * 20)]},
    }


def _all(engine: EmbeddedEngine) -> dict[str, dict]:
    body = {"query": {"match": {"body": "page"}}, "size": 50, "sort": [{"n": "desc"}]}
    hits = engine.search("pages", body)["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


def test_it_is_read(earlier: Path, words):
    with EmbeddedEngine(earlier, words) as engine:
        engine.check("pages")
        assert _all(engine) == {str(n): _source(n) for n in range(12) if n != 3}
        keyed = engine.search("pages", {"query": {"term": {"keys": "k2"}}, "docvalue_fields": _TAGS})
        shown = {hit["_id"]: len(hit.get("fields", {}).get(*_TAGS, ())) for hit in keyed["hits"]["hits"]}
        assert shown == {"2": 40, "6": 120, "10": 200}


def test_it_is_written_and_given_more_columns(earlier: Path, words):
    wide = {**_source(20), **{f"c{number}": "cell" for number in range(60)}}
    with EmbeddedEngine(earlier, words) as engine:
        update = {"_op_type": "update", "_id": "5", "doc": {"inner": {"more": "of it"}}}
        actions = [{"_id": "2", "_op_type": "delete"}, update, {"_id": "20", "_source": _source(20)}]
        assert engine.bulk({"_index": "pages", **one} for one in actions).indexed == 3
        engine.refresh("pages")
        assert engine.bulk([{"_index": "pages", "_id": "21", "_source": wide}]).indexed == 1
    with EmbeddedEngine(earlier, words) as engine:
        expected = {str(n): _source(n) for n in (*range(12), 20) if n not in (2, 3)}
        expected["5"]["inner"]["more"] = "of it"
        assert _all(engine) == {**expected, "21": wide}
        engine.check("pages")
    assert sorted(os.listdir(earlier / "pages")) == ["catalog.json", "tantivy"]


def test_a_gate_may_stand_before_it_and_be_killed(earlier: Path, words, tmp_path: Path):
    with EmbeddedEngine(earlier, words) as engine, engine.held("pages"):
        with engine.deciding("pages", ("keys",)):
            engine.bulk([{"_index": "pages", "_id": "20", "_source": _source(20)}])
        shutil.copytree(
            earlier / "pages", tmp_path / "killed" / "pages", ignore=shutil.ignore_patterns(".tmp*")
        )
    with EmbeddedEngine(tmp_path / "killed", words) as engine:
        engine.check("pages")
        assert _all(engine) == {str(n): _source(n) for n in [*range(12), 20] if n != 3}
