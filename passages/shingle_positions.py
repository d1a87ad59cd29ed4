"""The elements of a text: every w consecutive canonical words, with positions; and those to store."""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xxhash import xxh3_64_intdigest

from shinglefold.model.values import Int64s, PlacedTokens, Token, Uint64s
from shinglefold.relatives.simhash import window_simhashes
from shinglefold.sketch.shingles import shingle_hashes

#: The words of an element: enough to exclude chance matches, few enough to fit between two edits.
WIDTH = 5


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """The elements of a text, by ordinal 0 … E − 1; element o has the tokens o … o + width − 1.

    ``hashes``: uint64 (E,). ``words``: uint64 (T,), the hash of each of its T tokens. ``starts``, ``ends``:
    int64 (T,), the characters of each token, end exclusive.
    ``near``: uint64 (E,), simhashes of the words of each element in any order, or empty.
    """

    hashes: Uint64s
    words: Uint64s
    starts: Int64s
    ends: Int64s
    width: int
    near: Uint64s

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def tokens(self) -> int:
        """The number of tokens of the text."""
        return len(self.starts)


def elements_of(
    tokens: Sequence[Token] | PlacedTokens, width: int = WIDTH, tolerant: bool = False
) -> Elements:
    """Return the elements of a text.

    Args:
        tokens: canonical tokens with their positions. In columns (``Canonicalizer.placed``) a token takes a
            fifth of the time and a tenth of the memory.
        width: words of an element, 1 to 10.
        tolerant: also compute the simhash of each element, by which similar elements are found.
    """
    placed = in_columns(tokens)
    hashes = shingle_hashes(placed.hashes, width)
    near = window_simhashes(placed.hashes, width) if tolerant else np.zeros(0, np.uint64)
    return Elements(hashes, placed.hashes, placed.starts, placed.ends, width, near)


def in_columns(tokens: Sequence[Token] | PlacedTokens) -> PlacedTokens:
    """Return tokens as columns; columns are returned unchanged."""
    if isinstance(tokens, PlacedTokens):
        return tokens
    known: dict[str, int] = {}
    for token in tokens:
        if token.text not in known:
            known[token.text] = xxh3_64_intdigest(token.text.encode("utf-8", "surrogatepass"))
    hashes = np.array([known[token.text] for token in tokens], np.uint64)
    starts = np.array([token.start for token in tokens], np.int64)
    return PlacedTokens(hashes, starts, np.array([token.end for token in tokens], np.int64))


#: At least one of this many consecutive elements is stored. So texts that share a passage of ``SURE`` words
#: share a stored element. Two elements are stored for each 17 words.
WINDOW = 16
#: An unchanged passage of at least this many words is always found.
SURE = WINDOW + WIDTH - 1
#: Stored characters of a hash, 36 bits: they find candidates, whose texts then decide.
_CHARACTERS = 6
#: The keyword of a text that is too short for an element; a text without keywords was not processed.
NONE = "-"


def stored_elements(tokens: Uint64s) -> list[str]:
    """Return the keywords to store of a text, in ascending order of their hashes; at least one.

    Args:
        tokens: uint64 (T,), hashes of the canonical tokens.

    Source: Schleimer, Wilkerson, Aiken, Winnowing: Local Algorithms for Document Fingerprinting (2003). The
    least hash of each window is taken; equal elements count once.
    """
    return keywords(winnow(shingle_hashes(tokens, WIDTH))) or [NONE]


def winnow(hashes: Uint64s, window: int = WINDOW) -> Uint64s:
    """Return the least hash of each window of consecutive ones, ascending and without repetition."""
    if not len(hashes):
        return hashes
    views = np.lib.stride_tricks.sliding_window_view(hashes, min(window, len(hashes)))
    return np.unique(views.min(axis=1))


def keywords(hashes: Uint64s) -> list[str]:
    """Return hashes as keywords, as they are stored."""
    # The least of many hashes begin with zeros; after multiplication they vary in all characters.
    raw = (hashes * np.uint64(0x9E3779B97F4A7C15)).astype(">u8").tobytes()
    each = (urlsafe_b64encode(raw[at : at + 6]).decode("ascii")[:_CHARACTERS] for at in range(0, len(raw), 8))
    return list(dict.fromkeys(each))
