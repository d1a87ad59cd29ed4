"""Shingles, their repeats, and the supershingles made of them."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sketches import batch, random_tokens, sketcher

from shinglefold.errors import ConfigError, InputError
from shinglefold.sketch import shingles as module
from shinglefold.sketch.minhash import (
    from_letters,
    hash_bits,
    letters,
    megashingles,
    supershingles,
    to_keywords,
)
from shinglefold.sketch.shingles import batch_shingles, count_repeats, shingle_hashes, shingle_set

widths = st.integers(1, 10)


@given(st.lists(st.integers(1, 4), max_size=60), widths)
def test_shingles_are_equal_exactly_where_their_tokens_are(letters, width):
    tokens = random_tokens(2, 5)[letters] if letters else np.zeros(0, np.uint64)
    windows = [tuple(letters[i : i + width]) for i in range(len(letters) - width + 1)]
    shingles = shingle_hashes(tokens, width).tolist()
    assert len(set(zip(windows, shingles, strict=True))) == len(set(windows)) == len(set(shingles))


@pytest.mark.parametrize("width", range(1, 11))
def test_long_documents_are_hashed_as_short_ones_are(width):
    tokens = random_tokens(4, 40_000)
    whole = shingle_hashes(tokens, width)
    for start in (0, 16_384 - width, 16_384, 32_767):
        assert (whole[start : start + 5] == shingle_hashes(tokens[start : start + 4 + width], width)).all()


@given(st.lists(st.integers(0, 30), max_size=12), widths)
def test_shingles_of_a_batch_never_cross_documents(lengths, width):
    documents = [random_tokens(seed, length) for seed, length in enumerate(lengths)]
    hashes, offsets = batch(documents)
    shingles = batch_shingles(hashes, offsets, width)
    for place, document in enumerate(documents):
        if len(document) >= width:
            found = shingles[offsets[place] : offsets[place + 1]]
            assert (np.unique(found) == shingle_set(document, width)).all()


def test_small_differences_of_tokens_do_not_cancel_out():
    grid = np.arange(1, 65, dtype=np.uint64)
    tokens = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    assert len({int(shingle_hashes(pair, 2)[0]) for pair in tokens}) == 64 * 64


@pytest.mark.parametrize("width", [-1, 0, 11])
def test_a_width_outside_1_to_10_is_refused_with_a_remedy(width):
    with pytest.raises(ConfigError, match="2 to 5 suit most texts"):
        shingle_hashes(random_tokens(1, 20), width)


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


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def written(number, count):
    return "".join(ALPHABET[number >> 6 * place & 63] for place in reversed(range(count)))


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=130))
def test_a_keyword_is_its_slot_and_the_low_bits_of_the_supershingle(row):
    slots = 1 if len(row) <= 64 else 2
    expected = tuple(written(slot, slots) + written(value, 5) for slot, value in enumerate(row))
    assert to_keywords(np.array([row], np.uint64), np.array([True])) == [expected]
    assert hash_bits() == 30


def test_keywords_are_six_url_safe_characters_and_never_equal_across_slots():
    tool = sketcher()
    rows = tool.keywords(tool.sketch(*batch([random_tokens(seed, 50) for seed in range(40)])))
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{6}", keyword) for row in rows for keyword in row)
    assert all(len(row) == 21 == len({keyword[0] for keyword in row}) for row in rows)
    same = to_keywords(np.full((1, 100), 5, np.uint64), np.array([True]))
    assert len(set(same[0])) == 100
    assert {len(keyword) for keyword in same[0]} == {7}
    assert {len(keyword) for keyword in to_keywords(np.full((1, 64), 5, np.uint64), np.array([True]))[0]} == {
        6
    }


def test_documents_without_enough_shingles_have_no_keywords():
    tool = sketcher()
    found = tool.sketch(*batch([random_tokens(1, 1), random_tokens(2, 50), random_tokens(3, 4)]))
    assert [len(row) for row in tool.keywords(found)] == [0, 21, 0]
    assert not tool.supershingles(found)[[0, 2]].any()
    assert not tool.signatures(found)[[0, 2]].any()


@given(st.integers(1, 70), st.integers(1, 5))
def test_any_layout_hashes_groups_of_consecutive_minima(groups, size):
    minima = np.random.default_rng(1).integers(0, 2**32, (2, groups * size + 3), dtype=np.uint32)
    changed = np.random.default_rng(2).integers(0, groups * size + 3)
    minima[1] = minima[0]
    minima[1, changed] += np.uint32(1)
    one, other = supershingles(minima, groups, size)
    assert np.flatnonzero(one != other).tolist() == ([changed // size] if changed < groups * size else [])


@given(st.integers(0, 2**32), st.integers(1, 6))
def test_a_megashingle_is_shared_exactly_where_enough_supershingles_are(seed, size):
    rng = np.random.default_rng(seed)
    one = rng.integers(0, 2**64, (1, 6), dtype=np.uint64)
    other = np.where(rng.random((1, 6)) < 0.5, one, one + np.uint64(1))
    shared = np.intersect1d(megashingles(one, size), megashingles(other, size))
    assert (len(shared) > 0) == (np.count_nonzero(one == other) >= size)


def test_there_is_a_megashingle_for_every_subset():
    rows = np.arange(42, dtype=np.uint64).reshape(2, 21)
    assert megashingles(rows, 2).shape == (2, 210)
    assert len(np.unique(megashingles(rows, 2))) == 420


@pytest.mark.parametrize("size", [0, 22])
def test_no_such_subset_is_refused(size):
    with pytest.raises(ConfigError, match="choose a size of 1 to 21"):
        megashingles(np.zeros((1, 21), np.uint64), size)


def test_too_many_megashingles_are_refused():
    with pytest.raises(ConfigError, match="choose a smaller size or fewer groups"):
        megashingles(np.zeros((1, 64), np.uint64), 5)


def test_more_slots_than_two_characters_can_name_are_refused():
    with pytest.raises(ConfigError, match="lower groups to 4096"):
        to_keywords(np.zeros((1, 4097), np.uint64), np.array([True]))


def test_letters_can_be_read_again_and_only_in_their_slots():
    values = np.random.default_rng(4).integers(0, 2**64, (50, 21), dtype=np.uint64)
    found = letters(values)
    assert (from_letters(found, 1) == values & np.uint64(2**30 - 1)).all()
    for damaged in (found[:, ::-1], np.where(found == ord("A"), ord("?"), found).astype(np.uint8)):
        with pytest.raises(InputError, match="sign it again"):
            from_letters(damaged, 1)
