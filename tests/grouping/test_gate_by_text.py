"""Texts decide about documents that fingerprints leave in doubt."""

from dataclasses import replace

import pytest
from support.gate.moved import moved_words

from shinglefold.errors import ConfigError, Refused
from shinglefold.grouping import Gate, Policy
from shinglefold.grouping.rules import Rules
from shinglefold.offline.compare_texts import compare_texts


@pytest.fixture
def moved(pipeline):
    texts = moved_words()
    _check(pipeline, texts, text=True, signature=False)
    return texts


def _check(pipeline, texts, **wanted):
    for verify, folds in wanted.items():
        scheme = pipeline.scheme.with_options(verify=verify)
        told = compare_texts(texts, ("a", "b"), (None, None), scheme)
        assert told.folds == folds, (verify, told.similarity, told.estimate)


def _verdicts(engine, pipeline, texts, **policy):
    with Gate(engine, "texts", Policy(**policy), pipeline=pipeline) as gate:
        return [gate.add_all([{"id": str(at), "body": text}])[0] for at, text in enumerate(texts)]


def test_a_match_by_text_is_refused_in_either_order_and_in_one_batch(engine, pipeline, moved):
    first, second = _verdicts(engine, pipeline, moved)
    assert (first.status, second.status) == ("accepted", "refused")
    assert second.like.similarity >= 0.8
    assert second.like.likeness < pipeline.scheme.decision.min_resemblance
    assert "by estimate, edit similarity" in second.reason
    assert second.to_json()["like"]["similarity"] == round(second.like.similarity, 4)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("swapped", [True, False])
def test_a_pair_is_decided_alike_in_either_order(engine, pipeline, moved, together, swapped):
    texts = moved[::-1] if swapped else moved
    given = [{"id": str(at), "body": text} for at, text in enumerate(texts)]
    with Gate(engine, "texts", pipeline=pipeline) as gate:
        told = gate.add_all(given) if together else [gate.add_all([one])[0] for one in given]
    assert [one.status for one in told] == ["accepted", "refused"]


@pytest.mark.parametrize(
    ("rules", "second"),
    [
        ({"verify": "signature"}, "accepted"),
        ({"min_resemblance": 0.61}, "accepted"),
        ({"min_similarity": 0.99}, "accepted"),
        ({"verify": "keywords"}, "refused"),
    ],
)
def test_the_rules_of_a_policy_decide_about_a_match_by_text(engine, pipeline, moved, rules, second):
    assert [one.status for one in _verdicts(engine, pipeline, moved, **rules)] == ["accepted", second]


def test_a_match_by_text_alone_joins_the_group(engine, pipeline, moved):
    first, second = _verdicts(engine, pipeline, moved, action="tag")
    assert (first.leads, second.leads) == (True, False)
    assert first.group == second.group


def test_rules_that_an_index_notes_decide_for_tag(engine, pipeline, moved):
    mappings = engine.mappings("texts")
    meta = mappings["_meta"]["shinglefold"] | {"grouping": Rules(verify="signature").to_json()}
    engine.put_mappings("texts", {"_meta": {**mappings["_meta"], "shinglefold": meta}})
    first, second = _verdicts(engine, pipeline, moved, action="tag")
    assert first.group != second.group
    refused = Policy("refuse")
    with Gate(engine, "texts", refused, pipeline=pipeline) as gate, pytest.raises(Refused):
        gate.add({"id": "2", "body": moved[1] + " more"})


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"verify": "texts"}, "way to verify"),
        ({"measure": "containment", "verify": "text"}, "signatures alone"),
        ({"min_resemblance": 0.7, "min_similarity": 0.8}, "one of them decides"),
        ({"min_similarity": 2}, "min_similarity"),
    ],
)
def test_invalid_rules_are_refused(wrong, told):
    with pytest.raises(ConfigError, match=told):
        Policy(**wrong)


def test_a_noted_unknown_way_to_verify_is_an_error(pipeline, engine):
    recipe = pipeline.recipe()
    with pytest.raises(ConfigError, match="verified by 'guess'"):
        Rules.of(replace(recipe, grouping={"verify": "guess"}))
