"""Group the documents of a census, and find the uncertain pairs that decide the groups: pure functions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.grouping.regroup.census import Census
from shinglefold.grouping.regroup.options import RegroupOptions
from shinglefold.grouping.regroup.text_verdicts import ALIKE, APART, UNKNOWN, Verdicts
from shinglefold.model.scheme import Decision, Scheme
from shinglefold.model.values import Int64s
from shinglefold.rerank.fold.matcher import uncertain_range
from shinglefold.sketch.all_pairs import iter_pairs
from shinglefold.sketch.b_bit_minhash import Floats
from shinglefold.sketch.clustering import DisjointSets, connected_components, leader_clusters

Flags = NDArray[np.bool_]
#: The role of an item: not known yet, a leader, or matching a leader before it.
_OPEN, _LEADS, _FOLLOWS = 0, 1, 2
#: How many open items before it an open item is compared with: at first, and at most; doubled each time.
_FIRST, _MOST = 32, 256
#: Returns the verdicts of texts on pairs of documents, given their resemblance.
Decide = Callable[[Census, Int64s, Int64s, Floats], Verdicts]
#: The number of uncertain pairs that are decided together.
_TOGETHER = 1 << 20
#: The most uncertain pairs kept until all are found. Texts then decide only those that matter.
_HELD = 1 << 24


def decisive(
    sure: tuple[Int64s, Int64s],
    doubt: tuple[Int64s, Int64s],
    count: int,
    decide: Callable[[Int64s], Flags],
) -> Flags:
    """Return which uncertain pairs match, among those that decide which items lead; False for all others.

    An item that matches no leader before it leads, as in ``leader_clusters``, and all others follow leaders.
    So it does not matter whether two followers match.

    Args:
        sure: pairs that match; items are in the order in which they may lead.
        doubt: pairs that may match.
        count: the number of items.
        decide: returns which rows of ``doubt`` match; it is called for each row once at most.

    Returns:
        bool (P,), for the uncertain pairs.

    Cost: n items that all match take n and some 500 decisions; if none match, all pairs must be decided.
    Some passes over the pairs for each 256 leaders of the largest family of connected items.
    """
    if not len(doubt[0]):
        return np.zeros(0, np.bool_)
    pairs = _Pairs(sure, doubt, count)
    role = np.where(pairs.concerned, _OPEN, _FOLLOWS)
    most = _FIRST
    while True:
        pairs.follow(role)
        # Compare with leaders first: their followers need not be compared with each other.
        if len(rows := pairs.of_leaders(role == _LEADS)):
            pairs.verdicts[rows] = np.where(decide(rows), ALIKE, APART)
            continue
        candidates = pairs.candidates(role, most)
        if not candidates.any():
            return np.asarray(pairs.verdicts[: len(doubt[0])] == ALIKE, np.bool_)
        if len(rows := pairs.among(candidates)):
            pairs.verdicts[rows] = np.where(decide(rows), ALIKE, APART)
        pairs.lead(role, candidates)
        most = min(_MOST, 2 * most)


class _Pairs:
    """Pairs of items, the uncertain ones first, and the verdicts on them.

    Attributes:
        verdicts: ``UNKNOWN`` for uncertain pairs that are not decided.
        concerned: whether a chain of pairs connects an item with an uncertain pair.
    """

    def __init__(self, sure: tuple[Int64s, Int64s], doubt: tuple[Int64s, Int64s], count: int) -> None:
        self.concerned = _doubtful_components(sure, doubt, count)
        kept = self.concerned[sure[0]]
        a, b = (np.concatenate((ours, theirs[kept])) for ours, theirs in zip(doubt, sure, strict=True))
        self._first, self._second = np.minimum(a, b), np.maximum(a, b)
        self._count = count
        self.verdicts: Verdicts = np.full(len(a), ALIKE, np.int8)
        self.verdicts[: len(doubt[0])] = UNKNOWN
        self._order = np.argsort(self._second, kind="stable")
        self._begins = np.searchsorted(self._second[self._order], np.arange(count + 1))

    def follow(self, role: Int64s) -> None:
        """Set the role of items that match a leader before them."""
        matching = (role[self._first] == _LEADS) & (self.verdicts == ALIKE)
        role[self._second[matching]] = _FOLLOWS

    def candidates(self, role: Int64s, most: int) -> Flags:
        """Return the open items that may match fewer than ``most`` open ones before them."""
        open_ = role == _OPEN
        live = open_[self._first] & open_[self._second] & (self.verdicts != APART)
        few = np.bincount(self._second[live], minlength=self._count) < most
        return np.asarray(open_ & few, np.bool_)

    def of_leaders(self, leading: Flags) -> Int64s:
        """Return the rows of undecided pairs that have a leader."""
        return np.flatnonzero((leading[self._first] | leading[self._second]) & (self.verdicts == UNKNOWN))

    def among(self, candidates: Flags) -> Int64s:
        """Return the rows of undecided pairs of two candidates."""
        return np.flatnonzero(candidates[self._first] & candidates[self._second] & (self.verdicts == UNKNOWN))

    def lead(self, role: Int64s, candidates: Flags) -> None:
        """Set the role of the candidates whose role the verdicts so far decide."""
        live = (role[self._first] != _FOLLOWS) & (self.verdicts != APART)
        before = np.bincount(self._second[live], minlength=self._count)
        role[candidates & (before == 0)] = _LEADS
        self.follow(role)
        for item in np.flatnonzero(candidates & (role == _OPEN)).tolist():
            rows = self._order[self._begins[item] : self._begins[item + 1]]
            earlier, verdicts = role[self._first[rows]], self.verdicts[rows]
            live = (earlier != _FOLLOWS) & (verdicts != APART)
            # All pairs of a candidate and a leader are decided.
            if (earlier[live] == _LEADS).any():
                role[item] = _FOLLOWS
            elif not live.any():
                role[item] = _LEADS


def _doubtful_components(sure: tuple[Int64s, Int64s], doubt: tuple[Int64s, Int64s], count: int) -> Flags:
    a, b = (np.concatenate(side) for side in zip(sure, doubt, strict=True))
    together = connected_components(a, b, count)
    found = np.zeros(count, np.bool_)
    found[together[doubt[0]]] = True
    return np.asarray(found[together], np.bool_)


class _Alike(NamedTuple):
    """Pairs of documents that match, as positions in the census, and their resemblance."""

    a: Int64s
    b: Int64s
    resemblance: Floats


class _Doubtful(NamedTuple):
    """Pairs of documents whose texts decide; ``near``: whether they match by their signatures."""

    a: Int64s
    b: Int64s
    resemblance: Floats
    near: NDArray[np.bool_]

    def rows(self, kept: Any) -> "_Doubtful":  # noqa: ANN401 - rows of an array
        """Return the pairs in these rows."""
        return _Doubtful(self.a[kept], self.b[kept], self.resemblance[kept], self.near[kept])

    def alike(self, kept: Any) -> _Alike:  # noqa: ANN401 - rows of an array
        """Return the pairs in these rows as pairs that match."""
        return _Alike(self.a[kept], self.b[kept], self.resemblance[kept])


class _FoundPairs(NamedTuple):
    """Pairs that match, and uncertain pairs; ``last``: there are no more."""

    sure: _Alike
    doubt: _Doubtful
    last: bool = False


class _Thresholds(NamedTuple):
    """What pairs must reach: to be candidates, to match by signature, and to match whatever the texts are."""

    decision: Decision
    near: float
    sure: float

    @classmethod
    def of(cls, scheme: Scheme, options: RegroupOptions, *, by_text: bool) -> "_Thresholds":
        rules = options.rules
        verify = rules.verified_by(scheme.decision)
        least = scheme.decision.min_resemblance if rules.min_resemblance is None else rules.min_resemblance
        ratio = rules.min_length_ratio
        if verify == "keywords":
            return cls(replace(scheme.decision, verify=verify), 0.0, 0.0)
        low, high = uncertain_range(scheme, least) if by_text and least > 0 else (least, least)
        decision = replace(
            scheme.decision,
            verify="signature",
            min_resemblance=low,
            min_length_ratio=scheme.decision.min_length_ratio if ratio is None else ratio,
        )
        return cls(decision, least, high)


def leaders(census: Census, scheme: Scheme, options: RegroupOptions, decide: Decide | None = None) -> Int64s:
    """Return for each document the position of its leader in the census: int64 (D,).

    Args:
        scheme: with the similarity that texts must reach.
        decide: decides uncertain pairs by their texts; None decides all pairs by signatures.

    Cost: about 1.2 kB and 40 µs a document, 25 bytes for each uncertain pair kept: a million at most.
    With linkage ``leader`` 16 million at most, and 24 bytes more for each pair of unequal texts that match.
    """
    order = places_in_order(census, options)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    firsts = _firsts(census, order)
    alone = np.flatnonzero((firsts == np.arange(len(census))) | ~_same_sketch(census, firsts))
    link = _connect if options.linkage == "connected" else _assign_leaders
    pairs = _pairs(census, scheme, options, alone, firsts, by_text=decide is not None)
    found = order[link(census, pairs, rank, decide)]
    # A copy of a text goes into the group of the first copy.
    others = np.ones(len(census), np.bool_)
    others[alone] = False
    found[others] = found[firsts[others]]
    return found


def places_in_order(census: Census, options: RegroupOptions) -> Int64s:
    """Return the positions of all documents, in the order in which they may lead."""
    ids = census.keys.by_id()
    if not options.order:
        return ids[np.argsort(~census.leads[ids], kind="stable")]
    named = options.order.removeprefix("-")
    places = ids.tolist()
    missing = [place for place in places if census.ordinals[place][0] == 2]
    ordered = [place for place in places if census.ordinals[place][0] != 2]
    ordered.sort(key=lambda place: census.ordinals[place], reverse=named != options.order)
    return np.array(ordered + missing, np.int64)


def _firsts(census: Census, order: Int64s) -> Int64s:
    """Return for each document the first one with the same text and scope, which mostly is itself."""
    firsts = np.arange(len(census), dtype=np.int64)
    known = order[(census.texts[order] >= 0) & (census.scopes[order] >= 0)]
    if len(known):
        codes = census.texts[known] * (np.int64(census.scopes.max()) + 1) + census.scopes[known]
        _, first, number = np.unique(codes, return_index=True, return_inverse=True)
        firsts[known] = known[first[number]]
    return firsts


def _same_sketch(census: Census, firsts: Int64s) -> NDArray[np.bool_]:
    """Return which documents have the same signature as the first document with their text.

    Two languages may shingle a text differently.
    """
    same = census.shingles == census.shingles[firsts]
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
    """Yield the pairs that match or may match, each once; copies of a text only with the first copy."""
    copies = alone[firsts[alone] != alone]
    yield _FoundPairs(_Alike(firsts[copies], copies, np.ones(len(copies))), _NO_DOUBT)
    thresholds, facts = _Thresholds.of(scheme, options, by_text=by_text), census.facts()
    for found in iter_pairs(
        census.supershingles[alone],
        census.signatures[alone],
        census.shingles[alone],
        [""] * len(alone),
        scheme.sketch,
        thresholds.decision,
        census.signed[alone],
    ):
        a, b, resemblance = alone[found.a], alone[found.b], found.resemblance
        possible = (census.scopes[a] == census.scopes[b]) & (census.scopes[a] >= 0)
        if facts is not None:
            possible &= (facts[a] == facts[b]) | (facts[a] == 0) | (facts[b] == 0)
        sure = possible & (resemblance >= thresholds.sure)
        pairs = _Doubtful(a, b, resemblance, resemblance >= thresholds.near)
        yield _FoundPairs(pairs.alike(sure), pairs.rows(possible & ~sure) if by_text else _NO_DOUBT)


def _batch_pairs(found: Iterable[_FoundPairs], most: int) -> Iterator[_FoundPairs]:
    """Yield pairs that match at once, and uncertain pairs once there are ``most`` of them."""
    waiting: list[_Doubtful] = []
    held = 0
    for one in found:
        waiting.append(one.doubt)
        held += len(one.doubt.a)
        if held < most:
            yield _FoundPairs(one.sure, _NO_DOUBT)
        else:
            yield _FoundPairs(one.sure, _join_doubtful(waiting))
            waiting, held = [], 0
    yield _FoundPairs(_NO_DOUBT.alike(slice(0)), _join_doubtful(waiting), last=True)


def _join_doubtful(several: Sequence[_Doubtful]) -> _Doubtful:
    each = [_NO_DOUBT, *several]
    return _Doubtful(
        np.concatenate([one.a for one in each]),
        np.concatenate([one.b for one in each]),
        np.concatenate([one.resemblance for one in each]),
        np.concatenate([one.near for one in each]),
    )


def _match_doubtful(census: Census, decide: Decide | None, doubt: _Doubtful) -> NDArray[np.bool_]:
    """Return which uncertain pairs match, by texts, or by signatures if texts can't be compared."""
    if decide is None or not len(doubt.a):
        return doubt.near
    verdicts = decide(census, doubt.a, doubt.b, doubt.resemblance)
    return np.asarray((verdicts == ALIKE) | ((verdicts == UNKNOWN) & doubt.near), np.bool_)


def _connect(census: Census, pairs: Iterator[_FoundPairs], rank: Int64s, decide: Decide | None) -> Int64s:
    """Return for each document the rank of the first one that a chain of pairs connects it with."""
    # One label for each document describes the groups found so far, so that pairs need not be kept.
    groups = DisjointSets(len(census))
    for found in _batch_pairs(pairs, _TOGETHER):
        groups.merge(rank[found.sure.a], rank[found.sure.b])
        doubt = found.doubt
        # A pair within one group need not be decided.
        doubt = doubt.rows(groups.roots(rank[doubt.a]) != groups.roots(rank[doubt.b]))
        kept = _match_doubtful(census, decide, doubt)
        groups.merge(rank[doubt.a[kept]], rank[doubt.b[kept]])
    return groups.labels().astype(np.int64)[rank]


def _match_pairs(census: Census, pairs: Iterator[_FoundPairs], rank: Int64s, decide: Decide | None) -> _Alike:
    """Return the pairs that match, by ranks. Decide only uncertain pairs that determine which items lead."""
    found: list[_Alike] = []
    for one in _batch_pairs(pairs, _HELD):
        doubt = one.doubt._replace(a=rank[one.doubt.a], b=rank[one.doubt.b])
        found.append(one.sure._replace(a=rank[one.sure.a], b=rank[one.sure.b]))
        if one.last:
            sure = np.concatenate([each.a for each in found]), np.concatenate([each.b for each in found])
            decide_rows = partial(_in_parts, census, decide, one.doubt)
            kept = decisive(sure, (doubt.a, doubt.b), len(census), decide_rows)
        else:
            kept = _in_parts(census, decide, one.doubt, np.arange(len(doubt.a)))
        found.append(doubt.alike(kept))
    return _Alike(
        np.concatenate([one.a for one in found]),
        np.concatenate([one.b for one in found]),
        np.concatenate([one.resemblance for one in found]),
    )


def _in_parts(census: Census, decide: Decide | None, doubt: _Doubtful, rows: Int64s) -> NDArray[np.bool_]:
    """Return which rows of uncertain pairs match, deciding a limited number together."""
    parts = [rows[begin : begin + _TOGETHER] for begin in range(0, len(rows), _TOGETHER)]
    return np.concatenate(
        [_match_doubtful(census, decide, doubt.rows(part)) for part in parts] or [_NO_DOUBT.near]
    )


def _assign_leaders(
    census: Census, pairs: Iterator[_FoundPairs], rank: Int64s, decide: Decide | None
) -> Int64s:
    """Return for each document the rank of its most similar leader; of equally similar ones the least id."""
    a, b, alike = _match_pairs(census, pairs, rank, decide)
    leader = leader_clusters(a, b, len(census))
    leading = leader == np.arange(len(census))
    member, other = np.concatenate((a, b)), np.concatenate((b, a))
    # No two leaders match.
    kept = leading[other]
    member, other, alike = member[kept], other[kept], np.concatenate((alike, alike))[kept]
    # By id, not by rank: leaders rank first in the next run, and it must find the same groups.
    ids = np.empty_like(rank)
    ids[rank[census.keys.by_id()]] = np.arange(len(rank))
    best = np.lexsort((ids[other], -alike, member))
    members, first = np.unique(member[best], return_index=True)
    leader[members] = other[best][first]
    return leader[rank]


_NO_DOUBT = _Doubtful(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.bool_))
