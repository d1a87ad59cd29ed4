"""Compiled sketches are those of numpy, whatever the documents and options."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.servers.choose import examples

from shinglefold.model.scheme import SketchOptions
from shinglefold.sketch.sketcher import Sketcher

pytest.importorskip("numba")

_VALUES = st.sampled_from([
    SketchOptions(),
    SketchOptions(values=168, bits=4, counted=False, both_ends=False),
    SketchOptions(values=84, bits=8, groups=6, group_size=14, both_ends=False),
    SketchOptions(values=7, bits=1, groups=2, group_size=3, counted=False, both_ends=False, min_shingles=1),
    SketchOptions(values=1, bits=32, groups=1, group_size=1, both_ends=False, min_shingles=9),
    SketchOptions(values=30, bits=16, groups=3, group_size=5, counted=False, min_shingles=2),
])  # fmt: skip


def alike(options: SketchOptions, hashes, offsets, widths=None) -> None:
    plain = Sketcher(options)
    one, other = (tool.sketch(hashes, offsets, widths) for tool in (plain, plain.compiled()))
    assert one.minima.dtype == other.minima.dtype
    assert one.minima.tobytes() == other.minima.tobytes()
    assert one.valid.tolist() == other.valid.tolist()
    assert one.shingles.tolist() == other.shingles.tolist()


@given(
    st.lists(st.lists(st.integers(0, 6), max_size=40), max_size=8),
    st.integers(1, 10),
    st.sampled_from([1, 2**30, 2**61, 0x9E3779B97F4A7C15]),
    _VALUES,
)
@example([], 2, 1, SketchOptions())
@example([[]], 2, 1, SketchOptions())
@example([[0] * 40, [1, 2]], 1, 1, SketchOptions(min_shingles=1))
@settings(max_examples=examples(200), deadline=None)
def test_words_that_come_again_make_the_same_sketches(documents, width, stride, options):
    offsets = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    hashes = np.array([token for one in documents for token in one], np.uint64) * np.uint64(stride)
    alike(options, hashes, offsets, width)


@given(st.lists(st.integers(0, 3_000), max_size=12), st.integers(0, 2**32), _VALUES)
@settings(max_examples=examples(60), deadline=None)
def test_documents_of_any_length_and_widths_make_the_same_sketches(lengths, seed, options):
    chance = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    hashes = chance.integers(0, 2**64, offsets[-1], dtype=np.uint64)
    alike(options, hashes, offsets, chance.integers(1, 6, len(lengths)))


def test_a_word_repeated_makes_the_same_sketch_either_way():
    offsets = np.array([0, 1, 30_000, 30_002, 60_000], np.int64)
    alike(SketchOptions(), np.repeat(np.array([7, 8], np.uint64), 30_000), offsets)
