"""Tolerant passages: what is near is found, and time and memory stay bounded however much texts repeat."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.sketches import random_tokens
from support.soon import soon

from shinglefold.model.values import PlacedTokens
from shinglefold.passages import seeds
from shinglefold.passages.alignment import passages_between
from shinglefold.passages.seeds import DISTANCE, MOST_PAIRS, bounded_pairs, near_pairs
from shinglefold.passages.shingle_positions import Elements, elements_of

texts = st.lists(st.integers(0, 4), max_size=40)
widths = st.integers(1, 6)


def elements(numbers, width=5) -> Elements:
    tokens = random_tokens(1, 100_000)[np.array(numbers, int)]
    places = np.arange(len(tokens)) * 2
    return elements_of(PlacedTokens(tokens, places, places + 1), width, tolerant=True)


def as_set(pairs):
    return set(map(tuple, pairs.tolist()))


@given(texts, texts, widths)
@example([0] * 5, [0] * 13, 1)
@example([0, 1] * 5, [0, 1] * 7, 2)
def test_pairs_are_near_by_their_bits_and_share_all_words_but_one(one, other, width):
    a, b = elements(one, width), elements(other, width)
    wanted = {
        (at, there)
        for at in range(len(a))
        for there in range(len(b))
        if (int(a.near[at]) ^ int(b.near[there])).bit_count() <= DISTANCE
        and (Counter(one[at : at + width]) & Counter(other[there : there + width])).total() >= width - 1
    }
    found = near_pairs(a, b)
    assert as_set(found.pairs) <= wanted
    assert len(found.pairs) + found.left_out == len(wanted)
    # Two elements may have so many pairs that not all are listed, as where nothing is tolerated.
    assert not found.left_out or len(wanted) > MOST_PAIRS
    assert found.crowded == 0


@given(texts, texts, widths)
@settings(max_examples=50)
def test_what_is_bounded_has_all_that_exact_elements_have_and_tells_the_rest(one, other, width):
    a, b = elements(one * 9, width), elements(other * 9, width)
    whole = near_pairs(a, b)
    assert as_set(bounded_pairs(a, b).pairs) <= as_set(whole.pairs)
    assert whole.left_out >= 0
    assert (a.words == elements(one * 9, width).words).all()
    assert len(whole.pairs) <= max(seeds.FREE_PAIRS, 2 * (len(a) + len(b))) + len(bounded_pairs(a, b).pairs)


def test_where_too_many_look_alike_those_of_the_same_words_are_found_all_the_same(monkeypatch):
    monkeypatch.setattr(seeds, "_FREE_COMPARED", 0)
    monkeypatch.setattr(seeds, "_COMPARED", 0)
    # One word three times decides every bit: all of these look alike.
    a = elements([word for at in range(10, 400, 2) for word in (1, 1, 1, at, at + 1)])
    b = elements([word for at in range(10, 400, 2) for word in (1, 1, 1, at + 1, at)])
    found = near_pairs(a, b)
    assert found.crowded > 100
    assert {(at, at) for at in range(0, len(a), 5)} <= as_set(found.pairs)


@pytest.mark.long
def test_long_texts_that_repeat_much_take_little_time():
    chosen = np.random.default_rng(1)
    often = chosen.integers(0, 4, 15_000)
    rare = chosen.integers(0, 50_000, 15_000)
    numbers = np.where(chosen.random(15_000) < 0.7, often, rare)
    a, b = elements(numbers), elements(numbers[::-1].copy())
    with soon(walks=400):
        passages_between(a, b, tolerant=True)


def test_a_phrase_repeated_ten_thousand_times_is_one_passage():
    a, b = elements([1, 2, 3, 4] * 10_000), elements([5, *[1, 3, 2, 4] * 9_000])
    with soon(walks=200):
        found = passages_between(a, b, tolerant=True)
    assert found.left_out > 10**6
    assert found.passages
