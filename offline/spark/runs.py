"""Rows that come sorted, batch by batch: runs of equal keys are seen whole, though batches cut them."""

import numpy as np

from shinglefold.model.values import Int64s


def run_starts(keys: Int64s) -> Int64s:
    """Return where each run of equal keys begins, int64; none in nothing."""
    if not len(keys):
        return np.zeros(0, np.int64)
    return np.concatenate((np.zeros(1, np.int64), np.flatnonzero(keys[1:] != keys[:-1]) + 1))
