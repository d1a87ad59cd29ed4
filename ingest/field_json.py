"""Fingerprints as the JSON that is stored, a block at a time: no object a part of a fingerprint."""

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from shinglefold.model.values import Bytes, TokenBatch
from shinglefold.sketch import Sketcher, Sketches, letters


class Tails(Protocol):
    """What ``plain_tails`` does, in whichever way."""

    def __call__(self, sketcher: Sketcher, made: Sketches) -> Iterator[bytes]:
        """Yield what of each signature and its keywords stands behind the digest."""
        ...


def plain_tails(sketcher: Sketcher, made: Sketches) -> Iterator[bytes]:
    """Yield keywords and signature of each document that has one, as the end of its JSON."""
    keywords = _lists(letters(sketcher.supershingles(made)[made.valid]))
    signatures = _base64(sketcher.signatures(made)[made.valid])
    for words, signature in zip(keywords, signatures, strict=True):
        yield b',"supershingles":[%b],"signature":"%b"}' % (words, signature)


def fields_json(
    scheme: str, sketcher: Sketcher, batch: TokenBatch, made: Sketches, tails: Tails = plain_tails
) -> list[bytes]:
    """Return the JSON of ``Fingerprint.to_field`` of each document of a block.

    Args:
        scheme: its id.
        tails: makes the rest of those that have a signature.
    """
    digests = sketcher.digests(batch.hashes, batch.offsets)
    rest = tails(sketcher, made)
    # Letters, digits and signs that need no escape stand in all the others.
    codes = {code: json.dumps(code, ensure_ascii=False)[1:-1] for code in set(batch.languages)}
    rows = zip(batch.languages, made.shingles.tolist(), digests, made.valid.tolist(), strict=True)
    return [
        (
            f'{{"scheme":"{scheme}","lang":"{(lang := codes[code])}","shingles":{count},'
            f'"digest":"{scheme}.{lang}.{count}.{digest}"'
        ).encode()
        + (next(rest) if good else b"}")
        for code, count, digest, good in rows
    ]


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
