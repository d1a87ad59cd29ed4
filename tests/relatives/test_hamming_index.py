import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sketches import random_tokens

from shinglefold.errors import ConfigError
from shinglefold.relatives.hamming_index import HammingIndex, near_once


def scanned(fingerprints, queries, distance):
    differing = np.bitwise_count(queries[:, None] ^ fingerprints[None, :])
    return [tuple(pair) for pair in np.argwhere(differing <= distance).tolist()]


def changed(values, flips, seed):
    """Some bits of each flipped."""
    chance = np.random.default_rng(seed)
    for _ in range(flips):
        values = values ^ (np.uint64(1) << chance.integers(0, 64, len(values)).astype(np.uint64))
    return values


close = st.integers(0, 2**64 - 1) | st.integers(0, 15)


@settings(deadline=None)
@given(
    st.lists(close, max_size=30),
    st.lists(close, max_size=10),
    st.integers(0, 8),
    st.none() | st.integers(9, 11),
)
def test_the_index_equals_a_scan(stored, asked, distance, blocks):
    fingerprints, queries = np.array(stored, np.uint64), np.array(asked, np.uint64)
    found = HammingIndex(fingerprints, distance, blocks).within(queries)
    assert [tuple(pair) for pair in np.stack(found, 1).tolist()] == scanned(fingerprints, queries, distance)


def test_the_index_equals_a_scan_on_a_million():
    fingerprints = np.random.default_rng(1).integers(0, 2**64, 1_000_000, np.uint64)
    queries = np.concatenate(
        [changed(fingerprints[at : at + 5], flips, at) for at, flips in enumerate(range(6))]
    )
    asked, found = HammingIndex(fingerprints).within(queries)
    expected = [
        (number, int(near))
        for number, query in enumerate(queries)
        for near in np.flatnonzero(np.bitwise_count(fingerprints ^ query) <= 3)
    ]
    assert list(zip(asked.tolist(), found.tolist(), strict=True)) == expected
    assert len(expected) >= 20


@given(st.integers(0, 3), st.integers(0, 200), st.integers(0, 200))
@settings(deadline=None)
def test_what_is_asked_once_is_what_the_index_finds(distance, count, asked):
    fingerprints = random_tokens(1, 300)[:count]
    queries = changed(random_tokens(1, 300)[:asked], 3, 2)
    found = near_once(fingerprints, queries, 1 << 20, distance)
    wanted = HammingIndex(fingerprints, distance).within(queries)
    assert [column.tolist() for column in found[:2]] == [column.tolist() for column in wanted]
    assert not found.crowded.any()


def test_buckets_that_are_too_large_are_passed_over_and_told():
    fingerprints = np.concatenate((np.arange(1000, dtype=np.uint64), random_tokens(3, 1000)))
    found = near_once(fingerprints, fingerprints, 10_000)
    assert found.crowded[:1000].all()
    assert not found.crowded[1000:].any()
    assert set(range(1000, 2000)) <= set(found.queries.tolist())


@pytest.mark.parametrize("distance", [0, 3])
def test_all_pairs_are_those_of_a_scan(distance):
    seeds = np.random.default_rng(2).integers(0, 2**64, 60, np.uint64)
    fingerprints = np.concatenate([changed(seeds, flips, flips) for flips in (0, 0, 1, 3, 5)])
    found = {
        (a, b)
        for one, other in HammingIndex(fingerprints, distance).pairs()
        for a, b in zip(one, other, strict=True)
    }
    assert found == {(a, b) for a, b in scanned(fingerprints, fingerprints, distance) if a < b}


@pytest.mark.parametrize(("distance", "blocks"), [(9, None), (-1, None), (3, 3), (3, 17)])
def test_what_can_t_be_looked_for_is_refused(distance, blocks):
    with pytest.raises(ConfigError):
        HammingIndex(np.zeros(3, np.uint64), distance, blocks)
