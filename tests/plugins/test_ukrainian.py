"""What is true of Ukrainian and must stay so."""

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.errors import SchemeMismatch
from shinglefold.model.scheme import CanonOptions, LanguageRef
from shinglefold.registry import language_class, load_languages, references

# Written by hand, not taken from the plugin: what an editor adds or leaves out without changing the sense.
FUNCTION_WORDS = """
і й та але або чи бо що щоб якщо хоча коли як ніж тому адже отже
в у на з із зі до від за для без при про під над між через після перед біля крім серед
не ні ж же б би хай нехай навіть лише тільки саме ось теж також ще вже немає нема
я ти він вона воно ми ви вони мене тебе його її їх мій твій наш ваш свій їхній цей той такий весь
хто який чий скільки хтось щось ніхто ніщо ой ох
"""


def canonical(word, options=CanonOptions()):
    return language_class("uk")(options).canonical(word)


@pytest.mark.parametrize("mode", ["lemma", "surface"])
def test_function_words_are_found_though_the_first_reading_is_arbitrary(mode):
    language = language_class("uk")(CanonOptions(mode, drop_function_words=True))
    kept = [word for word in FUNCTION_WORDS.split() if language.canonical(word) is not None]
    assert kept == []


def test_function_words_stay_unless_asked_to_go():
    language = language_class("uk")(CanonOptions())
    assert [word for word in FUNCTION_WORDS.split() if language.canonical(word) is None] == []


@pytest.mark.parametrize(
    ("form", "lemma"),
    [
        ("книжками", "книжка"),
        ("діти", "дитина"),
        ("прийшов", "прийти"),
        ("об'єктами", "об'єкт"),
        ("грунту", "грунт"),
        ("ганками", "ганок"),
        ("гвинтів", "гвинт"),
    ],
)
def test_words_become_their_most_frequent_dictionary_form(form, lemma):
    assert canonical(form) == lemma


def test_there_is_no_ukrainian_stemmer_so_stem_means_surface():
    assert language_class("uk").mode_for("stem") == "surface"
    assert canonical("книжками", CanonOptions("stem")) == "книжками"


@pytest.mark.parametrize("mode", ["lemma", "surface"])
def test_adjectives_are_dropped_only_on_request_and_participles_never(mode):
    assert canonical("гарними", CanonOptions(mode, drop_adjectives=True)) is None
    assert canonical("гарними", CanonOptions(mode)) is not None
    assert canonical("написаними", CanonOptions(mode, drop_adjectives=True)) is not None


def test_every_apostrophe_reaches_the_dictionary():
    canonicalizer = Canonicalizer(references(["any", "uk"]))
    for apostrophe in "'’ʼ`‘":
        tokens = canonicalizer.tokens(f"сім{apostrophe}ями", "uk")
        assert [token.text for token in tokens] == ["сім'я"]


def test_ghe_with_upturn_is_found_with_either_letter():
    canonicalizer = Canonicalizer(references(["any", "uk"]))
    for with_upturn, without in (("ґрунтами", "грунтами"), ("Ґанок", "ганку"), ("ґудзики", "гудзиком")):
        assert [t.text for t in canonicalizer.tokens(with_upturn, "uk")] == [
            t.text for t in canonicalizer.tokens(without, "uk")
        ]


def test_words_of_other_letters_and_overlong_ones_stay_as_they_are():
    for word in ("абв1", "объект", "а" * 65, "\ud800", "-", "'"):
        assert canonical(word) == word


def test_what_was_stored_by_the_first_rules_is_still_made_by_them():
    reference = LanguageRef("uk", language_class("uk").version().replace("2+", "1+", 1))
    (first,) = load_languages([reference])
    assert first.version() == reference.version
    assert first.canonical("людині") == "людинь"
    assert canonical("людині") == "людина"
    with pytest.raises(SchemeMismatch):
        load_languages([LanguageRef("uk", language_class("uk").version().replace("2+", "0+", 1))])
