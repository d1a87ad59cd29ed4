"""Groups out of pairs: by connection (union-find over arrays), or by a leader each member matches."""

import numpy as np

from shinglefold.model import Int64s


def connected(a: Int64s, b: Int64s, count: int) -> Int64s:
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


def led(a: Int64s, b: Int64s, count: int) -> Int64s:
    """Return the leader of each of ``count`` items: the first item it matches that leads, or itself.

    An item that matches no leader before it leads. So every member matches its leader, and no two leaders
    match each other, which chains of pairs do not promise.

    Returns:
        int64 (count,), as ``connected``.

    Cost: a sort of the pairs, and a step in Python for each item that has a pair.
    """
    first, second = np.minimum(a, b), np.maximum(a, b)
    order = np.lexsort((first, second))
    first, second = first[order], second[order]
    leader = np.arange(count, dtype=np.int64)
    items, begins = np.unique(second, return_index=True)
    # Without pairs there is one empty part all the same.
    for item, earlier in zip(items.tolist(), np.split(first, begins[1:]), strict=False):
        leading = earlier[leader[earlier] == earlier]
        if len(leading):
            leader[item] = leading[0]
    return leader
