"""Unicode normalization of a block of texts, with a map back to the original offsets.

Invisible characters are removed, words broken at line ends are joined, letters are composed with the marks
after them, and letters that fold to several are written out. Most texts need none of this; the largest kind
of their characters shows that.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shinglefold.canon.unicode_tables import (
    APOSTROPHE,
    COMPOSING,
    HYPHEN,
    INVISIBLE,
    UNIT,
    WORD,
    characters,
    fold_character,
)
from shinglefold.model.values import Int64s

#: Longer runs of marks, which no script needs, are composed in slices: reordering is quadratic.
_LONGEST_RUN = 256
_SEEN = np.uint8(INVISIBLE - 1)
#: If less than one row in this many is deleted, copying the ranges between them is faster.
_FEW = 256
_Number = TypeVar("_Number", bound=np.generic)
_LONGEST_PART = 64
#: The blanks at the start of a line that may continue a word.
DEEPEST_INDENT = 32
_LINE_END, _RETURN, _SOFT_HYPHEN, _BLANK, _TAB = map(ord, "\n\r\u00ad \t")
#: Returns whether the two parts of a word around a hyphen at a line end are one word without it.
Joins = Callable[[str, str], bool]


@dataclass(frozen=True)
class CleanBlock:
    """P normalized texts, with a line end before, between and after them.

    Attributes:
        codes: int64 (N,), code points.
        kind: uint8 (N,), the kind of each: ``WORD``, ``UNIT``, ``APOSTROPHE`` or 0.
        origins: int64 (P,), the start of each text.
        given: int64 (P,), the start of each text before normalization.
        gone: int64, the positions of removed characters before normalization.
        removed: int32 (P,), how many invisible characters were removed from within words.
        composed: whether any characters were composed, or lines joined.
        moved: int64 (N,), the positions before normalization if characters were composed.
    """

    codes: Int64s
    kind: NDArray[np.uint8]
    origins: Int64s
    given: Int64s
    gone: Int64s
    removed: NDArray[np.int32]
    composed: bool = False
    moved: Int64s | None = None

    @cached_property
    def places(self) -> Int64s | None:
        """The positions of the code points before normalization, int64 (N,); None if nothing changed."""
        if self.moved is not None or not len(self.gone):
            return self.moved
        return _without(np.arange(len(self.codes) + len(self.gone)), self.gone)

    def source(self, positions: Int64s, text_of: Int64s) -> Int64s:
        """Return the offsets of positions in their original texts."""
        return (positions if self.places is None else self.places[positions]) - self.given[text_of]


def code_points(text: str) -> Int64s:
    """Return the code points of a text, lone surrogates included."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)


def encode_texts(texts: Sequence[str]) -> tuple[NDArray[np.uint32], Int64s]:
    """Return the code points of texts, with a line end before, between and after them, and their starts."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    whole = "\n".join(("", *texts, "")).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(whole, np.uint32), np.cumsum(lengths + 1) - lengths


def clean_texts(texts: Sequence[str], kinds: NDArray[np.uint8], joins: Joins | None = None) -> CleanBlock:
    """Normalize a block of texts.

    Letters such as й, ё and ї are composed before the remaining marks, such as stress marks, are dropped.

    Args:
        kinds: the kind of every code point.
        joins: decides whether words broken at line ends are joined; None joins none.
    """
    narrow, origins = encode_texts(texts)
    codes = narrow.astype(np.int64)
    block = CleanBlock(codes, kinds[codes], origins, origins, codes[:0], np.zeros(len(texts), np.int32))
    # Few characters have a kind of their own; only these are checked again.
    special = np.flatnonzero(block.kind > UNIT)
    breaks = codes[:0] if joins is None else _line_breaks(block, special, joins)
    if len(breaks):
        block.kind[breaks] = INVISIBLE
        special = np.flatnonzero(block.kind > UNIT)
    gone = special[block.kind[special] & INVISIBLE > 0]
    if len(gone):
        block = _without_invisible(block, gone, breaks)
    if block.kind.max() >= COMPOSING:
        block = _compose(block, kinds)
    return block


def _line_breaks(block: CleanBlock, special: Int64s, joins: Joins) -> Int64s:
    """Return the positions of hyphens and line ends that only break a word (``восст-\\nановил``).

    Args:
        special: where characters are neither words nor between them.
    """
    codes, kind = block.codes, block.kind
    hyphens = special[(kind[special] == HYPHEN) | (codes[special] == _SOFT_HYPHEN)]
    ends = hyphens + 1
    ends += codes[ends] == _RETURN
    at_end = codes[ends] == _LINE_END
    if not at_end.any():
        return codes[:0]
    hyphens, ends = hyphens[at_end], ends[at_end]
    # The last line of a text ends before the next text, or at the end of the block.
    broken = ~_among(ends + 1, np.append(block.origins, len(codes)))
    ends[~broken] = 0
    # The next line may be indented; then ``ends`` are the ends of its blanks.
    for _ in range(DEEPEST_INDENT):
        blank = (codes[ends + 1] == _BLANK) | (codes[ends + 1] == _TAB)
        if not blank.any():
            break
        ends += blank
    before, after = (
        (kind[at] & WORD > 0) & _letter_mask(codes[at], kind[at]) for at in (hyphens - 1, ends + 1)
    )
    broken &= before & after
    # A capital begins another word, or a name.
    broken &= characters().fold[codes[ends + 1]] == codes[ends + 1]
    found = [block.codes[:0]]
    for hyphen, end in zip(hyphens[broken].tolist(), ends[broken].tolist(), strict=True):
        if joins(_run(block, hyphen - 1, -1), _run(block, end + 1, 1)):
            found.append(np.arange(hyphen, end + 1))
    return np.concatenate(found)


def _among(places: Int64s, wanted: Int64s) -> NDArray[np.bool_]:
    """Return which positions are among the wanted ones, given in ascending order."""
    # Not by ``np.isin``, which sorts, and loads numpy.ma.
    found: NDArray[np.bool_] = np.append(wanted, -1)[np.searchsorted(wanted, places)] == places
    return found


def _letter_mask(codes: Int64s, kind: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which code points are letters, or marks on them."""
    lettered: NDArray[np.bool_] = (characters().script[codes] != 0) | (kind & COMPOSING > 0)
    return lettered


def _run(block: CleanBlock, place: int, step: int) -> str:
    """Return the letters from a position on, forwards or backwards, up to the longest word."""
    end = place
    while block.kind[end] & (WORD | APOSTROPHE) and abs(end - place) < _LONGEST_PART:
        end += step
    return _composition(block.codes[place:end] if step > 0 else block.codes[end + 1 : place + 1])


def _without_invisible(block: CleanBlock, gone: Int64s, breaks: Int64s) -> CleanBlock:
    kind = _without(block.kind, gone)
    # For each removed character, the position in the result of the character after it.
    after = gone - np.arange(len(gone))
    inside = _readable(kind[after - 1]) & _readable(kind[after])
    if len(breaks):
        inside &= ~_among(gone, breaks)
    text_of = np.searchsorted(block.origins, gone[inside], "right") - 1
    removed = np.bincount(text_of, minlength=len(block.origins)).astype(np.int32)
    origins = block.origins - np.searchsorted(gone, block.origins)
    codes = _without(block.codes, gone)
    return CleanBlock(codes, kind, origins, block.given, gone, removed, composed=len(breaks) > 0)


def _without(column: NDArray[_Number], gone: NDArray[np.int64]) -> NDArray[_Number]:
    """Return a column without the rows at the positions ``gone``, which ascend."""
    if len(gone) > len(column) // _FEW:
        return np.delete(column, gone)
    bounds = [-1, *gone.tolist(), len(column)]
    return np.concatenate([column[before + 1 : place] for before, place in pairwise(bounds)])


def _readable(kind: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return (kind & (WORD | UNIT)) > 0


def _compose(block: CleanBlock, kinds: NDArray[np.uint8]) -> CleanBlock:
    """Compose each run of combining characters with the character before it."""
    codes = [block.codes[:0]]
    places = [block.codes[:0]]
    shifts: list[int] = []
    before = np.arange(len(block.codes)) if block.places is None else block.places
    done = 0
    runs = _runs(np.flatnonzero(block.kind & COMPOSING), block.origins)
    for start, end in runs:
        cluster = code_points(_composition(block.codes[start:end]))
        codes += [block.codes[done:start], cluster]
        places += [before[done:start], before[np.minimum(np.arange(start, start + len(cluster)), end - 1)]]
        shifts.append(len(cluster) - (end - start))
        done = end
    new_codes = np.concatenate([*codes, block.codes[done:]])
    moved = np.concatenate([[0], np.cumsum(shifts)])
    origins = block.origins + moved[np.searchsorted([end for _, end in runs], block.origins, "right")]
    # Marks that never compose (Arabic, Hebrew) are now parts of words.
    kind = kinds[new_codes] & _SEEN
    new_places = np.concatenate([*places, before[done:]])
    return replace(block, codes=new_codes, kind=kind, origins=origins, composed=True, moved=new_places)


def _runs(composing: Int64s, origins: Int64s) -> list[tuple[int, int]]:
    """Return the runs of combining characters, each with the character before it in the same text."""
    breaks = np.flatnonzero(np.diff(composing) > 1)
    starts = composing[np.concatenate([[0], breaks + 1])]
    ends = (composing[np.concatenate([breaks, [-1]])] + 1).tolist()
    starts -= ~_among(starts, origins)
    return [
        (first, min(first + _LONGEST_RUN, end))
        for start, end in zip(starts.tolist(), ends, strict=True)
        for first in range(start, end, _LONGEST_RUN)
    ]


def _composition(cluster: Int64s) -> str:
    text = cluster.astype(np.uint32).tobytes().decode("utf-32-le", "surrogatepass")
    folded = "".join(map(fold_character, unicodedata.normalize("NFC", text)))
    composed = unicodedata.normalize("NFC", folded)
    return "".join(character for character in composed if not _is_dropped(character))


def _is_dropped(mark: str) -> bool:
    """Return whether a mark is dropped: accents left over, and what encloses a letter (1️⃣)."""
    return "\u0300" <= mark <= "\u036f" or unicodedata.category(mark) == "Me"
