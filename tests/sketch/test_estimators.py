import numpy as np
import pytest
from support.sketches import batch, pairs_of_resemblance, sketcher

from shinglefold.sketch.b_bit_minhash import (
    agreement_rows,
    corrected,
    estimate,
    length_ratio,
    low_bits,
    pack,
    standard_error,
)

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
    estimates = corrected(agreeing / 168, bits)
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
    assert corrected(agreeing / 168, 4).mean() == pytest.approx(0.0, abs=0.005)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("tokens", [4, 8, 20])
def test_short_strangers_agree_no_more_unevenly_than_long_ones(tokens, bits):
    rng = np.random.default_rng(3)
    drawn = [batch(list(rng.integers(1, 2**64, (1500, tokens), dtype=np.uint64))) for _ in range(2)]
    one, other = (low_bits(sketcher().sketch(*documents, 1).minima, bits) for documents in drawn)
    estimates = corrected((one == other).mean(axis=1), bits)
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


def test_the_standard_error_matches_the_measured_comparison_of_codecs():
    assert standard_error(0.6, 84, 8) == pytest.approx(0.054, abs=0.001)
    assert standard_error(0.6, 168, 4) == pytest.approx(0.040, abs=0.001)
    assert standard_error(0.6, 336, 2) == pytest.approx(0.033, abs=0.002)


def test_the_length_ratio_is_1_for_equal_lengths_and_for_none():
    assert length_ratio([0, 10, 10, 0], [0, 10, 30, 5]).tolist() == [1.0, 1.0, 0.5, 0.0]
    assert float(length_ratio(8, 12)) == 0.8
