"""The decision loses no pair, whichever way it is made."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import SCHEME, hits_of, specs
from support.servers.choose import examples

from shinglefold.model.scheme import Scheme
from shinglefold.rerank.fold.matcher import Matcher, length_bounds
from shinglefold.rerank.hits import FingerprintReader
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.sketch.b_bit_minhash import agreement_rows, length_ratio, pack


def random_window(rng, scheme, count):
    """Signatures about the threshold of each other, as packed rows."""
    values = scheme.sketch.values
    original = rng.integers(0, 2**scheme.sketch.bits, values, dtype=np.uint32)
    changed = rng.random((count, values)) < rng.random((count, 1)) * 0.45
    other = rng.integers(0, 2**scheme.sketch.bits, (count, values), dtype=np.uint32)
    return pack(np.where(changed, other, original), scheme.sketch.bits)


def prints_of(rows, scheme):
    reader = FingerprintReader(scheme, "_dedup")
    from base64 import b64encode

    fields = {"_dedup.scheme": [scheme.id], "_dedup.shingles": [100]}
    return reader.read([{"fields": fields | {"_dedup.signature": [b64encode(row).decode()]}} for row in rows])


@pytest.mark.parametrize(
    ("values", "bits", "least", "windows"),
    [
        (168, 4, 0.62, 1_000),
        pytest.param(168, 4, 0.62, 10_000, marks=pytest.mark.long),
        (84, 8, 0.62, 300),
        (336, 2, 0.5, 300),
        (100, 1, 0.8, 300),
        (38, 2, 0.4, 300),
        (20, 16, 0.5, 300),
    ],
)
def test_no_pair_at_the_threshold_is_missed(values, bits, least, windows):
    scheme = Scheme().with_options(values=values, bits=bits, groups=4, group_size=4, min_resemblance=least)
    matcher = Matcher.of(scheme, FoldOptions())
    rng = np.random.default_rng(values)
    matching = 0
    for _ in range(windows):
        rows = random_window(rng, scheme, 8)
        table = np.array([agreement_rows(row[None], rows, bits, values) for row in rows]) >= matcher.need
        np.fill_diagonal(table, False)
        assert (everyone(matcher, prints_of(rows, scheme)) == table).all()
        matching += int(table.sum())
    assert windows < matching < 50 * windows


def everyone(matcher, prints):
    """Which of all hits match which."""
    compared = matcher.prepare(prints)
    return matcher.matches(compared, np.arange(len(prints)), compared)


@given(specs, st.sampled_from([0, 1, 3]), st.sampled_from([(), ("host",), ("published:100s",)]))
@settings(max_examples=examples(300), deadline=None)
def test_deciding_all_at_once_equals_deciding_one_by_one(made, shared, scope):
    options = FoldOptions.parse({"min_shared": shared, "scope": list(scope)})
    prints = FingerprintReader(SCHEME, "_dedup", options.scope).read(hits_of(made))
    matcher = Matcher.of(SCHEME, options)
    compared, rows = matcher.prepare(prints), np.arange(len(prints))
    near = matcher.candidates(compared, rows, compared, 0)
    at_once = matcher.decide_dense(near, compared, rows, compared, 0)
    assert (at_once == matcher.decide_sparse(near, compared, rows, compared, 0)).all()


@given(specs, specs, st.integers(0, 10))
@settings(max_examples=50, deadline=None)
def test_two_blocks_are_compared_as_one(made, others, begin):
    reader = FingerprintReader(SCHEME, "_dedup")
    one, other = reader.read(hits_of(made)), reader.read(hits_of(others))
    matcher = Matcher.of(SCHEME, FoldOptions(min_shared=1))
    whole = everyone(matcher, one.join(other))
    begin = min(begin, len(other))
    found = matcher.matches(matcher.prepare(one), np.arange(len(one)), matcher.prepare(other), begin)
    assert (found == whole[: len(one), len(one) + begin :]).all()


@given(
    st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**50)), min_size=1, max_size=20),
    st.floats(1e-6, 1.0),
)
@settings(max_examples=examples(200), deadline=None)
def test_lengths_within_the_bounds_are_those_of_the_ratio(lengths, ratio):
    shingles = np.array(lengths, np.int64)
    least, most = length_bounds(shingles, ratio)
    about = np.concatenate([shingles, *(bound + step for bound in (least, most) for step in (-1, 0, 1))])
    others = about[(about >= 0) & (about <= 2**50)]
    within = (others >= least[:, None]) & (others <= most[:, None])
    assert (within == (length_ratio(shingles[:, None], others[None, :]) >= ratio)).all()
