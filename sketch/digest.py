"""Digests: exact duplicates of any length, also of texts too short for a signature."""

from base64 import urlsafe_b64encode
from itertools import pairwise

import numpy as np
import xxhash

from shinglefold.model.values import Int64s, Uint64s

#: Documents of fewer tokens have no digest: one word is no duplicate of a page.
LEAST_TOKENS = 2
#: Bytes of a digest. Two unlike ones share 72 bits in one of a million collections of a hundred million
#: documents; every further byte costs nearly four on disk, stored, indexed and as doc value.
_BYTES = 9
#: Characters of a digest: base64 without padding.
LENGTH = 12


def digests(hashes: Uint64s, offsets: Int64s) -> list[str]:
    """Return the digest of each document's canonical token sequence.

    Args:
        hashes: uint64 (T,), token hashes.
        offsets: int64 (D + 1,).

    Returns:
        D strings of 12 URL-safe characters (XXH3, the first 72 of 128 bits), or "" where there are fewer than
        two tokens.
    """
    data = memoryview(np.ascontiguousarray(hashes, "<u8").view(np.uint8).data)
    bounds = (offsets * 8).tolist()
    long_enough = (np.diff(offsets) >= LEAST_TOKENS).tolist()
    # Nine bytes are exactly twelve characters, so all documents are encoded in one call.
    joined = b"".join(xxhash.xxh3_128_digest(data[start:end])[:_BYTES] for start, end in pairwise(bounds))
    text = urlsafe_b64encode(joined).decode("ascii")
    return [
        text[LENGTH * place : LENGTH * (place + 1)] if good else "" for place, good in enumerate(long_enough)
    ]
