"""MMR and the embedding filter choose by their definitions."""

import numpy as np

from bench.retrieval import mmr, unlike

#: Unit vectors: a copy of the first, then one that is farther from the query, but unlike both.
VECTORS = np.array([[1.0, 0.0], [0.999, 0.0447], [0.6, -0.8]], np.float32)


def test_mmr_takes_an_unlike_vector_before_a_copy():
    assert mmr(np.array([0.94, -0.34], np.float32), VECTORS, 3) == [0, 2, 1]


def test_the_filter_drops_a_copy_and_keeps_the_order():
    assert unlike(VECTORS) == [0, 2]
    assert unlike(VECTORS, 1.0) == [0, 1, 2]
