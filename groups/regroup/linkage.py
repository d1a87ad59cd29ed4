"""Which documents of a census form a group: pure functions on columns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.groups.regroup.census import Census
from shinglefold.groups.regroup.options import RegroupOptions
from shinglefold.groups.regroup.verdicts import ALIKE, UNKNOWN, Said
from shinglefold.model import Int64s
from shinglefold.rerank.fold.doubt import doubtful
from shinglefold.scheme import Decision, Scheme
from shinglefold.sketch import Forest, iter_pairs, led
from shinglefold.sketch.estimators import Floats

#: Tells of pairs of documents what their texts say: ``ALIKE``, ``APART`` or ``UNKNOWN`` of each.
Ask = Callable[[Census, Int64s, Int64s], Said]
#: Pairs in doubt that are asked for together.
_WAITING = 1 << 20


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


#: Tells of which pairs it matters whether they match.
_Apart = Callable[[Int64s, Int64s], NDArray[np.bool_]]
_Pairs = Callable[[_Apart], Iterator[_Alike]]


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
        low, high = doubtful(scheme, least) if by_text and least > 0 else (least, least)
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
    25 bytes for each of the million pairs in doubt that wait at most.
    """
    if not len(census):
        return np.zeros(0, np.int64)
    order = places_in_order(census, options)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    firsts = _firsts(census, order)
    alone = np.flatnonzero((firsts == np.arange(len(census))) | ~_same_sketch(census, firsts))
    link = _connected if options.linkage == "connected" else _led
    found = order[link(census, partial(_alike, census, scheme, options, alone, firsts, ask), rank)]
    # A copy of a text goes where the first of it went.
    others = np.ones(len(census), np.bool_)
    others[alone] = False
    found[others] = found[firsts[others]]
    return found


def places_in_order(census: Census, options: RegroupOptions) -> Int64s:
    """Return all places in the order in which documents may lead."""
    ids = _by_id(census)
    if not options.order:
        return ids[np.argsort(~census.leads[ids], kind="stable")]
    named = options.order.removeprefix("-")
    places = ids.tolist()
    missing = [place for place in places if census.ordinals[place][0] == 2]
    there = [place for place in places if census.ordinals[place][0] != 2]
    there.sort(key=lambda place: census.ordinals[place], reverse=named != options.order)
    return np.array(there + missing, np.int64)


def _by_id(census: Census) -> Int64s:
    def name(place: int) -> tuple[str, str, str]:
        key = census.keys[place]
        return key.id, key.index, key.routing or ""

    return np.array(sorted(range(len(census)), key=name), np.int64)


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


def _alike(  # noqa: PLR0917 - as ``leaders``, and what that knows
    census: Census,
    scheme: Scheme,
    options: RegroupOptions,
    alone: Int64s,
    firsts: Int64s,
    ask: Ask | None,
    apart: _Apart,
) -> Iterator[_Alike]:
    """Yield the pairs that match, each once; an equal text only with the first one of it.

    Those that signatures leave in doubt come once there are many of them, as their texts say.
    """
    twins = alone[firsts[alone] != alone]
    if len(twins):
        yield _Alike(firsts[twins], twins, np.ones(len(twins)))
    needed = _Needed.of(scheme, options, by_text=ask is not None)
    waiting: list[_Doubtful] = []
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
        yield _Alike(a[sure], b[sure], alike[sure])
        if ask is not None:
            doubt = possible & ~sure
            near = spoken & (alike >= needed.near)
            waiting.append(_Doubtful(a[doubt], b[doubt], alike[doubt], near[doubt]))
            if sum(len(one.a) for one in waiting) >= _WAITING:
                yield _asked(census, ask, apart, waiting)
                waiting = []
    if ask is not None and waiting:
        yield _asked(census, ask, apart, waiting)


def _asked(census: Census, ask: Ask, apart: _Apart, waiting: Sequence[_Doubtful]) -> _Alike:
    """Return which of the pairs in doubt match: as texts say, or signatures where texts say nothing."""
    a, b, alike, near = (np.concatenate(column) for column in zip(*waiting, strict=True))
    open_ = apart(a, b)
    a, b, alike, near = a[open_], b[open_], alike[open_], near[open_]
    said = ask(census, a, b)
    kept = (said == ALIKE) | ((said == UNKNOWN) & near)
    return _Alike(a[kept], b[kept], alike[kept])


def _connected(census: Census, pairs: _Pairs, rank: Int64s) -> Int64s:
    """Return for each document the rank of the first of all that chains of pairs lead to."""
    # What is known of the groups so far is one label a document, so that pairs need not be kept.
    groups = Forest(len(census))
    # A pair of one group already need not be asked for.
    for one in pairs(lambda a, b: groups.roots(rank[a]) != groups.roots(rank[b])):
        groups.merge(rank[one.a], rank[one.b])
    return groups.labels().astype(np.int64)[rank]


def _led(census: Census, pairs: _Pairs, rank: Int64s) -> Int64s:
    """Return for each document the rank of the most alike of those that lead; of equal ones the least id."""
    found = list(pairs(lambda a, _: np.ones(len(a), np.bool_)))
    a = rank[np.concatenate([one.a for one in found] or [np.zeros(0, np.int64)])]
    b = rank[np.concatenate([one.b for one in found] or [np.zeros(0, np.int64)])]
    alike = np.concatenate([one.resemblance for one in found] or [np.zeros(0)])
    leader = led(a, b, len(census))
    leading = leader == np.arange(len(census))
    member, other = np.concatenate((a, b)), np.concatenate((b, a))
    kept = ~leading[member] & leading[other]
    member, other, alike = member[kept], other[kept], np.concatenate((alike, alike))[kept]
    # Not by the order of leading, which is another one the next time: so the same groups are found again.
    ids = np.empty_like(rank)
    ids[rank[_by_id(census)]] = np.arange(len(rank))
    best = np.lexsort((ids[other], -alike, member))
    members, first = np.unique(member[best], return_index=True)
    leader[members] = other[best][first]
    return leader[rank]
