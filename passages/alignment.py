"""The passages that two texts share: runs of equal words, chained where they follow each other closely."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s, PlacedTokens, Token
from shinglefold.options.validation import check_int
from shinglefold.passages.seeds import bounded_pairs, expand_ranges, near_pairs
from shinglefold.passages.shingle_positions import Elements, elements_of

#: How many words may differ between words that match, on either side.
GAP = 6
#: With more runs than this, isolated ones are found first, which saves 3 µs each.
_FEW = 500
#: The number of runs whose words are compared at a time.
_RUNS_AT_ONCE = 1 << 18
#: The number of words between the points by which neighbours of a run are found.
_STRIDE = 64


class MatchRun(NamedTuple):
    """``length`` equal words, from word ``a`` of one text and word ``b`` of the other."""

    a: int
    b: int
    length: int


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """Chains of runs: those of chain c are ``runs[begins[c]:begins[c + 1]]``.

    ``runs``: int64 (R, 3), the columns of ``MatchRun``; runs of a chain do not overlap.
    ``begins``: int64 (C + 1,).
    """

    runs: Int64s
    begins: Int64s

    def __len__(self) -> int:
        return len(self.begins) - 1

    def __getitem__(self, number: int) -> list[MatchRun]:
        return [MatchRun(*row) for row in self.runs[self.begins[number] : self.begins[number + 1]].tolist()]

    def __iter__(self) -> Iterator[list[MatchRun]]:
        return map(self.__getitem__, range(len(self)))


def runs_of(pairs: Int64s, width: int) -> Int64s:
    """Return the runs that pairs of elements, int64 (P, 2), make, in the order of the first text.

    Returns:
        int64 (R, 3), the columns of ``MatchRun``.
    """
    if not len(pairs):
        return np.zeros((0, 3), np.int64)
    one, other = pairs[:, 0], pairs[:, 1]
    order = np.lexsort((one, other - one))
    one, other = one[order], other[order]
    # Elements on one diagonal belong to one run if they are at most their width apart.
    same = np.diff(other - one) == 0
    breaks = np.flatnonzero(~(same & (np.diff(one) <= width))) + 1
    starts = np.concatenate(([0], breaks))
    lengths = one[np.append(breaks, len(one)) - 1] - one[starts] + width
    return _in_order(np.stack((one[starts], other[starts], lengths), axis=1))


def equal_runs(runs: Int64s, a: Elements, b: Elements) -> Int64s:
    """Return the parts of runs whose words are equal; similar elements may differ in some words."""
    found = [np.zeros((0, 3), np.int64)]
    for begin in range(0, len(runs), _RUNS_AT_ONCE):
        part = runs[begin : begin + _RUNS_AT_ONCE]
        lengths = part[:, 2]
        at, there = (expand_ranges(part[:, side], lengths) for side in (0, 1))
        ends = np.cumsum(lengths)
        edge = np.zeros(len(at) + 1, np.bool_)
        edge[ends - lengths] = edge[-1] = True
        same = np.concatenate((a.words[at] == b.words[there], [False]))
        # Equal words that follow each other make one run.
        continues = same[1:-1] & same[:-2] & ~edge[1:-1]
        firsts = np.flatnonzero(same[:-1] & ~np.concatenate(([False], continues)))
        lasts = np.flatnonzero(same[:-1] & ~np.concatenate((continues, [False])))
        found.append(np.stack((at[firsts], there[firsts], lasts - firsts + 1), axis=1))
    return _in_order(np.concatenate(found))


def chains_of(runs: Int64s, gap: int = GAP) -> Chains:
    """Return runs in chains; each run continues the chain whose end is nearest.

    Args:
        runs: in the order of the first text.
        gap: words that may differ between two runs on either side.
    """
    near = _near_others(runs, gap) if len(runs) > _FEW else np.ones(len(runs), np.bool_)
    walked = list(_iter_chains((MatchRun(*row) for row in runs[near].tolist()), gap))
    alone = runs[~near]
    rows = np.array([run for chain in walked for run in chain], np.int64).reshape(-1, 3)
    begins = np.cumsum([0, *map(len, walked)])
    return Chains(
        np.concatenate((rows, alone)), np.concatenate((begins, len(rows) + 1 + np.arange(len(alone))))
    )


def _in_order(runs: Int64s) -> Int64s:
    return runs[np.lexsort((runs[:, 1], runs[:, 0]))]


def _near_others(runs: Int64s, gap: int) -> NDArray[np.bool_]:
    """Return which runs may be neighbours in a chain; the others are chains by themselves.

    Points of all runs are put into square cells. These are so large that the continuation of a run begins in
    a cell next to one of its points. Repetitions make many runs, most of which have no neighbour.
    """
    counts = runs[:, 2] // _STRIDE + 1
    owner = np.repeat(np.arange(len(runs)), counts)
    steps = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    points = runs[owner, :2] + steps[:, None] * _STRIDE
    size = _STRIDE + gap
    # Cells are numbered row by row, with a gap between rows.
    row = int(points.max()) // size + 3
    keys = points[:, 0] // size * row + points[:, 1] // size
    order = np.argsort(keys, kind="stable")
    keys, owner = keys[order], owner[order]
    cells, first = np.unique(keys, return_index=True)
    last = np.append(first[1:], len(keys)) - 1
    least, most = owner[first], owner[last]
    found = np.zeros(len(runs), np.bool_)
    for step in (-row - 1, -row, 1 - row, -1, 0, 1, row - 1, row, row + 1):
        at = np.minimum(np.searchsorted(cells, cells + step), len(cells) - 1)
        there = np.repeat(np.where(cells[at] == cells + step, at, -1), last - first + 1)
        found[owner[(there >= 0) & ((least[there] != owner) | (most[there] != owner))]] = True
    return found


def _iter_chains(runs: Iterable[MatchRun], gap: int) -> Iterator[list[MatchRun]]:
    """Yield the chains of runs, which are in the order of the first text."""
    # A run continues a chain at most ``gap`` away from its diagonal. Of equally near chains the older wins.
    by_diagonal: dict[int, list[tuple[int, list[MatchRun]]]] = {}
    for number, run in enumerate(runs):
        own = (run.b - run.a) // (gap + 1)
        nearest, least = None, (2 * gap + 1, 0)
        for place in (own - 1, own, own + 1):
            still_open = []
            for born, chain in by_diagonal.get(place, ()):
                last = chain[-1]
                if last.a + last.length + gap < run.a:
                    yield chain
                    continue
                still_open.append((born, chain))
                between = _between(last, run, gap) if run.b > last.b else -1
                if between >= 0 and (between, born) < least:
                    nearest, least = place, (between, born)
            by_diagonal[place] = still_open
        if nearest is None:
            by_diagonal[own].append((number, [run]))
        else:
            _continue_chain(by_diagonal[nearest], least[1], by_diagonal[own], run)
    for chains in by_diagonal.values():
        yield from (chain for _, chain in chains)


def _continue_chain(
    covered: list[tuple[int, list[MatchRun]]],
    born: int,
    then: list[tuple[int, list[MatchRun]]],
    run: MatchRun,
) -> None:
    """Append a run to a chain, and move the chain to the diagonal of the run."""
    place = next(at for at, (own, _) in enumerate(covered) if own == born)
    _, chain = covered.pop(place)
    chain.append(_after(chain[-1], run))
    then.append((born, chain))


def _between(last: MatchRun, run: MatchRun, gap: int) -> int:
    """Return how many words are between a run and its continuation; -1 if it does not continue the run."""
    over_a, over_b = last.a + last.length - run.a, last.b + last.length - run.b
    shared = max(over_a, over_b, 0)
    if run.a <= last.a or run.length <= shared or shared - min(over_a, over_b) > gap:
        return -1
    return 2 * shared - over_a - over_b


def _after(last: MatchRun, run: MatchRun) -> MatchRun:
    """Return a run without the words that the last run covers in either text."""
    shared = max(last.a + last.length - run.a, last.b + last.length - run.b, 0)
    return MatchRun(run.a + shared, run.b + shared, run.length - shared)


#: How many equal words in a row a passage of two similar texts needs.
RUN = 3
#: How many equal words a passage needs in all.
LEAST = 5
#: The number of chains compared at a time with the passages found so far.
_CHAINS_AT_ONCE = 1 << 14


class Span(NamedTuple):
    """A range of a text or of its tokens, end exclusive."""

    start: int
    end: int


class Passage(NamedTuple):
    """A passage of two texts that match except in the marked spans.

    ``a``, ``b``: characters in each text; ``marks_a``, ``marks_b``: the spans that the other lacks, in order;
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

    ``left_out``: pairs of equal elements that were left out, see ``bounded_pairs``. ``crowded``: elements for
    which not all similar ones were compared, see ``near_pairs``.
    """

    passages: list[Passage]
    left_out: int
    crowded: int = 0


def find_passages(
    a: Sequence[Token] | PlacedTokens, b: Sequence[Token] | PlacedTokens, *, width: int = RUN, gap: int = GAP
) -> list[Passage]:
    """Return the matching passages of two texts, in the order of the first.

    Args:
        a: canonical tokens with their positions.
        width: equal words in a row that a passage needs, 1 to 10.
        gap: words that may differ, on either side, between words that match.

    Cost: linear in the lengths; 1 ms for 2 × 1,000 tokens.
    """
    check_int("width", width, 1, 10)
    check_int("gap", gap)
    return passages_between(elements_of(a, width), elements_of(b, width), gap=gap).passages


def passages_between(a: Elements, b: Elements, *, gap: int = GAP, tolerant: bool = False) -> FoundPassages:
    """Return the passages of two texts, in the order of the first.

    Args:
        tolerant: elements may be similar instead of equal, see ``near_pairs``; they must have simhashes.
    """
    if not tolerant:
        bounded = bounded_pairs(a, b)
        return FoundPassages(passages_of(bounded.pairs, a, b, gap), bounded.left_out)
    near = near_pairs(a, b)
    runs = equal_runs(runs_of(near.pairs, a.width), a, b)
    return FoundPassages(_passages(runs, a, b, gap), near.left_out, near.crowded)


def passages_of(pairs: Int64s, a: Elements, b: Elements, gap: int = GAP) -> list[Passage]:
    """Return the passages made of pairs of equal elements, int64 (P, 2), in the order of the first text.

    A passage is left out if both its sides are inside larger passages. Otherwise texts that repeat themselves
    would have one passage for each pair of repetitions.
    """
    return _passages(runs_of(pairs, a.width), a, b, gap)


def _passages(runs: Int64s, a: Elements, b: Elements, gap: int) -> list[Passage]:
    kept = _distinct(chains_of(runs, gap), a, b, gap)
    return sorted((_passage(chain, a, b) for chain in kept), key=lambda one: (one.tokens_a, one.tokens_b))


def _equal(chain: Iterable[MatchRun]) -> int:
    return sum(run.length for run in chain)


def _fill_gaps(chain: Sequence[MatchRun], a: Elements, b: Elements, gap: int) -> list[MatchRun]:
    """Return a chain with the single words that match between its runs, and near its ends."""
    closed: list[MatchRun] = []
    for before, after in pairwise(chain):
        closed.append(before)
        ends = before.a + before.length, before.b + before.length
        closed += _align(a, b, (ends[0], after.a), (ends[1], after.b))
    first, last = chain[0], chain[-1]
    ends = last.a + last.length, last.b + last.length
    in_front = _align(a, b, (max(0, first.a - gap), first.a), (max(0, first.b - gap), first.b))
    after_end = _align(a, b, (ends[0], ends[0] + gap), (ends[1], ends[1] + gap))
    return [*_mostly_equal(in_front, first), *closed, last, *_mostly_equal(after_end, last)]


def _align(a: Elements, b: Elements, one: tuple[int, int], other: tuple[int, int]) -> list[MatchRun]:
    """Return the equal words of two short ranges of tokens, in the order of both."""
    words = a.words[slice(*one)].tolist(), b.words[slice(*other)].tolist()
    if not (words[0] and words[1]) or set(words[0]).isdisjoint(words[1]):
        return []
    from rapidfuzz.distance import LCSseq

    return [
        MatchRun(one[0] + step.src_start, other[0] + step.dest_start, step.src_end - step.src_start)
        for step in LCSseq.opcodes(*words)
        if step.tag == "equal"
    ]


def _mostly_equal(runs: Sequence[MatchRun], edge: MatchRun) -> list[MatchRun]:
    """Return the nearest runs before or after an edge, as long as more words are equal than differ."""
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
    """Yield closed chains, those with most words first, without those that add too little on both sides."""
    covered = bytearray(a.tokens), bytearray(b.tokens)
    firsts, lasts = chains.runs[chains.begins[:-1]], chains.runs[chains.begins[1:] - 1]
    reach = np.maximum(firsts[:, :2] - gap, 0), lasts[:, :2] + lasts[:, 2:] + gap
    order = np.lexsort((*firsts[:, 1::-1].T, -_lengths(chains)))
    for begin in range(0, len(order), _CHAINS_AT_ONCE):
        some = order[begin : begin + _CHAINS_AT_ONCE]
        # Most repetitions are inside larger passages on both sides; excluding them together is faster.
        new = [_count_uncovered(covered[side], reach[0][some, side], reach[1][some, side]) for side in (0, 1)]
        for number in some[np.maximum(*new) >= LEAST].tolist():
            at = [(int(reach[0][number, side]), int(reach[1][number, side])) for side in (0, 1)]
            if max(own.count(0, *place) for own, place in zip(covered, at, strict=True)) < LEAST:
                continue
            chain = _fill_gaps(chains[number], a, b, gap)
            if (
                _equal(chain) >= LEAST
                and max(_new_words(chain, covered[side], side) for side in (0, 1)) >= LEAST
            ):
                for run in chain:
                    for side in (0, 1):
                        covered[side][run[side] : run[side] + run.length] = b"\1" * run.length
                yield chain


def _lengths(chains: Chains) -> Int64s:
    """Return the number of words of each chain."""
    sums = np.concatenate(([0], np.cumsum(chains.runs[:, 2])))
    return np.diff(sums[chains.begins])


def _count_uncovered(covered: bytearray, starts: Int64s, ends: Int64s) -> Int64s:
    """Return how many tokens of each range are in no passage."""
    free = np.concatenate(([0], np.cumsum(np.frombuffer(covered, np.uint8) == 0)))
    return free[np.minimum(ends, len(covered))] - free[np.minimum(starts, len(covered))]


def _new_words(chain: Iterable[MatchRun], covered: bytearray, side: int) -> int:
    return sum(covered.count(0, run[side], run[side] + run.length) for run in chain)


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


def covered_shares(a: Elements, b: Elements) -> tuple[float, float]:
    """Return for each of two texts the share that elements of the other cover."""
    return (
        covered_share(np.flatnonzero(np.isin(a.hashes, b.hashes)), a),
        covered_share(np.flatnonzero(np.isin(b.hashes, a.hashes)), b),
    )


def covered_share(ordinals: Int64s, of: Elements) -> float:
    """Return the share of a text's tokens that are in any of these elements."""
    if not of.tokens:
        return 0.0
    is_covered = np.zeros(of.tokens, np.bool_)
    for place in range(of.width):
        is_covered[ordinals + place] = True
    return float(is_covered.mean())
