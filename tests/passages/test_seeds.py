import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.sketches import random_tokens
from support.soon import soon

from shinglefold.canon import Canonicalizer
from shinglefold.model.values import PlacedTokens
from shinglefold.passages.alignment import (
    LEAST,
    chains_of,
    covered_shares,
    equal_runs,
    passages_between,
    runs_of,
)
from shinglefold.passages.seeds import MOST_PAIRS, bounded_pairs
from shinglefold.passages.shingle_positions import elements_of
from shinglefold.registry import make_scheme

texts = st.lists(st.integers(0, 3), max_size=40)
widths = st.integers(1, 4)


def elements(numbers, width=3, tolerant=False):
    tokens = random_tokens(1, 500)[np.array(numbers, int)]
    places = np.arange(len(tokens)) * 2
    return elements_of(PlacedTokens(tokens, places, places + 1), width, tolerant)


def pairs_between(a, b):
    """Return all pairs of ordinals of equal elements of two short texts."""
    return np.argwhere(a.hashes[:, None] == b.hashes[None, :])


def by_definition(one, other, width):
    """All x·y pairs of windows, compared word by word."""
    return [
        [at, there]
        for at in range(len(one) - width + 1)
        for there in range(len(other) - width + 1)
        if one[at : at + width] == other[there : there + width]
    ]


@given(texts, texts, widths)
@example([1] * 8, [1] * 8, 1)
def test_pairs_are_those_of_comparing_each_with_each(one, other, width):
    a, b = elements(one, width), elements(other, width)
    assert pairs_between(a, b).tolist() == by_definition(one, other, width)
    pairs, left_out = bounded_pairs(a, b)
    wanted = by_definition(one, other, width)
    assert len(wanted) > MOST_PAIRS if left_out else pairs.tolist() == wanted


@given(texts, texts, widths)
def test_chains_hold_every_pair_and_their_runs_are_equal_words_apart_from_each_other(one, other, width):
    pairs = pairs_between(elements(one, width), elements(other, width))
    chains = list(chains_of(runs_of(pairs, width)))
    for at, there in pairs.tolist():
        assert any(
            chain[0].a <= at
            and at + width <= chain[-1].a + chain[-1].length
            and chain[0].b <= there
            and there + width <= chain[-1].b + chain[-1].length
            for chain in chains
        )
    for chain in chains:
        for run in chain:
            assert one[run.a : run.a + run.length] == other[run.b : run.b + run.length] != []
        for before, after in itertools.pairwise(chain):
            assert before.a + before.length <= after.a
            assert before.b + before.length <= after.b


@st.composite
def texts_and_runs(draw):
    one, other = draw(texts.filter(bool)), draw(texts.filter(bool))
    places = st.tuples(st.integers(0, len(one) - 1), st.integers(0, len(other) - 1))
    runs = [
        [at, there, draw(st.integers(1, min(len(one) - at, len(other) - there)))]
        for at, there in draw(st.lists(places, max_size=5))
    ]
    return one, other, runs


@given(texts_and_runs())
def test_of_runs_of_similar_words_the_equal_ones_make_runs(drawn):
    one, other, runs = drawn
    wanted = []
    for at, there, length in runs:
        places = [(at + step, there + step) for step in range(length)]
        equal = itertools.groupby(places, lambda place: one[place[0]] == other[place[1]])
        wanted += [[*next(found := iter(same)), 1 + len([*found])] for is_equal, same in equal if is_equal]
    given_runs = np.array(runs, np.int64).reshape(-1, 3)
    for at_once in (1 << 18, 2, 1):
        with pytest.MonkeyPatch.context() as few:
            few.setattr("shinglefold.passages.alignment._RUNS_AT_ONCE", at_once)
            found = equal_runs(given_runs, elements(one), elements(other)).tolist()
        assert sorted(found) == sorted(wanted)
        assert [run[:2] for run in found] == sorted(run[:2] for run in found)


@given(texts, texts, widths)
def test_shares_are_what_windows_cover(one, other, width):
    a, b = elements(one, width), elements(other, width)
    pairs = pairs_between(a, b)
    for side, words in enumerate((one, other)):
        held = {place for pair in pairs.tolist() for place in range(pair[side], pair[side] + width)}
        assert covered_shares(a, b)[side] == pytest.approx(len(held) / len(words) if words else 0.0)


@given(texts, texts)
def test_every_element_in_common_has_words_in_a_passage_of_each_text(one, other):
    a, b = elements(one, LEAST), elements(other, LEAST)
    passages = passages_between(a, b).passages
    pairs = pairs_between(a, b)
    for side, name in enumerate(("tokens_a", "tokens_b")):
        held = {at for passage in passages for at in range(*getattr(passage, name))}
        for at in pairs[:, side].tolist():
            assert held & {*range(at, at + LEAST)}


@given(st.integers(1, 3), st.integers(1, 150), st.integers(1, 150))
@settings(deadline=None)
def test_what_both_texts_repeat_has_no_more_pairs_than_their_lengths_allow(period, one, other):
    a, b = (elements([*range(period)] * count, 3) for count in (one, other))
    (bounded, left_out), whole = bounded_pairs(a, b), pairs_between(a, b)
    assert len(bounded) + left_out == len(whole)
    assert len(bounded) <= MOST_PAIRS * min(len(a), len(b))
    assert {*map(tuple, bounded.tolist())} <= {*map(tuple, whole.tolist())}
    assert covered_shares(a, b) == ((1, 1) if len(a) and len(b) else (0, 0))


def test_a_phrase_repeated_ten_thousand_times_is_one_passage_and_takes_no_time():
    a, b = elements([1, 2, 3, 4] * 10_000), elements([5, *[1, 2, 3, 4] * 9_000])
    with soon(walks=40):
        passages = passages_between(a, b).passages
    assert max(passage.equal for passage in passages) == 36_000
    assert covered_shares(a, b)[0] == 1


@given(texts, texts)
def test_pairs_are_no_more_than_the_elements_where_nothing_is_free(one, other):
    a, b = elements(one, 2), elements(other, 2)
    (bounded, left_out), whole = bounded_pairs(a, b, most=0), pairs_between(a, b)
    assert len(bounded) <= len(a) + len(b)
    assert not left_out or len(whole) > min(len(a) + len(b), MOST_PAIRS)
    assert len(bounded) + left_out == len(whole)
    assert {*map(tuple, bounded.tolist())} <= {*map(tuple, whole.tolist())}


@given(texts, texts, widths, st.integers(0, 8))
def test_runs_without_neighbours_are_told_before_any_walk(one, other, width, gap):
    pairs = pairs_between(elements(one * 20, width), elements(other, width))
    runs = runs_of(pairs, width)
    with pytest.MonkeyPatch.context() as few:
        chains = {tuple(chain) for chain in chains_of(runs, gap)}
        few.setattr("shinglefold.passages.alignment._FEW", 0)
        assert {tuple(chain) for chain in chains_of(runs, gap)} == chains


some_runs = st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(1, 20))


@given(st.lists(some_runs, min_size=1, max_size=9), st.integers(0, 8), st.integers(1, 8))
@settings(max_examples=300)
def test_runs_without_neighbours_are_told_wherever_cells_part_them(some, gap, stride):
    runs = np.array(sorted(some), np.int64)
    with pytest.MonkeyPatch.context() as few:
        chains = sorted(map(tuple, chains_of(runs, gap)))
        few.setattr("shinglefold.passages.alignment._FEW", 0)
        few.setattr("shinglefold.passages.alignment._STRIDE", stride)
        assert sorted(map(tuple, chains_of(runs, gap))) == chains


def test_chains_go_on_over_long_runs_and_wide_gaps_where_most_runs_stand_alone():
    alone = [[1_000 * at, 700 * at + 13, 5] for at in range(2, 900)]
    one = [[0, 0, 300], [330, 320, 5], [360, 355, 400], [762, 757, 5]]
    runs = np.array(sorted([*one, *alone]), np.int64)
    chains = list(chains_of(runs, 30))
    assert [list(map(list, chain)) for chain in chains if len(chain) > 1] == [one]
    assert len(chains) == 899


def test_a_word_more_than_a_gap_never_lies_between_two_runs_of_a_chain():
    # The second run begins within the first in one text, and right behind it in the other.
    runs = np.array([[0, 0, 20], [8, 22, 30]], np.int64)
    assert [list(map(list, chain)) for chain in chains_of(runs, 6)] == [[[0, 0, 20]], [[8, 22, 30]]]


def test_a_passage_that_stands_twice_in_one_text_is_told_twice():
    passage = [*range(100, 130)]
    a, b = elements(passage), elements([*passage, *range(200, 300), *passage])
    assert [tuple(found.tokens_b) for found in passages_between(a, b).passages] == [(0, 30), (130, 160)]


def test_tolerant_passages_go_on_over_words_in_another_order():
    one = list(range(100, 130))
    other = [*one[:4], 105, 104, *one[6:9], 110, 109, *one[11:]]
    a, b = (elements(words, 5, tolerant=True) for words in (one, other))
    exact, tolerant = (passages_between(a, b, tolerant=how).passages for how in (False, True))
    assert sum(found.equal for found in exact) < sum(found.equal for found in tolerant)
    assert [tuple(found.tokens_a) for found in tolerant] == [(0, 30)]


def test_a_copied_passage_is_told_with_its_place_in_both_texts():
    passage = list(range(100, 160))
    text = [*range(200, 300), *passage, *range(300, 340)]
    document = [*range(50), *passage, *range(50, 90)]
    a, b = elements(text), elements(document)
    assert covered_shares(a, b) == pytest.approx((60 / 200, 60 / 150))
    (found,) = passages_between(a, b).passages
    assert (found.tokens_a, found.tokens_b) == ((100, 160), (50, 110))
    assert (found.a, found.b) == ((200, 319), (100, 219))


def test_a_few_changed_words_do_not_part_a_passage_and_many_do():
    passage = list(range(100, 160))
    changed = [*passage[:30], 400, 401, *passage[31:]]
    passages = passages_between(elements(changed), elements(passage)).passages
    assert [found.tokens_b for found in passages] == [(0, 60)]
    parted = [*passage[:30], *range(400, 420), *passage[30:]]
    passages = passages_between(elements(parted), elements(passage)).passages
    assert [found.tokens_b for found in passages] == [(0, 30), (30, 60)]


def test_other_endings_are_the_same_element():
    canonicalizer = Canonicalizer.of(make_scheme())
    one = "Рабочие сняли старый асфальт на большом мосту через реку"
    other = "Вчера рабочий снял старый асфальт на большом мосте через реки"
    tokens = [canonicalizer.tokens(text) for text in (one, other)]
    a, b = (elements_of(found, 4) for found in tokens)
    (found,) = passages_between(a, b).passages
    assert one[slice(*found.a)] == one
    assert other[slice(*found.b)] == other.removeprefix("Вчера ")
