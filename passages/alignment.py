"""The passages two texts have in common: chains of equal words, brought back to the texts."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shinglefold.model.values import Int64s, PlacedTokens, Token
from shinglefold.options.validation import check_int
from shinglefold.passages.chaining import GAP, Chains, MatchRun, chains_of, equal_runs, runs_of
from shinglefold.passages.seeds import bounded_pairs, near_pairs
from shinglefold.passages.shingle_positions import Elements, elements_of

#: Equal words in a row by which passages of two texts that are known to be alike begin.
RUN = 3
#: Equal words a passage must have in all.
LEAST = 5
#: Chains that are held against the passages kept so far at a time.
_AT_ONCE = 1 << 14


class Span(NamedTuple):
    """A stretch of a text or of its tokens, end exclusive."""

    start: int
    end: int


class Passage(NamedTuple):
    """A passage of two texts that match but for the marked places.

    ``a``, ``b``: characters in each text; ``marks_a``, ``marks_b``: what in them the other lacks, in order;
    ``equal``: canonical tokens in common; ``tokens_a``, ``tokens_b``: the tokens of each text.
    """

    a: Span
    b: Span
    marks_a: tuple[Span, ...]
    marks_b: tuple[Span, ...]
    equal: int
    tokens_a: Span
    tokens_b: Span


class FoundPassages(NamedTuple):
    """The passages of two texts, in the order of the first.

    ``left_out``: pairs of equal elements that were not looked at, see ``bounded_pairs``. ``crowded``:
    elements of which not all near ones were, see ``near_pairs``.
    """

    passages: list[Passage]
    left_out: int
    crowded: int = 0


def find_passages(
    a: Sequence[Token] | PlacedTokens, b: Sequence[Token] | PlacedTokens, *, width: int = RUN, gap: int = GAP
) -> list[Passage]:
    """Return the matching passages of two texts, in the order of the first.

    Args:
        a: canonical tokens with their places.
        width: equal words in a row that a passage needs, 1 to 10.
        gap: words that may differ, on either side, between words that match.

    Cost: grows with the lengths: 1 ms for 2 × 1,000 tokens.
    """
    check_int("width", width, 1, 10)
    check_int("gap", gap)
    return passages_between(elements_of(a, width), elements_of(b, width), gap=gap).passages


def passages_between(a: Elements, b: Elements, *, gap: int = GAP, tolerant: bool = False) -> FoundPassages:
    """Return the passages of two texts, in the order of the first.

    Args:
        tolerant: elements need not be equal, see ``near_pairs``; they must have simhashes.
    """
    if not tolerant:
        bounded = bounded_pairs(a, b)
        return FoundPassages(passages_of(bounded.pairs, a, b, gap), bounded.left_out)
    near = near_pairs(a, b)
    runs = equal_runs(runs_of(near.pairs, a.width), a, b)
    return FoundPassages(_passages(runs, a, b, gap), near.left_out, near.crowded)


def passages_of(pairs: Int64s, a: Elements, b: Elements, gap: int = GAP) -> list[Passage]:
    """Return the passages that pairs of equal elements make, int64 (P, 2), in the order of the first text.

    A passage both of whose sides stand in larger ones already is left out: what a text repeats would else be
    told for each pair of its repetitions.
    """
    return _passages(runs_of(pairs, a.width), a, b, gap)


def _passages(runs: Int64s, a: Elements, b: Elements, gap: int) -> list[Passage]:
    kept = _distinct(chains_of(runs, gap), a, b, gap)
    return sorted((_passage(chain, a, b) for chain in kept), key=lambda one: (one.tokens_a, one.tokens_b))


def _equal(chain: Iterable[MatchRun]) -> int:
    return sum(run.length for run in chain)


def _closed(chain: Sequence[MatchRun], a: Elements, b: Elements, gap: int) -> list[MatchRun]:
    """Return a chain with the single words that match between its runs, and close before and behind it."""
    closed: list[MatchRun] = []
    for before, after in pairwise(chain):
        closed.append(before)
        ends = before.a + before.length, before.b + before.length
        closed += _aligned(a, b, (ends[0], after.a), (ends[1], after.b))
    first, last = chain[0], chain[-1]
    ends = last.a + last.length, last.b + last.length
    in_front = _aligned(a, b, (max(0, first.a - gap), first.a), (max(0, first.b - gap), first.b))
    behind = _aligned(a, b, (ends[0], ends[0] + gap), (ends[1], ends[1] + gap))
    return [*_worth_it(in_front, first), *closed, last, *_worth_it(behind, last)]


def _aligned(a: Elements, b: Elements, one: tuple[int, int], other: tuple[int, int]) -> list[MatchRun]:
    """Return the equal words of two short stretches of tokens, in one order."""
    words = a.words[slice(*one)].tolist(), b.words[slice(*other)].tolist()
    if not (words[0] and words[1]) or set(words[0]).isdisjoint(words[1]):
        return []
    from rapidfuzz.distance import LCSseq

    return [
        MatchRun(one[0] + step.src_start, other[0] + step.dest_start, step.src_end - step.src_start)
        for step in LCSseq.opcodes(*words)
        if step.tag == "equal"
    ]


def _worth_it(runs: Sequence[MatchRun], edge: MatchRun) -> list[MatchRun]:
    """Return the runs before or behind an edge up to which no more words differ than are equal."""
    forward = bool(runs) and runs[0].a > edge.a
    best, equal = 0, 0
    outward = runs if forward else runs[::-1]
    for count, run in enumerate(outward, 1):
        equal += run.length
        if forward:
            reached = max(run.a - edge.a, run.b - edge.b) + run.length - edge.length
        else:
            reached = max(edge.a - run.a, edge.b - run.b)
        if reached <= 2 * equal:
            best = count
    return list(runs[:best] if forward else runs[len(runs) - best :])


def _distinct(chains: Chains, a: Elements, b: Elements, gap: int) -> Iterator[list[MatchRun]]:
    """Yield closed chains, those with most words first, but none that brings too little new on both sides."""
    held = bytearray(a.tokens), bytearray(b.tokens)
    firsts, lasts = chains.runs[chains.begins[:-1]], chains.runs[chains.begins[1:] - 1]
    reach = np.maximum(firsts[:, :2] - gap, 0), lasts[:, :2] + lasts[:, 2:] + gap
    order = np.lexsort((*firsts[:, 1::-1].T, -_lengths(chains)))
    for begin in range(0, len(order), _AT_ONCE):
        some = order[begin : begin + _AT_ONCE]
        # Most of what texts repeat stands in larger passages on both sides; looking each up takes longer.
        new = [_free(held[side], reach[0][some, side], reach[1][some, side]) for side in (0, 1)]
        for number in some[np.maximum(*new) >= LEAST].tolist():
            at = [(int(reach[0][number, side]), int(reach[1][number, side])) for side in (0, 1)]
            if max(own.count(0, *place) for own, place in zip(held, at, strict=True)) < LEAST:
                continue
            chain = _closed(chains[number], a, b, gap)
            if _equal(chain) >= LEAST and max(_new(chain, held[side], side) for side in (0, 1)) >= LEAST:
                for run in chain:
                    for side in (0, 1):
                        held[side][run[side] : run[side] + run.length] = b"\1" * run.length
                yield chain


def _lengths(chains: Chains) -> Int64s:
    """Return the words of each chain."""
    sums = np.concatenate(([0], np.cumsum(chains.runs[:, 2])))
    return np.diff(sums[chains.begins])


def _free(held: bytearray, starts: Int64s, ends: Int64s) -> Int64s:
    """Return how many of the tokens of each stretch no passage has."""
    free = np.concatenate(([0], np.cumsum(np.frombuffer(held, np.uint8) == 0)))
    return free[np.minimum(ends, len(held))] - free[np.minimum(starts, len(held))]


def _new(chain: Iterable[MatchRun], held: bytearray, side: int) -> int:
    return sum(held.count(0, run[side], run[side] + run.length) for run in chain)


def _passage(chain: Sequence[MatchRun], a: Elements, b: Elements) -> Passage:
    runs = [(run.a, run.length) for run in chain], [(run.b, run.length) for run in chain]
    tokens = [Span(side[0][0], sum(side[-1])) for side in runs]
    spans = [
        Span(int(of.starts[span.start]), int(of.ends[span.end - 1]))
        for span, of in zip(tokens, (a, b), strict=True)
    ]
    marks = [tuple(_gaps(side, of)) for side, of in zip(runs, (a, b), strict=True)]
    return Passage(spans[0], spans[1], marks[0], marks[1], _equal(chain), tokens[0], tokens[1])


def _gaps(runs: Sequence[tuple[int, int]], of: Elements) -> Iterator[Span]:
    """Yield the characters of the tokens between runs."""
    for (start, length), (following, _) in pairwise(runs):
        if start + length < following:
            yield Span(int(of.starts[start + length]), int(of.ends[following - 1]))
