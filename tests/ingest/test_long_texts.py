"""Long texts on their way into an index: compressed, and what is stored and found is the same."""

import json
from pathlib import Path

import pytest

from shinglefold import long_texts
from shinglefold.canon import pieces
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Pipeline, default_definition, index_documents, replay

_WORDS = [
    "цапля",
    "стоит",
    "у",
    "серой",
    "воды",
    "и",
    "ждёт",
    "рыбу",
    "heron",
    "waits",
    "for",
    "a",
    "fish",
    "1,500",
    "раз",
]
_BODY = "\n".join(" ".join([*_WORDS[n % 7 :], f"слово{n}"]) + ("  " if n % 3 else "\n") for n in range(400))
_DOCUMENTS = [
    {"_id": "long", "title": "Серые цапли", "body": _BODY, "lang": "ru"},
    {"_id": "clean", "title": "Без пустых строк", "body": " ".join(_BODY.split()), "note": _BODY},
    {"_id": "short", "title": "Коротко", "body": "Цапля ждёт рыбу у воды."},
    {"_id": "broken", "title": 7, "body": _BODY},
]
_QUERIES = (
    {"match": {"body": "цапля слово399"}},
    {"match_phrase": {"body": "слово131 ждёт"}},
    {"match_phrase": {"note": "слово250"}},
    {"match": {"title": "цапли рыба"}},
)


@pytest.fixture
def small(monkeypatch):
    """Texts that are long with a thousand characters, in pieces of 700, and made into words in pieces too."""
    monkeypatch.setattr(long_texts, "LONG", 1000)
    monkeypatch.setattr(long_texts, "_PIECE", 700)
    for name, characters in (("LONG", 1000), ("PIECE", 500), ("REACH", 80)):
        monkeypatch.setattr(pieces, name, characters)


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline.from_json(default_definition())


def _run(folder: Path, pipeline: Pipeline, documents, workers: int):
    letters = folder / "letters.jsonl"
    folder.mkdir()
    with EmbeddedEngine(folder / "engine", pipeline.tools.canonicalizer) as engine:
        summary = index_documents(engine, "pages", documents, pipeline, workers=workers, dead_letters=letters)
        bodies = ({"query": query, "sort": ["_score", "_doc"]} for query in _QUERIES)
        found = [
            [(hit["_id"], round(hit["_score"], 5), hit["_source"]) for hit in answer["hits"]["hits"]]
            for answer in (engine.search("pages", body) for body in bodies)
        ]
    return summary, found, [json.loads(line) for line in letters.read_text().splitlines()]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_stored_found_and_refused_is_the_same(tmp_path, pipeline, workers, small, monkeypatch):
    summary, found, letters = _run(tmp_path / "packed", pipeline, _DOCUMENTS, workers)
    monkeypatch.setattr(long_texts, "LONG", 1 << 30)
    plain_summary, plain_found, plain_letters = _run(tmp_path / "plain", pipeline, _DOCUMENTS, workers)
    assert found == plain_found
    assert [len(hits) for hits in found] == [3, 2, 1, 1]
    assert letters == plain_letters
    assert [letter["document"]["body"] for letter in letters] == [_BODY]
    assert (summary.indexed, summary.failed) == (plain_summary.indexed, plain_summary.failed) == (3, 1)


def test_letters_of_long_texts_are_tried_again(tmp_path, pipeline, small):
    _run(tmp_path / "packed", pipeline, _DOCUMENTS, 2)
    (record,) = replay(tmp_path / "packed" / "letters.jsonl")
    assert record.document == _DOCUMENTS[3]


def test_whoever_gives_documents_keeps_them_as_they_are(tmp_path, pipeline, small):
    given = [dict(document) for document in _DOCUMENTS]
    _run(tmp_path / "packed", pipeline, given, 2)
    assert given == _DOCUMENTS
