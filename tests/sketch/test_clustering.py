"""Groups out of pairs: connection and leaders, as their definitions say."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.sketch.clustering import connected, leader_clusters

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


@given(_PAIRS)
def test_no_two_leaders_match_and_a_chain_is_one_connected_group(pairs):
    a, b = arrays(pairs)
    leader, group = leader_clusters(a, b, 20), connected(a, b, 20)
    assert not any(leader[one] == one and leader[other] == other for one, other in pairs)
    assert all(group[one] == group[other] for one, other in pairs)
    assert (group[leader] == group).all()


def test_the_order_of_pairs_and_of_their_ends_does_not_matter():
    a, b = np.array([3, 1, 0]), np.array([4, 0, 2])
    assert (
        leader_clusters(a, b, 5).tolist() == leader_clusters(b[::-1], a[::-1], 5).tolist() == [0, 0, 0, 3, 3]
    )
