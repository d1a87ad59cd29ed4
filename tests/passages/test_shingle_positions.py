"""Elements as an index stores them: few, and none of a longer passage missed."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples
from support.sketches import random_tokens

from shinglefold.model.values import Token
from shinglefold.passages.shingle_positions import (
    NONE,
    SURE,
    WINDOW,
    elements_of,
    keywords,
    stored_elements,
    winnow,
)

numbers = st.lists(st.integers(0, 10**6), max_size=80)


def _tokens(words):
    return random_tokens(7, 10**6 + 1)[np.array(words, int)]


@given(numbers, numbers, numbers, numbers, st.lists(st.integers(0, 10**6), min_size=SURE, max_size=60))
@settings(max_examples=examples(100), deadline=None)
def test_texts_with_a_longer_passage_in_common_share_a_stored_element(before, behind, front, back, passage):
    one, other = _tokens([*before, *passage, *behind]), _tokens([*front, *passage, *back])
    assert set(stored_elements(one)) & set(stored_elements(other))


@given(st.lists(st.integers(0, 2**64 - 1), max_size=200), st.integers(1, 20))
@settings(deadline=None)
def test_of_each_window_the_least_is_kept_and_nothing_else(hashes, window):
    array = np.array(hashes, np.uint64)
    wanted = (
        {min(hashes[at : at + window]) for at in range(max(1, len(hashes) - window + 1))} if hashes else set()
    )
    assert set(winnow(array, window).tolist()) == wanted


def test_there_are_two_stored_for_each_window_and_a_word():
    count = len(stored_elements(random_tokens(3, 20_000)))
    assert abs(count / (2 * 20_000 / (WINDOW + 1)) - 1) < 0.05


def test_a_text_too_short_for_an_element_is_told_from_one_never_looked_at():
    assert stored_elements(_tokens([1, 2, 3, 4])) == [NONE]
    assert stored_elements(_tokens([])) == [NONE]
    assert NONE not in stored_elements(random_tokens(3, 5))


def test_keywords_stay_as_they_are():
    assert keywords(np.array([0, 1, 2**63, 12345678901234567890], np.uint64)) == GOLDEN


GOLDEN = ["AAAAAA", "njd5uX", "gAAAAA", "gBybi6"]


def test_tokens_of_a_list_keep_their_order_and_their_characters():
    tokens = [Token(text, 3 * at, 3 * at + 2, "uk") for at, text in enumerate(("а", "б", "а"))]
    elements = elements_of(tokens, width=2)
    assert len(elements) == 2
    assert elements.words[0] == elements.words[2] != elements.words[1]
    assert (elements.starts.tolist(), elements.ends.tolist()) == ([0, 3, 6], [2, 5, 8])
