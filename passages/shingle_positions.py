"""The elements of a text: every w consecutive canonical words, with their place."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xxhash import xxh3_64_intdigest

from shinglefold.model.values import Int64s, PlacedTokens, Token, Uint64s
from shinglefold.relatives.simhash import window_simhashes
from shinglefold.sketch.shingles import shingle_hashes

#: Words of an element: rare enough to be no coincidence, short enough to stand between two edits.
WIDTH = 5


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """The elements of a text by their ordinals 0 … E − 1.

    ``hashes``: uint64 (E,). ``words``: uint64 (T,), the hash of each of its T tokens. ``starts``, ``ends``:
    int64 (T,), the characters of each token, end exclusive; element o has the tokens o … o + width − 1.
    ``near``: uint64 (E,), simhashes of the words of each element in whatever order, or empty.
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
        tokens: canonical tokens with their places, so that other endings are the same element. In columns
            (``Canonicalizer.placed``) a token takes a fifth of the time and a tenth of the memory.
        width: words of an element, 1 to 10.
        tolerant: also take the simhash of each element, so that it is found in a few bits' neighbourhood.
    """
    placed = in_columns(tokens)
    hashes = shingle_hashes(placed.hashes, width)
    near = window_simhashes(placed.hashes, width) if tolerant else np.zeros(0, np.uint64)
    return Elements(hashes, placed.hashes, placed.starts, placed.ends, width, near)


def in_columns(tokens: Sequence[Token] | PlacedTokens) -> PlacedTokens:
    """Return tokens as columns, which they may be already."""
    if isinstance(tokens, PlacedTokens):
        return tokens
    known: dict[str, int] = {}
    for token in tokens:
        if token.text not in known:
            known[token.text] = xxh3_64_intdigest(token.text.encode("utf-8", "surrogatepass"))
    hashes = np.array([known[token.text] for token in tokens], np.uint64)
    starts = np.array([token.start for token in tokens], np.int64)
    return PlacedTokens(hashes, starts, np.array([token.end for token in tokens], np.int64))
