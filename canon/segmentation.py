"""Cuts long texts into pieces, collects pieces in blocks to bound memory, and cuts blocks into tokens.

Tokens are words and single characters, with their scripts and hashes, found by numpy.
"""

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from shinglefold.canon.normalization import CleanBlock, Joins, clean_texts
from shinglefold.canon.unicode_tables import APOSTROPHE, SIGN, STAND_IN, UNIT, WORD, characters, mix
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
#: Longer runs of letters are not words (base64, a page without spaces), and are left out.
LONGEST_WORD = 128
#: Signs after a longer word do not belong to it.
LONGEST_SIGNED = 2
#: Letters before and after an apostrophe in Ukrainian and Belarusian, where others are often typed for it.
_BEFORE_STAND_IN = np.array(list(map(ord, "бвгґджзйклмнпрстфхцчшщ")))
AFTER_STAND_IN = np.array(list(map(ord, "яюєїеёі")))
#: If fewer words than this are wanted, they are decoded one by one; else the whole block is decoded.
_FEW = 32
# Odd, so it has an inverse modulo 2**64, which brings any slice of a prefix sum to exponent 0.
BASE = 0x9E3779B97F4A7C15
_BASE_INVERSE = pow(BASE, -1, 1 << 64)
#: The most blocks kept: enough for the texts of one request to a worker. Each takes 1.5 MB.
_CACHED_BLOCKS = 16


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
        # Of equal sizes: each block costs 0.2 ms, however small it is.
        rest = int(ends[-1]) - done
        size = rest // max(1, round(rest / BLOCK))
        end = max(begin + 1, int(np.searchsorted(ends, done + size, "right")))
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


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables by code point. The traits of a word are the OR of those of its characters.

    ``kind``: uint8 bits. ``traits``: uint32 bits.
    """

    kind: NDArray[np.uint8]
    traits: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Segments:
    """The T words and characters of a block of P texts.

    ``starts``, ``ends``: int64 (T,) into ``clean.codes``. ``keys``: uint64 (T,), a hash of the folded word.
    ``traits``: uint32 (T,), the OR over its characters. ``bounds``: int64 (P + 1,), text p has the tokens
    ``bounds[p]:bounds[p + 1]``.
    """

    clean: CleanBlock
    starts: Int64s
    ends: Int64s
    keys: Uint64s
    traits: NDArray[np.uint32]
    bounds: Int64s

    @property
    def text_of(self) -> Int64s:
        """The number of each token's text, int64 (T,)."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    def word(self, token: int) -> str:
        """Return the folded characters of a token."""
        folded = characters().fold[self.clean.codes[self.starts[token] : self.ends[token]]]
        return folded.tobytes().decode("utf-32-le", "surrogatepass")

    def words(self) -> Iterator[str]:
        """Yield the folded characters of every token."""
        return self._spans(self.starts, self.ends)

    def words_at(self, tokens: Int64s) -> Iterator[str]:
        """Yield the folded characters of the tokens at these positions."""
        if len(tokens) < _FEW:
            return map(self.word, tokens.tolist())
        return self._spans(self.starts[tokens], self.ends[tokens])

    def _spans(self, starts: Int64s, ends: Int64s) -> Iterator[str]:
        text = characters().fold[self.clean.codes].tobytes().decode("utf-32-le", "surrogatepass")
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            yield text[start:end]


def segment(texts: Sequence[str], tables: Tables, joins: Joins | None = None) -> Segments:
    """Return the words and characters of a block of texts.

    A word is a run of letters, digits and marks, with apostrophes between them; signs after a short word
    belong to it (C++, A+, C#).

    Args:
        joins: decides whether words broken at line ends are joined; None joins none.

    Cost: about a dozen passes of numpy over the code points; no Python object a token.
    """
    clean = clean_texts(texts, tables.kind, joins)
    starts, ends = _spans(clean.kind, clean.codes)
    traits = _token_traits(tables.traits[clean.codes], starts)
    usable = ends - starts <= LONGEST_WORD
    if not usable.all():
        starts, ends, traits = starts[usable], ends[usable], traits[usable]
    bounds = np.append(np.searchsorted(starts, clean.origins), len(starts))
    return Segments(clean, starts, ends, _keys(clean.codes, starts, ends), traits, bounds)


def _spans(kind: NDArray[np.uint8], codes: Int64s) -> tuple[Int64s, Int64s]:
    """Return the starts and ends of tokens. The block begins and ends with a separator."""
    word = kind == WORD
    others = np.flatnonzero((kind & (APOSTROPHE | STAND_IN | SIGN)) > 0)
    if len(others):
        sign = others[kind[others] == SIGN]
        between = others[word[others - 1] & word[others + 1] & (kind[others] != SIGN)]
        word[between[(kind[between] == APOSTROPHE) | _for_apostrophes(codes, between)]] = True
        for start, end in _signs(kind, sign, word):
            word[start:end] = True
    before, after = word[:-1], word[1:]
    unit = kind == UNIT
    if not unit.any():
        places = np.flatnonzero(after != before) + 1
        return places[::2].copy(), places[1::2].copy()
    starting, ending = (after > before) | unit[1:], (after < before) | unit[:-1]
    return np.flatnonzero(starting) + 1, np.flatnonzero(ending) + 1


def _for_apostrophes(codes: Int64s, places: Int64s) -> NDArray[np.bool_]:
    """Return which characters between letters may be typed for an apostrophe."""
    if not len(places):
        return np.zeros(0, np.bool_)
    fold = characters().fold
    before, after = fold[codes[places - 1]], fold[codes[places + 1]]
    # Not by ``np.isin``, which takes longer for so few.
    fits: NDArray[np.bool_] = (before[:, None] == _BEFORE_STAND_IN).any(axis=1)
    fits &= (after[:, None] == AFTER_STAND_IN).any(axis=1)
    return fits


def _signs(kind: NDArray[np.uint8], sign: Int64s, word: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the runs of signs that belong to the short word before them."""
    if not len(sign):
        return []
    starts = sign[kind[sign - 1] != SIGN]
    ends = sign[kind[sign + 1] != SIGN] + 1
    longer = word[starts - 1]
    for letters in range(2, LONGEST_SIGNED + 2):
        longer = longer & word[starts - letters]
    own = word[starts - 1] & ~longer & (kind[ends] & (WORD | UNIT) == 0)
    return list(zip(starts[own].tolist(), ends[own].tolist(), strict=True))


def _token_traits(traits: NDArray[np.uint32], starts: Int64s) -> NDArray[np.uint32]:
    """Return the OR of the traits of each token; characters between tokens have none."""
    if not len(starts):
        return np.zeros(0, np.uint32)
    return np.bitwise_or.reduceat(traits, starts)


def _keys(codes: Int64s, starts: Int64s, ends: Int64s) -> Uint64s:
    """Return a 64-bit hash of each token's folded characters.

    Method: a Rabin-Karp fingerprint modulo 2**64, over scattered values. With v the value of a character, the
    prefix sums of v·Bⁱ are computed once. The hash of a slice is their difference times B⁻ˢᵗᵃʳᵗ.
    """
    power, inverse = _powers(1 << max(16, len(codes).bit_length()))
    terms = characters().value[codes]
    terms *= power[: len(terms)]
    np.cumsum(terms, out=terms)
    return mix((terms[ends - 1] - terms[starts - 1]) * inverse[starts])


@lru_cache(maxsize=2)
def _powers(count: int) -> tuple[Uint64s, Uint64s]:
    """Return Bⁱ and B⁻ⁱ for i < count, modulo 2**64."""
    power, inverse = np.full(count, BASE, np.uint64), np.full(count, _BASE_INVERSE, np.uint64)
    power[0] = inverse[0] = 1
    return np.multiply.accumulate(power), np.multiply.accumulate(inverse)


class CachedTexts(NamedTuple):
    """Texts and their segments."""

    texts: list[str]
    segments: Segments


class SegmentCache(threading.local):
    """The segments of the last hashed blocks, for each thread.

    Fingerprinting segments all texts of a document together. The embedded engine then needs the words of each
    text, and reads them from this cache instead of segmenting again.
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[Sequence[str], Segments]] = []

    def record(self, block: Block, texts: Sequence[object], segments: Segments) -> None:
        """Keep the segments of a block, unless it has parts of long texts or composed characters.

        Marks compose with the character before them, which differs if a text is segmented by itself.
        """
        whole = all(texts[number] is piece for number, piece in zip(block.numbers, block.pieces, strict=True))
        if whole and not segments.clean.composed:
            self._blocks = [*self._blocks[1 - _CACHED_BLOCKS :], (block.pieces, segments)]

    def pop_matching(self, wanted: Sequence[str]) -> Iterator[CachedTexts]:
        """Empty the cache, and yield the blocks whose texts are all wanted, split into their parts."""
        blocks, self._blocks = self._blocks, []
        requested = set(wanted) if blocks else set()
        for texts, segments in blocks:
            parts = [part for text in texts for part in (text.parts if isinstance(text, Lines) else (text,))]
            if requested.issuperset(parts):
                yield CachedTexts(parts, split_by_parts(segments, parts))


def split_by_parts(segments: Segments, parts: Sequence[str]) -> Segments:
    """Return the segments of joined texts as those of their parts, which are on separate lines."""
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    given = np.cumsum(lengths + 1) - lengths
    places = segments.clean.places
    origins = given if places is None else np.searchsorted(places, given)
    clean = replace(segments.clean, origins=origins, given=given, removed=np.zeros(len(parts), np.int32))
    bounds = np.append(np.searchsorted(segments.starts, origins), len(segments.starts))
    return replace(segments, clean=clean, bounds=bounds)
