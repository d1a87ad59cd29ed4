"""Words and JSON that workers make: the engine makes none, and finds and keeps what it would by its own."""

import os
from pathlib import Path

import pytest

from shinglefold.contracts.exclusive_writes import PreparesDocuments
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.ingest import Pipeline, default_definition, index_documents

_DOCUMENTS = [
    {
        "_id": str(number),
        "title": f"Озеро {number}",
        "body": f"Цапля стоит у воды, номер {number}. Серые цапли ждут.",
        "host": f"h{number}.example",
        "day": "2024-05-31",
        "note": {"of": "Ловля рыбы", "hidden": {"text": "не ищется"}},
        "several": ["Первые слова", "вторые слова"],
    }
    for number in range(40)
]
_PROPERTIES = {
    "host": {"type": "keyword"},
    "note": {"properties": {"hidden": {"type": "object", "enabled": False}}},
}
_QUERIES = (
    {"match": {"body": "цапля"}},
    {"match_phrase": {"body": "серая цапля"}},
    {"match": {"note.of": "рыба"}},
    {"match": {"several": "первое"}},
    {"match": {"title": "озера"}},
    {"term": {"host": "h7.example"}},
    {"match": {"note.hidden.text": "искать"}},
)


class _Watched:
    """A canonicalizer that notes in which processes it makes words for an index."""

    def __init__(self, real, folder: Path) -> None:
        self._real, self._folder = real, folder

    def __getattr__(self, name: str):
        return getattr(self._real, name)

    def text_batch(self, texts):
        if texts:
            (self._folder / str(os.getpid())).touch()
        return self._real.text_batch(texts)


def _found(engine: EmbeddedEngine) -> list:
    bodies = ({"query": query, "size": 50, "sort": ["_score", "_doc"]} for query in _QUERIES)
    return [
        [(hit["_id"], round(hit["_score"], 4)) for hit in engine.search("pages", body)["hits"]["hits"]]
        for body in bodies
    ]


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline.from_json(default_definition())


def test_workers_make_the_words_and_all_is_found_as_by_the_engine_s_own(tmp_path: Path, pipeline: Pipeline):
    processes = tmp_path / "processes"
    processes.mkdir()
    watched = _Watched(pipeline.tools.canonicalizer, processes)
    with EmbeddedEngine(tmp_path / "by-workers", watched) as engine:
        assert isinstance(engine, PreparesDocuments)
        summary = index_documents(engine, "pages", _DOCUMENTS, pipeline, properties=_PROPERTIES, workers=2)
        assert summary.indexed == len(_DOCUMENTS)
        by_workers = _found(engine)
        sources = [engine.get("pages", str(number)) for number in range(40)]
        mappings = engine.mappings("pages")
    assert list(processes.iterdir())
    assert not (processes / str(os.getpid())).exists()
    with EmbeddedEngine(tmp_path / "alone", pipeline.tools.canonicalizer) as engine:
        engine.create_index("pages", {**mappings, "properties": {**mappings["properties"]}}, {})
        for source in sources:
            assert source is not None
            engine.bulk([{"_index": "pages", "_id": source["_id"], "_source": source["_source"]}])
        engine.refresh("pages")
        assert _found(engine) == by_workers
        assert [engine.get("pages", str(number)) for number in range(40)] == sources
    assert [len(hits) for hits in by_workers] == [40, 40, 40, 40, 40, 1, 0]


@pytest.mark.long
def test_what_is_mapped_as_something_else_gets_no_words(tmp_path: Path, words):
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index(
            "pages",
            {
                "properties": {
                    "key": {"type": "keyword"},
                    "both": {"type": "keyword", "fields": {"text": {"type": "text"}}},
                    "stored": {"dynamic": False, "properties": {"known": {"type": "text"}}},
                    "off": {"type": "object", "enabled": False},
                }
            },
            {},
        )
        make = engine.document_preparer("pages", {})
        document = {
            "_id": "an id",
            "key": "a key",
            "both": "found both ways",
            "stored": {"known": "known text", "other": "other text"},
            "off": {"x": "not read"},
            "day": "2024-05-31T12:00:00Z",
            "new": ["new text", {"deep": "deep text"}],
        }
        (made,) = make([document])
        assert sorted(made.words) == ["deep text", "found both ways", "known text", "new text"]
        assert make([]) == []
        text = "a long text " * 200_000
        (made,) = make([{"body": text, "title": "short"}])
        assert made.words["short"] == "short"
        assert made.words[text] == text.strip()


def test_the_json_is_made_once_by_whoever_makes_the_words(tmp_path: Path, words, monkeypatch):
    document = {
        "title": "a title",
        "n": [1, 2, None],
        "x": 2.5,
        "_dedup": {"shingles": 4},
        "a.b": "c",
        "ім’я": "\x00",
    }
    with EmbeddedEngine(tmp_path, words) as engine:
        engine.create_index("pages", {}, {})
        (made,) = engine.document_preparer("pages", {})([{"_id": "x", **document}])
        assert made.source_and_head is not None
        action = {"_index": "pages", "_source": document, "_ready": made._replace(source_and_head=None)}
        engine.bulk([{**action, "_id": "by the engine"}])
        monkeypatch.setattr("shinglefold.engines.embedded.store.document_encoder._split_source", None)
        engine.bulk([{**action, "_id": "beforehand", "_ready": made}])
        for id_ in ("by the engine", "beforehand"):
            got = engine.get("pages", id_)
            assert got is not None
            assert got["_source"] == document
        engine.refresh("pages")
        hits = engine.search("pages", {"query": {"match": {"title": "title"}}})["hits"]["hits"]
        assert [hit["_source"] for hit in hits] == [document, document]


@pytest.mark.parametrize("value", [float("nan"), {1, 2}], ids=["NaN", "a set"])
def test_what_is_no_json_is_left_to_the_engine(tmp_path: Path, words, value):
    with EmbeddedEngine(tmp_path, words) as engine:
        (made,) = engine.document_preparer("pages", {})([{"title": value}])
    assert made.source_and_head is None
