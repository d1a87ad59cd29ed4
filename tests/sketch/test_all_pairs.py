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
from shinglefold.sketch.candidates import nominate
from shinglefold.sketch.clustering import leader_clusters
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
