"""Compiled minima are those of numpy, whatever the documents and functions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shinglefold.scheme import SketchOptions
from shinglefold.sketch import Sketcher
from shinglefold.sketch.minhash import Affine32, minima

pytest.importorskip("numba")

from shinglefold.sketch.compiled import compiled_minima


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
    st.integers(1, 200),
    st.integers(0, 2**32),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_minima_are_equal(lengths, values, seed, both_ends):
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    shingles = np.random.default_rng(seed).integers(0, 2**64, sum(lengths), dtype=np.uint64)
    shingles[:: max(1, seed % 7)] = np.uint64(2**64 - 1 if seed % 2 else 0)
    functions = Affine32.of(values, seed)
    expected = minima(shingles, starts, functions, both_ends=both_ends)
    found = compiled_minima(shingles, starts, functions, both_ends=both_ends)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def test_of_nothing_there_is_nothing():
    nothing = compiled_minima(np.zeros(0, np.uint64), np.zeros(0, np.int64), Affine32.of(168, 1))
    assert nothing.shape == (0, 168)


def test_a_sketcher_makes_the_same_sketches_either_way():
    chance = np.random.default_rng(3)
    lengths = chance.integers(0, 900, 200)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    hashes = chance.integers(1, 2**64, offsets[-1], dtype=np.uint64)
    widths = chance.integers(1, 6, 200)
    for options in (SketchOptions(), SketchOptions(values=84, groups=6, group_size=14, both_ends=False)):
        plain = Sketcher(options)
        one, other = (tool.sketch(hashes, offsets, widths) for tool in (plain, plain.compiled()))
        assert one.minima.tobytes() == other.minima.tobytes()
        assert one.valid.tolist() == other.valid.tolist()
