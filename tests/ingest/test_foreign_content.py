"""What stands in the field of fingerprints and is none is never lost: that field, or document, is refused."""

import json

import pytest

from shinglefold.errors import ConfigError
from shinglefold.ingest import Pipeline, default_definition, index_documents
from shinglefold.ingest.index_mapping import (
    BOOKKEEPING_PARTS,
    FINGERPRINT_PARTS,
    foreign_content,
    recipe_mappings,
)
from shinglefold.model.recipe import check_field
from shinglefold.offline.sign.signer import SignOptions

TEXT = "The old bridge is closed until Monday because the river rises, buses take another way."


@pytest.mark.parametrize(
    "target", ["title", "body", "body.dedup", "_id", "_index", "a..b", " ", "_source._id"]
)
def test_a_pipeline_writes_no_fingerprint_over_what_it_reads_or_engines_keep(target):
    step = {"fields": ["title", "body"], "target_field": target}
    with pytest.raises(ConfigError, match="target_field"):
        Pipeline.from_json({"processors": [{"supershingle": step}]})
    with pytest.raises(ConfigError, match="field"):
        default_definition(target)
    with pytest.raises(ConfigError, match="field"):
        SignOptions(("title", "body"), target=target)


def test_a_field_around_a_text_is_refused_and_one_beside_it_is_not():
    with pytest.raises(ConfigError, match="'article' holds a text that fingerprints are made of"):
        check_field("field", "article", ["article.body"])
    for name in ("article.dedup", "articles", "fp.x", "a b"):
        assert check_field("field", name, ["article.body"]) == name


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("text", "is text"),
        (7, "is a number"),
        (False, "is a boolean"),
        (["a", "b"], "is a list"),
        ({"of": "x"}, "holds 'of'"),
        ({"scheme": "sf2-1", "score": 3}, "holds 'score'"),
    ],
)
def test_a_document_whose_field_holds_something_else_fails_and_is_kept_whole(
    engine, scheme, canonicalizer, tmp_path, held, said
):
    pipeline = Pipeline.from_json(default_definition(), scheme, canonicalizer)
    letters = tmp_path / "failed.jsonl"
    given = [{"_id": "1", "body": TEXT, "dedup": held}, {"_id": "2", "body": TEXT}]
    summary = index_documents(engine, "i", given, pipeline, workers=1, dead_letters=letters)
    assert (summary.indexed, summary.failed, "fingerprints_left_out" in summary.counts) == (1, 1, False)
    (reason,) = summary.reasons
    assert f"[dedup] {said}" in reason
    assert "would be lost: keep fingerprints in another field" in reason
    assert json.loads(letters.read_text())["document"] == given[0]


@pytest.mark.parametrize(
    "held", [None, {}, [], {"digest": "x"}, [{"lang": "ru"}], {"group": 5, "leader": True}]
)
def test_what_is_left_of_a_fingerprint_is_nobody_elses(held):
    assert foreign_content({"dedup": held}, "dedup") == ""
    assert foreign_content({"a.dedup": held}, "a.dedup") == ""


def test_the_parts_of_a_fingerprint_are_those_of_the_mapping(scheme):
    pipeline = Pipeline.from_json(
        {"processors": [{"supershingle": {"field": "body", "passages": True}}]}, scheme
    )
    mapped = recipe_mappings(pipeline.recipe())["properties"]["dedup"]["properties"]
    assert mapped.keys() == FINGERPRINT_PARTS
    assert not FINGERPRINT_PARTS & BOOKKEEPING_PARTS
