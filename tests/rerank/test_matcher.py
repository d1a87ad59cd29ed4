"""The decision loses no pair, whichever way it is made, and pages keep what they promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import BITS, SCHEME, VALUES, hits_of, hits_of_rows, match, random_rows, specs
from support.servers.choose import examples

from shinglefold.model.scheme import Scheme
from shinglefold.rerank import FoldedSearch, Preference, collapse
from shinglefold.rerank.fold.matcher import Matcher, length_bounds
from shinglefold.rerank.hits import FingerprintReader
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.sketch.b_bit_minhash import agreement_rows, estimate, length_ratio, pack


@pytest.mark.long(every=7)
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
        rows = random_rows(rng, scheme, 8)
        table = np.array([agreement_rows(row[None], rows, bits, values) for row in rows]) >= matcher.need
        np.fill_diagonal(table, False)
        prints = FingerprintReader(scheme, "_dedup").read(hits_of_rows(rows, scheme))
        assert (everyone(matcher, prints) == table).all()
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


LISTS = st.integers(0, 11)
POLICIES = st.sampled_from(
    [(), (Preference("newest", "published"),), (Preference("prefer", "host", ("b.org",)),)]
)


def random_window(rng):
    """The values of some hits: copies of a few originals, many of them about the threshold."""
    count = int(rng.integers(2, 16))
    originals = rng.integers(0, 2**BITS, (int(rng.integers(1, 4)), VALUES), dtype=np.uint32)
    values = originals[rng.integers(0, len(originals), count)]
    changed = rng.random(values.shape) < rng.choice([0.1, 0.33, 0.36, 0.39, 0.6], (count, 1))
    return np.where(changed, rng.integers(0, 2**BITS, values.shape, dtype=np.uint32), values)


def exhaustive(values):
    """Groups with a leader from the table of all pairs, value by value."""
    agreeing = (values[:, None, :] == values[None, :, :]).sum(axis=2)
    alike = estimate(agreeing.ravel(), VALUES, BITS)[0].reshape(agreeing.shape)
    near = alike >= SCHEME.decision.min_resemblance
    home: list[int] = []
    for rank in range(len(values)):
        home.append(next((one for one in range(rank) if home[one] == one and near[one, rank]), rank))
    return [tuple(np.flatnonzero(np.array(home) == one).tolist()) for one in sorted(set(home))], near


@pytest.mark.long
@pytest.mark.parametrize(("windows", "seed"), [(1_000, 20), pytest.param(9_000, 21, marks=pytest.mark.long)])
def test_ten_thousand_random_windows_fold_as_the_exhaustive_comparison_and_miss_no_pair(windows, seed):
    rng = np.random.default_rng(seed)
    folded = apart = 0
    for _ in range(windows):
        values = random_window(rng)
        groups, near = exhaustive(values)
        found = collapse(hits_of_rows(pack(values, BITS)), SCHEME).groups
        assert [group.members for group in found] == groups
        shown = [group.representative for group in found]
        assert np.count_nonzero(near[np.ix_(shown, shown)]) == len(shown)
        folded += len(values) - len(groups)
        apart += len(groups)
    assert folded > windows
    assert apart > windows


@given(LISTS, st.integers(1, 25), st.sampled_from([5, 17, 200]), POLICIES)
@settings(max_examples=examples(30), deadline=None)
def test_groups_stand_in_the_order_of_the_engine(library, number, size, window, representative):
    options = FoldOptions(window=window, representative=representative, members=100)
    answer = FoldedSearch(library.engine, SCHEME).search("pages", library.body(number, size=size), options)
    best = [
        min(member["_source"]["rank"] for member in hit["inner_hits"]["duplicates"]["hits"]["hits"])
        for hit in answer["hits"]["hits"]
    ]
    assert best == sorted(best)


@given(LISTS, st.integers(1, 12), st.sampled_from([5, 17, 200]), POLICIES)
@settings(max_examples=examples(20), deadline=None)
def test_over_all_pages_of_a_cursor_each_member_matches_the_one_shown_and_no_two_shown_match(
    library, number, size, window, representative
):
    made = library.lists[number]
    options = FoldOptions(window=window, representative=representative, members=100)
    shown = []
    for page in FoldedSearch(library.engine, SCHEME).pages("pages", library.body(number, size=size), options):
        for hit in page["hits"]["hits"]:
            one, *others = hit["inner_hits"]["duplicates"]["hits"]["hits"]
            assert all(
                match(made[one["_source"]["rank"]], made[other["_source"]["rank"]]) for other in others
            )
            shown.append(made[hit["_source"]["rank"]])
    assert not any(match(a, b) for place, a in enumerate(shown) for b in shown[place + 1 :])
