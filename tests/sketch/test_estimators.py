"""Estimates and exact measures of resemblance."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sketches import batch, pairs_of_resemblance, random_tokens, sketcher

from shinglefold.model.scheme import SketchOptions
from shinglefold.sketch.b_bit_minhash import (
    agreement_rows,
    estimate,
    least_estimate,
    length_ratio,
    low_bits,
    pack,
    standard_error,
    unbiased_resemblance,
)
from shinglefold.sketch.shingles import containment, resemblance, sorensen
from shinglefold.sketch.sketcher import token_digests
from shinglefold.sketch.verification import LONGEST, Texts, Words, alike_by_text, similarity

PAIRS = 1200


@pytest.fixture(scope="module", params=[0.1, 0.3, 0.62, 0.8, 0.95])
def known(request):
    """Minima of many pairs of one exact resemblance."""
    ones, others, exact = pairs_of_resemblance(request.param, PAIRS)
    tool = sketcher()
    return tool.sketch(*ones, 1).minima, tool.sketch(*others, 1).minima, exact


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16, 32])
def test_the_estimate_is_unbiased_and_its_error_as_stated(known, bits):
    one, other, exact = known
    agreeing = agreement_rows(*(pack(low_bits(m, bits), bits) for m in (one, other)), bits, 168)
    estimates = unbiased_resemblance(agreeing / 168, bits)
    stated = standard_error(exact, 168, bits)
    assert abs(estimates.mean() - exact) < 3.5 * stated / np.sqrt(PAIRS)
    # Were the functions dependent, the estimates would scatter wider than independent draws.
    assert estimates.std() == pytest.approx(stated, rel=0.08)


def test_each_function_agrees_as_often_as_the_sets_resemble(known):
    one, other, exact = known
    shares = (one == other).mean(axis=0)
    deviations = (shares - exact) / np.sqrt(exact * (1 - exact) / PAIRS)
    assert np.abs(deviations).max() < 4.5
    assert deviations.std() == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize(("size", "groups"), [(4, 21), (6, 14), (14, 6)])
def test_groups_agree_as_often_as_independent_minima_would(known, size, groups):
    one, other, exact = known
    equal = (one == other)[:, : size * groups].reshape(PAIRS, groups, size).all(axis=2)
    expected = exact**size
    error = np.sqrt(expected * (1 - expected) / equal.size)
    assert abs(equal.mean() - expected) < 4 * error + 1e-4


def test_strangers_agree_by_chance_and_are_estimated_at_nothing():
    ones, others, _ = pairs_of_resemblance(0.0, 500)
    tool = sketcher()
    signatures = [tool.signatures(tool.sketch(*documents, 1)) for documents in (ones, others)]
    agreeing = agreement_rows(*signatures, 4, 168)
    assert agreeing.mean() == pytest.approx(168 / 16, rel=0.03)
    assert unbiased_resemblance(agreeing / 168, 4).mean() == pytest.approx(0.0, abs=0.005)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("tokens", [4, 8, 20])
def test_short_strangers_agree_no_more_unevenly_than_long_ones(tokens, bits):
    rng = np.random.default_rng(3)
    drawn = [batch(list(rng.integers(1, 2**64, (1500, tokens), dtype=np.uint64))) for _ in range(2)]
    one, other = (low_bits(sketcher().sketch(*documents, 1).minima, bits) for documents in drawn)
    estimates = unbiased_resemblance((one == other).mean(axis=1), bits)
    assert abs(estimates.mean()) < 4 * standard_error(0.0, 168, bits) / np.sqrt(1500)
    assert estimates.std() == pytest.approx(standard_error(0.0, 168, bits), rel=0.1)


def test_the_estimate_of_a_number_is_a_number_and_of_an_array_an_array():
    one, error = estimate(120, 168, 4)
    many, errors = estimate(np.array([0, 120, 168]), 168, 4)
    assert isinstance(one, float)
    assert isinstance(error, float)
    assert many.tolist() == [0.0, one, 1.0]
    assert errors[1] == error
    assert one == pytest.approx((120 / 168 - 1 / 16) / (15 / 16))


def test_the_length_ratio_is_1_for_equal_lengths_and_for_none():
    assert length_ratio([0, 10, 10, 0], [0, 10, 30, 5]).tolist() == [1.0, 1.0, 0.5, 0.0]
    assert float(length_ratio(8, 12)) == 0.8


sets = st.sets(st.integers(0, 60) | st.just(2**64 - 1))


def as_array(numbers):
    return np.array(sorted(numbers), np.uint64)


@given(sets, sets)
def test_the_measures_are_those_of_the_definitions(one, other):
    a, b = as_array(one), as_array(other)
    both = len(one & other)
    assert resemblance(a, b) == (both / len(one | other) if one | other else 0.0)
    assert containment(a, b) == (both / len(one) if one else 0.0)
    assert sorensen(a, b) == (2 * both / (len(one) + len(other)) if one | other else 0.0)
    assert resemblance(a, b) == resemblance(b, a)


@given(st.lists(st.lists(st.integers(0, 2), max_size=5), max_size=8))
def test_digests_are_equal_exactly_where_the_tokens_are(documents):
    letters = random_tokens(1, 3)
    found = token_digests(*batch([letters[np.array(document, np.int64)] for document in documents]))
    for one, of_one in zip(documents, found, strict=True):
        assert len(of_one) == (12 if len(one) >= 2 else 0)
        for other, of_other in zip(documents, found, strict=True):
            assert len(one) < 2 or (one == other) == (of_one == of_other)


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
