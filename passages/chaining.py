"""Runs of equal words, and chains of runs that follow each other closely in both texts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s
from shinglefold.passages.seeds import expanded
from shinglefold.passages.shingle_positions import Elements

#: Words that may differ inside a passage, on either side.
GAP = 6
#: Of fewer runs all are walked through; of more those that stand alone are found first, at 3 µs less each.
_FEW = 500
#: Runs whose words are compared at a time.
_AT_ONCE = 1 << 18
#: Words of a run from one point that stands for it to the next.
_STRIDE = 64


class MatchRun(NamedTuple):
    """Equal words: ``length`` of them from ``a`` in one text and from ``b`` in the other."""

    a: int
    b: int
    length: int


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """Runs in chains: those of chain c are ``runs[begins[c]:begins[c + 1]]``.

    ``runs``: int64 (R, 3), the columns of ``MatchRun``; those of a chain have no word in common.
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
    """Return the runs of consecutive elements of pairs, int64 (P, 2), in the order of the first text.

    Returns:
        int64 (R, 3), the columns of ``MatchRun``.
    """
    if not len(pairs):
        return np.zeros((0, 3), np.int64)
    one, other = pairs[:, 0], pairs[:, 1]
    order = np.lexsort((one, other - one))
    one, other = one[order], other[order]
    # On one diagonal, elements less than their width apart have words in common.
    same = np.diff(other - one) == 0
    breaks = np.flatnonzero(~(same & (np.diff(one) <= width))) + 1
    starts = np.concatenate(([0], breaks))
    lengths = one[np.append(breaks, len(one)) - 1] - one[starts] + width
    return _in_order(np.stack((one[starts], other[starts], lengths), axis=1))


def equal_runs(runs: Int64s, a: Elements, b: Elements) -> Int64s:
    """Return the parts of runs whose words are equal: tolerant elements may have others."""
    found = [np.zeros((0, 3), np.int64)]
    for begin in range(0, len(runs), _AT_ONCE):
        part = runs[begin : begin + _AT_ONCE]
        lengths = part[:, 2]
        at, there = (expanded(part[:, side], lengths) for side in (0, 1))
        ends = np.cumsum(lengths)
        edge = np.zeros(len(at) + 1, np.bool_)
        edge[ends - lengths] = edge[-1] = True
        same = np.concatenate((a.words[at] == b.words[there], [False]))
        # What goes on from the word before goes on in the same run.
        goes_on = same[1:-1] & same[:-2] & ~edge[1:-1]
        firsts = np.flatnonzero(same[:-1] & ~np.concatenate(([False], goes_on)))
        lasts = np.flatnonzero(same[:-1] & ~np.concatenate((goes_on, [False])))
        found.append(np.stack((at[firsts], there[firsts], lasts - firsts + 1), axis=1))
    return _in_order(np.concatenate(found))


def chains_of(runs: Int64s, gap: int = GAP) -> Chains:
    """Return runs in chains; of those a run could go on, it takes the one that ends nearest.

    Args:
        runs: in the order of the first text.
        gap: words that may lie between two runs on either side.
    """
    near = _near_others(runs, gap) if len(runs) > _FEW else np.ones(len(runs), np.bool_)
    walked = list(_walked((MatchRun(*row) for row in runs[near].tolist()), gap))
    alone = runs[~near]
    rows = np.array([run for chain in walked for run in chain], np.int64).reshape(-1, 3)
    begins = np.cumsum([0, *map(len, walked)])
    return Chains(
        np.concatenate((rows, alone)), np.concatenate((begins, len(rows) + 1 + np.arange(len(alone))))
    )


def _in_order(runs: Int64s) -> Int64s:
    return runs[np.lexsort((runs[:, 1], runs[:, 0]))]


def _near_others(runs: Int64s, gap: int) -> NDArray[np.bool_]:
    """Tell which runs may go on another or be gone on; the others are chains by themselves.

    Points of all runs are put into square cells so large that what goes on a run begins in a cell beside one
    of its points. What texts repeat makes runs all over the place, most of which have no neighbour.
    """
    counts = runs[:, 2] // _STRIDE + 2
    owner = np.repeat(np.arange(len(runs)), counts)
    steps = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    points = runs[owner, :2] + np.minimum(steps * _STRIDE, runs[owner, 2])[:, None]
    size = _STRIDE + gap
    # The cells of a row are neighbours, and no row touches the next.
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


def _walked(runs: Iterable[MatchRun], gap: int) -> Iterator[list[MatchRun]]:
    # What goes on a chain lies no further than the gap off its diagonal; of equally near ones the elder does.
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
            _go_on(by_diagonal[nearest], least[1], by_diagonal[own], run)
    for chains in by_diagonal.values():
        yield from (chain for _, chain in chains)


def _go_on(
    held: list[tuple[int, list[MatchRun]]], born: int, then: list[tuple[int, list[MatchRun]]], run: MatchRun
) -> None:
    """Let the chain born then go on with a run, on whose diagonal it is held from now on."""
    place = next(at for at, (own, _) in enumerate(held) if own == born)
    _, chain = held.pop(place)
    chain.append(_behind(chain[-1], run))
    then.append((born, chain))


def _between(last: MatchRun, run: MatchRun, gap: int) -> int:
    """Return how many words lie between a run and one that goes on it, -1 where it does not."""
    over_a, over_b = last.a + last.length - run.a, last.b + last.length - run.b
    shared = max(over_a, over_b, 0)
    if run.a <= last.a or run.length <= shared or shared - min(over_a, over_b) > gap:
        return -1
    return 2 * shared - over_a - over_b


def _behind(last: MatchRun, run: MatchRun) -> MatchRun:
    """Return what of a run lies behind another in both texts."""
    shared = max(last.a + last.length - run.a, last.b + last.length - run.b, 0)
    return MatchRun(run.a + shared, run.b + shared, run.length - shared)
