"""What is true of English, and of the language that takes the rest."""

import pytest

from shinglefold.canon import Canonicalizer
from shinglefold.model.scheme import CanonOptions
from shinglefold.registry import language_class, references

DROPPING = CanonOptions(drop_function_words=True)


def tokens(text, options=CanonOptions()):
    canonicalizer = Canonicalizer(references(["any", "en"], options))
    return [token.text for token in canonicalizer.tokens(text)]


def test_lemma_falls_to_stem_because_there_is_no_dictionary():
    assert language_class("en").mode_for("lemma") == "stem"
    assert tokens("connections connected") == ["connect", "connect"]


@pytest.mark.parametrize("mode", ["stem", "surface"])
def test_function_words_are_dropped_on_request_in_every_mode(mode):
    text = "It's not for us, but of the others: oh!"
    assert tokens(text, CanonOptions(mode, drop_function_words=True)) == []
    assert len(tokens("not for us", CanonOptions(mode))) == 3


def test_possessives_fold_with_their_noun():
    assert tokens("the dogs’ bone, the dog's bone, dog bone", DROPPING) == ["dog", "bone"] * 3


def test_words_with_digits_and_overlong_ones_stay_as_they_are():
    language = language_class("en")(CanonOptions())
    for word in ("mp3s", "a" * 65, "\ud800", "'"):
        assert language.canonical(word) == word


def test_accented_words_are_stemmed_with_their_accents():
    assert tokens("cafés") == ["café"]


def test_any_takes_words_of_every_script_and_drops_nothing():
    canonicalizer = Canonicalizer(references(["any"]))
    found = [token.text for token in canonicalizer.tokens("The ΚΑΛΗΜΈΡΑ и გამარჯობა 42")]
    assert found == ["the", "καλημέρα", "и", "გამარჯობა", "42"]
