"""The fingerprint field: its mapping, and other data in its place, which is never lost."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.hits import SCHEME

from shinglefold.errors import ConfigError
from shinglefold.ingest import Pipeline, default_definition, index_documents, read
from shinglefold.ingest.index_mapping import default_recipe, recipe_mappings
from shinglefold.model.recipe import Recipe, check_field
from shinglefold.model.stored_fingerprint import BOOKKEEPING_PARTS, FINGERPRINT_PARTS, foreign_content
from shinglefold.model.values import Fingerprint
from shinglefold.offline.sign.signer import SignOptions
from shinglefold.rerank import FoldedSearch

TEXT = "The old bridge is closed until Monday because the river rises, buses take another way."


@pytest.mark.parametrize(
    "target", ["title", "body", "body._dedup", "_id", "_index", "a..b", " ", "_source._id"]
)
def test_a_pipeline_writes_no_fingerprint_over_what_it_reads_or_engines_keep(target):
    step = {"fields": ["title", "body"], "target_field": target}
    with pytest.raises(ConfigError, match="target_field"):
        Pipeline.from_json({"processors": [{"supershingle": step}]})
    with pytest.raises(ConfigError, match="field"):
        default_definition(target)
    with pytest.raises(ConfigError, match="field"):
        SignOptions(("title", "body"), target=target)


def test_a_target_inside_a_text_field_is_refused_and_a_sibling_is_not():
    with pytest.raises(ConfigError, match="'article' holds a text that fingerprints are made of"):
        check_field("field", "article", ["article.body"])
    for name in ("article._dedup", "articles", "fp.x", "a b"):
        assert check_field("field", name, ["article.body"]) == name


def test_a_field_named_by_its_place_in_the_source_is_that_field_in_pipelines_only():
    given = {"processors": [{"supershingle": {"fields": ["body"], "target_field": "_source.print"}}]}
    pipeline = Pipeline.from_json(given)
    (outcome,) = pipeline.run([{"body": "The bridge is closed until the middle of July for repairs."}])
    assert outcome.document["print"]["digest"]
    assert pipeline.recipe().field == "print"
    with pytest.raises(ConfigError, match="engines keep '_source'"):
        check_field("field", "_source.print")


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("text", "is text"),
        (7, "is a number"),
        (False, "is a boolean"),
        (["a", "b"], "is a list"),
        ({"of": "x"}, "holds 'of'"),
        ({"scheme": "sf3-1", "score": 3}, "holds 'score'"),
    ],
)
def test_a_document_whose_field_holds_something_else_fails_and_is_kept_whole(
    engine, scheme, tmp_path, held, said
):
    pipeline = Pipeline.from_json(default_definition(), scheme)
    letters = tmp_path / "failed.jsonl"
    given = [{"_id": "1", "body": TEXT, "_dedup": held}, {"_id": "2", "body": TEXT}]
    summary = index_documents(engine, "i", given, pipeline, workers=1, dead_letters=letters)
    assert (summary.indexed, summary.failed, "fingerprints_left_out" in summary.counts) == (1, 1, False)
    (reason,) = summary.reasons
    assert f"[_dedup] {said}" in reason
    assert "would be lost: keep fingerprints in another field" in reason
    assert json.loads(letters.read_text())["document"] == given[0]


@pytest.mark.parametrize(
    "held", [None, {}, [], {"digest": "x"}, [{"lang": "ru"}], {"group": 5, "leader": True}]
)
def test_parts_of_a_fingerprint_are_not_foreign(held):
    assert foreign_content({"_dedup": held}, "_dedup") == ""
    assert foreign_content({"a._dedup": held}, "a._dedup") == ""


def test_the_parts_of_a_fingerprint_are_those_of_the_mapping(scheme):
    pipeline = Pipeline.from_json(
        {"processors": [{"supershingle": {"field": "body", "passages": True}}]}, scheme
    )
    mapped = recipe_mappings(pipeline.recipe())["properties"]["_dedup"]["properties"]
    assert mapped.keys() == FINGERPRINT_PARTS
    assert not FINGERPRINT_PARTS & BOOKKEEPING_PARTS


VICTIM = "Сегодня в городе выпал первый снег, и стало совсем тихо, только вороны кричали над рекой"
SPAM = "Лучшие окна со скидкой только у нас, звоните и заказывайте прямо сейчас, пока не кончились"


@pytest.fixture
def pages(scheme) -> Pipeline:
    return Pipeline.from_json(default_definition(), scheme)


def forged(stored: dict) -> dict[str, str]:
    flat = {f"_dedup.{name}": value for name, value in stored.items()}
    spam = {"id": "spam", "body": SPAM}
    return {
        "nested": json.dumps({**spam, "_dedup": stored}),
        "flat": json.dumps({**spam, **flat}),
        "mixed": json.dumps({**spam, "_dedup": {"lang": "ru"}, **flat}),
        "a list": json.dumps({**spam, "_dedup": [stored]}),
        "a hit": json.dumps({"_id": "spam", "_source": {"body": SPAM, **flat}}),
    }


@pytest.mark.long(every=5)
@pytest.mark.parametrize("form", ["nested", "flat", "mixed", "a list", "a hit"])
@pytest.mark.parametrize("workers", [1, 2])
def test_in_no_form(engine, pages, scheme, tmp_path: Path, form: str, workers: int):
    (victim,) = pages.tools.fingerprinter.fingerprint([VICTIM])
    file = tmp_path / "in.jsonl"
    line = forged(victim.to_field())[form]
    file.write_text(json.dumps({"id": "victim", "body": VICTIM}) + "\n" + line + "\n", "utf-8")
    summary = index_documents(engine, "i", read(file), pages, workers=workers)
    assert (summary.indexed, summary.counts["fingerprints_left_out"]) == (2, 1)
    source = engine.get("i", "spam")["_source"]
    assert [name for name in source if name.startswith("_dedup")] == ["_dedup"]
    assert Fingerprint.from_field(source["_dedup"]).digest != victim.digest
    page = FoldedSearch(engine, scheme).search("i", {"query": {"match_all": {}}})
    assert len(page["hits"]["hits"]) == 2


def test_a_dotted_field_is_guarded_too(engine, scheme, tmp_path: Path):
    pipeline = Pipeline.from_json(
        {"processors": [{"supershingle": {"field": "body", "target_field": "meta._dedup"}}]},
        scheme,
    )
    (victim,) = pipeline.tools.fingerprinter.fingerprint([VICTIM])
    stored = victim.to_field()
    given = [
        {"_id": "1", "body": SPAM, "meta._dedup.digest": stored["digest"], "meta": {"site": "a"}},
        {"_id": "2", "body": SPAM, "meta": {"_dedup.digest": stored["digest"], "site": "a"}},
        {"_id": "3", "body": SPAM, "meta._dedup": stored},
    ]
    summary = index_documents(engine, "i", given, pipeline, field="meta._dedup", workers=1)
    assert (summary.indexed, summary.counts["fingerprints_left_out"]) == (3, 3)
    for document in given:
        source = engine.get("i", document["_id"])["_source"]
        assert Fingerprint.from_field(source["meta"]["_dedup"]).digest != victim.digest
        assert stored["digest"] not in json.dumps(source)


def test_a_recipe_with_groups_maps_their_number_as_what_engines_collapse_by():
    made = recipe_mappings(replace(default_recipe(SCHEME, "meta._dedup"), groups=True))
    inner = made["properties"]["meta"]["properties"]["_dedup"]["properties"]
    assert inner["group"] == {"type": "long"}
    assert Recipe.of(made, "site").groups


def test_a_recipe_without_groups_maps_no_number_and_says_nothing_of_groups():
    made = recipe_mappings(default_recipe(SCHEME))
    assert "group" not in made["properties"]["_dedup"]["properties"]
    assert "groups" not in made["_meta"]["shinglefold"]
    assert not Recipe.of(made, "site").groups
