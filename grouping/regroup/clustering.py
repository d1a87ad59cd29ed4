"""Decide which documents of a census form a group, and which uncertain pairs decide that: pure functions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.grouping.regroup.census import Census
from shinglefold.grouping.regroup.options import RegroupOptions
from shinglefold.grouping.regroup.text_verdicts import ALIKE, APART, UNKNOWN, Said
from shinglefold.model.scheme import Decision, Scheme
from shinglefold.model.values import Int64s
from shinglefold.rerank.fold.uncertain_pairs import uncertain_range
from shinglefold.sketch import DisjointSets, connected, iter_pairs, leader_clusters
from shinglefold.sketch.b_bit_minhash import Floats

Flags = NDArray[np.bool_]
#: What is known of an item: nothing yet, that it leads, or that it matches a leader before it.
_OPEN, _LEADS, _FOLLOWS = 0, 1, 2
#: Open items before an open one that it is asked about at first, and at most: twice as many each time.
_FIRST, _MOST = 32, 256
#: Tells of pairs of documents what their texts say: ``ALIKE``, ``APART`` or ``UNKNOWN`` of each.
Ask = Callable[[Census, Int64s, Int64s], Said]
#: Pairs in doubt that are asked for together.
_WAITING = 1 << 20
#: Pairs in doubt that are held until all are known, so that only those need be asked that decide.
_HELD = 1 << 24


def decisive(
    sure: tuple[Int64s, Int64s],
    doubt: tuple[Int64s, Int64s],
    count: int,
    ask: Callable[[Int64s], Flags],
) -> Flags:
    """Return which of the pairs in doubt match, of those that decide who leads; others as none.

    As in ``leader_clusters``, an item leads that matches no leader before it. Others join leaders only, so
    pairs of followers do not matter.

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


class _Alike(NamedTuple):
    """Pairs of documents that match, by places, and how alike they are."""

    a: Int64s
    b: Int64s
    resemblance: Floats


class _Doubtful(NamedTuple):
    """Pairs of documents whose texts decide, and whether they match by their signatures."""

    a: Int64s
    b: Int64s
    resemblance: Floats
    near: NDArray[np.bool_]

    def rows(self, kept: Any) -> "_Doubtful":  # noqa: ANN401 - rows of an array
        """Return some of the pairs."""
        return _Doubtful(self.a[kept], self.b[kept], self.resemblance[kept], self.near[kept])

    def alike(self, kept: Any) -> _Alike:  # noqa: ANN401 - rows of an array
        """Return some of the pairs as such that match."""
        return _Alike(self.a[kept], self.b[kept], self.resemblance[kept])


class _FoundPairs(NamedTuple):
    """Pairs that match, and such as may; ``last``: there are no more."""

    sure: _Alike
    doubt: _Doubtful
    last: bool = False


class _Needed(NamedTuple):
    """What pairs must reach: to be looked at, to match by signature, and to match without a look at texts."""

    decision: Decision
    near: float
    sure: float

    @classmethod
    def of(cls, scheme: Scheme, options: RegroupOptions, *, by_text: bool) -> "_Needed":
        given = options.rules
        verify = given.verified_by(scheme.decision)
        least = scheme.decision.min_resemblance if given.min_resemblance is None else given.min_resemblance
        ratio = given.min_length_ratio
        if verify == "keywords":
            return cls(replace(scheme.decision, verify=verify, facts="any"), 0.0, 0.0)
        low, high = uncertain_range(scheme, least) if by_text and least > 0 else (least, least)
        decision = replace(
            scheme.decision,
            verify="signature",
            facts="any",
            min_resemblance=low,
            min_length_ratio=scheme.decision.min_length_ratio if ratio is None else ratio,
        )
        return cls(decision, least, high)


def leaders(census: Census, scheme: Scheme, options: RegroupOptions, ask: Ask | None = None) -> Int64s:
    """Return for each document the place of the one that leads its group: int64 (D,).

    Args:
        scheme: with the similarity that texts must reach.
        ask: tells of pairs that signatures leave in doubt what their texts say; None leaves it at signatures.

    Cost: about 1.2 kB and 40 µs a document; with ``leader`` 24 bytes more a pair of unequal texts that match;
    25 bytes for each pair in doubt that waits: a million at most, with ``leader`` 16 million.
    """
    if not len(census):
        return np.zeros(0, np.int64)
    order = places_in_order(census, options)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    firsts = _firsts(census, order)
    alone = np.flatnonzero((firsts == np.arange(len(census))) | ~_same_sketch(census, firsts))
    link = _connected if options.linkage == "connected" else _led
    pairs = _pairs(census, scheme, options, alone, firsts, by_text=ask is not None)
    found = order[link(census, pairs, rank, ask)]
    # A copy of a text goes where the first of it went.
    others = np.ones(len(census), np.bool_)
    others[alone] = False
    found[others] = found[firsts[others]]
    return found


def places_in_order(census: Census, options: RegroupOptions) -> Int64s:
    """Return all places in the order in which documents may lead."""
    ids = census.keys.by_id()
    if not options.order:
        return ids[np.argsort(~census.leads[ids], kind="stable")]
    named = options.order.removeprefix("-")
    places = ids.tolist()
    missing = [place for place in places if census.ordinals[place][0] == 2]
    there = [place for place in places if census.ordinals[place][0] != 2]
    there.sort(key=lambda place: census.ordinals[place], reverse=named != options.order)
    return np.array(there + missing, np.int64)


def _firsts(census: Census, order: Int64s) -> Int64s:
    """Return for each document the first one, in order, of its text and scope: itself, mostly."""
    firsts = np.arange(len(census), dtype=np.int64)
    told = order[(census.texts[order] >= 0) & (census.scopes[order] >= 0)]
    if len(told):
        codes = census.texts[told] * (np.int64(census.scopes.max()) + 1) + census.scopes[told]
        _, first, number = np.unique(codes, return_index=True, return_inverse=True)
        firsts[told] = told[first[number]]
    return firsts


def _same_sketch(census: Census, firsts: Int64s) -> NDArray[np.bool_]:
    """Tell whose signature is that of the first of its text: two languages may shingle a text differently."""
    same = (census.languages == census.languages[firsts]) & (census.shingles == census.shingles[firsts])
    copies = np.flatnonzero(same & (firsts != np.arange(len(firsts))))
    same[copies] = (census.signatures[copies] == census.signatures[firsts[copies]]).all(axis=1)
    return np.asarray(same, np.bool_)


def _pairs(
    census: Census,
    scheme: Scheme,
    options: RegroupOptions,
    alone: Int64s,
    firsts: Int64s,
    *,
    by_text: bool,
) -> Iterator[_FoundPairs]:
    """Yield the pairs that match or may, each once; an equal text only with the first one of it."""
    twins = alone[firsts[alone] != alone]
    yield _FoundPairs(_Alike(firsts[twins], twins, np.ones(len(twins))), _NO_DOUBT)
    needed = _Needed.of(scheme, options, by_text=by_text)
    for found in iter_pairs(
        census.supershingles[alone],
        census.signatures[alone],
        census.shingles[alone],
        [""] * len(alone),
        scheme.sketch,
        needed.decision,
        census.signed[alone],
    ):
        a, b, alike = alone[found.a], alone[found.b], found.resemblance
        possible = (census.scopes[a] == census.scopes[b]) & (census.scopes[a] >= 0)
        spoken = options.across_languages | (census.languages[a] == census.languages[b])
        sure = possible & spoken & (alike >= needed.sure)
        told = _Doubtful(a, b, alike, spoken & (alike >= needed.near))
        yield _FoundPairs(told.alike(sure), told.rows(possible & ~sure) if by_text else _NO_DOUBT)


def _gathered(found: Iterable[_FoundPairs], most: int) -> Iterator[_FoundPairs]:
    """Yield pairs that match as they come, and those in doubt once there are many of them."""
    waiting: list[_Doubtful] = []
    held = 0
    for one in found:
        waiting.append(one.doubt)
        held += len(one.doubt.a)
        if held < most:
            yield _FoundPairs(one.sure, _NO_DOUBT)
        else:
            yield _FoundPairs(one.sure, _joined(waiting))
            waiting, held = [], 0
    yield _FoundPairs(_NO_DOUBT.alike(slice(0)), _joined(waiting), last=True)


def _joined(several: Sequence[_Doubtful]) -> _Doubtful:
    each = [_NO_DOUBT, *several]
    return _Doubtful(
        np.concatenate([one.a for one in each]),
        np.concatenate([one.b for one in each]),
        np.concatenate([one.resemblance for one in each]),
        np.concatenate([one.near for one in each]),
    )


def _matching(census: Census, ask: Ask | None, doubt: _Doubtful) -> NDArray[np.bool_]:
    """Tell which pairs in doubt match: as texts say, or signatures where texts say nothing."""
    if ask is None or not len(doubt.a):
        return doubt.near
    said = ask(census, doubt.a, doubt.b)
    return np.asarray((said == ALIKE) | ((said == UNKNOWN) & doubt.near), np.bool_)


def _connected(census: Census, pairs: Iterator[_FoundPairs], rank: Int64s, ask: Ask | None) -> Int64s:
    """Return for each document the rank of the first of all that chains of pairs lead to."""
    # What is known of the groups so far is one label a document, so that pairs need not be kept.
    groups = DisjointSets(len(census))
    for found in _gathered(pairs, _WAITING):
        groups.merge(rank[found.sure.a], rank[found.sure.b])
        doubt = found.doubt
        # A pair of one group already need not be asked for.
        doubt = doubt.rows(groups.roots(rank[doubt.a]) != groups.roots(rank[doubt.b]))
        kept = _matching(census, ask, doubt)
        groups.merge(rank[doubt.a[kept]], rank[doubt.b[kept]])
    return groups.labels().astype(np.int64)[rank]


def _matched(census: Census, pairs: Iterator[_FoundPairs], rank: Int64s, ask: Ask | None) -> _Alike:
    """Return all pairs that match, by ranks; of those in doubt as many as decide who leads whom."""
    found: list[_Alike] = []
    for one in _gathered(pairs, _HELD):
        doubt = one.doubt._replace(a=rank[one.doubt.a], b=rank[one.doubt.b])
        found.append(one.sure._replace(a=rank[one.sure.a], b=rank[one.sure.b]))
        if one.last:
            sure = np.concatenate([each.a for each in found]), np.concatenate([each.b for each in found])
            said = partial(_in_parts, census, ask, one.doubt)
            kept = decisive(sure, (doubt.a, doubt.b), len(census), said)
        else:
            kept = _in_parts(census, ask, one.doubt, np.arange(len(doubt.a)))
        found.append(doubt.alike(kept))
    return _Alike(
        np.concatenate([one.a for one in found]),
        np.concatenate([one.b for one in found]),
        np.concatenate([one.resemblance for one in found]),
    )


def _in_parts(census: Census, ask: Ask | None, doubt: _Doubtful, rows: Int64s) -> NDArray[np.bool_]:
    """Tell which rows of pairs in doubt match, no more of them asked at once than may wait."""
    parts = [rows[begin : begin + _WAITING] for begin in range(0, len(rows), _WAITING)]
    return np.concatenate([_matching(census, ask, doubt.rows(part)) for part in parts] or [_NO_DOUBT.near])


def _led(census: Census, pairs: Iterator[_FoundPairs], rank: Int64s, ask: Ask | None) -> Int64s:
    """Return for each document the rank of the most alike of those that lead; of equal ones the least id."""
    a, b, alike = _matched(census, pairs, rank, ask)
    leader = leader_clusters(a, b, len(census))
    leading = leader == np.arange(len(census))
    member, other = np.concatenate((a, b)), np.concatenate((b, a))
    kept = ~leading[member] & leading[other]
    member, other, alike = member[kept], other[kept], np.concatenate((alike, alike))[kept]
    # Not by the order of leading, which is another one the next time: so the same groups are found again.
    ids = np.empty_like(rank)
    ids[rank[census.keys.by_id()]] = np.arange(len(rank))
    best = np.lexsort((ids[other], -alike, member))
    members, first = np.unique(member[best], return_index=True)
    leader[members] = other[best][first]
    return leader[rank]


_NO_DOUBT = _Doubtful(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.bool_))
