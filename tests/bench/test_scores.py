"""The measures of bench/quality are those of the literature, and a peer is what its source says."""

import pytest

from bench.quality.corpus import Corpus
from bench.quality.peers import profile
from bench.quality.scores import b_cubed, rand_index, scores
from bench.quality.worst import false_folds, misses

TRUTH = {(0, 1): 0.97, (1, 2): 0.85, (3, 4): 0.75, (0, 2): 0.82}
PAGES = Corpus("pages", tuple("abcdef"), ("",) * 6, ("ru",) * 6, TRUTH)


def test_a_pair_without_a_label_is_a_false_one():
    found = scores(PAGES, {(0, 1), (3, 4), (4, 5), (1, 2)})
    assert (found.precision, found.recall) == (0.5, pytest.approx(2 / 3))
    assert found.f1 == pytest.approx(4 / 7)
    assert found.bands == (1.0, 0.0, 0.5, 1.0)


def test_the_worst_are_the_least_and_the_most_alike():
    folded = {(0, 1), (3, 4), (4, 5)}
    assert false_folds(PAGES, folded) == [(4, 5), (3, 4)]
    assert misses(PAGES, folded) == [(1, 2), (0, 2)]


def test_partitions_that_are_the_same_score_one():
    assert rand_index([1, 1, 2, 3], [7, 7, 5, 9]) == 1.0
    assert b_cubed([1, 1, 2, 3], [7, 7, 5, 9]) == 1.0


def test_the_adjusted_rand_index_is_that_of_the_textbook():
    # Two pairs agree, 6 and 3 are in groups of each, of 15 in all.
    told = (2 - 6 * 3 / 15) / ((6 + 3) / 2 - 6 * 3 / 15)
    assert rand_index([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]) == pytest.approx(told)


def test_b_cubed_averages_over_documents():
    # One group of all four against two pairs: precision 1/2, recall 1.
    assert b_cubed([0, 0, 0, 0], [0, 0, 1, 1]) == pytest.approx(2 / 3)


def test_a_text_profile_forgets_rare_words_and_order():
    text = ["мост"] * 8 + ["река"] * 6 + ["город"] * 4
    assert profile([*text, "вчера"], 2, 0.25) == profile(["завтра", *reversed(text)], 2, 0.25)
    assert profile(text, 2, 0.25) != profile([*text, "город", "город"], 2, 0.25)
