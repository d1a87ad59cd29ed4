import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.errors import ConfigError
from shinglefold.sketch.b_bit_minhash import (
    agreement,
    agreement_matrix,
    agreement_rows,
    bit_planes,
    differing,
    low_bits,
    pack,
    packed_size,
    unpack,
)

codecs = st.sampled_from([1, 2, 4, 8, 16, 32])


@st.composite
def rows(draw, most=8):
    """Random values below 2^bits, few of them distinct so that many agree; and the bits."""
    bits, values, count = draw(codecs), draw(st.integers(1, 150)), draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    few = rng.integers(0, 2**bits, 3, dtype=np.uint32)
    return few[rng.integers(0, 3, (count, values))], bits


@given(rows())
def test_what_is_packed_can_be_unpacked(case):
    values, bits = case
    packed = pack(values, bits)
    assert packed.shape == (len(values), packed_size(values.shape[1], bits))
    assert packed.dtype == np.uint8
    assert (unpack(packed, bits, values.shape[1]) == values).all()


@given(rows(most=20))
def test_agreement_counts_equal_values(case):
    values, bits = case
    packed, held = pack(values, bits), values.shape[1]
    naive = (values[:, None] == values).sum(axis=2)
    assert (agreement_matrix(packed, bits, held) == naive).all()
    assert (agreement(packed[0], packed, bits, held) == naive[0]).all()
    assert (
        agreement_rows(packed, packed[::-1], bits, held)
        == naive[range(len(values)), range(len(values))[::-1]]
    ).all()


@given(rows())
def test_without_a_number_of_values_the_filling_counts_as_equal(case):
    values, bits = case
    packed = pack(values, bits)
    filling = packed.shape[1] * 8 // bits - values.shape[1]
    assert (agreement_matrix(packed, bits) == agreement_matrix(packed, bits, values.shape[1]) + filling).all()
    assert (agreement(packed[0], packed, bits) == agreement_matrix(packed, bits)[0]).all()


def test_a_matrix_larger_than_a_block_is_right_and_symmetric():
    packed = np.random.default_rng(1).integers(0, 4, (300, 84), dtype=np.uint8)
    found = agreement_matrix(packed, 4)
    values = unpack(packed, 4, 168)
    assert (found == (values[:, None] == values).sum(axis=2)).all()
    assert (found == found.T).all()
    assert (found.diagonal() == 168).all()


def test_no_documents_agree_in_nothing():
    assert agreement_matrix(np.zeros((0, 84), np.uint8), 4).shape == (0, 0)
    assert agreement(np.zeros(84, np.uint8), np.zeros((0, 84), np.uint8), 4).shape == (0,)


@given(codecs)
def test_no_documents_pack_to_no_rows(bits):
    packed = pack(np.zeros((0, 20), np.uint32), bits)
    assert packed.shape == (0, packed_size(20, bits))
    assert unpack(packed, bits, 20).shape == (0, 20)


def test_the_first_value_stands_lowest():
    assert pack(np.array([[1, 2, 3]], np.uint32), 4).tolist() == [[0x21, 0x03]]
    assert pack(np.array([[1, 0, 1, 1]], np.uint32), 1).tolist() == [[0b1101]]
    assert pack(np.array([[0x1234]], np.uint32), 16).tolist() == [[0x34, 0x12]]


@given(codecs)
def test_low_bits_stay_below_their_bound_and_are_even(bits):
    minima = np.arange(1, 40_001, dtype=np.uint32)[None, :] * np.uint32(16)
    found = low_bits(minima, bits)
    assert int(found.max()) < 2**bits
    assert (found >> np.uint32(bits - 1)).mean() == pytest.approx(0.5, abs=0.02)


def test_32_bits_lose_nothing():
    minima = np.random.default_rng(1).integers(0, 2**32, (1, 100_000), dtype=np.uint32)
    assert len(np.unique(low_bits(minima, 32))) == len(np.unique(minima))


@pytest.mark.parametrize("bits", [0, 3, 64])
def test_other_bits_are_refused(bits):
    with pytest.raises(ConfigError, match="is none of 1, 2, 4, 8, 16, 32"):
        pack(np.zeros((1, 4), np.uint32), bits)


def test_rows_of_another_scheme_are_refused():
    with pytest.raises(ConfigError, match="check the scheme"):
        unpack(np.zeros((1, 84), np.uint8), 4, 84)
    with pytest.raises(ConfigError, match="check their schemes"):
        agreement(np.zeros(84, np.uint8), np.zeros((2, 42), np.uint8), 4)
    with pytest.raises(ConfigError, match="check the scheme"):
        agreement_matrix(np.zeros((2, 84), np.uint8), 4, 84)


@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize("words", [1, 3, 4, 5, 8, 16])
def test_signatures_that_differ_in_every_value_are_counted_as_such(words, bits):
    blank, full = (bit_planes(np.full((1, 8 * words * bits), byte, np.uint8), bits) for byte in (0, 255))
    assert differing(blank, full).tolist() == [[64 * words]]
    assert differing(full, full).tolist() == [[0]]
