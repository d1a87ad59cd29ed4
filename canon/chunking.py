"""Long texts are cut into pieces, and pieces are grouped in blocks, so memory stays bounded."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s, Uint64s

#: Texts of more characters are joined without a copy.
LONG = 1 << 21
#: The characters of a piece. A longer text is cut at the next space or Chinese character after them.
PIECE = 1 << 17
#: A text is cut between words if one ends within this many characters, else inside a word.
REACH = 1 << 13
#: The characters of a block: enough to hide the overhead of numpy calls, few enough for the cache.
BLOCK = 1 << 16

_CUT = re.compile(r"[\s\u3000-\u303f\u3400-\u9fff]")


class Lines(str):
    """A string of texts joined by line ends, with its parts."""

    parts: tuple[str, ...] = ()


class Joined:
    """Texts joined by line ends without a copy (a rope); slices are strings."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._parts = [part for text in texts for part in ("\n", text)][1:]
        self._ends = list(accumulate(map(len, self._parts)))

    def __len__(self) -> int:
        return self._ends[-1]

    def __str__(self) -> str:
        return self[:]

    def __getitem__(self, wanted: slice) -> str:
        start, stop, _ = wanted.indices(len(self))
        found = []
        for part, end in zip(self._parts, self._ends, strict=True):
            begin = end - len(part)
            if start < end and begin < stop:
                found.append(part[max(0, start - begin) : stop - begin])
        return "".join(found)


#: A text that can be cut into pieces.
Cuttable = str | Joined


def join(texts: Sequence[str]) -> Cuttable:
    """Join texts by line ends, long ones without a copy."""
    if len(texts) < 2:
        return "".join(texts)
    if sum(map(len, texts)) > LONG:
        return Joined(texts)
    lines = Lines("\n".join(texts))
    lines.parts = tuple(texts)
    return lines


def pieces(text: Cuttable) -> Iterator[tuple[int, str]]:
    """Yield the pieces of a text with their offsets; most texts are a single piece."""
    start = 0
    while len(text) - start > PIECE + REACH:
        found = _CUT.search(text[start + PIECE : start + PIECE + REACH])
        end = start + PIECE + (found.start() if found else REACH)
        yield start, text[start:end]
        start = end
    yield start, text[start:]


class Block(NamedTuple):
    """Pieces to process together, each with the number of its document and its offset there."""

    numbers: list[int]
    offsets: list[int]
    pieces: list[str]


def blocks(texts: Sequence[Cuttable]) -> Iterator[Block]:
    """Yield blocks of the pieces of all texts."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    if lengths.max(initial=0) <= PIECE + REACH:
        # All texts are strings here, because a ``Joined`` text is longer than this limit.
        yield from _blocks_of_whole(cast(Sequence[str], texts), np.cumsum(lengths + 1))
        return
    block, size = Block([], [], []), 0
    for number, text in enumerate(texts):
        for offset, piece in pieces(text):
            if block.pieces and size + len(piece) > BLOCK:
                yield block
                block, size = Block([], [], []), 0
            block.numbers.append(number)
            block.offsets.append(offset)
            block.pieces.append(piece)
            size += len(piece) + 1
    yield block


def _blocks_of_whole(texts: Sequence[str], ends: Int64s) -> Iterator[Block]:
    """Yield blocks of texts that are one piece each, without a loop over the texts.

    Args:
        ends: the end of each text and the separator after it.
    """
    begin = done = 0
    while begin < len(texts):
        # The last separator is not part of the block, hence + 1.
        end = max(begin + 1, int(np.searchsorted(ends, done + BLOCK + 1, "right")))
        yield Block(list(range(begin, end)), [0] * (end - begin), list(texts[begin:end]))
        begin, done = end, int(ends[end - 1])


class HashedBlock(NamedTuple):
    """The tokens of a block of P texts.

    ``hashes``: uint64 (T,), canonical tokens without dropped ones. ``counts``, ``repairs``: int64 (P,), for
    each text. ``votes``: int64 (P, L), words of each language.
    """

    hashes: Uint64s
    counts: Int64s
    votes: Int64s
    repairs: Int64s


def merge_blocks(most: HashedBlock, others: HashedBlock, places: Int64s) -> HashedBlock:
    """Insert texts into a block, after another path has hashed them.

    Args:
        most: the block; it has no tokens for those texts.
        others: the tokens of the texts to insert, in order.
        places: int64, the positions of the texts to insert in the block.
    """
    counts, votes, repairs = most.counts.copy(), most.votes.copy(), most.repairs.copy()
    counts[places], votes[places], repairs[places] = others.counts, others.votes, others.repairs
    is_other: NDArray[np.bool_] = np.zeros(len(counts), np.bool_)
    is_other[places] = True
    of_others = np.repeat(is_other, counts)
    hashes = np.empty(len(of_others), np.uint64)
    hashes[of_others], hashes[~of_others] = others.hashes, most.hashes
    return HashedBlock(hashes, counts, votes, repairs)
