"""Minhash values, packed and compiled."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples
from support.sketches import batch, random_tokens, sketcher

from shinglefold.errors import ConfigError
from shinglefold.model.scheme import SketchOptions
from shinglefold.sketch.b_bit_minhash import (
    agreement_rows,
    bit_planes,
    count_differing,
    low_bits,
    pack,
    packed_size,
)
from shinglefold.sketch.minhash import EMPTY, Affine32, minima
from shinglefold.sketch.shingles import shingle_hashes, shingle_set
from shinglefold.sketch.sketcher import Sketcher

lengths = st.lists(st.integers(0, 60), max_size=12)


def naive_minima(document, width, functions):
    halves = [[s & 0xFFFFFFFF, s >> 32] for s in shingle_hashes(document, width).tolist()]
    return [
        min((a * half[i % 2] + b) % 2**32 for half in halves)
        for i, (a, b) in enumerate(
            zip(functions.multipliers.tolist(), functions.addends.tolist(), strict=True)
        )
    ]


@given(st.integers(1, 12), st.integers(1, 200), st.integers(0, 2**64 - 1))
def test_minima_are_those_of_the_definition(tokens, values, seed):
    document = random_tokens(tokens, tokens + 4)
    tool = sketcher(values=values, groups=1, group_size=1, min_shingles=1, seed=seed)
    found = tool.sketch(*batch([document])).minima[0]
    assert found.tolist() == naive_minima(document, 2, tool.functions)


@given(st.integers(1, 12), st.integers(1, 100), st.integers(0, 2**64 - 1))
def test_of_both_ends_the_maxima_stand_behind_the_minima(tokens, functions, seed):
    document = random_tokens(tokens, tokens + 4)
    tool = sketcher(values=2 * functions, both_ends=True, groups=1, group_size=1, min_shingles=1, seed=seed)
    found = tool.sketch(*batch([document])).minima[0].tolist()
    assert found[:functions] == naive_minima(document, 2, tool.functions)
    upside_down = Affine32(-tool.functions.multipliers, -tool.functions.addends - np.uint32(1))
    assert found[functions:] == naive_minima(document, 2, upside_down)


@given(lengths, st.integers(1, 97))
def test_the_result_does_not_depend_on_the_partition_into_blocks(sizes, block):
    documents = batch([random_tokens(seed, size) for seed, size in enumerate(sizes)])
    options = SketchOptions(values=30, groups=3, group_size=4, min_shingles=2)
    whole, cut = Sketcher(options).sketch(*documents), Sketcher(options, block=block).sketch(*documents)
    assert (whole.minima == cut.minima).all()
    assert (whole.shingles == cut.shingles).all()
    assert (whole.valid == cut.valid).all()


@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), st.integers(1, 100))
def test_a_document_longer_than_a_block_keeps_its_minimum(sizes, block):
    starts = (np.cumsum(sizes) - sizes).astype(np.int64)
    shingles = random_tokens(9, sum(sizes))
    functions = Affine32.of(7, 3)
    assert (minima(shingles, starts, functions, block) == minima(shingles, starts, functions)).all()
    whole = minima(shingles, starts, functions, both_ends=True)
    assert (minima(shingles, starts, functions, block, both_ends=True) == whole).all()


def test_a_very_long_document_equals_the_same_shingles_in_another_order():
    tokens = random_tokens(8, 300_000)
    tool = sketcher(word_width=1, values=20, groups=1, group_size=1)
    one, other = (
        tool.sketch(*batch([t]), 1).minima for t in (tokens, np.random.default_rng(1).permutation(tokens))
    )
    assert (one == other).all()


@given(lengths, st.lists(st.integers(1, 10), min_size=12, max_size=12))
def test_a_sketch_does_not_depend_on_its_neighbours_or_their_widths(sizes, widths):
    documents = [random_tokens(seed, size) for seed, size in enumerate(sizes)]
    tool = sketcher(values=12, groups=2, group_size=2, min_shingles=1)
    together = tool.sketch(*batch(documents), np.array(widths[: len(documents)], np.int64))
    for place, document in enumerate(documents):
        alone = tool.sketch(*batch([document]), widths[place])
        assert (together.minima[place] == alone.minima[0]).all()
        assert together.shingles[place] == alone.shingles[0] == max(0, sizes[place] - widths[place] + 1)
        assert together.valid[place] == alone.valid[0]


def test_repeats_do_not_change_the_minima():
    tokens = random_tokens(6, 40)
    tool = sketcher()
    once, thrice = (tool.sketch(*batch([np.tile(tokens, times)]), 1) for times in (1, 3))
    assert (once.minima == thrice.minima).all()


@settings(max_examples=examples(200))
@given(st.lists(st.lists(st.integers(0, 3), max_size=40), max_size=6), st.integers(1, 4))
def test_counted_repeats_are_elements_of_their_own_in_each_document_alone(documents, width):
    letters = random_tokens(4, 4)
    arrays = [letters[np.array(document, np.int64)] for document in documents]
    tool = sketcher(counted=True, values=40, groups=1, group_size=1, min_shingles=1)
    together = tool.sketch(*batch(arrays), width)
    for place, document in enumerate(arrays):
        elements = shingle_set(document, width, counted=True)
        assert len(elements) == together.shingles[place]
        if len(elements):
            least = minima(elements, np.zeros(1, np.int64), tool.functions)[0]
            assert (together.minima[place] == least).all()


def test_counted_once_more_leaves_what_was_there():
    tokens = random_tokens(6, 40)
    once, twice = (shingle_set(np.tile(tokens, times), 1, counted=True) for times in (1, 2))
    assert set(once.tolist()) < set(twice.tolist())
    assert len(twice) == 80


def test_offsets_may_begin_anywhere():
    tokens = random_tokens(5, 100)
    tool = sketcher()
    inside = tool.sketch(tokens, np.array([30, 60, 100], np.int64))
    assert (inside.minima == tool.sketch(*batch([tokens[30:60], tokens[60:]])).minima).all()


@pytest.mark.parametrize("values", [1, 2, 3, 83, 84, 85, 168, 4096])
def test_any_number_of_values_works_and_more_only_add_to_fewer(values):
    documents = batch([random_tokens(1, 50), random_tokens(2, 3), random_tokens(3, 700)])
    few = sketcher(values=values, groups=1, group_size=1).sketch(*documents)
    assert few.minima.shape == (3, values)
    assert (
        few.minima == sketcher(values=4096, groups=1, group_size=1).sketch(*documents).minima[:, :values]
    ).all()


def test_another_seed_gives_other_minima():
    documents = batch([random_tokens(1, 50)])
    assert (sketcher(seed=1).sketch(*documents).minima != sketcher(seed=2).sketch(*documents).minima).all()


def test_empty_batches_and_documents_have_nothing():
    tool = sketcher()
    assert tool.sketch(np.zeros(0, np.uint64), np.zeros(1, np.int64)).minima.shape == (0, 168)
    empty = tool.sketch(np.zeros(0, np.uint64), np.zeros(4, np.int64))
    assert not empty.valid.any()
    assert (empty.minima == EMPTY).all()
    assert tool.keywords(empty) == [(), (), ()]
    assert tool.signatures(empty).shape == (3, 84)


@settings(max_examples=examples(200))
@given(st.lists(st.lists(st.integers(0, 3), max_size=90), max_size=6), st.integers(1, 20))
def test_valid_means_enough_distinct_shingles(documents, wanted):
    letters = random_tokens(4, 4)
    arrays = [letters[np.array(document, np.int64)] for document in documents]
    tool = sketcher(values=4, groups=1, group_size=1, min_shingles=wanted)
    found = tool.sketch(*batch(arrays))
    assert found.valid.tolist() == [len(set(pairwise(d))) >= wanted for d in documents]
    assert (found.minima[~found.valid] == EMPTY).all()


def test_variety_that_comes_late_in_a_text_is_seen():
    late = np.concatenate((np.full(5000, 7, np.uint64), random_tokens(1, 50)))
    never = np.full(5000, 7, np.uint64)
    assert sketcher().sketch(*batch([late, never])).valid.tolist() == [True, False]


def test_a_width_no_shingle_can_have_is_refused():
    with pytest.raises(ConfigError, match="shingle width 11"):
        sketcher().sketch(*batch([random_tokens(1, 20)] * 2), np.array([2, 11]))


codecs = st.sampled_from([1, 2, 4, 8, 16, 32])


@st.composite
def rows(draw, most=8):
    """Random values below 2^bits, few of them distinct so that many agree; and the bits."""
    bits, values, count = draw(codecs), draw(st.integers(1, 150)), draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    few = rng.integers(0, 2**bits, 3, dtype=np.uint32)
    return few[rng.integers(0, 3, (count, values))], bits


def unpacked(row, bits, values):
    whole = int.from_bytes(row.tobytes(), "little")
    return [whole >> place * bits & 2**bits - 1 for place in range(values)]


@given(rows())
def test_what_is_packed_can_be_unpacked(case):
    values, bits = case
    packed = pack(values, bits)
    assert packed.shape == (len(values), packed_size(values.shape[1], bits))
    assert packed.dtype == np.uint8
    assert [unpacked(row, bits, values.shape[1]) for row in packed] == values.tolist()


@given(rows(most=20))
def test_agreement_counts_equal_values(case):
    values, bits = case
    packed, held = pack(values, bits), values.shape[1]
    naive = (values[:, None] == values).sum(axis=2)
    assert (agreement_rows(packed[:1], packed, bits, held) == naive[0]).all()
    assert (
        agreement_rows(packed, packed[::-1], bits, held)
        == naive[range(len(values)), range(len(values))[::-1]]
    ).all()


@given(rows(most=20))
def test_planes_count_differing_values_of_every_two_rows(case):
    values, bits = case
    planes = bit_planes(pack(values, bits), bits)
    assert (count_differing(planes, planes) == (values[:, None] != values).sum(axis=2)).all()


def test_no_documents_agree_in_nothing():
    none = np.zeros((0, 84), np.uint8)
    assert agreement_rows(none, none, 4, 168).shape == (0,)


@given(codecs)
def test_no_documents_pack_to_no_rows(bits):
    packed = pack(np.zeros((0, 20), np.uint32), bits)
    assert packed.shape == (0, packed_size(20, bits))


@given(codecs)
def test_low_bits_stay_below_their_bound_and_are_even(bits):
    minima = np.arange(1, 40_001, dtype=np.uint32)[None, :] * np.uint32(16)
    found = low_bits(minima, bits)
    assert int(found.max()) < 2**bits
    assert (found >> np.uint32(bits - 1)).mean() == pytest.approx(0.5, abs=0.02)


def test_32_bits_lose_nothing():
    minima = np.random.default_rng(1).integers(0, 2**32, (1, 100_000), dtype=np.uint32)
    assert len(np.unique(low_bits(minima, 32))) == len(np.unique(minima))


@pytest.mark.parametrize("bits", [0, 3, 64])
def test_other_bits_are_refused(bits):
    with pytest.raises(ConfigError, match="is none of 1, 2, 4, 8, 16, 32"):
        pack(np.zeros((1, 4), np.uint32), bits)


def test_rows_of_another_scheme_are_refused():
    for size in (42, 84):
        with pytest.raises(ConfigError, match=f"of 84 and {size} bytes can't be compared"):
            agreement_rows(np.zeros((1, 84), np.uint8), np.zeros((2, size), np.uint8), 4, 84)


@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize("words", [1, 3, 4, 5, 8, 16])
def test_signatures_that_differ_in_every_value_are_counted_as_such(words, bits):
    blank, full = (bit_planes(np.full((1, 8 * words * bits), byte, np.uint8), bits) for byte in (0, 255))
    assert count_differing(blank, full).tolist() == [[64 * words]]
    assert count_differing(full, full).tolist() == [[0]]
