import json
from dataclasses import replace

import pytest

from shinglefold.errors import ConfigError, SchemeMismatch
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
