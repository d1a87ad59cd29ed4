"""Documents without their long parts, and long ones."""

from pathlib import Path

import pytest

from shinglefold.documents import SourceFilter
from shinglefold.engines.embedded import CommitLimits, EmbeddedEngine
from shinglefold.engines.embedded.store.document_encoder import StoredSource, encode_source
from shinglefold.engines.embedded.store.write_ahead_log import Change, Memtable, WriteAheadLog, read_journal
from shinglefold.model.values import Token


@pytest.mark.parametrize("lengths", [(0, 1, 7, 8, 9), (900, 1100, 5, 50_000), (2000, 3000)])
def test_objects_of_any_length_come_back(engine: EmbeddedEngine, lengths):
    engine.create_index("pages", {"properties": {"inner": {"properties": {"tag": {"type": "keyword"}}}}}, {})
    sources = {f"id-{length}": {"inner": _tags(length), "n": length} for length in lengths}
    for id_, source in sources.items():
        engine.bulk([{"_index": "pages", "_id": id_, "_source": source}])
        engine.refresh("pages")
    body = {"_source": False, "docvalue_fields": ["inner.tag"], "size": 10}
    hits = engine.search("pages", body)["hits"]["hits"]
    shown = {hit["_id"]: "".join(hit.get("fields", {}).get("inner.tag", [])) for hit in hits}
    assert {id_: len(text) for id_, text in shown.items()} == {f"id-{n}": 9 * -(-n // 7) for n in lengths}
    for id_, source in sources.items():
        assert engine.get("pages", id_)["_source"] == source


def _tags(length: int) -> dict:
    """Return as many tags as make up about a length, each different."""
    return {"tag": [f"ї{number:08d}" for number in range(-(-length // 7))]}


def test_ids_come_with_documents_that_have_no_object(engine: EmbeddedEngine):
    engine.create_index("pages", {}, {})
    ids = {"a", "ї" * 200, "x" * 512, '"\\ ', "\u2028"}
    engine.bulk({"_index": "pages", "_id": id_, "_source": {}} for id_ in ids)
    engine.refresh("pages")
    assert {hit["_id"] for hit in engine.search("pages", {"_source": False})["hits"]["hits"]} == ids
    by_id = {"query": {"ids": {"values": list(ids)}}}
    assert {hit["_id"] for hit in engine.search("pages", by_id)["hits"]["hits"]} == ids


@pytest.mark.parametrize(
    "wanted", ["inner", "inner.tag", "n", "inner.none", "flat", "flat.n", "in*", "none", "inner.deep"]
)
def test_a_part_of_the_source_is_the_same_whether_the_rest_is_read_or_not(engine: EmbeddedEngine, wanted):
    engine.create_index("pages", {"properties": {"inner": {"properties": {"tag": {"type": "keyword"}}}}}, {})
    sources = {
        "a": {"inner": {"tag": "x", "deep": {"n": 1}}, "n": 1},
        "b": {"inner": None, "n": 2},
        "c": {"n": 3, "flat.n": 5},
        "d": {"inner": [{"tag": "x"}, {"tag": ["y", None]}], "flat": {"n": None}},
        "e": {"inner": [], "inner.tag": "z"},
    }
    engine.bulk([{"_index": "pages", "_id": id_, "_source": source} for id_, source in sources.items()])
    engine.refresh("pages")
    asked = SourceFilter(includes=(wanted,))
    hits = engine.search("pages", {"_source": [wanted], "size": 10})["hits"]["hits"]
    assert {hit["_id"]: hit["_source"] for hit in hits} == {
        id_: asked.apply(source) for id_, source in sources.items()
    }


_LONGEST = 1_000_000


class Counting:
    """An analyser that knows how long the texts were that it saw."""

    def __init__(self) -> None:
        self.lengths: list[int] = []

    def __call__(self, text: str) -> list[Token]:
        self.lengths.append(len(text))
        words = text.split(" ")
        starts = [0]
        for word in words:
            starts.append(starts[-1] + len(word) + 1)
        return [Token(word, at, at + len(word), "any") for word, at in zip(words, starts, strict=False)]


@pytest.fixture
def long(tmp_path: Path):
    words = Counting()
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {}, {})
        text = " ".join(["early", *["filler"] * 200_000, "late"])
        assert len(text) > _LONGEST
        result = engine.bulk([{"_index": "pages", "_id": "1", "_source": {"body": text, "o": {"n": 7}}}])
        assert result.indexed == 1
        engine.refresh("pages")
        words.lengths.clear()
        yield engine, words


@pytest.mark.long
def test_the_end_of_a_long_text_is_found_and_its_beginning_highlighted(long):
    engine, words = long
    body = {
        "query": {"match": {"body": "early late"}},
        "highlight": {"fields": {"body": {}}},
        "_source": False,
    }
    (hit,) = engine.search("pages", body)["hits"]["hits"]
    assert "<em>early</em>" in hit["highlight"]["body"][0]
    assert max(words.lengths) == _LONGEST
    assert "late" not in str(hit["highlight"])
    body["query"] = {"match": {"body": "late"}}
    (hit,) = engine.search("pages", body)["hits"]["hits"]
    assert "highlight" not in hit


def test_a_hit_without_its_text_is_read_without_it(long, monkeypatch):
    engine, _ = long

    def not_wanted(*_):
        raise AssertionError("the page was read")

    monkeypatch.setattr("shinglefold.engines.embedded.search.search.stored_main", not_wanted)
    body = {"query": {"match": {"body": "late"}}, "_source": False, "docvalue_fields": ["o.n"]}
    (hit,) = engine.search("pages", body)["hits"]["hits"]
    assert (hit["_id"], hit["fields"]) == ("1", {"o.n": [7]})


def _taken(*rounds):
    """Return what rounds of documents leave, by id and the value of ``word``, each about to be committed."""
    kept = Memtable(frozenset({"word"}))
    for documents in rounds:
        for id_, word in documents.items():
            kept.put(
                id_,
                StoredSource(b'{"word":"%b"}' % word.encode(), b'["%b",{}]' % id_.encode()),
                {"word": word},
            )
        kept.freeze()
    return kept


def test_of_two_versions_that_wait_for_their_commit_the_later_one_counts():
    kept = _taken({"a": "x", "b": "x"}, {"a": "y"})
    assert kept.sources(["a", "b", "c"]) == {"a": {"word": "y"}, "b": {"word": "x"}}
    kept.put("a", None, {})
    assert (kept["a"], kept["b"].load()) == (None, {"word": "x"})


def test_documents_of_one_value_are_all_told():
    kept = _taken({"a": "x"}, {"b": "x", "c": "y"}, {"d": "x"})
    kept.put("e", StoredSource(b'{"word":"x"}', b'["e",{}]'), {"word": "x"})
    assert kept.ids_by_value("word", {"x", "y", "z"}) == {"x": ["a", "b", "d", "e"], "y": ["c"]}
    kept.discard_frozen()
    assert kept.ids_by_value("word", {"x", "y"}) == {"x": ["e"]}
    assert "a" not in kept


_LINES = 'a long "text" with \\ and \ud800, ё or 中\n' * (1 << 16)


def test_a_long_text_comes_back_as_it_was():
    given = {'na"me': _LINES, "short": ["x", 1], "inside": {"a": [1.5]}, "none": None, "назва": _LINES}
    made = encode_source("a", given)
    assert made.is_external
    assert len(made.main) < len(_LINES)
    assert made.load() == given


def test_a_journal_gives_long_texts_back_too(tmp_path):
    given = {"body": _LINES, "inside": {"a": 1}}
    journal = WriteAheadLog(tmp_path)
    journal.write([Change("a", encode_source("a", given)), Change("b", None)])
    journal.close()
    assert [(one.id, one.source and one.source.load()) for one in read_journal(tmp_path)] == [
        ("a", given),
        ("b", None),
    ]


def test_many_documents_are_read_as_they_are_now_though_no_refresh_has_come(tmp_path, words):
    with EmbeddedEngine(tmp_path, words, CommitLimits(actions=2)) as engine:
        engine.create_index("i", {}, {})
        for number in range(3):
            engine.bulk([{"_index": "i", "_id": f"{number}", "_source": {"n": number}}])
        assert engine.get_all("i", ["0", "1", "2", "3"]) == [{"n": 0}, {"n": 1}, {"n": 2}, None]
