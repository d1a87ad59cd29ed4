"""Context-triggered piecewise hashing: of words, and of bytes in ssdeep's format."""

from dataclasses import dataclass
from types import ModuleType

import numpy as np
from rapidfuzz.distance import Indel

from shinglefold.errors import InputError, MissingExtra
from shinglefold.model.values import Uint64s
from shinglefold.sketch.shingles import mix64, shingle_hashes

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#: How many words are hashed to decide on a cut; and the approximate number of letters of a signature, by
#: which the size of pieces is chosen.
WINDOW, LONGEST = 3, 64
_SMALLEST = 2


@dataclass(frozen=True, slots=True)
class Piecewise:
    """A letter for each piece: ``fine`` for pieces of about ``size`` words, ``coarse`` for twice that.

    ``str`` writes it in ssdeep's form: ``size:fine:coarse``.
    """

    size: int
    fine: str
    coarse: str

    def __str__(self) -> str:
        return f"{self.size}:{self.fine}:{self.coarse}"

    @classmethod
    def parse(cls, text: str) -> "Piecewise":
        """Read what ``str`` wrote."""
        size, fine, coarse = text.split(":")
        return cls(int(size), fine, coarse)


def piecewise(tokens: Uint64s) -> Piecewise:
    """Return the piecewise hash of a document's canonical tokens.

    The hash of a word and the two words before it decides whether the text is cut after the word: if it is
    one below a multiple of the size. A changed word changes the letter of its piece, and that of the next one
    if it moves a cut. Later pieces stay.

    Args:
        tokens: uint64 (T,).

    Source: Kornblum 2006, "Identifying almost identical files using context triggered piecewise hashing".
    Deviations: words instead of bytes; the trigger hashes its window instead of rolling over it; signatures
    are not cut off at 64 letters.
    """
    size = _SMALLEST
    while size * LONGEST < len(tokens):
        size *= 2
    triggers = shingle_hashes(tokens, WINDOW)
    fine = _letters(tokens, triggers, size)
    while size > _SMALLEST and len(fine) < LONGEST // 2:
        size //= 2
        fine = _letters(tokens, triggers, size)
    return Piecewise(size, fine, _letters(tokens, triggers, size * 2))


def similarity(one: Piecewise, other: Piecewise) -> float:
    """Return the similarity of two piecewise hashes, 0 to 1: 1 − edits/(letters of both).

    An edit is an inserted or deleted letter. Sizes must be equal, or one twice the other; else the result is
    0.
    """
    pairs = []
    if one.size == other.size:
        pairs = [(one.fine, other.fine), (one.coarse, other.coarse)]
    elif one.size == 2 * other.size:
        pairs = [(one.fine, other.coarse)]
    elif other.size == 2 * one.size:
        pairs = [(one.coarse, other.fine)]
    return max((float(Indel.normalized_similarity(a, b)) for a, b in pairs if a and b), default=0.0)


def _letters(tokens: Uint64s, triggers: Uint64s, size: int) -> str:
    """Return a letter for each piece: six bits of the hash of its words in order."""
    if not len(tokens):
        return ""
    cuts = np.flatnonzero(triggers % np.uint64(size) == size - 1) + WINDOW
    starts = np.concatenate(([0], cuts[cuts < len(tokens)]))
    places = np.arange(len(tokens)) - np.repeat(starts, np.diff(np.append(starts, len(tokens))))
    placed = mix64(tokens + places.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    hashes = np.add.reduceat(placed, starts) >> np.uint64(58)
    return "".join(_LETTERS[letter] for letter in hashes.tolist())


def ssdeep(data: bytes) -> str:
    """Return the ssdeep hash ``size:letters:letters`` of some bytes.

    Cost: about 1 µs a byte; ppdeep is written in Python.

    Raises:
        MissingExtra: ppdeep is not installed.
    """
    return str(_ppdeep().hash(data))


def ssdeep_similarity(one: str, other: str) -> float:
    """Return ssdeep's score of two hashes, scaled to 0…1.

    Raises:
        InputError: one is not an ssdeep hash.
        MissingExtra: ppdeep is not installed.
    """
    try:
        return float(_ppdeep().compare(one, other)) / 100.0
    except ValueError as error:
        raise InputError(f"not an ssdeep hash: {error}") from error


def _ppdeep() -> ModuleType:
    try:
        import ppdeep
    except ImportError as error:
        raise MissingExtra("hashes", "ssdeep's format") from error
    module: ModuleType = ppdeep
    return module
