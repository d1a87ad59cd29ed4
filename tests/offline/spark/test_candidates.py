"""Candidates: all pairs of a supershingle; of a crowded one those with its centres, and a count."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.servers.choose import examples

from shinglefold.errors import ConfigError
from shinglefold.model.scheme import Decision
from shinglefold.offline.spark import Bounds
from shinglefold.offline.spark.candidate_pairs import _Nominate

ANY_LENGTH = Decision(min_length_ratio=0.0)


def nominated(rows, bounds, cut, decision=ANY_LENGTH):
    """Return pairs and the sizes of crowded keys, of rows (key, number, shingles) in batches cut anywhere."""
    rows = np.array(sorted(rows), np.int64).reshape(-1, 3)
    batches = [
        pa.RecordBatch.from_arrays([pa.array(column) for column in part.T], ["key", "number", "shingles"])
        for part in np.array_split(rows, range(cut, len(rows), cut))
    ]
    found = [row for batch in _Nominate(decision, bounds)(batches) for row in batch.to_pylist()]
    pairs = [(row["a"], row["b"]) for row in found if row["held"] is None]
    return pairs, sorted(row["held"] for row in found if row["held"] is not None)


buckets = st.dictionaries(st.integers(-5, 5), st.sets(st.integers(0, 40), max_size=25), max_size=8)


@given(buckets, st.integers(1, 40))
@settings(max_examples=examples(150), deadline=None)
def test_every_two_documents_of_a_supershingle_are_a_pair(held, cut):
    rows = [(key, number, 50) for key, numbers in held.items() for number in numbers]
    pairs, crowded = nominated(rows, Bounds(most=30), cut)
    assert sorted(pairs) == sorted(pair for one in held.values() for pair in combinations(sorted(one), 2))
    assert not crowded


@given(buckets, st.integers(1, 40), st.integers(2, 10), st.integers(1, 2))
@settings(max_examples=examples(150), deadline=None)
def test_a_crowded_supershingle_links_its_documents_to_its_centres_and_is_told(held, cut, most, centres):
    rows = [(key, number, 50) for key, numbers in held.items() for number in numbers]
    pairs, crowded = nominated(rows, Bounds(most, centres), cut)
    wanted = []
    for numbers in map(sorted, held.values()):
        first = numbers if len(numbers) <= most else numbers[:centres]
        wanted += [(one, other) for one, other in combinations(numbers, 2) if one in first]
    assert sorted(pairs) == sorted(wanted)
    assert crowded == sorted(len(one) for one in held.values() if len(one) > most)


def test_documents_of_other_lengths_are_no_candidates():
    rows = [(1, 0, 100), (1, 1, 90), (1, 2, 30)]
    assert nominated(rows, Bounds(), 2, Decision())[0] == [(0, 1)]
    assert len(nominated(rows, Bounds(), 2, Decision(verify="keywords"))[0]) == 3


@pytest.mark.parametrize("bounds", [{"most": 1}, {"centres": 0}, {"most": 5, "centres": 6}])
def test_bounds_that_can_not_be_are_refused(bounds):
    with pytest.raises(ConfigError):
        Bounds(**bounds)
