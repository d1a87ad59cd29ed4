"""A text of any length is found and read, and only its beginning is looked through for words to mark."""

from pathlib import Path

import pytest

from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.model.values import Token

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
