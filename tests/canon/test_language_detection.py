import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.errors import ConfigError, UnknownLanguage
from shinglefold.registry import make_scheme

RUSSIAN = "Объявление висело на подъезде, и мы его читали каждый вечер, пока были соседями."
UKRAINIAN = "Оголошення висіло на під'їзді, і ми його читали щовечора, поки були сусідами."


def languages(canonicalizer, text, declared=None):
    return {t.language for t in canonicalizer.tokens(text, declared)}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (RUSSIAN, "ru"),
        (UKRAINIAN, "uk"),
        ("The notice hung on the door and we read it every evening.", "en"),
        ("通知貼在門上，我們每天晚上都讀。", "zh"),
        ("შეტყობინება კარზე ეკიდა", "any"),
        ("", "und"),
        ("123 456 — 789", "und"),
    ],
)
def test_a_text_is_of_the_language_most_of_its_words_are_of(canonicalizer, text, code):
    assert canonicalizer.detect(text) == code


def test_a_text_without_telling_letters_is_russian_by_precedence(canonicalizer):
    assert canonicalizer.detect("мама мала раму") == "ru"


def test_paragraphs_of_a_mixed_text_are_decided_one_by_one(canonicalizer):
    tokens = canonicalizer.tokens(f"{RUSSIAN}\n{UKRAINIAN}\nthe end")
    by_text = {token.text: token.language for token in tokens}
    assert by_text["подъезд"] == "ru"
    assert by_text["оголошення"] == "uk"
    assert by_text["end"] == "en"


def test_a_borrowed_name_does_not_turn_a_page(canonicalizer):
    assert languages(canonicalizer, " ".join([RUSSIAN] * 6) + " Київ " + " ".join([RUSSIAN] * 6)) == {"ru"}


@pytest.mark.parametrize("telling", [1, 2, 3])
def test_a_language_shows_itself_in_one_word_of_fifty_and_not_in_fewer(canonicalizer, telling):
    words = ["їжак"] * telling + ["рама"] * (50 * telling - telling)
    assert canonicalizer.detect(" ".join(words)) == "uk"
    assert canonicalizer.detect(" ".join([*words, "рама"])) == "ru"


def test_a_declared_language_wins_for_its_scripts_only(canonicalizer):
    assert languages(canonicalizer, "мама мала раму, see the end", "uk") == {"uk", "en"}
    assert languages(canonicalizer, RUSSIAN, "uk") == {"uk"}


def test_a_declared_language_of_another_script_changes_nothing(canonicalizer):
    mixed = f"{RUSSIAN}\n{UKRAINIAN}"
    assert canonicalizer.tokens(mixed, "en") == canonicalizer.tokens(mixed)


def test_an_unknown_declared_language_is_detected_instead(canonicalizer):
    assert canonicalizer.tokens(RUSSIAN, "tlh") == canonicalizer.tokens(RUSSIAN)


def test_asking_for_the_unit_of_an_unknown_language_names_the_known(canonicalizer):
    with pytest.raises(UnknownLanguage, match="en, ru, uk, zh"):
        canonicalizer.unit("tlh")
    assert canonicalizer.unit("zh") == "char"
    assert canonicalizer.unit("und") == canonicalizer.unit("ru") == "word"


def test_somebody_must_take_the_words_of_other_scripts():
    with pytest.raises(ConfigError, match="'any'"):
        Canonicalizer.of(make_scheme(codes=["ru"]))


def test_as_many_declared_languages_as_texts_are_needed(canonicalizer):
    with pytest.raises(ConfigError, match="2 languages for 1 texts"):
        canonicalizer.hash_batch(["a"], ["ru", None])


@pytest.mark.corpus
@pytest.mark.parametrize(("name", "least"), [("gnome-uk", 0.99)])
def test_pages_of_one_language_are_told_right(canonicalizer, corpus, name, least):
    pages = [page for page in corpus(name) if len(page["body"]) >= 200]
    found = canonicalizer.hash_batch([page["body"] for page in pages]).languages
    right = sum(code == page["lang"] for code, page in zip(found, pages, strict=True))
    assert right / len(pages) >= least
