import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.errors import ConfigError
from shinglefold.sketch.b_bit_minhash import (
    agreement_rows,
    bit_planes,
    differing,
    low_bits,
    pack,
    packed_size,
)

codecs = st.sampled_from([1, 2, 4, 8, 16, 32])


@st.composite
def rows(draw, most=8):
    """Random values below 2^bits, few of them distinct so that many agree; and the bits."""
    bits, values, count = draw(codecs), draw(st.integers(1, 150)), draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    few = rng.integers(0, 2**bits, 3, dtype=np.uint32)
    return few[rng.integers(0, 3, (count, values))], bits


def unpacked(row, bits, values):
    """Return the values of a signature, read bit by bit."""
    whole = int.from_bytes(row.tobytes(), "little")
    return [whole >> place * bits & 2**bits - 1 for place in range(values)]


@given(rows())
def test_what_is_packed_can_be_unpacked(case):
    values, bits = case
    packed = pack(values, bits)
    assert packed.shape == (len(values), packed_size(values.shape[1], bits))
    assert packed.dtype == np.uint8
    assert [unpacked(row, bits, values.shape[1]) for row in packed] == values.tolist()


@given(rows(most=20))
def test_agreement_counts_equal_values(case):
    values, bits = case
    packed, held = pack(values, bits), values.shape[1]
    naive = (values[:, None] == values).sum(axis=2)
    assert (agreement_rows(packed[:1], packed, bits, held) == naive[0]).all()
    assert (
        agreement_rows(packed, packed[::-1], bits, held)
        == naive[range(len(values)), range(len(values))[::-1]]
    ).all()


@given(rows(most=20))
def test_planes_count_differing_values_of_every_two_rows(case):
    values, bits = case
    planes = bit_planes(pack(values, bits), bits)
    assert (differing(planes, planes) == (values[:, None] != values).sum(axis=2)).all()


def test_no_documents_agree_in_nothing():
    none = np.zeros((0, 84), np.uint8)
    assert agreement_rows(none, none, 4, 168).shape == (0,)


@given(codecs)
def test_no_documents_pack_to_no_rows(bits):
    packed = pack(np.zeros((0, 20), np.uint32), bits)
    assert packed.shape == (0, packed_size(20, bits))


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
    for size in (42, 84):
        with pytest.raises(ConfigError, match=f"of 84 and {size} bytes can't be compared"):
            agreement_rows(np.zeros((1, 84), np.uint8), np.zeros((2, size), np.uint8), 4, 84)


@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize("words", [1, 3, 4, 5, 8, 16])
def test_signatures_that_differ_in_every_value_are_counted_as_such(words, bits):
    blank, full = (bit_planes(np.full((1, 8 * words * bits), byte, np.uint8), bits) for byte in (0, 255))
    assert differing(blank, full).tolist() == [[64 * words]]
    assert differing(full, full).tolist() == [[0]]
