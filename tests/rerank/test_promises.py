"""What a folded search promises, on many random lists and on a real index."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hits import BITS, SCHEME, VALUES, match
from support.servers.choose import examples

from shinglefold.rerank import FoldedSearch, FoldOptions, Preference, collapse
from shinglefold.sketch.b_bit_minhash import estimate, pack

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


def made_hits(values):
    from base64 import b64encode

    fields = {"_dedup.scheme": [SCHEME.id], "_dedup.lang": ["ru"], "_dedup.shingles": [300]}
    return [
        {"_id": str(rank), "fields": fields | {"_dedup.signature": [b64encode(row.tobytes()).decode()]}}
        for rank, row in enumerate(pack(values, BITS))
    ]


def exhaustive(values):
    """Groups with a leader from the table of all pairs, value by value."""
    agreeing = (values[:, None, :] == values[None, :, :]).sum(axis=2)
    alike = estimate(agreeing.ravel(), VALUES, BITS)[0].reshape(agreeing.shape)
    near = alike >= SCHEME.decision.min_resemblance
    home: list[int] = []
    for rank in range(len(values)):
        home.append(next((one for one in range(rank) if home[one] == one and near[one, rank]), rank))
    return [tuple(np.flatnonzero(np.array(home) == one).tolist()) for one in sorted(set(home))], near


@pytest.mark.parametrize(("windows", "seed"), [(1_000, 20), pytest.param(9_000, 21, marks=pytest.mark.long)])
def test_ten_thousand_random_windows_fold_as_the_exhaustive_comparison_and_miss_no_pair(windows, seed):
    rng = np.random.default_rng(seed)
    folded = apart = 0
    for _ in range(windows):
        values = random_window(rng)
        groups, near = exhaustive(values)
        found = collapse(made_hits(values), SCHEME).groups
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
