"""The labelled short texts."""

from bench.quality.short import HELD_OUT, LENGTHS, labelled
from shinglefold.canon.facts import fact_set


def test_every_pair_is_of_a_length_that_is_told_and_none_is_there_twice():
    known = labelled()
    assert len({(one.one, one.other) for one in known}) == len(known)
    assert all(one.one != one.other for one in known)
    assert all(sum(low <= one.length <= high for low, high in LENGTHS) == 1 for one in known)


def _same_numbers(one):
    return fact_set(one.one) == fact_set(one.other)


def test_copies_have_the_same_numbers():
    assert all(_same_numbers(one) for one in labelled() if one.same)
    assert any(not _same_numbers(one) for one in labelled() if not one.same)


def test_those_held_out_are_others():
    held_out = labelled(HELD_OUT)
    assert len({(one.one, one.other) for one in held_out}) == len(held_out) == 160
    assert {one.one for one in held_out}.isdisjoint(one.one for one in labelled())
