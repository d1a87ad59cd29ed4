"""Groups out of pairs by a leader that each member matches; those by connection are in ``forest``."""

import numpy as np

from shinglefold.model.values import Int64s


def led(a: Int64s, b: Int64s, count: int, begun: Int64s | None = None) -> Int64s:
    """Return the leader of each of ``count`` items: the first item it matches that leads, or itself.

    An item that matches no leader before it leads. So every member matches its leader, and no two leaders
    match each other, which chains of pairs do not promise.

    Args:
        begun: the answer for items before all that stand second in a pair here; it is gone on with in place.

    Returns:
        int64 (count,), an item of no pair leads itself.

    Cost: a sort of the pairs, and a step in Python for each item that has a pair.
    """
    first, second = np.minimum(a, b), np.maximum(a, b)
    order = np.lexsort((first, second))
    first, second = first[order], second[order]
    leader = np.arange(count, dtype=np.int64) if begun is None else begun
    items, begins = np.unique(second, return_index=True)
    # Without pairs there is one empty part all the same.
    for item, earlier in zip(items.tolist(), np.split(first, begins[1:]), strict=False):
        leading = earlier[leader[earlier] == earlier]
        if len(leading):
            leader[item] = leading[0]
    return leader
