"""Which pairs in doubt decide who leads whom: only what these say need be known."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shinglefold.groups.regroup.verdicts import ALIKE, APART, UNKNOWN, Said
from shinglefold.model import Int64s
from shinglefold.sketch import connected

Flags = NDArray[np.bool_]
#: What is known of an item: nothing yet, that it leads, or that it matches a leader before it.
_OPEN, _LEADS, _FOLLOWS = 0, 1, 2
#: Open items before an open one that it is asked about at first, and at most: twice as many each time.
_FIRST, _MOST = 32, 256


def decisive(
    sure: tuple[Int64s, Int64s],
    doubt: tuple[Int64s, Int64s],
    count: int,
    ask: Callable[[Int64s], Flags],
) -> Flags:
    """Return which of the pairs in doubt match, of those that decide who leads; others as none.

    An item leads that matches no leader before it, as in ``led``, and others go to leaders alone: so it does
    not matter whether two match that follow.

    Args:
        sure: pairs that match. doubt: pairs that may; items are in the order in which they may lead.
        count: of the items.
        ask: tells of rows of ``doubt`` which match; each row is asked for once at most.

    Returns:
        bool (P,), of the pairs in doubt.

    Cost: of a family of n that all match asks some 500 pairs and n; where none match, all pairs lead and all
    must be asked. Some passes over the pairs for each 256 items of the largest family that lead.
    """
    if not len(doubt[0]):
        return np.zeros(0, np.bool_)
    pairs = _Pairs(sure, doubt, count)
    role = np.where(pairs.concerned, _OPEN, _FOLLOWS)
    most = _FIRST
    while True:
        pairs.follow(role)
        # First whom leaders lead: they need not be held against each other.
        if len(rows := pairs.of_leaders(role == _LEADS)):
            pairs.said[rows] = np.where(ask(rows), ALIKE, APART)
            continue
        candidates = pairs.candidates(role, most)
        if not candidates.any():
            return np.asarray(pairs.said[: len(doubt[0])] == ALIKE, np.bool_)
        if len(rows := pairs.among(candidates)):
            pairs.said[rows] = np.where(ask(rows), ALIKE, APART)
        pairs.lead(role, candidates)
        most = min(_MOST, 2 * most)


class _Pairs:
    """Pairs of items, those in doubt first, and what is said of them.

    Attributes:
        said: ``ALIKE``, ``APART`` or, of those in doubt that were not asked, ``UNKNOWN``.
        concerned: of items, whether chains of pairs lead from them to a pair in doubt.
    """

    def __init__(self, sure: tuple[Int64s, Int64s], doubt: tuple[Int64s, Int64s], count: int) -> None:
        self.concerned = _concerned(sure, doubt, count)
        kept = self.concerned[sure[0]]
        a, b = (np.concatenate((ours, theirs[kept])) for ours, theirs in zip(doubt, sure, strict=True))
        self._first, self._second = np.minimum(a, b), np.maximum(a, b)
        self._count = count
        self.said: Said = np.full(len(a), ALIKE, np.int8)
        self.said[: len(doubt[0])] = UNKNOWN
        self._order = np.argsort(self._second, kind="stable")
        self._begins = np.searchsorted(self._second[self._order], np.arange(count + 1))

    def follow(self, role: Int64s) -> None:
        """Note which open items match a leader before them."""
        led = (role[self._first] == _LEADS) & (self.said == ALIKE)
        there = self._second[led]
        role[there[role[there] == _OPEN]] = _FOLLOWS

    def candidates(self, role: Int64s, most: int) -> Flags:
        """Return the open items with few open ones before them that they may match."""
        open_ = role == _OPEN
        live = open_[self._first] & open_[self._second] & (self.said != APART)
        few = np.bincount(self._second[live], minlength=self._count) < most
        return np.asarray(open_ & few, np.bool_)

    def of_leaders(self, leading: Flags) -> Int64s:
        """Return the rows of pairs, not asked yet, that have a leader."""
        return np.flatnonzero((leading[self._first] | leading[self._second]) & (self.said == UNKNOWN))

    def among(self, candidates: Flags) -> Int64s:
        """Return the rows of pairs, not asked yet, of two candidates."""
        return np.flatnonzero(candidates[self._first] & candidates[self._second] & (self.said == UNKNOWN))

    def lead(self, role: Int64s, candidates: Flags) -> None:
        """Note which candidates lead and which follow, as far as that is known by now."""
        live = (role[self._first] != _FOLLOWS) & (self.said != APART)
        before = np.bincount(self._second[live], minlength=self._count)
        role[candidates & (before == 0)] = _LEADS
        self.follow(role)
        for item in np.flatnonzero(candidates & (role == _OPEN)).tolist():
            rows = self._order[self._begins[item] : self._begins[item + 1]]
            known, said = role[self._first[rows]], self.said[rows]
            live = (known != _FOLLOWS) & (said != APART)
            if ((known[live] == _LEADS) & (said[live] == ALIKE)).any():
                role[item] = _FOLLOWS
            elif not live.any():
                role[item] = _LEADS


def _concerned(sure: tuple[Int64s, Int64s], doubt: tuple[Int64s, Int64s], count: int) -> Flags:
    a, b = (np.concatenate(side) for side in zip(sure, doubt, strict=True))
    together = connected(a, b, count)
    found = np.zeros(count, np.bool_)
    found[together[doubt[0]]] = True
    return np.asarray(found[together], np.bool_)
