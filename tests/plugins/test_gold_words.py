"""Lemmas, function words and the choice of a language against words written by hand."""

import tomllib
from pathlib import Path

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import make_scheme

GOLD = tomllib.loads(Path(__file__).with_name("gold_words.toml").read_text("utf-8"))
#: The least shares that hold: of forms that lead to one token for their lemma, and of function words dropped.
#: English is stemmed: irregular forms stay apart, and the forms of "be" are no function words there.
LEAST = {"ru": (0.97, 0.95), "uk": (0.97, 0.95), "en": (0.85, 0.84)}


def _tokens(canonicalizer: Canonicalizer, text: str, language: str) -> list[str]:
    return [token.text for token in canonicalizer.tokens(text, language)]


@pytest.mark.parametrize("language", LEAST)
def test_forms_of_a_word_are_one_token(language):
    # A word alone does not tell its language, so there is no other one of its script.
    canonicalizer = Canonicalizer.of(make_scheme(codes=["any", language]))
    hits = total = 0
    missed = []
    for lemma, forms in ({**GOLD[language]["lemmas"], **GOLD[language].get("held_out", {})}).items():
        wanted = _tokens(canonicalizer, lemma, language)
        for form in forms.split():
            total += 1
            if _tokens(canonicalizer, form, language) == wanted:
                hits += 1
            else:
                missed.append(form)
    assert hits / total >= LEAST[language][0], missed


@pytest.mark.parametrize("language", LEAST)
def test_function_words_are_dropped_where_asked_and_content_words_are_not(language):
    canonicalizer = Canonicalizer.of(
        make_scheme(codes=["any", language], options=CanonOptions(drop_function_words=True))
    )
    words = GOLD[language]["function"]["words"].split()
    left = [word for word in words if _tokens(canonicalizer, word, language)]
    assert 1 - len(left) / len(words) >= LEAST[language][1], left
    lost = [word for word in GOLD[language]["lemmas"] if not _tokens(canonicalizer, word, language)]
    assert not lost


def test_the_language_of_short_and_mixed_texts_is_chosen():
    canonicalizer = Canonicalizer.of(make_scheme())
    wrong = [
        (text, made, choice["language"])
        for choice in GOLD["choice"]
        for text, made in zip(
            choice["texts"], canonicalizer.hash_batch(choice["texts"]).languages, strict=True
        )
        if made != choice["language"]
    ]
    assert wrong == []
