"""Edit similarity is exact, is cut off without loss, and asks no pair in vain that it might not need."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.model.scheme import SketchOptions
from shinglefold.sketch.b_bit_minhash import least_estimate
from shinglefold.sketch.verification import LONGEST, Texts, Words, alike_by_text, similarity

SEQUENCES = st.lists(st.integers(0, 5), max_size=30)


def longest_common(one, other):
    row = [0] * (len(other) + 1)
    for a in one:
        before, row = row, [0]
        for place, b in enumerate(other):
            row.append(before[place] + 1 if a == b else max(before[place + 1], row[-1]))
    return row[-1]


def words(*documents):
    ends = np.cumsum([0, *map(len, documents)])
    return Words(np.array([word for one in documents for word in one], np.uint32), ends)


@given(SEQUENCES, SEQUENCES)
def test_it_is_the_share_of_words_that_stand_in_both_in_order(one, other):
    total = len(one) + len(other)
    told = 2 * longest_common(one, other) / total if one and other else 0.0
    assert similarity(one, other) == pytest.approx(told)


@given(SEQUENCES, SEQUENCES, st.sampled_from([0.1, 0.2, 0.5, 0.7, 0.8, 0.9, 1.0]))
def test_a_cut_off_loses_no_pair_not_even_one_of_exactly_so_much(one, other, least):
    exact, cut = similarity(one, other), similarity(one, other, least)
    assert cut == (pytest.approx(exact) if exact >= least - 1e-9 else 0.0)


def test_one_word_of_ten_replaced_leaves_nine_tenths():
    assert similarity(range(10), [*range(9), 99]) == pytest.approx(0.9)


def test_texts_without_words_are_alike_to_nothing():
    assert similarity([], []) == similarity([], [1]) == 0.0


def test_a_text_that_is_too_long_is_left_to_its_signature():
    found = words([1, 2, 3], [1, 2, 4], range(LONGEST + 1)).similarities(
        np.array([0, 0, 1]), np.array([1, 2, 2]), 0.5
    )
    assert found[0] == pytest.approx(2 / 3)
    assert np.isnan(found[1:]).all()


def test_words_survive_their_journey_between_processes():
    made = words([1, 2], [], [3])
    packed = Words.packed(list(made.bytes_of()))
    assert packed.numbers.tolist() == made.numbers.tolist()
    assert packed.offsets.tolist() == made.offsets.tolist()


def test_words_of_hashes_differ_where_the_hashes_do():
    hashes = np.array([7 << 32, 8 << 32, 7 << 32], np.uint64)
    assert Words.of(hashes, np.array([0, 3])).numbers.tolist() == [7, 8, 7]


@pytest.mark.parametrize("least", [0.5, 0.7, 0.8, 0.9, 1.0])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_no_pair_similar_enough_has_less_resemblance_than_the_worst_case(least, width):
    chance = random.Random(84)
    options = SketchOptions()
    for _ in range(200):
        one = list(range(chance.randrange(50, 300)))
        other = [word for word in one if chance.random() < 0.9]
        other = [chance.randrange(10_000, 99_999) if chance.random() < 0.2 else word for word in other]
        if similarity(one, other) < least:
            continue
        a, b = ({tuple(x[i : i + width]) for i in range(len(x) - width + 1)} for x in (one, other))
        # The estimate may be two standard errors lower, which is taken off already.
        assert len(a & b) / len(a | b) >= least_estimate(least, width, options)


def test_tokens_are_looked_at_anywhere_only_where_there_is_hope():
    said = words(range(20), range(19, -1, -1), range(20), [*range(19), 99])
    texts = Texts(said, said)
    a, b = np.array([0, 0, 0, 0]), np.array([1, 1, 2, 3])
    as_bags = np.array([True, False, False, False])
    alike, found = alike_by_text(texts, a, b, 0.9, as_bags)
    assert alike.tolist() == [True, False, True, True]
    assert found.tolist() == pytest.approx([0.05, 0.0, 1.0, 0.95])
    everywhere, _ = alike_by_text(texts, a, b, 0.9)
    assert everywhere.all()
