"""Long texts are indexed whole, and refused if they are too long."""

import json
from pathlib import Path

import pytest

from shinglefold import documents as blocks
from shinglefold.engines.embedded import EmbeddedEngine
from shinglefold.grouping import Gate
from shinglefold.ingest import Pipeline, default_definition, index_documents

_LONG = "Цапля стоит у серой воды и ждёт рыбу. " * 60_000
_TOO_LONG = "а" * (blocks.MAX_TEXT + 1)
_REASON = (
    "[body] has 20,000,001 characters, and a text may have at most 20,000,000: "
    "split it into several documents, or leave the field out"
)


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline.from_json(default_definition())


@pytest.mark.long(every=2)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_long_text_is_found_and_kept_whole(tmp_path: Path, pipeline, workers):
    documents = [{"_id": "1", "body": f"{_LONG}Конец ловли."}, {"_id": "2", "body": "Коротко"}]
    with EmbeddedEngine(tmp_path, pipeline.tools.canonicalizer) as engine:
        assert index_documents(engine, "pages", documents, pipeline, workers=workers).indexed == 2
        (hit,) = engine.search("pages", {"query": {"match_phrase": {"body": "конец ловли"}}})["hits"]["hits"]
        assert hit["_source"]["body"] == documents[0]["body"]
        engine.check("pages")


@pytest.mark.long
def test_a_text_that_is_too_long_ends_in_the_dead_letters_whole(tmp_path: Path, pipeline):
    letters = tmp_path / "letters.jsonl"
    documents = [{"_id": "long", "body": _TOO_LONG}, {"_id": "short", "body": "Коротко"}]
    with EmbeddedEngine(tmp_path / "engine", pipeline.tools.canonicalizer) as engine:
        summary = index_documents(engine, "pages", documents, pipeline, workers=2, dead_letters=letters)
        assert (summary.indexed, summary.failed) == (1, 1), summary.stopped
    (letter,) = [json.loads(line) for line in letters.read_text("utf-8").splitlines()]
    assert (letter["document"], letter["reason"]) == (documents[0], _REASON)


def test_a_gate_fails_it_too(tmp_path: Path, pipeline):
    with EmbeddedEngine(tmp_path, pipeline.tools.canonicalizer) as engine:
        index_documents(engine, "pages", [{"_id": "1", "body": "Коротко"}], pipeline, workers=1)
        with Gate(engine, "pages") as gate:
            (verdict,) = gate.add_all([{"_id": "2", "body": _TOO_LONG}])
    assert (verdict.status, verdict.reason) == ("failed", _REASON)


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"a": {"b": [1, {"c": "xxxx"}]}}, "[a.b.c]"),
        ({"a": ["x", ["xxxx"]]}, "[a]"),
        ({"a": "xxx", "b": {"c": None}}, ""),
    ],
)
def test_the_field_is_named_wherever_it_is(monkeypatch, document, named):
    monkeypatch.setattr(blocks, "MAX_TEXT", 3)
    assert blocks.too_long(document).startswith(named)
    assert bool(blocks.too_long(document)) is bool(named)
