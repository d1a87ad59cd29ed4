"""Digests: exact duplicates of any length, also of texts too short for a signature."""

from base64 import urlsafe_b64encode
from itertools import pairwise

import numpy as np
import xxhash

from shinglefold.model import Int64s, Uint64s

#: Documents of fewer tokens have no digest: one word is no duplicate of a page.
LEAST_TOKENS = 2
#: Characters of a digest: 128 bits in base64, padding cut off.
LENGTH = 22


def digests(hashes: Uint64s, offsets: Int64s) -> list[str]:
    """Return the digest of each document's canonical token sequence.

    Args:
        hashes: uint64 (T,), token hashes.
        offsets: int64 (D + 1,).

    Returns:
        D strings of 22 URL-safe characters (XXH3, 128 bits), or "" where there are fewer than two tokens.
    """
    data = memoryview(np.ascontiguousarray(hashes, "<u8").view(np.uint8).data)
    bounds = (offsets * 8).tolist()
    long_enough = (np.diff(offsets) >= LEAST_TOKENS).tolist()
    # Two bytes of padding let all documents be encoded in one call: 18 bytes are exactly 24 characters.
    joined = b"".join(xxhash.xxh3_128_digest(data[start:end]) + b"\0\0" for start, end in pairwise(bounds))
    text = urlsafe_b64encode(joined).decode("ascii")
    return [text[24 * place : 24 * place + LENGTH] if good else "" for place, good in enumerate(long_enough)]
