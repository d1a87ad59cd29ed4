import numpy as np
import pytest
from hypothesis import given
from support.sketches import random_tokens, words_of_a_text

from shinglefold.errors import InputError
from shinglefold.relatives.piecewise_hash import Piecewise, piecewise, similarity, ssdeep, ssdeep_similarity


@given(words_of_a_text())
def test_a_text_is_all_like_itself_and_its_hash_is_read_again(tokens):
    found = piecewise(tokens)
    assert Piecewise.parse(str(found)) == found
    assert similarity(found, found) == (1.0 if len(tokens) else 0.0)


def test_a_changed_word_changes_the_letters_around_it_only():
    tokens = random_tokens(1, 1_000)
    edited = tokens.copy()
    edited[500] = 7
    one, other = piecewise(tokens), piecewise(edited)
    assert one.size == other.size
    far = len(one.fine) // 2 - 10
    assert one.fine[:far] == other.fine[:far]
    assert one.fine[-far:] == other.fine[-far:]
    assert 0.9 < similarity(one, other) < 1.0


def test_words_put_in_front_shift_nothing():
    tokens = random_tokens(2, 600)
    longer = np.concatenate((random_tokens(3, 40), tokens))
    assert similarity(piecewise(tokens), piecewise(longer)) > 0.85


def test_strangers_share_few_letters_and_other_sizes_are_not_compared():
    tokens = random_tokens(4, 1_000)
    assert similarity(piecewise(tokens), piecewise(random_tokens(5, 1_000))) < 0.4
    assert similarity(piecewise(tokens), piecewise(tokens[:100])) == 0.0


@pytest.mark.parametrize("length", [1, 50, 400, 3_000])
def test_signatures_have_about_as_many_letters_as_asked_for(length):
    assert len(piecewise(random_tokens(6, length)).fine) <= 100
    assert len(piecewise(random_tokens(6, length)).fine) >= min(32, length // 4)


def test_the_bytes_are_hashed_as_ssdeep_does():
    text = np.random.default_rng(8).bytes(5_000)
    found = ssdeep(text)
    assert found.split(":")[0].isdigit()
    assert ssdeep_similarity(found, found) == 1.0
    assert ssdeep_similarity(found, ssdeep(text + b"more")) > 0.5


def test_what_is_no_hash_of_ssdeep_s_is_told():
    with pytest.raises(InputError):
        ssdeep_similarity("nonsense", "3:a:b")
