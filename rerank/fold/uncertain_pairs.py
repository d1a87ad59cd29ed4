"""Classifies the pairs of a page by signature: certain match, certain non-match, or uncertain.

The texts decide the uncertain pairs; ``apply_text_verdicts`` changes the groups of the page accordingly.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, compress, product
from typing import NamedTuple

import numpy as np

from shinglefold.model.scheme import Decision, Scheme
from shinglefold.rerank.fold.clustering import Group
from shinglefold.rerank.fold.fingerprint_columns import FingerprintColumns
from shinglefold.rerank.fold.matcher import Matcher
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.sketch import agreement_rows, least_estimate, standard_error

#: Two hits of a page by their places, the first one before.
Pair = tuple[int, int]
#: Standard errors above the threshold up to which the texts decide.
DOUBT = 2.0


class DecidedGroups(NamedTuple):
    """The groups of a page after the texts decided.

    ``joined``: groups merged into another; ``parted``: members that became groups of their own.
    """

    groups: list[Group]
    joined: int
    parted: int


def pairs_of(groups: Sequence[Group], attached: Sequence[Sequence[int]]) -> list[Pair]:
    """Return the pairs that decide a page: representatives with each other, and with their members."""
    shown = sorted(group.representative for group in groups)
    own = {
        _pair(group.representative, at)
        for group, places in zip(groups, attached, strict=True)
        for at in places
        if at != group.representative
    }
    return [*combinations(shown, 2), *sorted(own)]


def pairs_beside(
    groups: Sequence[Group], attached: Sequence[Sequence[int]], verdicts: Mapping[Pair, bool]
) -> list[Pair]:
    """Return the pairs of members that leave their groups with each other, and with representatives."""
    own = zip(groups, attached, strict=True)
    gone = [
        at
        for group, places in own
        for at in places
        if at != group.representative and verdicts.get(_pair(group.representative, at)) is False
    ]
    shown = [group.representative for group in groups]
    return [_pair(*pair) for pair in (*product(gone, shown), *combinations(gone, 2))]


def apply_text_verdicts(
    groups: Sequence[Group],
    verdicts: Mapping[Pair, bool],
    part: bool = True,
    order: Callable[[Sequence[int]], Sequence[int]] = tuple,
) -> DecidedGroups:
    """Return the groups of a page after text verdicts, in the order of their best-ranked members.

    A group whose representative matches that of an earlier one joins it. A member whose text differs from
    its representative's leaves the group: it joins another whose representative it matches, else it begins
    one, which those that left later may join. All verdicts involve a representative, so no chain forms.

    Args:
        verdicts: of pairs of places, a < b; other pairs stay as they are.
        part: whether members may leave their groups; false for ``connected`` linkage.
        order: returns places in the order in which they may represent a group; by default their rank.
    """
    gone: list[int] = []
    kept: list[Group] = []
    for group in groups:
        own = [at for at in group.members if part and verdicts.get(_pair(group.representative, at)) is False]
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


class UncertaintyBand(NamedTuple):
    """The band of estimates in which a signature alone is not enough to decide a pair.

    ``possible``: matches from the least estimate at which texts can still be alike, across languages, since a
    half-translated page may have been detected as either. Two standard errors below the threshold would miss
    as many copies as they find.
    ``sure``: matches from two standard errors above the threshold; equal texts alone where facts count.
    """

    possible: Matcher
    sure: Matcher

    @classmethod
    def of(cls, scheme: Scheme, options: FoldOptions) -> "UncertaintyBand | None":
        """Return the band of a decision; None where no resemblance is required."""
        asked = options.min_resemblance
        least = scheme.decision.min_resemblance if asked is None else asked
        return None if least <= 0 else _zone(Matcher.of(scheme, options), scheme, scheme.decision, least)


@lru_cache(16)
def _zone(matcher: Matcher, scheme: Scheme, decision: Decision, least: float) -> UncertaintyBand:
    """Return the band; ``decision`` is a key of the cache, because equal schemes may differ in it."""
    low, most = uncertain_range(scheme, least)
    sure = matcher.at(most) if most <= 1 else replace(matcher, need=scheme.sketch.values + 1)
    return UncertaintyBand(replace(matcher, across_languages=True).at(low), sure)


def uncertain_range(scheme: Scheme, least: float) -> tuple[float, float]:
    """Return the range of estimates in which the texts decide, for a threshold.

    Where facts count its end is above 1: only equal texts are certain to have equal facts.
    """
    decision, sketch = scheme.decision, scheme.sketch
    width = max(sketch.word_width, sketch.char_width)
    low = min(least, max(1e-9, least_estimate(decision.min_similarity, width, sketch)))
    if decision.facts == "numbers":
        return low, 2.0
    return low, min(1.0, least + DOUBT * standard_error(least, sketch.values, sketch.bits))


def _hopeful(scheme: Scheme) -> float:
    """Return the estimate below which two texts can't share as many tokens as copies must."""
    sketch = scheme.sketch
    width = max(sketch.word_width, sketch.char_width)
    return least_estimate((1 + scheme.decision.min_similarity) / 2, width, sketch)


class ClassifiedPairs(NamedTuple):
    """Pairs classified by signature.

    ``doubtful``: the texts decide; ``sure``: certain matches; ``hopeful``: equal tokens may count wherever
    they are, as in the command ``pairs``.
    """

    doubtful: list[Pair]
    sure: set[Pair]
    hopeful: set[Pair]


class Signatures:
    """Classifies pairs of the hits of a page by their signatures.

    Args:
        places: of the hits, ascending.
        prints: their fingerprints, in this order.
    """

    def __init__(
        self, scheme: Scheme, options: FoldOptions, places: Sequence[int], prints: FingerprintColumns
    ) -> None:
        self._zone = UncertaintyBand.of(scheme, options)
        self._scheme, self._prints = scheme, prints
        self._row = {place: row for row, place in enumerate(places)}

    def weigh(self, pairs: Iterable[Pair]) -> ClassifiedPairs:
        """Classify pairs of places, a < b. Cost: about .1 ms for a page."""
        asked = [(a, b) for a, b in pairs if a in self._row and b in self._row]
        if self._zone is None or not asked:
            return ClassifiedPairs([], set(), set())
        rows = np.array([(self._row[a], self._row[b]) for a, b in asked], np.int64)
        one, other = rows.T
        signatures, sketch = self._prints.signatures, self._scheme.sketch
        agreeing = agreement_rows(signatures[one], signatures[other], sketch.bits, sketch.values)
        possible, sure = (matcher.of_pairs(self._prints, one, other, agreeing) for matcher in self._zone)
        doubt = compress(asked, (possible & ~sure).tolist())
        hopes = agreeing >= self._zone.possible.at(_hopeful(self._scheme)).need
        return ClassifiedPairs(
            sorted(doubt), set(compress(asked, sure.tolist())), set(compress(asked, hopes.tolist()))
        )
