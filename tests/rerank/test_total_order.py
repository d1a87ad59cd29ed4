"""Walking in whole runs: whatever ties there are, every hit comes once."""

import random

import pytest

from shinglefold.rerank.request.bodies import complete_tie_groups


def walk(keys, size):
    """Walk as a server answers: what is sorted behind the last hit taken, one more than is to be taken."""
    taken, after = [], None
    while True:
        wanted = size
        left = [{"sort": [key]} for key in keys if after is None or key > after]
        while not (count := complete_tie_groups(left[: wanted + 1], wanted)) and left:
            wanted *= 2
        taken += [hit["sort"][0] for hit in left[:count]]
        if len(left) <= wanted:
            return taken
        after = taken[-1]


@pytest.mark.parametrize("seed", range(50))
def test_every_hit_comes_once_whatever_ties_there_are(seed):
    rng = random.Random(seed)
    keys = sorted(rng.randrange(rng.choice([1, 5, 60])) for _ in range(rng.randrange(40)))
    assert walk(keys, rng.randrange(1, 12)) == keys


def test_a_page_ends_between_hits_that_differ():
    hits = [{"sort": [key]} for key in (1, 2, 2, 3)]
    assert [complete_tie_groups(hits[: most + 1], most) for most in (1, 2, 3, 4)] == [1, 1, 3, 4]
    assert complete_tie_groups(hits[1:3], 1) == 0
