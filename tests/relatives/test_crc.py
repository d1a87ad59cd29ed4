import binascii

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.relatives.fingerprints import crc32, crc64

#: The check value every catalogue of checksums gives is that of these digits.
DIGITS = b"123456789"


def whole(data):
    return data, np.array([0]), np.array([len(data)])


def test_the_check_values_are_those_of_the_catalogue():
    assert crc32(*whole(DIGITS)).tolist() == [0xCBF43926]
    assert crc64(*whole(DIGITS)).tolist() == [0x995DC9BBDF1939FA]


@given(st.binary(max_size=80), st.data())
def test_each_piece_has_the_checksum_of_its_bytes(data, drawn):
    cuts = drawn.draw(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80)), max_size=5))
    starts, ends = np.array(cuts, np.int64).reshape(-1, 2).T
    pieces = [data[start:end] for start, end in cuts]
    assert crc32(data, starts, ends).tolist() == [binascii.crc32(piece) for piece in pieces]
    assert crc64(data, starts, ends).tolist() == [crc64(*whole(piece))[0] for piece in pieces]
