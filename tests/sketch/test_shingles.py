import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sketches import batch, random_tokens

from shinglefold.errors import ConfigError
from shinglefold.sketch.shingles import batch_shingles, shingle_hashes, shingle_set

widths = st.integers(1, 10)


@given(st.integers(0, 40), widths)
def test_a_document_has_one_shingle_for_each_run_of_w_tokens(tokens, width):
    assert len(shingle_hashes(random_tokens(1, tokens), width)) == max(0, tokens - width + 1)


@given(st.lists(st.integers(1, 4), max_size=60), widths)
def test_shingles_are_equal_exactly_where_their_tokens_are(letters, width):
    tokens = random_tokens(2, 5)[letters] if letters else np.zeros(0, np.uint64)
    windows = [tuple(letters[i : i + width]) for i in range(len(letters) - width + 1)]
    shingles = shingle_hashes(tokens, width).tolist()
    assert len(set(zip(windows, shingles, strict=True))) == len(set(windows)) == len(set(shingles))


def test_the_order_of_tokens_in_a_shingle_matters():
    tokens = random_tokens(3, 3)
    assert (
        len({int(shingle_hashes(tokens[list(order)], 3)[0]) for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2))})
        == 3
    )


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


def test_a_set_is_sorted_and_without_repeats():
    tokens = np.tile(random_tokens(5, 4), 3)
    found = shingle_set(tokens, 2)
    assert len(found) == 4
    assert (np.diff(found) > 0).all()


@pytest.mark.parametrize("width", [-1, 0, 11])
def test_a_width_outside_1_to_10_is_refused_with_a_remedy(width):
    with pytest.raises(ConfigError, match="2 to 5 suit most texts"):
        shingle_hashes(random_tokens(1, 20), width)
