"""Unicode clean-up of a block of texts, with the way back to the original offsets.

Invisible characters go; letters and the marks behind them are composed; letters that fold to several are
written out. Most texts need none of it, and that costs one look at the largest kind.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shinglefold.canon.unicode_tables import COMPOSING, INVISIBLE, UNIT, WORD, fold_character
from shinglefold.model.values import Int64s

#: A run of marks longer than any script needs is composed in slices: reordering is quadratic.
_LONGEST_RUN = 256
_SEEN = np.uint8(INVISIBLE - 1)
#: One place in so many, of which each is sooner skipped than all looked at.
_FEW = 256
_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class CleanBlock:
    """P clean texts one after another, a line end before, between and behind them.

    ``codes``: int64 (N,), code points. ``kind``: uint8 (N,), theirs, one of ``WORD``, ``UNIT``,
    ``APOSTROPHE`` or 0. ``origins``: int64 (P,), where each text begins; ``given``: int64 (P,), where it
    began before clean-up. ``places``: int64 (N,), the places of the codes before clean-up, or None where
    nothing changed. ``removed``: int32 (P,), invisible characters taken out of the inside of words.
    ``composed``: whether any characters were.
    """

    codes: Int64s
    kind: NDArray[np.uint8]
    origins: Int64s
    given: Int64s
    places: Int64s | None
    removed: NDArray[np.int32]
    composed: bool = False

    def source(self, positions: Int64s, text_of: Int64s) -> Int64s:
        """Return the offsets of positions in their texts as these were given."""
        return (positions if self.places is None else self.places[positions]) - self.given[text_of]


def code_points(text: str) -> Int64s:
    """Return the code points of a text, lone surrogates included."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)


def joined(texts: Sequence[str]) -> tuple[NDArray[np.uint32], Int64s]:
    """Return the code points of texts, a line end before, between and behind them, and where each begins."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    whole = "\n".join(("", *texts, "")).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(whole, np.uint32), np.cumsum(lengths + 1) - lengths


def cleaned(texts: Sequence[str], kinds: NDArray[np.uint8]) -> CleanBlock:
    """Return a block of texts cleaned.

    Letters й, ё and ї are composed before marks are dropped, so they stay what they are; a stress mark goes.

    Args:
        kinds: the kind of every code point.
    """
    narrow, origins = joined(texts)
    codes = narrow.astype(np.int64)
    block = CleanBlock(codes, kinds[codes], origins, origins, None, np.zeros(len(texts), np.int32))
    if block.kind.max() >= INVISIBLE:
        block = _without_invisible(block)
    if block.kind.max() >= COMPOSING:
        block = _composed(block, kinds)
    return block


def _without_invisible(block: CleanBlock) -> CleanBlock:
    gone = np.flatnonzero((block.kind & INVISIBLE) > 0)
    kind = _without(block.kind, gone)
    # As many characters stay before each as there are, but for those that go.
    after = gone - np.arange(len(gone))
    inside = _readable(kind[after - 1]) & _readable(kind[after])
    text_of = np.searchsorted(block.origins, gone[inside], "right") - 1
    removed = np.bincount(text_of, minlength=len(block.origins)).astype(np.int32)
    origins = block.origins - np.searchsorted(gone, block.origins)
    places = _without(np.arange(len(block.codes)), gone)
    return CleanBlock(_without(block.codes, gone), kind, origins, block.given, places, removed)


def _without(column: NDArray[_Number], gone: NDArray[np.int64]) -> NDArray[_Number]:
    """Return a column without some places, in order: what lies between them is copied as it is."""
    if len(gone) > len(column) // _FEW:
        return np.delete(column, gone)
    bounds = [-1, *gone.tolist(), len(column)]
    return np.concatenate([column[before + 1 : place] for before, place in pairwise(bounds)])


def _readable(kind: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return (kind & (WORD | UNIT)) > 0


def _composed(block: CleanBlock, kinds: NDArray[np.uint8]) -> CleanBlock:
    """Rewrite the runs of composing characters, each with the character before it."""
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
    # Marks that compose with nothing (Arabic, Hebrew) keep their bit; from here on they are part of a word.
    kind = kinds[new_codes] & _SEEN
    new_places = np.concatenate([*places, before[done:]])
    return CleanBlock(new_codes, kind, origins, block.given, new_places, block.removed, composed=True)


def _runs(composing: Int64s, origins: Int64s) -> list[tuple[int, int]]:
    """Return the runs of composing characters, each with the character before it in the same text."""
    breaks = np.flatnonzero(np.diff(composing) > 1)
    starts = composing[np.concatenate([[0], breaks + 1])]
    ends = (composing[np.concatenate([breaks, [-1]])] + 1).tolist()
    starts -= ~np.isin(starts, origins)
    return [
        (first, min(first + _LONGEST_RUN, end))
        for start, end in zip(starts.tolist(), ends, strict=True)
        for first in range(start, end, _LONGEST_RUN)
    ]


def _composition(cluster: Int64s) -> str:
    text = cluster.astype(np.uint32).tobytes().decode("utf-32-le", "surrogatepass")
    folded = "".join(map(fold_character, unicodedata.normalize("NFC", text)))
    composed = unicodedata.normalize("NFC", folded)
    return "".join(character for character in composed if not "\u0300" <= character <= "\u036f")
