import numpy as np
import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.canon.language_detection import language_of_tokens, make_language_router
from shinglefold.canon.segmentation import segment
from shinglefold.contracts.language import Language
from shinglefold.errors import ConfigError, UnknownLanguage
from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import load_languages, make_scheme

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
    page = " ".join([RUSSIAN] * 6)
    tokens = canonicalizer.tokens(f"{page} Київ {page}")
    assert [token.text for token in tokens if token.language != "ru"] == ["київ"]


@pytest.mark.parametrize("telling", [1, 2, 3])
def test_a_language_shows_itself_in_one_word_of_fifty_and_not_in_fewer(canonicalizer, telling):
    words = ["їжак"] * telling + ["медведь"] * (50 * telling - telling)
    assert canonicalizer.detect(" ".join(words)) == "uk"
    assert canonicalizer.detect(" ".join([*words, "медведь"])) == "ru"


@pytest.mark.parametrize(
    "text",
    [RUSSIAN, UKRAINIAN, f"{RUSSIAN}\n{UKRAINIAN}", "мама мала раму, see the end", "трактор", "продам", ""],
)
def test_equal_texts_have_equal_tokens_whatever_they_declare(canonicalizer, text):
    declared = [None, "ru", "uk", "en", "zh", "any", "tlh"]
    batch = canonicalizer.hash_batch([text] * len(declared), declared)
    assert len(set(batch.languages)) == 1
    assert len({canonicalizer.placed(text, code).hashes.tobytes() for code in declared}) == 1
    assert len(np.unique(batch.hashes.reshape(len(declared), -1), axis=0)) == 1


class Plain(Language):
    """A language without letters of its own and without a dictionary."""

    code, scripts, precedence = "plain", frozenset({"Latn"}), 50

    def canonical(self, word):
        return f"plain-{word}"


def test_a_declared_language_decides_where_nothing_else_can():
    others = load_languages(make_scheme(codes=["en", "any"]).languages)
    router = make_language_router([*others, Plain(CanonOptions())])
    segments = segment(["one two"] * 3, router.tables)
    chosen = language_of_tokens(router, segments, router.indices(["plain", "en", None])).tolist()
    assert [router.languages[index].code for index in chosen] == ["plain"] * 2 + ["en"] * 4


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Продам коляску, мало вживану, торг біля авто", "Продам коляску, мало вживану, торг коло авто"),
        ("Вистава почнеться увечері, каса працює зранку", "Вистава почнеться ввечер, каса працює зранку"),
        ("Потяг запізнюється, чекайте на пероні", "Потяг спізнюється, чекайте на платформах"),
        ("Магазин зачинено до ранку понеділка", "Магазин зачинено до ранку вівторка"),
    ],
)
def test_words_that_two_short_notices_share_are_the_same(canonicalizer, one, other):
    words = [
        {text[token.start : token.end].casefold(): token.text for token in canonicalizer.tokens(text)}
        for text in (one, other)
    ]
    shared = words[0].keys() & words[1].keys()
    assert len(shared) >= 3
    assert {word: words[0][word] for word in shared} == {word: words[1][word] for word in shared}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Продам трактор на ходу, документи на руках, торг доречний", "uk"),
        ("Концерт перенесли на травень, квитки можна повернути до каси театру", "uk"),
        ("Увага, на дорогах ожеледь та туман", "uk"),
        ("Продам трактор на ходу, документ на руках, торг уместен", "ru"),
        ("Концерт перенесли на май, билет можно вернуть в кассу", "ru"),
        ("Внимание, на дорогах гололед и туман", "ru"),
    ],
)
def test_dictionaries_tell_a_text_without_telling_letters(canonicalizer, text, code):
    assert canonicalizer.detect(text) == code
    assert canonicalizer.detect(text.upper()) == code


def test_a_word_that_only_another_language_can_have_is_of_that_language(canonicalizer):
    tokens = canonicalizer.tokens(f"{RUSSIAN} Поезд Київ, доречний документ.")
    by_word = {token.text: token.language for token in tokens}
    assert by_word["київ"] == by_word["доречний"] == "uk"
    assert by_word["документ"] == "ru"


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
