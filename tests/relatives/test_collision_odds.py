import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.errors import ConfigError
from shinglefold.relatives.collision_odds import (
    WIDTHS,
    collision_probability,
    expected_collisions,
    most_shingles,
    table,
    width_for,
)


def test_the_table_is_the_formula():
    by_bits = {row.bits: row for row in table()}
    assert by_bits[32].root == 65_536
    assert by_bits[64].root == 2**32
    assert by_bits[32].shingles == pytest.approx((9_292, 30_084, 66_241), abs=1)
    assert by_bits[72].shingles[0] == pytest.approx(9_292 * 2**20, rel=1e-4)


def test_the_literature_expects_12535_collisions_in_32_bits():
    assert expected_collisions(10_376_876, 32) == pytest.approx(12_535, abs=1)


@pytest.mark.parametrize("chance", [0.01, 0.1, 0.4])
def test_so_many_shingles_do_collide_so_often(chance):
    bits, runs = 20, 2_000
    count = round(most_shingles(bits, chance))
    drawn = np.random.default_rng(3).integers(0, 2**bits, (runs, count))
    drawn.sort(axis=1)
    collided = (np.diff(drawn) == 0).any(axis=1).mean()
    assert abs(collided - chance) < 4 * np.sqrt(chance * (1 - chance) / runs)


@given(st.integers(0, 10**8), st.floats(1e-4, 0.9))
def test_the_advised_width_is_the_narrowest_that_will_do(shingles, chance):
    bits = width_for(shingles, chance)
    assert collision_probability(shingles, bits) <= chance
    narrower = [width for width in WIDTHS if width < bits]
    assert all(collision_probability(shingles, width) > chance for width in narrower)


def test_too_many_shingles_are_told_what_to_do():
    with pytest.raises(ConfigError, match="128 bits"):
        width_for(10**12, 0.01)
