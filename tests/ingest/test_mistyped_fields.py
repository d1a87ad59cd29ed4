"""A field that can't be reached fails its document, so that it is not taken for one without text."""

import json

import pytest

from shinglefold.errors import ProcessorError
from shinglefold.ingest import Pipeline
from shinglefold.ingest.field_paths import text

TEXT = "Слово за словом складывается достаточно длинный текст для подписи"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"author": [{"bio": TEXT}]}, r"\[author\] is a list"),
        ({"author": TEXT}, r"\[author\] is text"),
        ({"author": {"bio": {"ru": TEXT}}}, "is an object, expected text"),
        (
            {"author": {"bio": [TEXT]}},
            r'is a list, expected text; to join .* {"join": {"field": "author.bio"',
        ),
        ({"author": {"bio": [5]}}, "is a list, expected text$"),
        ({"author.bio": TEXT}, "one name with dots"),
    ],
)
@pytest.mark.parametrize("missing_ok", [True, False])
def test_what_is_in_the_way_is_told(document, said, missing_ok):
    with pytest.raises(ProcessorError, match=said):
        text(document, "author.bio", missing_ok)


@pytest.mark.parametrize("document", [{}, {"author": None}, {"author": {}}, {"author": {"bio": None}}])
def test_a_field_that_is_missing_may_be(document):
    assert text(document, "author.bio", True) is None


def test_a_number_steps_into_a_list():
    assert text({"author": [{"bio": TEXT}]}, "author.0.bio", False) == TEXT
    assert text({"author": [{}]}, "author.0.bio", True) is None
    assert text({"author": []}, "author.0.bio", True) is None


def test_a_document_whose_text_can_not_be_reached_gets_no_empty_fingerprint(scheme, canonicalizer):
    definition = {"processors": [{"supershingle": {"fields": ["author.bio"]}}]}
    pipeline = Pipeline.from_json(definition, scheme, canonicalizer)
    (outcome,) = pipeline.run_block([{"author": [{"bio": TEXT}]}])
    assert outcome.status == "failed"
    assert "[author] is a list" in str(outcome.failure)


def test_texts_of_a_list_are_joined_as_the_message_says(scheme, canonicalizer):
    step = {"supershingle": {"fields": ["body"]}}
    given = {"body": [TEXT, TEXT]}
    (failed,) = Pipeline.from_json({"processors": [step]}, scheme, canonicalizer).run_block([given])
    told = str(failed.failure)
    remedy = json.loads(told[told.index('{"join"') : told.rindex("}") + 1])
    (done,) = Pipeline.from_json({"processors": [remedy, step]}, scheme, canonicalizer).run_block([given])
    assert (done.failure, done.document["body"]) == (None, f"{TEXT}\n{TEXT}")
