"""The first reading of a word by the short way is the one that all readings have first."""

from random import Random
from types import SimpleNamespace

import pytest

from shinglefold.plugins import resources
from shinglefold.plugins.resources import Morphology

#: Letters of frequent endings, so that many made-up words are read by these.
LETTERS = "абвеиклмнорст-'я"


@pytest.fixture(scope="module")
def russian() -> Morphology:
    return Morphology("ru")


def _words_of_the_dictionary(every: int) -> list[str]:
    from pymorphy3_dicts_ru import get_path

    words = resources._analyzer("ru", get_path()).dictionary.words.keys()
    return words[::every]


@pytest.mark.long
def test_words_of_the_dictionary_are_read_as_by_the_long_way(russian):
    for word in _words_of_the_dictionary(800):
        for spelled in (word, word.replace("ё", "е")):
            assert russian.best(spelled) == russian.parses(spelled)[0], spelled


def test_words_that_no_dictionary_has_are_read_as_by_the_long_way(russian):
    chance = Random(7)
    made = ["".join(chance.choices(LETTERS, k=chance.randrange(1, 12))) for _ in range(2_000)]
    for word in [*made, *"абвгдежзийклмнопрстуфхцчшщъыьэюя-'", "кто-то", "по-русски"]:
        assert russian.best(word) == russian.parses(word)[0], word


@pytest.mark.parametrize(("word", "lemma"), [("пила", "пила"), ("жгут", "жечь"), ("вести", "вести")])
def test_the_likeliest_of_several_readings_is_first_and_not_what_the_dictionary_has_first(
    russian, word, lemma
):
    assert russian.best(word).lemma == russian.parses(word)[0].lemma == lemma


def test_words_of_the_dictionary_are_not_read_the_long_way(russian, monkeypatch):
    monkeypatch.setattr(russian, "parses", None)
    assert russian.best("крышами").lemma == "крыша"


def test_another_version_of_the_analyzer_is_asked_the_long_way(monkeypatch):
    other = SimpleNamespace(parse=lambda word: [(word, SimpleNamespace(grammemes={"NOUN"}), "кот", 1.0, ())])
    resources._first_by_lookup.cache_clear()
    monkeypatch.setattr(resources, "_analyzer", lambda code, path: other)
    try:
        assert Morphology("ru").best("коты") == ("кот", {"NOUN"})
    finally:
        resources._first_by_lookup.cache_clear()
