"""Runs of equal words, and chains of runs that follow each other closely in both texts."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from shinglefold.model import Int64s
from shinglefold.passages.elements import Elements

#: Words that may differ inside a passage, on either side.
GAP = 6


class Run(NamedTuple):
    """Equal words: ``length`` of them from ``a`` in one text and from ``b`` in the other."""

    a: int
    b: int
    length: int


def runs_of(pairs: Int64s, width: int) -> list[Run]:
    """Return the runs of consecutive elements of pairs, int64 (P, 2), in the order of the first text."""
    if not len(pairs):
        return []
    one, other = pairs[:, 0], pairs[:, 1]
    order = np.lexsort((one, other - one))
    one, other = one[order], other[order]
    # On one diagonal, elements less than their width apart have words in common.
    same = np.diff(other - one) == 0
    breaks = np.flatnonzero(~(same & (np.diff(one) <= width))) + 1
    starts = np.concatenate(([0], breaks))
    lengths = one[np.append(breaks, len(one)) - 1] - one[starts] + width
    return sorted(map(Run, one[starts].tolist(), other[starts].tolist(), lengths.tolist()))


def equal_runs(runs: Iterable[Run], a: Elements, b: Elements) -> Iterator[Run]:
    """Yield the parts of runs whose words are equal: tolerant elements may have others."""
    for run in runs:
        same = a.words[run.a : run.a + run.length] == b.words[run.b : run.b + run.length]
        edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
        for start, end in edges.reshape(-1, 2).tolist():
            yield Run(run.a + start, run.b + start, end - start)


def chains_of(runs: Iterable[Run], gap: int = GAP) -> Iterator[list[Run]]:
    """Yield runs in chains; of those a run could go on, it takes the one that ends nearest.

    Args:
        runs: in the order of the first text.
        gap: words that may lie between two runs on either side.

    The runs of a chain have no word in common.
    """
    open_chains: list[list[Run]] = []
    for run in runs:
        still_open = []
        for chain in open_chains:
            if chain[-1].a + chain[-1].length + gap < run.a:
                yield chain
            else:
                still_open.append(chain)
        open_chains = still_open
        near = [
            (between, at) for at, chain in enumerate(open_chains) if (between := _near(chain, run, gap)) >= 0
        ]
        if near:
            chain = open_chains[min(near)[1]]
            chain.append(_behind(chain[-1], run))
        else:
            open_chains.append([run])
    yield from open_chains


def _near(chain: Sequence[Run], run: Run, gap: int) -> int:
    """Return how far behind a chain a run goes on, -1 where it does not."""
    last = chain[-1]
    skipped = run.a - last.a - last.length, run.b - last.b - last.length
    if run.a <= last.a or run.b <= last.b or max(skipped) > gap or run.length + min(*skipped, 0) < 1:
        return -1
    return abs(skipped[0]) + abs(skipped[1])


def _behind(last: Run, run: Run) -> Run:
    """Return what of a run lies behind another in both texts."""
    shared = max(last.a + last.length - run.a, last.b + last.length - run.b, 0)
    return Run(run.a + shared, run.b + shared, run.length - shared)
