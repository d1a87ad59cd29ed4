"""Fingerprints as the JSON that is stored, a block at a time: no object a part of a fingerprint."""

import json
from base64 import b64encode
from collections.abc import Iterator

import numpy as np

from shinglefold.model import Bytes, TokenBatch
from shinglefold.sketch import Sketcher, Sketches, letters


def fields_json(scheme: str, sketcher: Sketcher, batch: TokenBatch, made: Sketches) -> list[bytes]:
    """Return the JSON of ``Fingerprint.to_field`` of each document of a block.

    Args:
        scheme: its id.
    """
    digests = sketcher.digests(batch.hashes, batch.offsets)
    counts, valid = made.shingles.tolist(), made.valid.tolist()
    keywords = iter(_lists(letters(sketcher.supershingles(made)[made.valid])))
    signatures = iter(_base64(sketcher.signatures(made)[made.valid]))
    # Letters, digits and signs that need no escape stand in all the others.
    codes = {code: json.dumps(code, ensure_ascii=False)[1:-1] for code in set(batch.languages)}
    found = []
    for code, count, digest, good in zip(batch.languages, counts, digests, valid, strict=True):
        lang = codes[code]
        head = (
            f'{{"scheme":"{scheme}","lang":"{lang}","shingles":{count},'
            f'"digest":"{scheme}.{lang}.{count}.{digest}"'
        ).encode()
        tail = (
            b',"supershingles":[%b],"signature":"%b"}' % (next(keywords), next(signatures)) if good else b"}"
        )
        found.append(head + tail)
    return found


def _lists(found: Bytes) -> Iterator[bytes]:
    """Yield the keywords of each document as the inside of a JSON list."""
    documents, groups, length = found.shape
    quoted = np.full((documents, groups, length + 3), ord('"'), np.uint8)
    quoted[:, :, 1:-2] = found
    quoted[:, :, -1] = ord(",")
    joined, size = quoted.tobytes(), groups * (length + 3)
    for start in range(0, len(joined), size):
        yield joined[start : start + size - 1]


def _base64(signatures: Bytes) -> Iterator[bytes]:
    documents, size = signatures.shape
    if size % 3:
        yield from (b64encode(one.tobytes()) for one in signatures)
        return
    # Three bytes are exactly four characters, so all are encoded in one call.
    joined, length = b64encode(signatures.tobytes()), size // 3 * 4
    for start in range(0, documents * length, length):
        yield joined[start : start + length]
