"""A fingerprint that comes with a document never reaches the index: the pipeline alone writes them."""

import json
from pathlib import Path

import pytest

from shinglefold.ingest import Pipeline, default_definition, index_documents, read
from shinglefold.model.values import Fingerprint
from shinglefold.rerank import FoldedSearch

VICTIM = "Сегодня в городе выпал первый снег, и стало совсем тихо, только вороны кричали над рекой"
SPAM = "Лучшие окна со скидкой только у нас, звоните и заказывайте прямо сейчас, пока не кончились"


@pytest.fixture
def pages(scheme, canonicalizer) -> Pipeline:
    return Pipeline.from_json(default_definition(), scheme, canonicalizer)


def forged(stored: dict) -> dict[str, str]:
    flat = {f"dedup.{name}": value for name, value in stored.items()}
    spam = {"id": "spam", "body": SPAM}
    return {
        "nested": json.dumps({**spam, "dedup": stored}),
        "flat": json.dumps({**spam, **flat}),
        "mixed": json.dumps({**spam, "dedup": {"lang": "ru"}, **flat}),
        "a list": json.dumps({**spam, "dedup": [stored]}),
        "a key twice": json.dumps(spam)[:-1] + f', "dedup": {json.dumps(stored)}, "dedup.digest": "x", '
        f'"dedup": {json.dumps(stored)}}}',
        "a hit": json.dumps({"_id": "spam", "_source": {"body": SPAM, **flat}}),
    }


@pytest.mark.parametrize("form", ["nested", "flat", "mixed", "a list", "a key twice", "a hit"])
@pytest.mark.parametrize("workers", [1, 2])
def test_in_no_form(engine, pages, scheme, tmp_path: Path, form: str, workers: int):
    (victim,) = pages.tools.fingerprinter.fingerprint([VICTIM])
    file = tmp_path / "in.jsonl"
    line = forged(victim.to_field())[form]
    file.write_text(json.dumps({"id": "victim", "body": VICTIM}) + "\n" + line + "\n", "utf-8")
    summary = index_documents(engine, "i", read(file), pages, workers=workers)
    assert (summary.indexed, summary.counts["fingerprints_left_out"]) == (2, 1)
    source = engine.get("i", "spam")["_source"]
    assert [name for name in source if name.startswith("dedup")] == ["dedup"]
    assert Fingerprint.from_field(source["dedup"]).digest != victim.digest
    page = FoldedSearch(engine, scheme).search("i", {"query": {"match_all": {}}})
    assert len(page["hits"]["hits"]) == 2


def test_a_dotted_field_is_guarded_too(engine, scheme, canonicalizer, tmp_path: Path):
    pipeline = Pipeline.from_json(
        {"processors": [{"supershingle": {"field": "body", "target_field": "meta.dedup"}}]},
        scheme,
        canonicalizer,
    )
    (victim,) = pipeline.tools.fingerprinter.fingerprint([VICTIM])
    stored = victim.to_field()
    given = [
        {"_id": "1", "body": SPAM, "meta.dedup.digest": stored["digest"], "meta": {"site": "a"}},
        {"_id": "2", "body": SPAM, "meta": {"dedup.digest": stored["digest"], "site": "a"}},
        {"_id": "3", "body": SPAM, "meta.dedup": stored},
    ]
    summary = index_documents(engine, "i", given, pipeline, field="meta.dedup", workers=1)
    assert (summary.indexed, summary.counts["fingerprints_left_out"]) == (3, 3)
    for document in given:
        source = engine.get("i", document["_id"])["_source"]
        assert Fingerprint.from_field(source["meta"]["dedup"]).digest != victim.digest
        assert stored["digest"] not in json.dumps(source)
