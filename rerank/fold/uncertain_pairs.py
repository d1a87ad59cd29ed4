"""Classifies the pairs of a page by signature: certain match, certain non-match, or uncertain.

The texts decide the uncertain pairs; ``apply_text_verdicts`` changes the groups of the page accordingly.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import combinations, compress, product
from typing import NamedTuple

import numpy as np

from shinglefold.model.scheme import Scheme
from shinglefold.rerank.fold.clustering import Group
from shinglefold.rerank.fold.matcher import UncertaintyBand
from shinglefold.rerank.hits import FingerprintColumns
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.sketch.b_bit_minhash import agreement_rows, least_estimate

#: Two hits of a page by their positions, in ascending order.
Pair = tuple[int, int]


class DecidedGroups(NamedTuple):
    """The groups of a page after the texts decided.

    ``joined``: groups merged into another; ``parted``: members that became groups of their own.
    """

    groups: list[Group]
    joined: int
    parted: int

    @property
    def more(self) -> int:
        """How many more groups there are than by signature; negative if there are fewer."""
        return self.parted - self.joined


def pairs_of(groups: Sequence[Group], attached: Sequence[Sequence[int]]) -> list[Pair]:
    """Return the pairs on which a page depends: representatives with each other, and with their members."""
    shown = sorted(group.representative for group in groups)
    own = {
        _pair(group.representative, at)
        for group, places in zip(groups, attached, strict=True)
        for at in places
        if at != group.representative
    }
    return [*combinations(shown, 2), *sorted(own)]


def pairs_of_leavers(
    groups: Sequence[Group], verdicts: Mapping[Pair, bool], attached: Sequence[Sequence[int]] = ()
) -> list[Pair]:
    """Return the pairs of members that leave their groups: with representatives, and with other leavers.

    Args:
        attached: the members of each group with which the pairs are returned, too.
    """
    leaving = [_leavers(group, verdicts) for group in groups]
    gone = [at for own in leaving for at in own]
    shown = [group.representative for group in groups]
    members = (
        (at, other)
        for own, places in zip(leaving, attached, strict=False)
        for at, other in product(own, places)
        if at != other
    )
    pairs = (*product(gone, shown), *combinations(gone, 2), *members)
    return list(dict.fromkeys(_pair(*pair) for pair in pairs))


def _leavers(group: Group, verdicts: Mapping[Pair, bool]) -> list[int]:
    """Return the members whose text differs from that of the representative."""
    shown = group.representative
    return [at for at in group.members if verdicts.get(_pair(shown, at)) is False]


def chained_members(
    groups: Sequence[Group], attached: Sequence[Sequence[int]], verdicts: Mapping[Pair, bool]
) -> set[int]:
    """Return the members that differ from their representatives and stay, with ``connected`` linkage.

    They match another member that stays, or may match one that is not attached, whose text is not read.
    """
    chained: set[int] = set()
    for group, places in zip(groups, attached, strict=True):
        gone = _leavers(group, verdicts)
        staying = list(set(group.members) - set(gone))
        if not {*group.members} <= {group.representative, *places}:
            chained.update(gone)
            continue
        for at in staying:
            linked = [one for one in gone if verdicts.get(_pair(at, one)) and one not in chained]
            chained.update(linked)
            staying += linked
    return chained


def apply_text_verdicts(
    groups: Sequence[Group],
    verdicts: Mapping[Pair, bool],
    chained: Container[int] = (),
    order: Callable[[Sequence[int]], Sequence[int]] = tuple,
) -> DecidedGroups:
    """Return the groups of a page after text verdicts, in the order of their best-ranked members.

    A group whose representative matches that of an earlier one joins it. A member whose text differs from
    that of its representative leaves the group. It joins another one whose representative it matches, or
    begins one, which later leavers may join. All verdicts involve a representative, so no chain forms.

    Args:
        verdicts: by pair of positions, a < b; other pairs stay unchanged.
        chained: members that stay in their groups, see ``chained_members``.
        order: sorts positions by preference as representatives; by default by rank.
    """
    gone: list[int] = []
    kept: list[Group] = []
    for group in groups:
        own = [at for at in _leavers(group, verdicts) if at not in chained]
        kept.append(Group(group.representative, tuple(at for at in group.members if at not in own)))
        gone += own
    result: list[Group] = []
    for group in sorted(kept, key=lambda one: one.members[0]):
        _join(result, group, verdicts)
    for at in order(sorted(gone)):
        _join(result, Group(at, (at,)), verdicts)
    result.sort(key=lambda one: one.members[0])
    return DecidedGroups(result, len(kept) + len(gone) - len(result), len(gone))


def _join(groups: list[Group], group: Group, verdicts: Mapping[Pair, bool]) -> None:
    """Add a group to the first one whose representative it matches, else to the list."""
    for place, other in enumerate(groups):
        if verdicts.get(_pair(other.representative, group.representative)):
            members = tuple(sorted(other.members + group.members))
            groups[place] = Group(other.representative, members)
            return
    groups.append(group)


def _pair(one: int, other: int) -> Pair:
    return (one, other) if one < other else (other, one)


def bag_estimate(scheme: Scheme) -> float:
    """Return the least estimate at which two texts can share as many tokens as copies do."""
    sketch = scheme.sketch
    width = max(sketch.word_width, sketch.char_width)
    return least_estimate((1 + scheme.decision.min_similarity) / 2, width, sketch)


class ClassifiedPairs(NamedTuple):
    """Pairs classified by signature.

    ``doubtful``: texts decide; ``sure``: certain matches; ``as_bags``: equal tokens count in any order, as in
    the command ``pairs``.
    """

    doubtful: list[Pair]
    sure: set[Pair]
    as_bags: set[Pair]


class Signatures:
    """Classifies pairs of the hits of a page by their signatures.

    Args:
        places: the positions of the hits, ascending.
        prints: their fingerprints, in the same order.
    """

    def __init__(
        self, scheme: Scheme, options: FoldOptions, places: Sequence[int], prints: FingerprintColumns
    ) -> None:
        self._band = UncertaintyBand.of(scheme, options)
        self._scheme, self._prints = scheme, prints
        self._row = {place: row for row, place in enumerate(places)}

    def classify(self, pairs: Iterable[Pair]) -> ClassifiedPairs:
        """Return pairs of positions, a < b, classified. Cost: about 0.1 ms for a page."""
        known = [(a, b) for a, b in pairs if a in self._row and b in self._row]
        if self._band is None or not known:
            return ClassifiedPairs([], set(), set())
        rows = np.array([(self._row[a], self._row[b]) for a, b in known], np.int64)
        one, other = rows.T
        signatures, sketch = self._prints.signatures, self._scheme.sketch
        agreeing = agreement_rows(signatures[one], signatures[other], sketch.bits, sketch.values)
        possible, sure = (
            matcher.matches_of_pairs(self._prints, one, other, agreeing) for matcher in self._band
        )
        doubtful = compress(known, (possible & ~sure).tolist())
        as_bags = agreeing >= self._band.possible.at(bag_estimate(self._scheme)).need
        return ClassifiedPairs(
            sorted(doubtful), set(compress(known, sure.tolist())), set(compress(known, as_bags.tolist()))
        )
