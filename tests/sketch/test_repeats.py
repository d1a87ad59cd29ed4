"""Repeats of shingles in long texts are counted in parts, and come to the same elements as all at once."""

from itertools import pairwise

import numpy as np
import pytest

from shinglefold.sketch import shingles as module
from shinglefold.sketch.shingles import batch_shingles, count_repeats


@pytest.mark.parametrize("words", [1, 5, 300, 20_000])
@pytest.mark.parametrize("width", [1, 2])
def test_parts_make_the_same_elements_as_one_sort(monkeypatch, words, width):
    generator = np.random.default_rng(words)
    vocabulary = generator.integers(0, 2**64, words, np.uint64)
    hashes = vocabulary[generator.integers(0, words, 20_000)]
    offsets = np.array([0, 9_000, 9_001, 20_000])
    whole, parts = (batch_shingles(hashes, offsets, width) for _ in range(2))
    count_repeats(whole, offsets, width)
    monkeypatch.setattr(module, "_SORTED", 1_000)
    count_repeats(parts, offsets, width)
    for begin, end in pairwise(offsets):
        assert np.array_equal(np.sort(whole[begin:end]), np.sort(parts[begin:end]))
