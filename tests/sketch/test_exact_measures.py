import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.sketches import batch, random_tokens

from shinglefold.sketch.shingles import containment, resemblance, sorensen
from shinglefold.sketch.sketcher import token_digests

sets = st.sets(st.integers(0, 60) | st.just(2**64 - 1))


def as_array(numbers):
    return np.array(sorted(numbers), np.uint64)


@given(sets, sets)
def test_the_measures_are_those_of_the_definitions(one, other):
    a, b = as_array(one), as_array(other)
    both = len(one & other)
    assert resemblance(a, b) == (both / len(one | other) if one | other else 0.0)
    assert containment(a, b) == (both / len(one) if one else 0.0)
    assert sorensen(a, b) == (2 * both / (len(one) + len(other)) if one | other else 0.0)
    assert resemblance(a, b) == resemblance(b, a)


def test_a_part_is_contained_in_the_whole_but_does_not_equal_it():
    whole = as_array(range(10))
    assert (containment(whole[:4], whole), containment(whole, whole[:4])) == (1.0, 0.4)
    assert resemblance(whole[:4], whole) == 0.4


@given(st.lists(st.lists(st.integers(0, 2), max_size=5), max_size=8))
def test_digests_are_equal_exactly_where_the_tokens_are(documents):
    letters = random_tokens(1, 3)
    found = token_digests(*batch([letters[np.array(document, np.int64)] for document in documents]))
    for one, of_one in zip(documents, found, strict=True):
        assert len(of_one) == (12 if len(one) >= 2 else 0)
        for other, of_other in zip(documents, found, strict=True):
            assert len(one) < 2 or (one == other) == (of_one == of_other)


def test_a_digest_does_not_depend_on_its_neighbours():
    documents = [random_tokens(seed, 10 * seed) for seed in range(5)]
    assert token_digests(*batch(documents)) == [
        token_digests(*batch([document]))[0] for document in documents
    ]
