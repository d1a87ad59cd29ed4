"""Exact measures on sets of shingles: what the estimates estimate."""

import numpy as np

from shinglefold.model.values import Uint64s


def common(one: Uint64s, other: Uint64s) -> int:
    """Return how many elements two sorted unique arrays share.

    Cost: n·log m, n being the smaller size.
    """
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    if not len(small):
        return 0
    places = np.searchsorted(large, small)
    places[places == len(large)] = len(large) - 1
    return int(np.count_nonzero(large[places] == small))


def resemblance(one: Uint64s, other: Uint64s) -> float:
    """Return |A ∩ B| / |A ∪ B| of two sorted unique arrays; 0 where both are empty.

    Source: Broder 1997, "On the resemblance and containment of documents".
    """
    shared = common(one, other)
    return _share(shared, len(one) + len(other) - shared)


def containment(one: Uint64s, other: Uint64s) -> float:
    """Return |A ∩ B| / |A|, the share of the first set found in the second; 0 where the first is empty."""
    return _share(common(one, other), len(one))


def sorensen(one: Uint64s, other: Uint64s) -> float:
    """Return 2·|A ∩ B| / (|A| + |B|) of two sorted unique arrays; 0 where both are empty."""
    return _share(2 * common(one, other), len(one) + len(other))


def _share(part: int, whole: int) -> float:
    # Two empty documents are not equal: nothing is known of either.
    return part / whole if whole else 0.0
