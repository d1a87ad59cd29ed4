"""Pairs of a collection, and groups out of pairs, as their definitions say."""

import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples
from support.sketches import batch, random_tokens, revisions, sketcher

from shinglefold.model.scheme import Decision, SketchOptions
from shinglefold.sketch.all_pairs import find_leaders, find_pairs, iter_pairs
from shinglefold.sketch.b_bit_minhash import agreement_rows, estimate, length_ratio
from shinglefold.sketch.candidates import Buckets, nominate
from shinglefold.sketch.clustering import DisjointSets, connected_components, leader_clusters
from shinglefold.sketch.sketcher import Sketcher, token_digests


def columns(tool, documents, widths=None):
    hashes, offsets = batch(documents)
    found = tool.sketch(hashes, offsets, widths)
    parts = tool.supershingles(found), tool.signatures(found), found.shingles, token_digests(hashes, offsets)
    return parts, found.valid


def brute_force(parts, valid, options, decision):
    groups, signatures, shingles, digests = parts
    pairs = {}
    for a in range(len(digests)):
        agreeing = agreement_rows(signatures[a : a + 1], signatures, options.bits, options.values)
        estimates, _ = estimate(agreeing, options.values, options.bits)
        for b in range(a + 1, len(digests)):
            if digests[a] and digests[a] == digests[b]:
                pairs[a, b] = 1.0
            elif (
                valid[a]
                and valid[b]
                and np.count_nonzero(groups[a] == groups[b]) >= decision.min_shared
                and estimates[b] >= decision.min_resemblance
                and length_ratio(shingles[a], shingles[b]) >= decision.min_length_ratio
            ):
                pairs[a, b] = float(estimates[b])
    return pairs


def as_dict(pairs):
    return dict(
        zip(zip(pairs.a.tolist(), pairs.b.tolist(), strict=True), pairs.resemblance.tolist(), strict=True)
    )


layouts = st.sampled_from([(168, 4, 21, 4), (84, 8, 14, 6), (86, 2, 6, 14), (18, 1, 17, 1), (34, 32, 4, 8)])
decisions = st.builds(
    Decision,
    st.integers(1, 7),
    st.sampled_from([0.0, 0.3, 0.62, 0.9]),
    st.sampled_from([0.0, 0.8]),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32), layouts, decisions, st.integers(1, 200))
def test_the_pairs_are_those_of_comparing_all_with_all(seed, layout, decision, chunk):
    options = SketchOptions(2, 2, *layout)
    rng = np.random.default_rng(seed)
    documents = revisions(seed, int(rng.integers(1, 9)), int(rng.integers(1, 6)), 0.4)
    # Documents that hold a part of themselves twice, and others whose width differs, are the odd cases.
    documents += [np.tile(document, 2) for document in documents[:3]]
    widths = rng.choice([2, 2, 2, 3], len(documents))
    parts, valid = columns(Sketcher(options), documents, widths)
    expected = brute_force(parts, valid, options, decision)
    found = find_pairs(*parts, options, decision, valid)
    assert as_dict(found) == expected
    assert list(as_dict(found)) == sorted(expected)
    chunks = list(iter_pairs(*parts, options, decision, valid, chunk=chunk))
    assert all(len(part) <= chunk for part in chunks)
    assert sum(map(len, chunks)) == len(expected)
    assert {pair: value for part in chunks for pair, value in as_dict(part).items()} == expected


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32), layouts, decisions)
def test_the_leaders_are_those_of_all_pairs(seed, layout, decision):
    options = SketchOptions(2, 2, *layout)
    documents = revisions(seed, 1 + seed % 8, 1 + seed % 5, 0.4)
    documents += documents[::2]
    parts, valid = columns(Sketcher(options), documents)
    pairs = find_pairs(*parts, options, decision, valid)
    expected = leader_clusters(pairs.a, pairs.b, len(documents))
    assert find_leaders(*parts, options, decision, valid).tolist() == expected.tolist()


@given(st.integers(0, 2**32), st.integers(0, 40), st.integers(1, 6), st.integers(1, 7), st.integers(1, 60))
def test_candidates_are_the_rows_that_share_enough_slots(seed, rows, groups, shared, chunk):
    table = np.random.default_rng(seed).integers(0, 6, (rows, groups), dtype=np.uint64)
    expected = [
        (a, b)
        for a in range(rows)
        for b in range(a + 1, rows)
        if np.count_nonzero(table[a] == table[b]) >= shared
    ]
    found = [
        pair for a, b in nominate(table, shared, chunk) for pair in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert found == expected


def test_documents_without_a_signature_pair_by_digest_only():
    short, other = random_tokens(1, 3), random_tokens(2, 3)
    one = random_tokens(3, 1)
    tool = sketcher()
    parts, valid = columns(
        tool, [short, short, other, one, one, np.zeros(0, np.uint64), np.zeros(0, np.uint64)]
    )
    assert not valid.any()
    found = find_pairs(*parts, tool.options, Decision(min_resemblance=0.0, min_length_ratio=0.0), valid)
    assert as_dict(found) == {(0, 1): 1.0}


def test_an_empty_collection_has_no_pairs():
    tool = sketcher()
    parts, valid = columns(tool, [])
    assert len(find_pairs(*parts, tool.options, Decision(), valid)) == 0


@contextmanager
def memory_below(most):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def _equal():
    return [random_tokens(1, 60)] * 3000 + [random_tokens(2, 60)] * 500


def _nearly_equal():
    page = random_tokens(1, 400)
    return [np.where(np.arange(400) == 7, edit, page) for edit in random_tokens(2, 1200)]


@pytest.mark.long(every=2)
@pytest.mark.parametrize(
    ("documents", "pairs", "most"),
    [
        (_equal, 3000 * 2999 // 2 + 500 * 499 // 2, 30_000_000),
        (_nearly_equal, 1200 * 1199 // 2, 60_000_000),
    ],
)
def test_thousands_of_copies_are_found_in_little_memory(documents, pairs, most):
    tool = sketcher()
    parts, valid = columns(tool, documents())
    with memory_below(most):
        found = sum(len(part) for part in iter_pairs(*parts, tool.options, Decision(), valid))
    assert found == pairs


def test_the_work_grows_with_the_pairs_and_not_with_the_square_of_documents():
    tool = sketcher(values=84)
    parts, valid = columns(tool, [random_tokens(seed // 2, 30) for seed in range(10_000)])
    # All with all would be 50 million comparisons.
    with memory_below(40_000_000):
        found = find_pairs(*parts, tool.options, Decision(), valid)
    assert (found.a == np.arange(0, 10_000, 2)).all()
    assert (found.b == found.a + 1).all()


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
    assert not connected_components(places[:-1], places[1:], 100_000).any()


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
    assert connected_components(one, other, 30).tolist() == expected


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
