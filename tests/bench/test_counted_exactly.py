"""The experiments count by these, so they must be exact themselves."""

import sys
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.collisions import _colliding_pairs
from bench.generated import Vocabulary, windows_named
from bench.minhash_variants import _least_xor


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(1, 12))
def test_windows_have_one_number_exactly_where_their_words_are_the_same(words, width):
    windows = [tuple(words[at : at + width]) for at in range(len(words) - width + 1)]
    if not windows:
        return
    named = windows_named(np.array(words), width).tolist()
    assert len(named) == len(windows)
    assert len(set(zip(windows, named, strict=True))) == len(set(windows)) == len(set(named))


@given(st.lists(st.integers(0, 6), max_size=20))
def test_colliding_pairs_are_counted_each(values):
    pairs = sum(a == b for at, a in enumerate(values) for b in values[:at])
    assert _colliding_pairs(np.array(values, np.uint64)) == pairs


hashes = st.integers(0, 2**64 - 1) | st.integers(0, 9)


@given(st.lists(hashes, min_size=1, max_size=30), st.lists(hashes, min_size=1, max_size=8))
def test_the_least_xor_is_that_of_trying_all(shingles, keys):
    ordered, tried = np.unique(np.array(shingles, np.uint64)), np.array(keys, np.uint64)
    assert np.array_equal(_least_xor(ordered, tried), (ordered[:, None] ^ tried).min(axis=0))


def test_made_up_words_are_distinct_and_drawn_by_their_frequency():
    vocabulary = Vocabulary.of(500)
    assert len(set(vocabulary.words)) == 500
    drawn = np.bincount(vocabulary.drawn(200_000, 1), minlength=500) / 200_000
    assert np.abs(drawn - vocabulary.chances).max() < 0.005
