import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sketches import batch, pairs_of_resemblance

from shinglefold.errors import ConfigError
from shinglefold.relatives.reference_points import cosine, on_two_grids, parted, rounded, values

reals = st.floats(-50, 50)


@pytest.mark.parametrize("resemblance", [0.5, 0.8, 0.95])
def test_values_of_similar_texts_are_near_and_tell_the_cosine(resemblance):
    ones, others, exact = pairs_of_resemblance(resemblance, 300)
    one, other = values(*ones, count=84), values(*others, count=84)
    expected = 2 * exact / (1 + exact)
    found = cosine(one, other)
    assert abs(found.mean() - expected) < 0.02
    assert found.std() == pytest.approx(np.sqrt(2 / 84) * (1 - expected), rel=0.25)
    assert one.std() == pytest.approx(1.0, abs=0.05)


def test_an_empty_document_has_no_values():
    assert not values(*batch([np.zeros(0, np.uint64)]), count=5).any()


@given(reals, reals, st.floats(0.1, 5))
def test_values_less_than_half_a_step_apart_are_equal_on_one_grid_of_two(a, difference, step):
    b = a + difference % (step / 2) * 0.999
    both = on_two_grids(np.array([a, b]), step)
    assert (both[0] == both[1]).any()


@given(reals, st.floats(0.1, 5), st.floats(0, 1))
def test_a_value_is_rounded_to_the_nearest_point(value, step, shift):
    point = (rounded(np.array([value]), step, shift)[0] - shift) * step
    assert abs(point - value) <= step / 2 * (1 + 1e-9)


@pytest.mark.parametrize("grids", [1, 2])
@pytest.mark.parametrize("difference", [0.0, 0.1, 0.4, 0.7, 0.9, 1.5])
def test_the_border_parts_as_many_as_the_formula_says(grids, difference):
    first = np.random.default_rng(3).uniform(-10, 10, 20_000)
    one, other = on_two_grids(first, 1.0), on_two_grids(first + difference, 1.0)
    apart = (one != other)[:, :grids].all(axis=1).mean()
    assert apart == pytest.approx(parted(difference, 1.0, grids), abs=0.015)


def test_a_grid_needs_a_step():
    with pytest.raises(ConfigError):
        rounded(np.zeros(1), 0.0)
