"""The filter before the decision loses no pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from support.hits import SCHEME, hits_of, specs

from shinglefold.rerank.hits import Reader
from shinglefold.rerank.match import Matcher
from shinglefold.rerank.options import FoldOptions
from shinglefold.scheme import Scheme
from shinglefold.sketch import agreement_matrix, pack


def random_window(rng, scheme, count):
    """Signatures about the threshold of each other, as packed rows."""
    values = scheme.sketch.values
    original = rng.integers(0, 2**scheme.sketch.bits, values, dtype=np.uint32)
    changed = rng.random((count, values)) < rng.random((count, 1)) * 0.45
    other = rng.integers(0, 2**scheme.sketch.bits, (count, values), dtype=np.uint32)
    return pack(np.where(changed, other, original), scheme.sketch.bits)


def prints_of(rows, scheme):
    reader = Reader(scheme, "dedup")
    from base64 import b64encode

    fields = {"dedup.scheme": [scheme.id], "dedup.shingles": [100]}
    return reader.read([{"fields": fields | {"dedup.signature": [b64encode(row).decode()]}} for row in rows])


@pytest.mark.parametrize(
    ("values", "bits", "least", "windows"),
    [
        (168, 4, 0.62, 10_000),
        (84, 8, 0.62, 300),
        (336, 2, 0.5, 300),
        (100, 1, 0.8, 300),
        (37, 2, 0.4, 300),
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
        prints = prints_of(rows, scheme)
        table = agreement_matrix(rows, bits, values) >= matcher.need
        assert not (table & ~matcher.candidates(prints, prints)).any()
        matching += int(table.sum()) - 8
    assert windows < matching < 50 * windows


@given(specs, specs)
@settings(max_examples=50, deadline=None)
def test_pairs_decided_one_by_one_equal_the_table_of_all(made, others):
    reader = Reader(SCHEME, "dedup")
    prints = reader.read(hits_of(made + others))
    matcher = Matcher.of(SCHEME, FoldOptions())
    near = matcher.candidates(prints, prints)
    table = matcher.table(prints, near)
    rows, columns = np.nonzero(~np.eye(len(near), dtype=bool))
    assert (matcher.decide(prints, rows, prints, columns) == table[rows, columns]).all()


@given(specs, specs)
@settings(max_examples=50, deadline=None)
def test_two_blocks_are_filtered_as_one(made, others):
    reader = Reader(SCHEME, "dedup")
    one, other = reader.read(hits_of(made)), reader.read(hits_of(others))
    matcher = Matcher.of(SCHEME, FoldOptions(min_shared=1))
    joined = one.join(other)
    whole = matcher.candidates(joined, joined)
    assert (matcher.candidates(one, other) == whole[: len(one), len(one) :]).all()
