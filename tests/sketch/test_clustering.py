"""Groups out of pairs: connection and leaders, as their definitions say, block by block."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shinglefold.sketch.candidates import Buckets
from shinglefold.sketch.clustering import DisjointSets, connected, leader_clusters

_PAIRS = st.sets(
    st.tuples(st.integers(0, 19), st.integers(0, 19)).filter(lambda pair: pair[0] < pair[1]), max_size=40
)


def arrays(pairs: set[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    rows = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


@given(_PAIRS)
def test_leaders_are_those_of_the_definition(pairs):
    leaders: list[int] = []
    expected = []
    for item in range(20):
        own = next((leader for leader in leaders if (leader, item) in pairs), item)
        expected.append(own)
        if own == item:
            leaders.append(item)
    assert leader_clusters(*arrays(pairs), 20).tolist() == expected


def test_a_chain_of_a_hundred_thousand_is_one_group():
    places = np.random.default_rng(3).permutation(100_000)
    assert not connected(places[:-1], places[1:], 100_000).any()


def test_the_order_of_pairs_and_of_their_ends_does_not_matter():
    a, b = np.array([3, 1, 0]), np.array([4, 0, 2])
    assert (
        leader_clusters(a, b, 5).tolist() == leader_clusters(b[::-1], a[::-1], 5).tolist() == [0, 0, 0, 3, 3]
    )


_ANY_PAIRS = st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=60)


@settings(deadline=None, max_examples=40)
@given(_ANY_PAIRS, st.integers(1, 7))
def test_the_order_and_the_blocks_of_pairs_do_not_matter(pairs, size):
    forest = DisjointSets(30)
    for begin in range(0, len(pairs), size):
        a, b = np.array(pairs[begin : begin + size]).T
        forest.merge(a, b)
        assert (forest.roots(a) == forest.roots(b)).all()
    expected = list(range(30))
    for _ in pairs:
        for one, other in pairs:
            expected[one] = expected[other] = min(expected[one], expected[other])
    assert forest.labels().tolist() == expected
    one, other = np.array(pairs, np.int64).reshape(-1, 2).T
    assert connected(one, other, 30).tolist() == expected


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 5), max_size=40))
def test_buckets_hold_who_shares_a_number_and_nobody_else(parts):
    keys = np.array(parts, np.uint64) << np.uint64(32) | np.arange(len(parts), dtype=np.uint64)
    buckets = Buckets.of(keys)
    found = {(int(a), int(b)) for some in buckets.pairs(limit=3) for a, b in zip(*some, strict=True)}
    assert found == {(a, b) for b in range(len(parts)) for a in range(b) if parts[a] == parts[b]}
    firsts = {part: parts.index(part) for part in parts}
    stars = {(int(a), int(b)) for a, b in zip(*buckets.stars(), strict=True)}
    assert stars == {(firsts[part], place) for place, part in enumerate(parts) if place != firsts[part]}
