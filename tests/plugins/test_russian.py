"""What is true of Russian and must stay so."""

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import language_class, references

DROPPING = CanonOptions(drop_function_words=True)


def canonical(word, options=CanonOptions()):
    return language_class("ru")(options).canonical(word)


@pytest.mark.parametrize(
    ("form", "lemma"),
    [
        ("крышами", "крыша"),
        ("дети", "ребенок"),
        ("брюками", "брюки"),
        ("елок", "елка"),
        ("ежами", "еж"),
        ("пошел", "пойти"),
        ("красивейшие", "красивый"),
    ],
)
def test_words_become_their_dictionary_form_without_yo(form, lemma):
    assert canonical(form) == lemma


@pytest.mark.parametrize(
    "kind", ["под", "чтобы", "лишь", "мы", "ах", "который", "наших", "ее", "все", "кое-кто"]
)
@pytest.mark.parametrize("mode", ["lemma", "stem", "surface"])
def test_prepositions_conjunctions_particles_pronouns_and_interjections_are_dropped_on_request(kind, mode):
    assert canonical(kind, CanonOptions(mode, drop_function_words=True)) is None
    assert canonical(kind, CanonOptions(mode)) is not None


@pytest.mark.parametrize("mode", ["lemma", "stem", "surface"])
def test_adjectives_are_dropped_only_on_request(mode):
    assert canonical("красивыми", CanonOptions(mode, drop_adjectives=True)) is None
    assert canonical("красив", CanonOptions(mode, drop_adjectives=True)) is None
    assert canonical("красивыми", CanonOptions(mode)) is not None


def test_adjectives_go_without_function_words_going():
    options = CanonOptions(drop_adjectives=True)
    assert [canonical(word, options) for word in ("под", "серой", "крышей")] == ["под", None, "крыша"]


def test_pronouns_that_decline_as_adjectives_stay_with_the_other_function_words():
    assert canonical("наших") == "наш"


def test_stems_cut_endings_and_surface_keeps_them():
    assert canonical("крышами", CanonOptions("stem")) == canonical("крыша", CanonOptions("stem")) == "крыш"
    assert canonical("крышами", CanonOptions("surface")) == "крышами"


def test_words_of_other_letters_and_overlong_ones_stay_as_they_are():
    for word in ("абв1", "їжак", "а" * 65, "\ud800", "-", "'"):
        assert canonical(word) == word


def test_all_function_words_are_found_with_yo_written_either_way():
    canonicalizer = Canonicalizer(references(["any", "ru"], DROPPING))
    assert canonicalizer.tokens("ещё её моё всё", "ru") == canonicalizer.tokens("еще ее мое все", "ru")


def test_russian_and_ukrainian_analyzers_live_in_one_process():
    russian, ukrainian = (language_class(code)(DROPPING) for code in ("ru", "uk"))
    for _ in range(2):
        assert (russian.canonical("который"), russian.canonical("стол")) == (None, "стол")
        assert (ukrainian.canonical("який"), ukrainian.canonical("столами")) == (None, "стіл")
