"""What comes of a signed file: rows to blocks, documents left out, and what makes it unfit."""

from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shinglefold.errors import InputError
from shinglefold.ingest.linking.prints import Block, named
from shinglefold.ingest.linking.stored import Layout, decoded
from shinglefold.model import Fingerprint

#: Dots between scheme, language, shingles, digest.
DOTS = 3


class Row(NamedTuple):
    """One document: its id, where it stood, and the parts of its fingerprint."""

    id: str | None
    source: str
    line: int
    shingles: int
    digest: bytes
    letters: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What a task held: a block, lines that begin in it, and why documents were left out, with their places.

    ``foreign``: where a fingerprint of another scheme stood, and which. ``problem``: why it can't be read.
    """

    block: Block | None = None
    lines: int = 0
    left_out: tuple[tuple[str, int, str], ...] = ()
    foreign: tuple[str, int, str] | None = None
    problem: str = ""


def row_of(made: Fingerprint, layout: Layout, name: str | None, source: str, line: int) -> Row:
    """Return a fingerprint as a row.

    Raises:
        InputError: it can't be compared with others of the scheme.
    """
    layout.check(made)
    signature = b64encode(made.signature)
    letters = "".join(made.supershingles).encode() if made.signature else b""
    return Row(name, source, line, made.shingles, made.digest.encode(), letters, signature)


class Foreign(Exception):
    """A fingerprint of another scheme: signatures of two schemes say nothing about each other."""

    def __init__(self, source: str, line: int, scheme: str) -> None:
        super().__init__(scheme)
        self.place = source, line, scheme


def check_scheme(found: str, layout: Layout, source: str, line: int) -> None:
    """Refuse a fingerprint of another scheme.

    Raises:
        Foreign: it is one.
    """
    if found != layout.scheme:
        raise Foreign(source, line, found)


def block_of(layout: Layout, rows: Sequence[Row]) -> Block:
    """Return rows as a block.

    Raises:
        InputError: a part is not what the scheme makes.
    """
    made = decoded(
        layout,
        np.array([row.shingles for row in rows], np.int64),
        np.array([bool(row.digest) for row in rows]),
        b"".join(row.digest for row in rows),
        np.array([bool(row.signature) for row in rows]),
        b"".join(row.letters for row in rows),
        b"".join(row.signature for row in rows),
    )
    ids, sizes, hashes = named([row.id for row in rows])
    lines = np.array([row.line for row in rows], np.int64)
    return Block(
        made.words, made.signatures, made.shingles, made.digests, made.flags,
        ids, sizes, hashes, [row.source for row in rows], lines,
    )  # fmt: skip


def sound_block(layout: Layout, rows: Sequence[Row], left_out: list[tuple[str, int, str]]) -> Block | None:
    """Return rows as a block, None where there are none; those with damaged parts are left out, and told."""
    with suppress(InputError):
        return block_of(layout, rows) if rows else None
    kept = []
    for row in rows:
        try:
            block_of(layout, [row])
            kept.append(row)
        except InputError as error:
            left_out.append((row.source, row.line, str(error)))
    return block_of(layout, kept) if kept else None
