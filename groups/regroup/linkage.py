"""Which documents of a census form a group: pure functions on columns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.groups.regroup.census import Census
from shinglefold.groups.regroup.leading import decisive
from shinglefold.groups.regroup.options import RegroupOptions
from shinglefold.groups.regroup.verdicts import ALIKE, UNKNOWN, Said
from shinglefold.model import Int64s
from shinglefold.rerank.fold.doubt import uncertain_range
from shinglefold.scheme import Decision, Scheme
from shinglefold.sketch import Forest, iter_pairs, led
from shinglefold.sketch.estimators import Floats

#: Tells of pairs of documents what their texts say: ``ALIKE``, ``APART`` or ``UNKNOWN`` of each.
Ask = Callable[[Census, Int64s, Int64s], Said]
#: Pairs in doubt that are asked for together.
_WAITING = 1 << 20
#: Pairs in doubt that are held until all are known, so that only those need be asked that decide.
_HELD = 1 << 24


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


class _Found(NamedTuple):
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
) -> Iterator[_Found]:
    """Yield the pairs that match or may, each once; an equal text only with the first one of it."""
    twins = alone[firsts[alone] != alone]
    yield _Found(_Alike(firsts[twins], twins, np.ones(len(twins))), _NO_DOUBT)
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
        yield _Found(told.alike(sure), told.rows(possible & ~sure) if by_text else _NO_DOUBT)


def _gathered(found: Iterable[_Found], most: int) -> Iterator[_Found]:
    """Yield pairs that match as they come, and those in doubt once there are many of them."""
    waiting: list[_Doubtful] = []
    held = 0
    for one in found:
        waiting.append(one.doubt)
        held += len(one.doubt.a)
        if held < most:
            yield _Found(one.sure, _NO_DOUBT)
        else:
            yield _Found(one.sure, _joined(waiting))
            waiting, held = [], 0
    yield _Found(_NO_DOUBT.alike(slice(0)), _joined(waiting), last=True)


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


def _connected(census: Census, pairs: Iterator[_Found], rank: Int64s, ask: Ask | None) -> Int64s:
    """Return for each document the rank of the first of all that chains of pairs lead to."""
    # What is known of the groups so far is one label a document, so that pairs need not be kept.
    groups = Forest(len(census))
    for found in _gathered(pairs, _WAITING):
        groups.merge(rank[found.sure.a], rank[found.sure.b])
        doubt = found.doubt
        # A pair of one group already need not be asked for.
        doubt = doubt.rows(groups.roots(rank[doubt.a]) != groups.roots(rank[doubt.b]))
        kept = _matching(census, ask, doubt)
        groups.merge(rank[doubt.a[kept]], rank[doubt.b[kept]])
    return groups.labels().astype(np.int64)[rank]


def _matched(census: Census, pairs: Iterator[_Found], rank: Int64s, ask: Ask | None) -> _Alike:
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


def _led(census: Census, pairs: Iterator[_Found], rank: Int64s, ask: Ask | None) -> Int64s:
    """Return for each document the rank of the most alike of those that lead; of equal ones the least id."""
    a, b, alike = _matched(census, pairs, rank, ask)
    leader = led(a, b, len(census))
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
