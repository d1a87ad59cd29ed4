"""Groups by connection, and the union-find beneath."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import SCHEME, Spec, connected_groups, hits_of, specs
from support.servers.choose import examples

from shinglefold.rerank import FoldOptions, Preference, collapse
from shinglefold.sketch import connected

CONNECTED = FoldOptions(linkage="connected")


@given(specs)
@settings(max_examples=examples(100), deadline=None)
def test_groups_are_the_connected_components(made):
    folded = collapse(hits_of(made), SCHEME, CONNECTED)
    assert [list(group.members) for group in folded.groups] == connected_groups(made)


def test_a_chain_is_one_group_where_a_leader_would_make_two():
    far = Spec(changed=70, seed=1)
    between = Spec(changed=0)
    other = Spec(changed=50, seed=2)
    chain = hits_of([other, between, Spec(changed=50, seed=3)])
    assert len(collapse(chain, SCHEME, CONNECTED).groups) == 1
    assert len(collapse(chain, SCHEME).groups) == 2
    assert len(collapse(hits_of([between, far]), SCHEME, CONNECTED).groups) == 2


def test_a_policy_chooses_among_all_members():
    made = [Spec(changed=50, seed=2, published=1), Spec(published=2), Spec(changed=50, seed=3, published=3)]
    options = FoldOptions(linkage="connected", representative=(Preference("newest", "published"),))
    assert collapse(hits_of(made), SCHEME, options).groups == ((2, (0, 1, 2)),)


@given(
    st.integers(1, 40).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))
    )
)
def test_labels_are_the_least_items_of_the_components(drawn):
    count, pairs = drawn
    expected = list(range(count))
    for _ in range(count):
        for a, b in pairs:
            expected[a] = expected[b] = min(expected[a], expected[b])
    a, b = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    assert connected(a, b, count).tolist() == expected


def test_a_chain_of_a_hundred_thousand_is_one_group():
    places = np.random.default_rng(3).permutation(100_000)
    assert not connected(places[:-1], places[1:], 100_000).any()
