"""What was found lately: the words of texts that were hashed, for whoever wants them as strings next.

A fingerprint is of all texts of a document together, a search finds each by itself: the same characters, of
which the words are found once.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from shinglefold.canon.text.chunking import Block, Lines
from shinglefold.canon.text.segmentation import Segments

#: Blocks kept at most: as many as the texts of one question to a worker. Each takes 1.5 MB.
_KEPT = 16


class Known(NamedTuple):
    """Texts, and the words of all of them."""

    texts: list[str]
    segments: Segments


class Lately(threading.local):
    """The blocks that have been hashed since they were last asked for, of each thread its own."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Sequence[str], Segments]] = []

    def note(self, block: Block, texts: Sequence[object], segments: Segments) -> None:
        """Note the words of a block; parts of long texts are left out.

        What marks are composed with depends on where their text begins, so such blocks are left out, too.
        """
        whole = all(texts[number] is piece for number, piece in zip(block.numbers, block.pieces, strict=True))
        if whole and not segments.clean.composed:
            self._blocks = [*self._blocks[1 - _KEPT :], (block.pieces, segments)]

    def take(self, wanted: Sequence[str]) -> Iterator[Known]:
        """Forget all blocks, and yield those of whose texts every part is wanted, by their parts."""
        blocks, self._blocks = self._blocks, []
        asked = set(wanted) if blocks else set()
        for texts, segments in blocks:
            parts = [part for text in texts for part in (text.parts if isinstance(text, Lines) else (text,))]
            if asked.issuperset(parts):
                yield Known(parts, parted(segments, parts))


def parted(segments: Segments, parts: Sequence[str]) -> Segments:
    """Return the words of a block of texts as those of their parts, which stood on lines of their own."""
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    given = np.cumsum(lengths + 1) - lengths
    places = segments.clean.places
    origins = given if places is None else np.searchsorted(places, given)
    clean = replace(segments.clean, origins=origins, given=given, removed=np.zeros(len(parts), np.int32))
    bounds = np.append(np.searchsorted(segments.starts, origins), len(segments.starts))
    return replace(segments, clean=clean, bounds=bounds)
