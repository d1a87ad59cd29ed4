"""Compiled minima and repeats are those of numpy, whatever the documents and functions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shinglefold.scheme import SketchOptions
from shinglefold.sketch import Sketcher
from shinglefold.sketch.minhash import Affine32, minima
from shinglefold.sketch.shingles import batch_shingles, count_repeats, shingle_counts

pytest.importorskip("numba")

from shinglefold.sketch.compiled import compiled_minima, compiled_repeats


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


@given(
    st.lists(st.lists(st.integers(0, 6), max_size=40), max_size=8),
    st.integers(1, 4),
    st.sampled_from([1, 2**30, 2**61, 0x9E3779B97F4A7C15]),
)
@settings(max_examples=150, deadline=None)
def test_repeats_make_the_same_elements(documents, width, stride):
    offsets = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    hashes = np.array([token for one in documents for token in one], np.uint64) * np.uint64(stride)
    shingles = batch_shingles(hashes, offsets, width)
    expected, found = shingles.copy(), shingles.copy()
    count_repeats(expected, offsets, width)
    compiled_repeats(found, offsets, width)
    for begin, end, count in zip(offsets, offsets[1:], shingle_counts(offsets, width), strict=False):
        if count:
            assert np.sort(found[begin:end]).tobytes() == np.sort(expected[begin:end]).tobytes()


def test_a_word_repeated_makes_the_same_sketch_either_way():
    offsets = np.array([0, 1, 30_000, 30_002, 60_000], np.int64)
    hashes = np.repeat(np.array([7, 8], np.uint64), 30_000)
    one, other = (tool.sketch(hashes, offsets) for tool in (Sketcher(), Sketcher().compiled()))
    assert one.minima.tobytes() == other.minima.tobytes()
