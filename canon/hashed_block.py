"""The hashed tokens of a block of texts, and blocks put together from two ways of making them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s, Uint64s


class HashedBlock(NamedTuple):
    """The tokens of a block of P texts.

    ``hashes``: uint64 (T,), canonical tokens, dropped ones left out. ``counts``, ``repairs``: int64 (P,), of
    each text. ``votes``: int64 (P, L), words of each language.
    """

    hashes: Uint64s
    counts: Int64s
    votes: Int64s
    repairs: Int64s


def merged(most: HashedBlock, others: HashedBlock, places: Int64s) -> HashedBlock:
    """Return a block, some texts of which were made apart.

    Args:
        most: has nothing for those texts.
        others: has those texts alone, in order.
        places: int64, theirs in the block.
    """
    counts, votes, repairs = most.counts.copy(), most.votes.copy(), most.repairs.copy()
    counts[places], votes[places], repairs[places] = others.counts, others.votes, others.repairs
    apart: NDArray[np.bool_] = np.zeros(len(counts), np.bool_)
    apart[places] = True
    of_others = np.repeat(apart, counts)
    hashes = np.empty(len(of_others), np.uint64)
    hashes[of_others], hashes[~of_others] = others.hashes, most.hashes
    return HashedBlock(hashes, counts, votes, repairs)
