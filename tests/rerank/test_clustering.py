"""Groups by leader, as a collapse makes them that compares each hit with all earlier leaders; and chains."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import SCHEME, Spec, connected_groups, hits_of, leader_groups, match, specs
from support.servers.choose import examples

from shinglefold.rerank import FoldOptions, Preference, collapse
from shinglefold.sketch.clustering import connected

policies = st.sampled_from(
    [
        (),
        (Preference("newest", "published"),),
        (Preference("oldest", "published"),),
        (Preference("longest"),),
        (Preference("prefer", "host", ("b.org", "a.org")), Preference("newest", "published")),
    ]
)


@given(specs)
@settings(max_examples=examples(200), deadline=None)
def test_groups_equal_those_of_the_exhaustive_comparison(made):
    folded = collapse(hits_of(made), SCHEME)
    assert [list(group.members) for group in folded.groups] == leader_groups(made)
    assert all(group.representative == group.members[0] for group in folded.groups)


@given(
    specs, st.sampled_from([0.3, 0.5, 0.7, 0.9, 1.0]), st.sampled_from([0.0, 0.5, 0.95]), st.integers(0, 5)
)
@settings(max_examples=examples(100), deadline=None)
def test_thresholds_of_the_request_decide(made, least, ratio, shared):
    options = FoldOptions(min_resemblance=least, min_length_ratio=ratio, min_shared=shared)
    folded = collapse(hits_of(made), SCHEME, options)
    expected = leader_groups(made, least=least, ratio=ratio, shared=shared)
    assert [list(group.members) for group in folded.groups] == expected


@given(specs, policies)
@settings(max_examples=examples(200), deadline=None)
def test_every_member_matches_the_one_shown_and_no_two_shown_match(made, preferences):
    groups = collapse(hits_of(made), SCHEME, FoldOptions(representative=preferences)).groups
    for group in groups:
        assert group.representative in group.members
        assert all(
            match(made[group.representative], made[member])
            for member in group.members
            if member != group.representative
        )
    shown = [made[group.representative] for group in groups]
    assert not any(match(a, b) for place, a in enumerate(shown) for b in shown[place + 1 :])


@given(specs, policies)
@settings(max_examples=examples(100), deadline=None)
def test_every_hit_is_in_one_group_and_groups_stand_at_their_best_rank(made, preferences):
    groups = collapse(hits_of(made), SCHEME, FoldOptions(representative=preferences)).groups
    assert sorted(member for group in groups for member in group.members) == list(range(len(made)))
    places = [group.members[0] for group in groups]
    assert places == sorted(places)
    assert all(list(group.members) == sorted(group.members) for group in groups)


@given(specs, st.integers(0, 24))
@settings(max_examples=examples(100), deadline=None)
def test_groups_do_not_change_because_of_later_hits(made, length):
    whole = [list(group.members) for group in collapse(hits_of(made), SCHEME).groups]
    begun = [list(group.members) for group in collapse(hits_of(made)[:length], SCHEME).groups]
    cut = [[member for member in members if member < length] for members in whole]
    assert begun == [members for members in cut if members]


@given(specs)
@settings(max_examples=50, deadline=None)
def test_hits_are_read_from_the_source_as_from_doc_values(made):
    hits = hits_of(made)
    stored = [
        {"_index": "pages", "_id": hit["_id"], "_source": {"_dedup": _nested(hit["fields"])}} for hit in hits
    ]
    assert collapse(stored, SCHEME) == collapse(hits, SCHEME)


def _nested(fields):
    own = {
        name.removeprefix("_dedup."): values for name, values in fields.items() if name.startswith("_dedup.")
    }
    return {name: values if name == "supershingles" else values[0] for name, values in own.items()}


@pytest.mark.parametrize("seed", range(4))
def test_among_many_alike_hits_length_language_scheme_and_signature_still_decide(seed):
    rng = random.Random(seed)
    made = [
        Spec(
            changed=rng.choice([0, 5, 20, 28, 31]),
            seed=rng.randrange(1000),
            shingles=rng.choice([300, 300, 360, 449, 450, 451, 900]),
            lang=rng.choice(["ru", "ru", "uk"]),
            digest=rng.choice(["", "", "", "x"]),
            signed=rng.random() > 0.1,
            scheme=SCHEME.id if rng.random() > 0.1 else "sf1-other",
        )
        for _ in range(90)
    ]
    folded = collapse(hits_of(made), SCHEME)
    assert [list(group.members) for group in folded.groups] == leader_groups(made)


def test_a_list_longer_than_a_block_is_folded_as_one():
    made = [Spec(original=number % 700, changed=20, seed=number, digest="") for number in range(1500)]
    folded = collapse(hits_of(made), SCHEME)
    assert len(folded.groups) == 700
    assert folded.groups[5].members == (5, 705, 1405)
    assert folded.folded == 800


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


def test_a_chain_of_a_hundred_thousand_is_one_group():
    places = np.random.default_rng(3).permutation(100_000)
    assert not connected(places[:-1], places[1:], 100_000).any()
