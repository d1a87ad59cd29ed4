"""Schemes and recipes: names that say what fingerprints depend on."""

import json
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest
from support.distributions import install

from shinglefold import registry
from shinglefold.errors import ConfigError, MissingExtra, RecipeMismatch, SchemeMismatch, UnknownLanguage
from shinglefold.model.recipe import (
    FIELD,
    NO_STEPS,
    Recipe,
    comparable,
    first_difference,
    retarget,
    stores_keywords,
    with_keywords,
)
from shinglefold.model.scheme import PRESETS, CanonOptions, Decision, LanguageRef, Scheme, SketchOptions
from shinglefold.registry import make_scheme

RUSSIAN = LanguageRef("ru", "1")


def test_the_id_depends_on_everything_that_decides_a_signature():
    scheme = Scheme((RUSSIAN,))
    others = [
        Scheme(),
        Scheme((replace(RUSSIAN, version="2"),)),
        Scheme((replace(RUSSIAN, options=CanonOptions("surface")),)),
        Scheme((RUSSIAN,), sketch=SketchOptions(word_width=3)),
        Scheme((RUSSIAN,), sketch=SketchOptions(seed=2)),
    ]
    assert len({scheme.id, *(other.id for other in others)}) == 1 + len(others)


def test_the_id_does_not_depend_on_what_only_judges_a_comparison():
    assert Scheme((RUSSIAN,), decision=Decision(min_resemblance=0.9)).id == Scheme((RUSSIAN,), name="mine").id


def test_the_id_of_a_scheme_is_frozen():
    # A change here is a new scheme for every index there is: raise ALGORITHM, say so in CHANGELOG.md.
    assert Scheme((RUSSIAN,)).id == "sf3-43786384b86e0"


def test_a_scheme_stored_before_shingles_were_counted_is_read_as_it_was():
    stored = make_scheme("once").to_json()
    for since in ("counted", "both_ends"):
        del stored["sketch"][since]
    assert Scheme.from_json(stored).id == make_scheme("once").id
    assert not Scheme.from_json(stored).sketch.counted
    assert Scheme((RUSSIAN,), sketch=PRESETS["once"].sketch).id == "sf3-81b40850bf315"


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_stored_scheme_is_read_back(preset):
    scheme = make_scheme(preset)
    stored = json.loads(json.dumps(scheme.to_json()))
    assert Scheme.from_json(stored) == scheme
    assert Scheme.from_json(stored).id == stored["id"] == scheme.id
    assert Scheme.from_json(stored).decision == scheme.decision


@pytest.mark.parametrize(
    "data", [{}, {"languages": 5}, {"languages": [], "name": "x", "sketch": {"width": 1}}]
)
def test_what_is_no_stored_scheme_is_refused(data):
    with pytest.raises(ConfigError, match="not a stored scheme"):
        Scheme.from_json(data)


def test_a_scheme_of_another_algorithm_names_both_ids_and_the_remedy():
    scheme = Scheme((RUSSIAN,))
    with pytest.raises(
        SchemeMismatch, match=f"made with scheme sf9-abc, but {scheme.id} .*index all documents"
    ):
        Scheme.from_json({**scheme.to_json(), "id": "sf9-abc", "algorithm": 9})


def test_options_are_replaced_by_name():
    scheme = Scheme().with_options(word_width=5, min_resemblance=0.5)
    assert (scheme.sketch.word_width, scheme.decision.min_resemblance) == (5, 0.5)


def test_an_unknown_option_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'word_width'"):
        Scheme().with_options(word_with=5)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: SketchOptions(word_width=0), "word_width: expected a whole number of 1 to 10, got 0"),
        (lambda: SketchOptions(word_width=11), "of 1 to 10, got 11"),
        (lambda: SketchOptions(bits=3), "bits 3"),
        (lambda: SketchOptions(values=337), "take 338"),
        (lambda: SketchOptions(counted=1), "counted: expected true or false, got 1"),  # type: ignore[arg-type]
        (lambda: SketchOptions(values=10), "need 84 values"),
        (lambda: SketchOptions(values=168.5), "values: expected a whole number of 1 to 4096, got 168.5"),  # type: ignore[arg-type]
        (lambda: CanonOptions(min_length="3"), "min_length"),  # type: ignore[arg-type]
        (lambda: CanonOptions(drop_adjectives="no"), "drop_adjectives: expected true or false, got 'no'"),  # type: ignore[arg-type]
        (lambda: Decision(min_resemblance=1.5), "min_resemblance: expected a number of 0 to 1, got 1.5"),
        (lambda: Decision(min_shared=True), "min_shared: .* got True"),
        (lambda: CanonOptions(mode="lema"), "did you mean 'lemma'"),  # type: ignore[arg-type]
        (lambda: CanonOptions(min_length=0), "min_length: .* got 0"),
        (lambda: make_scheme("fetterli"), "did you mean 'fetterly'"),
    ],
)
def test_impossible_options_are_refused(make, says):
    with pytest.raises(ConfigError, match=says):
        make()


@pytest.mark.parametrize(
    ("preset", "frozen"),
    [
        ("default", "sf3-a6352f521c59c"),
        ("compact", "sf3-4aaafeab020dd"),
        ("once", "sf3-ae63cf3f4efbd"),
        ("classic", "sf3-057a43950b76d"),
        ("fetterly", "sf3-e0bbf6f3e2101"),
    ],
)
def test_no_number_of_a_preset_changes_unseen(preset, frozen):
    assert PRESETS[preset].id == frozen


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
    assert retarget(definition, "_dedup", "copies") == {
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
    assert retarget(definition, "_dedup", "copies") == definition


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


def test_the_built_in_languages_are_found():
    assert {"any", "en", "ru", "uk", "zh"} <= set(registry.installed_languages())


def test_languages_of_a_scheme_are_sorted_whatever_order_they_are_named_in():
    assert registry.references(["ru", "any"]) == registry.references(["any", "ru"])


@pytest.mark.parametrize(
    ("code", "meant"),
    [("ukr", "uk"), ("ua", "uk"), ("uk-UA", "uk"), ("cn", "zh"), ("zh_TW", "zh"), ("GB", "en")],
)
def test_an_unknown_language_names_the_one_that_is_meant(code, meant):
    with pytest.raises(UnknownLanguage, match=f"did you mean '{meant}'"):
        registry.make_scheme(codes=[code, "any"])


def test_options_for_a_language_outside_the_scheme_are_refused():
    with pytest.raises(UnknownLanguage, match="'zh'"):
        registry.references(["ru", "any"], overrides={"zh": CanonOptions()})


def test_a_scheme_made_with_another_dictionary_is_refused():
    with pytest.raises(SchemeMismatch, match="ru 0-ancient") as caught:
        registry.load_languages([LanguageRef("ru", "0-ancient")])
    assert "index again" in str(caught.value)


def test_two_plugins_of_one_code_are_refused(monkeypatch):
    both = [EntryPoint("xx", "a:A", registry.LANGUAGES), EntryPoint("xx", "b:B", registry.LANGUAGES)]
    monkeypatch.setattr(registry, "entry_points_of", lambda group: both)
    with pytest.raises(ConfigError, match="two plugins claim the language 'xx': a:A and b:B"):
        registry.installed_languages()


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("no.such.module:X", "can't be imported"),
        ("pathlib:Path", "not a subclass"),
        ("json:dumps", "not a subclass"),
    ],
)
def test_a_broken_plugin_is_named(monkeypatch, target, says):
    monkeypatch.setattr(registry, "entry_points_of", lambda group: [EntryPoint("xx", target, group)])
    with pytest.raises(ConfigError, match=says) as caught:
        registry.language_class("xx")
    assert target in str(caught.value)


@pytest.mark.parametrize(("code", "module"), [("ru", "pymorphy3"), ("uk", "pymorphy3"), ("zh", "opencc")])
def test_a_missing_extra_names_the_pip_command(monkeypatch, code, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'shinglefold\[{code}\]'"):
        registry.load_languages(registry.references([code]))


def test_a_language_without_its_dictionary_is_left_out_unless_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymorphy3", None)
    assert {ref.code for ref in registry.references()} >= {"any", "en", "zh"}
    assert not {ref.code for ref in registry.references()} & {"ru", "uk"}
    assert "shinglefold[uk]" in str(registry.usable()[1]["uk"])
    with pytest.raises(MissingExtra):
        registry.references(["ru", "any"])


def test_a_plugin_installed_while_a_process_runs_is_found_and_one_taken_away_is_not(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    assert "later" not in registry.installed_languages()
    info = install(tmp_path, "later", "later = somewhere:Later")
    assert registry.installed_languages()["later"].value == "somewhere:Later"
    info.rename(tmp_path / "gone")
    assert "later" not in registry.installed_languages()


def test_files_of_distributions_are_read_once_while_nothing_is_installed(monkeypatch):
    registry.installed_languages()
    looked = []
    monkeypatch.setattr(registry, "entry_points", lambda **group: looked.append(group))
    registry.installed_languages()
    assert not looked
