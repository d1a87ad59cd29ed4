"""Long documents, which are kept outside of tantivy: what happens to others happens to them."""

import random
import shutil
from pathlib import Path

import pytest

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.engines.embedded.store import document_encoder as sources
from shinglefold.engines.embedded.store import record_files as volumes
from shinglefold.errors import EngineUnavailable

#: A text of many lines, with what JSON escapes, and one half of a pair that is no Unicode.
_LINES = "".join(f'line {number}: "quoted" \\ and\ttabs, серые цапли ждут\n' for number in range(200))
_MANY = {f"c{number}": "cell" for number in range(60)}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Documents that are long with a thousand bytes of JSON."""
    monkeypatch.setattr(sources, "_LONG", 1000)


def _put(engine: EmbeddedEngine, id_: str, source: dict, **words) -> None:
    result = engine.bulk([{"_index": "pages", "_id": id_, "_source": source, **words}])
    assert not result.failures, result.failures


def _stored(engine: EmbeddedEngine, id_: str) -> dict:
    found = engine.get("pages", id_)
    assert found is not None
    return found["_source"]


def _source(number: int) -> dict:
    inner = {"inner": {"n": number}} if number % 2 else {}
    return {"n": number, "body": f"page {number}\n{_LINES}", "title": f"title {number}", **inner}


def _all(engine: EmbeddedEngine) -> dict[str, dict]:
    body = {"query": {"match": {"body": "page"}}, "size": 50, "sort": ["n"]}
    return {hit["_id"]: hit["_source"] for hit in engine.search("pages", body)["hits"]["hits"]}


@pytest.fixture
def four(tmp_path: Path, words) -> Path:
    """An index of four documents: the last is short."""
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {}, {})
        for number in range(3):
            _put(engine, str(number), _source(number))
        _put(engine, "3", {"n": 3, "body": "page 3", "title": "short"})
    return tmp_path


_EXPECTED = {**{str(number): _source(number) for number in range(3)},
             "3": {"n": 3, "body": "page 3", "title": "short"}}  # fmt: skip


def test_they_come_back_whole_committed_or_not_and_only_what_is_asked_for(four: Path, words):
    with EmbeddedEngine(four, words) as engine:
        engine.check("pages")
        assert _all(engine) == _EXPECTED
        assert _stored(engine, "1") == _source(1)
        _put(engine, "4", _source(4))
        assert _stored(engine, "4") == _source(4)
        engine.refresh("pages")
        assert _all(engine) == {**_EXPECTED, "4": _source(4)}
        body = {"query": {"match_phrase": {"body": "line 150"}}, "_source": ["title"], "sort": ["n"]}
        shown = engine.search("pages", {**body, "highlight": {"fields": {"body": {}}}})["hits"]["hits"]
        assert [hit["_source"] for hit in shown] == [{"title": f"title {n}"} for n in (0, 1, 2, 4)]
        assert "<em>line</em>" in shown[0]["highlight"]["body"][0]


def test_tantivy_does_not_store_them(four: Path):
    stored = sum(file.stat().st_size for file in (four / "pages" / "tantivy").glob("*.store"))
    heads = sum(file.stat().st_size for file in (four / "pages" / "heads").iterdir())
    assert stored < heads < 3 * len(_LINES)


def test_they_are_updated_deleted_and_written_over(four: Path, words):
    with EmbeddedEngine(four, words) as engine:
        actions = [
            {"_op_type": "update", "_id": "0", "doc": {"title": "another", "inner": {"more": "of it"}}},
            {"_op_type": "delete", "_id": "1"},
            {"_id": "2", "_source": {"n": 2, "body": "page, now short"}},
            {"_id": "3", "_source": _source(3)},
        ]
        assert engine.bulk({"_index": "pages", **action} for action in actions).indexed == 4
        engine.refresh("pages")
        assert _all(engine) == {
            "0": {**_source(0), "title": "another", "inner": {"more": "of it"}},
            "2": {"n": 2, "body": "page, now short"},
            "3": _source(3),
        }


def test_they_stay_when_an_index_is_given_more_columns(four: Path, words):
    with EmbeddedEngine(four, words) as engine:
        _put(engine, "4", {**_source(4), **_MANY})
        engine.refresh("pages")
        assert _all(engine) == {**_EXPECTED, "4": {**_source(4), **_MANY}}
        engine.check("pages")
    with EmbeddedEngine(four, words) as engine:
        assert _all(engine) == {**_EXPECTED, "4": {**_source(4), **_MANY}}


@pytest.mark.long
def test_space_of_those_written_over_is_given_back_and_the_others_move(four: Path, words, monkeypatch):
    monkeypatch.setattr(volumes, "VOLUME", 20_000)
    noise = random.Random(7)
    with EmbeddedEngine(four, words) as engine:
        for _ in range(60):
            _put(engine, "3", {**_source(3), "noise": noise.randbytes(2000).hex()})
            engine.refresh("pages")
        _put(engine, "3", _EXPECTED["3"])
    with EmbeddedEngine(four, words) as engine:
        assert _all(engine) == _EXPECTED
        engine.check("pages")
    assert len(list((four / "pages" / "heads").iterdir())) < 6


def test_a_journal_holds_them_and_a_killed_writer_s_are_there(four: Path, words, tmp_path_factory, late):
    killed = tmp_path_factory.mktemp("killed")
    with EmbeddedEngine(four, words) as engine, engine.lease("pages"):
        with engine.deciding("pages", ("title",)):
            _put(engine, "4", _source(4))
        shutil.copytree(four / "pages", killed / "pages", ignore=shutil.ignore_patterns(".tmp*"))
    with EmbeddedEngine(killed, words) as engine:
        assert _all(engine) == {**_EXPECTED, "4": _source(4)}
        engine.check("pages")


@pytest.mark.parametrize("offset", [40, 200, -10])
def test_damage_to_them_is_told(four: Path, words, offset):
    (file,) = (four / "pages" / "heads").iterdir()
    content = bytearray(file.read_bytes())
    content[offset] ^= 255
    file.write_bytes(content)
    with EmbeddedEngine(four, words) as engine, pytest.raises(EngineUnavailable, match="has changed since"):
        engine.check("pages")
