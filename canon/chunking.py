"""Long texts in pieces, pieces in blocks: memory stays flat whatever the documents are."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s, Uint64s

#: Characters from which on texts are not copied to become one.
LONG = 1 << 21
#: Characters of a piece; a longer document is cut here, at the next space or Chinese character.
PIECE = 1 << 17
#: How far the next good place is looked for before a piece is cut inside a word.
REACH = 1 << 13
#: Characters of a block: large enough that numpy's cost a call vanishes, small enough for the cache.
BLOCK = 1 << 16

_CUT = re.compile(r"[\s\u3000-\u303f\u3400-\u9fff]")


class Lines(str):
    """Texts one after another, with a line end between them, that knows its parts."""

    parts: tuple[str, ...] = ()


class Joined:
    """Texts one after another, with a line end between them, as one of which no copy is made."""

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


#: What pieces are cut from: a text as one string, or as several.
Cuttable = str | Joined


def join(texts: Sequence[str]) -> Cuttable:
    """Return texts as one, with a line end between them; no copy is made of long ones."""
    if len(texts) < 2:
        return "".join(texts)
    if sum(map(len, texts)) > LONG:
        return Joined(texts)
    lines = Lines("\n".join(texts))
    lines.parts = tuple(texts)
    return lines


def pieces(text: Cuttable) -> Iterator[tuple[int, str]]:
    """Yield the pieces of a text with their offsets; one piece for every ordinary text."""
    start = 0
    while len(text) - start > PIECE + REACH:
        found = _CUT.search(text[start + PIECE : start + PIECE + REACH])
        end = start + PIECE + (found.start() if found else REACH)
        yield start, text[start:end]
        start = end
    yield start, text[start:]


class Block(NamedTuple):
    """Pieces to be worked on together: of each the number of its document, and its offset in it."""

    numbers: list[int]
    offsets: list[int]
    pieces: list[str]


def blocks(texts: Sequence[Cuttable]) -> Iterator[Block]:
    """Yield the pieces of all texts in blocks."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    if lengths.max(initial=0) <= PIECE + REACH:
        # Texts of several parts are long.
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
    """Yield texts of one piece each; nothing is done for each of them.

    Args:
        ends: where each text and what parts it from the next one end.
    """
    begin = done = 0
    while begin < len(texts):
        # What parts the last one from the next is no longer in the block.
        end = max(begin + 1, int(np.searchsorted(ends, done + BLOCK + 1, "right")))
        yield Block(list(range(begin, end)), [0] * (end - begin), list(texts[begin:end]))
        begin, done = end, int(ends[end - 1])


class HashedBlock(NamedTuple):
    """The tokens of a block of P texts.

    ``hashes``: uint64 (T,), canonical tokens, dropped ones left out. ``counts``, ``repairs``: int64 (P,), of
    each text. ``votes``: int64 (P, L), words of each language.
    """

    hashes: Uint64s
    counts: Int64s
    votes: Int64s
    repairs: Int64s


def merged(most: HashedBlock, others: HashedBlock, places: Int64s) -> HashedBlock:
    """Return a block, some texts of which were made apart.

    Args:
        most: has nothing for those texts.
        others: has those texts alone, in order.
        places: int64, theirs in the block.
    """
    counts, votes, repairs = most.counts.copy(), most.votes.copy(), most.repairs.copy()
    counts[places], votes[places], repairs[places] = others.counts, others.votes, others.repairs
    apart: NDArray[np.bool_] = np.zeros(len(counts), np.bool_)
    apart[places] = True
    of_others = np.repeat(apart, counts)
    hashes = np.empty(len(of_others), np.uint64)
    hashes[of_others], hashes[~of_others] = others.hashes, most.hashes
    return HashedBlock(hashes, counts, votes, repairs)
