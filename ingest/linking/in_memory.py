"""All pairs of a collection at once, where memory holds it: the reference for what is done in files."""

import numpy as np

from shinglefold.ingest.linking.prints import DIGESTED, Prints
from shinglefold.scheme import Scheme
from shinglefold.sketch import Pairs, find_pairs


def all_pairs(prints: Prints, scheme: Scheme) -> Pairs:
    """Return every pair that a scheme folds, as ``find_pairs`` does.

    Args:
        scheme: that of the fingerprints, with any decision.
    """
    digests = prints.digests.mapped().view(f"V{prints.digests.row_bytes}")[:, 0].tolist()
    told = ((prints.flags.mapped() & DIGESTED) > 0).tolist()
    return find_pairs(
        prints.words.mapped().astype(np.uint64, copy=False),
        prints.signatures.mapped(),
        prints.shingles.mapped(),
        [bytes(one) if there else b"" for one, there in zip(digests, told, strict=True)],
        scheme.sketch,
        scheme.decision,
        prints.valid(),
        prints.texts,
    )
