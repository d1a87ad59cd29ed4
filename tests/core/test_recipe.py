"""Pipelines that are led to another field, or told apart."""

import pytest

from shinglefold.errors import ConfigError, RecipeMismatch, SchemeMismatch
from shinglefold.model.recipe import (
    FIELD,
    NO_STEPS,
    Recipe,
    comparable,
    first_difference,
    retargeted,
    stores_keywords,
    with_keywords,
)
from shinglefold.model.scheme import Scheme, SketchOptions

SCHEME = Scheme()
BARE = {"pipeline": NO_STEPS}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"fields": ("title", "body")},
        {"sealed": "a1"},
        {"groups": True},
        {"groups": True, "grouping": {"linkage": "leader"}},
        {"fold": True, "gate": "refuse"},
        {"fold": False, "gate": "none"},
    ],
)
def test_a_recipe_says_what_is_known_and_nothing_else(given):
    told = Recipe(SCHEME, NO_STEPS, **given).to_json()
    bare = Recipe(SCHEME, NO_STEPS).to_json()
    assert told == bare | {
        name: list(value) if isinstance(value, tuple) else value for name, value in given.items()
    }
    assert bare.keys() == {*SCHEME.to_json(), "field", "pipeline", "product"}


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ({"field": "near"}, {}, "the field near, not _dedup"),
        ({"sealed": "a1"}, {"sealed": "b2"}, "of key a1, not of key b2"),
        ({"sealed": "b2"}, {"sealed": "a1"}, "of key b2, not of key a1"),
        ({"sealed": "a1"}, {}, "of key a1, not of no key"),
        ({}, {"sealed": "a1"}, "of no key, not of key a1"),
        ({"pipeline": {"a": 1}}, {"pipeline": {"a": 2}}, "a 1, not a 2"),
    ],
)
def test_documents_of_another_recipe_are_refused_with_both_named(ours, theirs, said):
    with pytest.raises(RecipeMismatch, match=said):
        Recipe(SCHEME, **(BARE | ours)).check(Recipe(SCHEME, **(BARE | theirs)), "pages", "Go on.")


def test_documents_of_another_scheme_are_refused():
    other = Recipe(Scheme(sketch=SketchOptions(seed=2)), NO_STEPS)
    with pytest.raises(SchemeMismatch, match=SCHEME.id):
        Recipe(SCHEME, NO_STEPS).check(other, "pages", "Go on.")


def test_documents_that_bring_their_fingerprints_fit_any_pipeline():
    Recipe(SCHEME, {"a": 1}).check(Recipe(SCHEME, NO_STEPS), "pages", "Go on.")
    Recipe(SCHEME, {"a": 1}, product="1").check(Recipe(SCHEME, {"a": 1}), "pages", "Go on.")


def test_mappings_without_a_pipeline_are_refused_with_the_commands_that_set_the_index_up():
    told = r"name a scheme but no pipeline; .* `shinglefold setup pages` && `shinglefold backfill pages`"
    with pytest.raises(ConfigError, match=told):
        Recipe.of({"_meta": {"shinglefold": SCHEME.to_json()}}, "pages")
    with pytest.raises(ConfigError, match=r"have no recipe; .* `shinglefold setup pages`"):
        Recipe.of({"properties": {}}, "pages")


def test_a_pipeline_led_elsewhere_writes_and_reads_there():
    definition = {
        "processors": [
            {"supershingle": {"fields": ["body"]}},
            {"set": {"field": "kept", "copy_from": "_dedup.digest"}},
            {"drop": {"on_failure": [{"supershingle": {"target_field": "_dedup"}}]}},
        ]
    }
    assert retargeted(definition, "_dedup", "copies") == {
        "processors": [
            {"supershingle": {"fields": ["body"], "target_field": "copies"}},
            {"set": {"field": "kept", "copy_from": "copies.digest"}},
            {"drop": {"on_failure": [{"supershingle": {"target_field": "copies"}}]}},
        ]
    }
    assert definition["processors"][0] == {"supershingle": {"fields": ["body"]}}


def test_what_an_earlier_version_left_out_of_a_stored_recipe_is_the_default_of_that_version():
    """A stored recipe keeps its meaning; a pipeline that somebody writes today means today's default."""
    bare = {"processors": [{"drop": {"on_failure": [{"supershingle": {"field": "body"}}]}}]}
    named = [
        {
            "processors": [
                {"drop": {"on_failure": [{"supershingle": {"field": "body", "target_field": name}}]}}
            ]
        }
        for name in ("dedup", FIELD)
    ]
    for given in ({}, {"field": "dedup"}, {"field": "near"}):
        mappings = {"_meta": {"shinglefold": {**SCHEME.to_json(), **given, "pipeline": bare}}}
        found = Recipe.of(mappings, "pages")
        assert (found.field, found.pipeline) == (given.get("field", "dedup"), named[0])
        assert Recipe.of({"_meta": {"shinglefold": found.to_json()}}, "pages") == found
    made = Recipe(SCHEME, comparable(bare))
    assert (made.field, made.pipeline) == (FIELD, named[1])
    assert Recipe.of({"_meta": {"shinglefold": made.to_json()}}, "pages") == made


def test_fingerprints_of_another_field_stay_where_they_are():
    definition = {
        "processors": [
            {"supershingle": {"target_field": "of_titles"}},
            {"set": {"copy_from": "dedupe.digest"}},
            {"set": {"copy_from": "_dedup"}},
        ]
    }
    assert retargeted(definition, "_dedup", "copies") == definition


def test_the_first_difference_is_named_by_its_place():
    one = {"processors": [{"set": {"field": "a", "value": 1}}]}
    other = {"processors": [{"set": {"field": "a", "value": 2}}]}
    assert first_difference(one, other) == ("processors[0].set.value 1", "processors[0].set.value 2")
    assert first_difference({}, {"version": 3}) == ("version nothing", "version 3")
    assert first_difference({"processors": [1]}, {"processors": []}) == ("processors [1]", "processors []")


def test_a_pipeline_says_whether_the_supershingles_of_a_field_are_stored():
    ours, theirs = {"supershingle": {"fields": ["body"]}}, {"supershingle": {"target_field": "near"}}
    definition = {"processors": [ours, {"drop": {"on_failure": [theirs]}}]}
    assert stores_keywords(definition, "_dedup")
    without = with_keywords(definition, "near", stored=False)
    assert stores_keywords(without, "_dedup")
    assert not stores_keywords(without, "near")
    assert with_keywords(without, "near", stored=True) == definition
    assert not Recipe(SCHEME, without, "near").keywords
    with pytest.raises(ConfigError, match="groups are found by supershingles"):
        Recipe(SCHEME, without, "near", groups=True)
