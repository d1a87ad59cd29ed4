"""Decodes stored fingerprints into columns, many documents at once."""

from base64 import b64decode, b64encode, urlsafe_b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import InputError
from shinglefold.ingest.field_statistics import FieldWatch
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import (
    Bytes,
    Fingerprint,
    Int64s,
    Uint32s,
    Uint64s,
    facts_number,
    text_digest,
)
from shinglefold.offline.dedupe.fingerprint_table import (
    DIGEST,
    DIGESTED,
    SIGNED,
    FingerprintBlock,
    id_columns,
    with_facts,
)
from shinglefold.sketch.b_bit_minhash import packed_size
from shinglefold.sketch.minhash import HASHED, from_letters, slot_characters
from shinglefold.sketch.sketcher import LENGTH

#: The number of dots between scheme, language, shingles and digest.
DOTS = 3


@dataclass(frozen=True, slots=True)
class SignatureLayout:
    """The layout of a scheme's fingerprints: characters of a keyword, keywords, bytes of a signature."""

    scheme: str
    letters: int
    slots: int
    size: int

    @classmethod
    def of(cls, scheme: Scheme) -> "SignatureLayout":
        """Return the layout of a scheme."""
        sketch = scheme.sketch
        letters = slot_characters(sketch.groups) + HASHED
        return cls(scheme.id, letters, sketch.groups, packed_size(sketch.values, sketch.bits))

    @property
    def encoded(self) -> int:
        """The characters of a signature."""
        return -(-self.size // 3) * 4

    def words(self, letters: bytes) -> Uint32s:
        """Return the bits of keywords, uint32 (N, slots); raise ``InputError`` for another scheme's."""
        found = np.frombuffer(letters, np.uint8)
        if len(found) % (self.slots * self.letters):
            raise InputError("its supershingles are none that this version makes; sign it anew")
        return from_letters(found.reshape(-1, self.slots, self.letters), self.letters - HASHED)

    def signatures(self, encoded: bytes) -> Bytes:
        """Return signatures of base64, uint8 (N, size); raise ``InputError`` for another scheme's."""
        length = self.encoded
        try:
            # Three bytes are exactly four characters: signatures of such sizes are decoded in one call.
            step = length if self.size % 3 else max(1, len(encoded))
            pieces = (encoded[begin : begin + step] for begin in range(0, len(encoded), step))
            joined = b"".join(b64decode(piece, validate=True) for piece in pieces)
        except (NotBase64, ValueError) as error:
            raise InputError("its signature is not base64; sign it anew") from error
        if len(joined) * length != len(encoded) * self.size:
            raise InputError("its signature is not as long as the scheme's; sign it anew")
        return np.frombuffer(joined, np.uint8).reshape(-1, self.size)

    def check(self, made: Fingerprint) -> None:
        """Raise ``InputError`` if a fingerprint can't be compared with others of the scheme."""
        if not made.signature:
            return
        if not made.supershingles:
            raise InputError("its fingerprint has no supershingles, by which copies are found; sign it anew")
        if len(made.supershingles) != self.slots or {len(one) for one in made.supershingles} != {
            self.letters
        }:
            raise InputError("its supershingles are none that this version makes; sign it anew")
        if len(made.signature) != self.size:
            raise InputError("its signature is not as long as the scheme's; sign it anew")


def decoded_block(  # noqa: PLR0917 - a column each
    layout: SignatureLayout,
    shingles: Int64s,
    digested: NDArray[np.bool_],
    digests: bytes,
    signed: NDArray[np.bool_],
    letters: bytes,
    signatures: bytes,
    ids: tuple[bytes, Int64s, Uint64s],
    sources: Sequence[str],
    lines: Int64s,
    facts: Uint64s | None = None,
) -> FingerprintBlock:
    """Return stored parts as a block.

    Args:
        digested: bool (n,), which documents have a digest; ``digests``: 12 characters for each of them.
        signed: bool (n,), which documents have a signature; ``letters``, ``signatures``: keywords and base64
            of each of them, without separators.
        ids: the three columns of ids; ``sources``, ``lines``, ``facts``: see ``FingerprintBlock``.

    Raises:
        InputError: a part is not what the scheme makes.
    """
    count = len(shingles)
    words = np.zeros((count, layout.slots), np.uint32)
    words[signed] = layout.words(letters)
    whole = np.zeros((count, layout.size), np.uint8)
    whole[signed] = layout.signatures(signatures)
    if len(digests) != int(digested.sum()) * LENGTH:
        raise InputError("its digest is none that this version makes; sign it anew")
    bare = np.zeros((count, DIGEST), np.uint8)
    bare[digested] = np.frombuffer(urlsafe_b64decode(digests), np.uint8).reshape(-1, DIGEST)
    flags = (signed * SIGNED | digested * DIGESTED).astype(np.uint8)
    mixed = bare if facts is None else with_facts(bare, facts)
    return FingerprintBlock(words, whole, shingles, mixed, flags, *ids, sources, lines, facts=facts)


class Row(NamedTuple):
    """One document: its id, source and line, and the encoded parts of its fingerprint."""

    id: str | None
    source: str
    line: int
    shingles: int
    digest: bytes
    letters: bytes
    signature: bytes
    facts: int = 0


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """The result of a task: blocks, the lines that begin in it, and the documents left out, with reasons.

    ``other_scheme``: source, line and scheme of a fingerprint of another scheme. ``problem``: why the task
    can't be read. ``seen``: the fields of the documents whose texts were read.
    """

    blocks: Sequence[FingerprintBlock] = ()
    lines: int = 0
    left_out: Sequence[tuple[str, int, str]] = ()
    other_scheme: tuple[str, int, str] | None = None
    problem: str = ""
    seen: FieldWatch | None = None

    def join(self, other: "TaskAnswer") -> "TaskAnswer":
        """Return this result with that of another line of the task."""
        if self.seen is not None and other.seen is not None:
            self.seen.merge(other.seen)
        return TaskAnswer(
            (*self.blocks, *other.blocks),
            self.lines,
            (*self.left_out, *other.left_out),
            self.other_scheme or other.other_scheme,
            self.problem or other.problem,
            self.seen or other.seen,
        )


def row_of(  # noqa: PLR0917 - where it was read
    layout: SignatureLayout, parts: Mapping[str, Any], name: str | None, source: str, line: int, place: str
) -> Row:
    """Return a stored fingerprint as a row.

    Args:
        parts: those of the fingerprint; empty if ``place`` has none.

    Raises:
        InputError: it is missing, or see ``SignatureLayout.check``.
        OtherScheme: it is of another scheme.
    """
    if not parts:
        raise InputError(f"no fingerprint in its {place}: sign it, too")
    made = Fingerprint.from_field(parts)
    check_scheme(made.scheme, layout, source, line)
    layout.check(made)
    signature = b64encode(made.signature)
    letters = "".join(made.supershingles).encode() if made.signature else b""
    digest, facts = split_facts(made.digest)
    return Row(name, source, line, made.shingles, digest.encode(), letters, signature, facts)


def split_facts(digest: str) -> tuple[str, int]:
    """Return the digest of a text, and its facts as a number, 0 for none; else raise ``InputError``."""
    try:
        return text_digest(digest), facts_number(digest)
    except ValueError as error:
        raise InputError("its facts are none that this version makes; sign it anew") from error


class OtherScheme(Exception):
    """A fingerprint of another scheme: signatures of different schemes can't be compared."""

    def __init__(self, source: str, line: int, scheme: str) -> None:
        super().__init__(scheme)
        self.place = source, line, scheme


def check_scheme(found: str, layout: SignatureLayout, source: str, line: int) -> None:
    """Raise ``OtherScheme`` if a fingerprint is not of the scheme."""
    if found != layout.scheme:
        raise OtherScheme(source, line, found)


def block_of(layout: SignatureLayout, rows: Sequence[Row]) -> FingerprintBlock:
    """Return rows as a block; raise ``InputError`` if a part is not what the scheme makes."""
    facts = np.array([row.facts for row in rows], np.uint64)
    return decoded_block(
        layout,
        np.array([row.shingles for row in rows], np.int64),
        np.array([bool(row.digest) for row in rows]),
        b"".join(row.digest for row in rows),
        np.array([bool(row.signature) for row in rows]),
        b"".join(row.letters for row in rows),
        b"".join(row.signature for row in rows),
        id_columns([row.id for row in rows]),
        [row.source for row in rows],
        np.array([row.line for row in rows], np.int64),
        facts if facts.any() else None,
    )


def sound_blocks(
    layout: SignatureLayout, rows: Sequence[Row], left_out: list[tuple[str, int, str]]
) -> list[FingerprintBlock]:
    """Return sound rows as blocks, and add damaged rows to ``left_out``."""
    with suppress(InputError):
        return [block_of(layout, rows)] if rows else []
    sound = []
    for row in rows:
        try:
            block_of(layout, [row])
            sound.append(row)
        except InputError as error:
            left_out.append((row.source, row.line, str(error)))
    return [block_of(layout, sound)] if sound else []
