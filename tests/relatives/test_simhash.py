import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sketches import batch, pairs_of_resemblance, random_tokens, words_of_a_text

from shinglefold.errors import ConfigError
from shinglefold.relatives.simhash import WIDTHS, distance, simhashes, similarity, window_simhashes


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
