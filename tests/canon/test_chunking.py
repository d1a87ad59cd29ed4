"""Several texts as one, without a copy: the same pieces, and so the same tokens, as of the copy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples

from shinglefold.canon import Canonicalizer
from shinglefold.canon import segmentation as pieces
from shinglefold.canon.segmentation import Joined, join

_TEXTS = st.lists(st.text("абв ab 中\n", max_size=90), min_size=1, max_size=5)


@pytest.fixture(scope="module", autouse=True)
def small():
    """Pieces of fifty characters; two texts of more than forty are not copied."""
    with pytest.MonkeyPatch.context() as patch:
        for name, characters in (("LONG", 40), ("PIECE", 50), ("REACH", 10)):
            patch.setattr(pieces, name, characters)
        yield


@given(_TEXTS, st.integers(0, 500), st.integers(0, 500))
@settings(max_examples=examples(300), deadline=None)
def test_any_part_of_it_is_that_of_the_copy(texts, start, stop):
    whole, parts = "\n".join(texts), Joined(texts)
    assert len(parts) == len(whole)
    assert parts[start:stop] == whole[start:stop]
    assert parts[start:] == whole[start:]
    assert list(pieces.pieces(parts)) == list(pieces.pieces(whole))


def test_only_what_is_long_is_left_in_parts():
    assert join([]) == ""
    assert join(["a" * 90]) == "a" * 90
    assert join(["a", "b"]) == "a\nb"
    assert isinstance(join(["a" * 30, "b" * 30]), Joined)


def test_it_is_hashed_as_the_copy_is(canonicalizer: Canonicalizer):
    texts = ["Серая цапля стоит у воды", "heron waits " * 20, "苍鹭站在水边等鱼" * 9, "ждёт " * 60]
    whole, parts = (canonicalizer.hash_batch([one, "коротко"]) for one in ("\n".join(texts), join(texts)))
    assert np.array_equal(whole.hashes, parts.hashes)
    assert np.array_equal(whole.offsets, parts.offsets)
    assert whole.languages == parts.languages
