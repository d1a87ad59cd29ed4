"""Pairs of equal elements become passages: pure functions of the ordinals in two texts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shinglefold.model import Int64s
from shinglefold.passages.elements import Elements

#: Words that may differ inside a passage, on either side.
GAP = 6


class Stretch(NamedTuple):
    """Tokens of a text, end exclusive."""

    start: int
    end: int


class Matched(NamedTuple):
    """A passage of two texts: ``tokens_a``, ``tokens_b`` by token, ``a``, ``b`` by character."""

    tokens_a: Stretch
    tokens_b: Stretch
    a: Stretch
    b: Stretch


@dataclass(frozen=True, slots=True)
class Match:
    """What a text and a document have in common.

    ``share``: of the text's tokens that are in matched elements; ``of_document``: of the document's.
    ``passages``: in the order of the text.
    """

    document: str
    share: float
    of_document: float
    passages: tuple[Matched, ...]


def pairs_between(a: Elements, b: Elements) -> Int64s:
    """Return the pairs of ordinals of equal elements of two texts, [[55, 109], [55, 211], …] in order.

    Returns:
        int64 (P, 2).

    Cost: x log z and what is found, not x·z.
    """
    order = np.argsort(b.hashes, kind="stable")
    hashes = b.hashes[order]
    first = np.searchsorted(hashes, a.hashes, "left")
    counts = np.searchsorted(hashes, a.hashes, "right") - first
    return np.stack((np.repeat(np.arange(len(a)), counts), order[expanded(first, counts)]), axis=1)


def expanded(first: Int64s, counts: Int64s) -> Int64s:
    """Return first, first + 1, … for each count, one after another."""
    ends = np.cumsum(counts)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.asarray(np.repeat(first, counts) + within, np.int64)


def matched(name: str, a: Elements, b: Elements, pairs: Int64s) -> Match:
    """Return what pairs of elements say of a text and a document.

    Args:
        pairs: int64 (P, 2), ordinals in the text and in the document.
    """
    passages = tuple(_passage(stretches, a, b) for stretches in sorted(_merged(pairs, a.width)))
    return Match(name, covered(pairs[:, 0], a), covered(pairs[:, 1], b), passages)


def covered(ordinals: Int64s, of: Elements) -> float:
    """Return the share of a text's tokens that are in any of these elements."""
    if not of.tokens:
        return 0.0
    held = np.zeros(of.tokens, np.bool_)
    for place in range(of.width):
        held[ordinals + place] = True
    return float(held.mean())


def _merged(pairs: Int64s, width: int) -> Iterator[tuple[Stretch, Stretch]]:
    """Yield passages: runs of one diagonal, joined where they follow each other closely in both texts."""
    open_passages: list[tuple[Stretch, Stretch]] = []
    for one, other in _runs(pairs, width):
        still_open = []
        for before in open_passages:
            if before[0].end + GAP < one.start:
                yield before
            else:
                still_open.append(before)
        open_passages = still_open
        joined = next((p for p in open_passages if _follows(p, one, other)), None)
        if joined is None:
            open_passages.append((one, other))
            continue
        open_passages.remove(joined)
        open_passages.append(
            (
                Stretch(joined[0].start, max(joined[0].end, one.end)),
                Stretch(joined[1].start, max(joined[1].end, other.end)),
            )
        )
    yield from open_passages


def _follows(before: tuple[Stretch, Stretch], one: Stretch, other: Stretch) -> bool:
    """Tell whether a run goes on where a passage ends, over a few words that differ or were put in."""
    return all(start < run.start <= end + GAP for (start, end), run in zip(before, (one, other), strict=True))


def _runs(pairs: Int64s, width: int) -> Iterator[tuple[Stretch, Stretch]]:
    """Yield runs of consecutive elements in both texts, as tokens, in the order of the first."""
    if not len(pairs):
        return
    one, other = pairs[:, 0], pairs[:, 1]
    order = np.lexsort((one, other - one))
    one, other = one[order], other[order]
    breaks = np.flatnonzero((np.diff(one) != 1) | (np.diff(other) != 1)) + 1
    starts = np.concatenate(([0], breaks))
    lengths = np.diff(np.append(starts, len(one))) + width - 1
    runs = zip(one[starts].tolist(), other[starts].tolist(), lengths.tolist(), strict=True)
    for a, b, length in sorted(runs):
        yield Stretch(a, a + length), Stretch(b, b + length)


def _passage(stretches: tuple[Stretch, Stretch], a: Elements, b: Elements) -> Matched:
    one, other = stretches
    return Matched(one, other, _characters(one, a), _characters(other, b))


def _characters(stretch: Stretch, of: Elements) -> Stretch:
    return Stretch(int(of.starts[stretch.start]), int(of.ends[stretch.end - 1]))
