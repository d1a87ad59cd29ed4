"""Repeats of shingles in long texts are counted in parts, and come to the same elements as all at once."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(1, 2**64 - 1))
def test_keys_that_differ_in_any_bit_alone_are_told_apart(drawn, stride):
    # Multiples of a power of two differ in the highest bits alone, of a small number in the lowest.
    keys = np.array(drawn, np.uint64) * np.uint64(stride)
    places, numbers = module._repeats(keys)
    assert sorted(zip(keys[places].tolist(), numbers.tolist(), strict=True)) == _counted(keys.tolist())


@pytest.mark.parametrize("stride", [1, 2**12, 2**60])
def test_many_keys_that_differ_in_few_bits_are_told_apart(stride):
    keys = np.random.default_rng(1).permutation(
        np.repeat(np.arange(16, dtype=np.uint64) * np.uint64(stride), 500)
    )
    places, numbers = module._repeats(keys)
    assert sorted(zip(keys[places].tolist(), numbers.tolist(), strict=True)) == _counted(keys.tolist())


def _counted(keys):
    """Return each key that came before, with how often it had."""
    seen = Counter()
    found = []
    for key in keys:
        if seen[key]:
            found.append((key, seen[key]))
        seen[key] += 1
    return sorted(found)
