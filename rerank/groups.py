"""Connected groups: union-find over arrays of pairs."""

import numpy as np

from shinglefold.model import Int64s


def groups(a: Int64s, b: Int64s, count: int) -> Int64s:
    """Return the group of each of ``count`` items, given pairs (a[p], b[p]) of items that belong together.

    Returns:
        int64 (count,), the least item of the group: an item of no pair is its own group.

    Cost: a few passes over the pairs, in the order of the logarithm of the longest chain; no Python loop
    over pairs.
    """
    label = np.arange(count, dtype=np.int64)
    while len(a):
        low, high = np.minimum(label[a], label[b]), np.maximum(label[a], label[b])
        apart = low != high
        a, b, low, high = a[apart], b[apart], low[apart], high[apart]
        # A root points to the least root it meets; then every item to its root.
        np.minimum.at(label, high, low)
        while not np.array_equal(label[label], label):
            label = label[label]
    return label
