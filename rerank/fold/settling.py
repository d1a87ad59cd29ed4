"""A page after its texts were asked: which pairs decide on its groups, and what becomes of these."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

from shinglefold.rerank.fold.folding import Group

#: Two hits of a page by their places, the first one before.
Pair = tuple[int, int]


class Settled(NamedTuple):
    """A page after its texts were asked; ``joined``: groups that went into another; ``parted``: members that
    stand for themselves.
    """

    groups: list[Group]
    joined: int
    parted: int


def pairs_of(groups: Sequence[Group], attached: Sequence[Sequence[int]]) -> list[Pair]:
    """Return the pairs that decide on a page: hits shown with one another, and with their own members."""
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
    """Return the pairs of members that part with one another, and with the hits shown."""
    own = zip(groups, attached, strict=True)
    gone = [
        at
        for group, places in own
        for at in places
        if at != group.representative and verdicts.get(_pair(group.representative, at)) is False
    ]
    shown = [group.representative for group in groups]
    return [_pair(*pair) for pair in (*product(gone, shown), *combinations(gone, 2))]


def settle(groups: Sequence[Group], verdicts: Mapping[Pair, bool], part: bool = True) -> Settled:
    """Return the groups of a page as texts decide, by their best-ranked members.

    A member whose text is another than that of the hit shown becomes a group of its own; a group whose hit
    shown has the text of one before goes into that one. Each is decided with hits shown only, so that no
    chain forms.

    Args:
        verdicts: of pairs of places, a < b; pairs that are not there stay as they are.
        part: whether members may leave their groups; not where chains are wanted.
    """
    apart: list[Group] = []
    kept: list[Group] = []
    for group in groups:
        gone = [at for at in group.members if part and verdicts.get(_pair(group.representative, at)) is False]
        kept.append(Group(group.representative, tuple(at for at in group.members if at not in gone)))
        apart += [Group(at, (at,)) for at in gone]
    result: list[Group] = []
    for group in sorted([*kept, *apart], key=lambda one: one.members[0]):
        for place, other in enumerate(result):
            if verdicts.get(_pair(other.representative, group.representative)):
                members = tuple(sorted(other.members + group.members))
                result[place] = Group(other.representative, members)
                break
        else:
            result.append(group)
    return Settled(result, len(kept) + len(apart) - len(result), len(apart))


def _pair(one: int, other: int) -> Pair:
    return (one, other) if one < other else (other, one)
