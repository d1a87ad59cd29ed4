"""The min-values of a batch of documents, by numpy; the compiled path returns the same."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.scheme import SketchOptions
from shinglefold.model.values import Int64s, Uint32s, Uint64s
from shinglefold.sketch.minhash import EMPTY, Affine32, minima
from shinglefold.sketch.shingles import batch_shingles, count_repeats, shingle_counts

#: Positions of a document looked at first when its distinct shingles are counted.
_GLANCE = 64


class BatchMinima(Protocol):
    """A function that computes the min-values of a batch."""

    def __call__(
        self, hashes: Uint64s, offsets: Int64s, width: int, options: SketchOptions, functions: Affine32
    ) -> tuple[Uint32s, NDArray[np.bool_]]:
        """Return the values of each document, and whether it has enough shingles for a signature."""
        ...


def batch_minima(
    hashes: Uint64s, offsets: Int64s, width: int, options: SketchOptions, functions: Affine32
) -> tuple[Uint32s, NDArray[np.bool_]]:
    """Return the values of each document, and whether it has enough shingles for a signature.

    Args:
        hashes: uint64 (T,), the token hashes of all documents one after another.
        offsets: int64 (D + 1,), from 0.
        width: shingle width of all.

    Returns:
        uint32 (D, K), all 2³²−1 where not valid, and bool (D,).
    """
    shingles = batch_shingles(hashes, offsets, width)
    valid = _enough(shingles, offsets[:-1], shingle_counts(offsets, width), options.min_shingles)
    if options.counted:
        count_repeats(shingles, offsets, width)
    # reduceat gives a neighbour's value for an empty document, so these stay out.
    filled = np.flatnonzero(np.diff(offsets))
    found = np.full((len(valid), options.values), EMPTY, np.uint32)
    found[filled] = minima(shingles, offsets[:-1][filled], functions, both_ends=options.both_ends)
    found[~valid] = EMPTY
    return found, valid


def _enough(shingles: Uint64s, starts: Int64s, counts: Int64s, wanted: int) -> NDArray[np.bool_]:
    """Tell which documents have ``wanted`` distinct shingles; most show it at their beginning."""
    enough = np.zeros(len(counts), np.bool_)
    hopeful = np.flatnonzero(counts >= wanted)
    glance = np.arange(min(4 * wanted, _GLANCE))
    places = starts[hopeful, None] + np.minimum(glance, counts[hopeful, None] - 1)
    seen = np.sort(shingles[places], axis=1)
    enough[hopeful] = 1 + np.count_nonzero(seen[:, 1:] != seen[:, :-1], axis=1) >= wanted
    for document in hopeful[~enough[hopeful]].tolist():
        start = starts[document]
        enough[document] = len(np.unique(shingles[start : start + counts[document]])) >= wanted
    return enough
