"""Similarity hashes and their index."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sketches import batch, pairs_of_resemblance, random_tokens, words_of_a_text

from shinglefold.errors import ConfigError
from shinglefold.relatives.reference_points import (
    cosine,
    on_two_grids,
    round_to_grid,
    separation_probability,
    values,
)
from shinglefold.relatives.simhash import (
    WIDTHS,
    HammingIndex,
    distance,
    near_once,
    simhashes,
    similarity,
    window_simhashes,
)


def by_definition(features, weights):
    value = 0
    for bit in range(64):
        balance = sum(
            weight if int(feature) >> bit & 1 else -weight
            for feature, weight in zip(features, weights, strict=True)
        )
        value |= int(balance > 0) << bit
    return value


@given(st.lists(words_of_a_text(most=12), max_size=5), st.booleans(), st.data())
def test_each_bit_is_what_outweighs(documents, weighted, data):
    features, offsets = batch(documents)
    drawn = data.draw(st.lists(st.integers(0, 9), min_size=len(features), max_size=len(features)))
    weights = np.array(drawn, float) if weighted else np.ones(len(features))
    found = simhashes(features, offsets, 64, weights if weighted else None)
    parts = zip(np.split(features, offsets[1:-1]), np.split(weights, offsets[1:-1]), strict=True)
    assert found[:, 0].tolist() == [by_definition(*part) for part in parts][: len(documents)]


def test_documents_go_on_over_blocks():
    documents = [random_tokens(at, length) for at, length in enumerate((20_000, 0, 5, 40_000, 1))]
    together = simhashes(*batch(documents), bits=128)
    alone = np.concatenate([simhashes(*batch([document]), bits=128) for document in documents])
    assert np.array_equal(together, alone)


@pytest.mark.parametrize("bits", WIDTHS)
def test_similar_documents_differ_in_few_bits_and_strangers_in_half(bits):
    ones, others, _ = pairs_of_resemblance(0.9, 200)
    alike = similarity(simhashes(*ones, bits=bits), simhashes(*others, bits=bits), bits)
    strangers = similarity(simhashes(*ones, bits=bits)[:-1], simhashes(*others, bits=bits)[1:], bits)
    # |A ∩ B|/√(|A|·|B|) is .947 here; the angle between the two is .104 of a half turn.
    assert abs(alike.mean() - 0.896) < 0.02
    assert abs(strangers.mean() - 0.5) < 0.02


def test_narrow_hashes_are_the_low_bits_of_wide_ones():
    features = batch([random_tokens(at, 30) for at in range(20)])
    wide, middle, narrow = (simhashes(*features, bits=bits) for bits in (128, 64, 32))
    assert np.array_equal(wide[:, :1], middle)
    assert np.array_equal(middle & np.uint64(2**32 - 1), narrow)
    assert not np.array_equal(wide[:, 1], wide[:, 0])


@given(st.lists(st.integers(0, 2**64 - 1), max_size=60), st.integers(1, 12))
def test_windows_have_the_simhash_of_their_features(features, width):
    array = np.array(features, np.uint64)
    count = max(0, len(array) - width + 1)
    windows = np.lib.stride_tricks.sliding_window_view(array, width) if count else array[:0]
    wanted = simhashes(np.ravel(windows), np.arange(count + 1) * width)[:, 0]
    assert window_simhashes(array, width).tolist() == wanted.tolist()


def test_windows_go_on_over_blocks():
    array = random_tokens(2, 40_000)
    found = window_simhashes(array, 5)
    assert len(found) == 39_996
    for at in (0, 16_383, 16_384, 32_768, 39_995):
        assert found[at] == window_simhashes(array[at : at + 5], 5)[0]


def test_the_distance_counts_bits():
    assert distance(np.array([[0b1011, 1]], np.uint64), np.array([[0b0001, 0]], np.uint64)).tolist() == [3]


def test_other_widths_are_refused():
    with pytest.raises(ConfigError, match="32, 64, 128"):
        simhashes(random_tokens(0, 3), np.array([0, 3]), bits=16)


def scanned(fingerprints, queries, distance):
    differing = np.bitwise_count(queries[:, None] ^ fingerprints[None, :])
    return [tuple(pair) for pair in np.argwhere(differing <= distance).tolist()]


def changed(values, flips, seed):
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


@pytest.mark.long
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


reals = st.floats(-50, 50)


@pytest.mark.parametrize("resemblance", [0.5, 0.8, 0.95])
def test_values_of_similar_texts_are_near_and_tell_the_cosine(resemblance):
    ones, others, exact = pairs_of_resemblance(resemblance, 300)
    one, other = values(*ones, count=84), values(*others, count=84)
    expected = 2 * exact / (1 + exact)
    found = cosine(one, other)
    assert abs(found.mean() - expected) < 0.02
    assert found.std() == pytest.approx(np.sqrt(2 / 84) * (1 - expected), rel=0.25)
    assert one.std() == pytest.approx(1.0, abs=0.05)


def test_an_empty_document_has_no_values():
    assert not values(*batch([np.zeros(0, np.uint64)]), count=5).any()


@given(reals, reals, st.floats(0.1, 5))
def test_values_less_than_half_a_step_apart_are_equal_on_one_grid_of_two(a, difference, step):
    b = a + difference % (step / 2) * 0.999
    both = on_two_grids(np.array([a, b]), step)
    assert (both[0] == both[1]).any()


@given(reals, st.floats(0.1, 5), st.floats(0, 1))
def test_a_value_is_rounded_to_the_nearest_point(value, step, shift):
    point = (round_to_grid(np.array([value]), step, shift)[0] - shift) * step
    assert abs(point - value) <= step / 2 * (1 + 1e-9)


@pytest.mark.parametrize("grids", [1, 2])
@pytest.mark.parametrize("difference", [0.0, 0.1, 0.4, 0.7, 0.9, 1.5])
def test_the_border_parts_as_many_as_the_formula_says(grids, difference):
    first = np.random.default_rng(3).uniform(-10, 10, 20_000)
    one, other = on_two_grids(first, 1.0), on_two_grids(first + difference, 1.0)
    apart = (one != other)[:, :grids].all(axis=1).mean()
    assert apart == pytest.approx(separation_probability(difference, 1.0, grids), abs=0.015)


def test_a_grid_needs_a_step():
    with pytest.raises(ConfigError):
        round_to_grid(np.zeros(1), 0.0)
