"""Documents with long texts, which are kept outside of tantivy: what happens to others happens to them."""

import random
import shutil
from pathlib import Path

import pytest

from shinglefold import long_texts
from shinglefold.engines.embedded import EmbeddedEngine, volumes
from shinglefold.errors import EngineUnavailable
from shinglefold.local_engines import Ready
from shinglefold.long_texts import LongText

#: A text of many lines, with what JSON escapes, and one half of a pair that is no Unicode.
_LINES = "".join(f'line {number}: "quoted" \\ and\ttabs, серые цапли ждут\n' for number in range(200))
_MANY = {f"c{number}": "cell" for number in range(60)}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Texts that are long with a thousand characters, in pieces of 700; volumes of 20,000 bytes."""
    monkeypatch.setattr(long_texts, "LONG", 1000)
    monkeypatch.setattr(long_texts, "_PIECE", 700)


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
    with EmbeddedEngine(four, words) as engine, engine.held("pages"):
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
    with EmbeddedEngine(four, words) as engine, pytest.raises(EngineUnavailable, match="another content"):
        engine.check("pages")


def test_a_compressed_text_is_what_it_is_compressed_or_not(tmp_path: Path, words):
    mappings = {
        "properties": {
            "body": {"type": "text", "fields": {"key": {"type": "keyword", "ignore_above": 100}}},
            "file": {"type": "binary"},
            "off": {"type": "text", "index": False},
            "day": {"type": "date"},
            "n": {"type": "long"},
        }
    }
    text, file = f"page {_LINES}", "aGVyb25z" * 300
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", mappings, {})
        plain = {"body": text, "file": file, "off": text, "new": text}
        _put(engine, "plain", plain)
        _put(engine, "packed", {name: LongText.of(value) for name, value in plain.items()})
        engine.refresh("pages")
        assert _stored(engine, "packed") == _stored(engine, "plain") == plain
        for field in ("body", "new"):
            query = {"query": {"match_phrase": {field: "серые цапли ждут line 101"}}}
            hits = engine.search("pages", query)["hits"]["hits"]
            assert {hit["_id"]: hit["_score"] for hit in hits} == dict.fromkeys(
                ("plain", "packed"), hits[0]["_score"]
            )
        assert not engine.search("pages", {"query": {"exists": {"field": "body.key"}}})["hits"]["hits"]
        for field in ("day", "n", "file"):
            refused = [
                engine.bulk([{"_index": "pages", "_id": "x", "_source": {field: value}}]).failures[0]
                for value in (text, LongText.of(text))
            ]
            assert [one.status for one in refused] == [400, 400]


def test_words_that_are_brought_are_the_words(tmp_path: Path, words):
    text = LongText.of(_LINES)
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {"properties": {"body": {"type": "text"}}}, {})
        made = LongText.joined(["her", "on a", "b"])
        _put(engine, "1", {"body": text}, _ready=Ready({text: made}))
        engine.refresh("pages")
        found = engine.search("pages", {"query": {"term": {"body": "heron"}}})["hits"]["hits"]
        assert [hit["_source"]["body"] for hit in found] == [_LINES]


def test_one_that_came_compressed_is_read_and_journalled_before_it_is_committed(
    four: Path, words, tmp_path_factory, late
):
    killed = tmp_path_factory.mktemp("killed")
    text = f"page 4\n{_LINES}"
    given = {"n": 4, "body": LongText.of(text), "list": ["first", "a"], "inner": {"n": 4}}
    given["note"] = LongText.of(_LINES)
    expected = {**given, "body": text, "note": _LINES, "list": ["first", "a"]}
    with EmbeddedEngine(four, words) as engine, engine.held("pages"):
        with engine.deciding("pages", ("title",)):
            _put(engine, "4", given)
            # Whoever gave it may go on with what is in it.
            given["list"].append("b")
            assert _stored(engine, "4") == expected
        shutil.copytree(four / "pages", killed / "pages", ignore=shutil.ignore_patterns(".tmp*"))
    for folder in (four, killed):
        with EmbeddedEngine(folder, words) as engine:
            assert _stored(engine, "4") == expected
            engine.check("pages")


def test_words_that_are_brought_serve_every_field_of_a_text(tmp_path: Path, words):
    text, made = LongText.of(_LINES), LongText.joined(["heron", " pond"])
    body = {"type": "text", "fields": {"again": {"type": "text"}}}
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {"properties": {"body": body, "copy": {"type": "text"}}}, {})
        brought = {text: made}
        _put(engine, "1", {"body": text, "copy": LongText.of(_LINES)}, _ready=Ready(brought))
        engine.refresh("pages")
        for field in ("body", "body.again", "copy"):
            found = engine.search("pages", {"query": {"match_phrase": {field: "heron pond"}}})
            assert [hit["_id"] for hit in found["hits"]["hits"]] == ["1"]
        # Nobody holds them any longer than tantivy wants them.
        assert not brought
