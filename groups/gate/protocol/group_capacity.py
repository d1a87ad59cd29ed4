"""Places in groups under ``cap``: claimed where all know of it, then counted, for a batch at once."""

from collections import Counter
from collections.abc import Mapping, Sequence

from shinglefold.contracts.engine import VersionedDocument
from shinglefold.groups.gate.protocol.context import Terms
from shinglefold.groups.gate.protocol.decisions import Choice, Join, Refuse, Stay, place_in_group
from shinglefold.groups.gate.protocol.leases import closing, is_open
from shinglefold.groups.gate.protocol.member import Member
from shinglefold.groups.gate.protocol.requests import CountGroups, FindGroups, Intent, Now, Steps, Write
from shinglefold.groups.gate.protocol.reserve import held_by

#: Documents read of a group beyond its places, as some that a search finds may have left it since.
_SPARE = 20
_ALL = 9_999
#: Places up to which the documents of a group are read at once.
_FEW = 50


def claimed(members: Sequence[Member], choices: Sequence[Choice], terms: Terms) -> Steps[list[Choice]]:
    """Return the choices, those that join a group refused or kept waiting where it may have no place."""
    joining = {place: choice for place, choice in enumerate(choices) if isinstance(choice, Join)}
    if not joining:
        return list(choices)
    yield from _claim([(members[place], choice.group) for place, choice in joining.items()], terms)
    groups = tuple(sorted({choice.group for choice in joining.values()}))
    own = {member.attempt for member in members}
    claims = {
        group: [one for one in terms.register.known.claiming(group) if one.attempt not in own]
        for group in groups
    }
    wanted = [(members[place], choice.group) for place, choice in joining.items()]
    roomy = yield from _roomy(wanted, claims, terms)
    joining = {place: choice for place, choice in joining.items() if choice.group not in roomy}
    if not joining:
        return list(choices)
    groups = tuple(group for group in groups if group not in roomy)
    likes = {choice.like.id for choice in joining.values() if choice.like is not None}
    held = yield from _there(
        groups, likes | {one.document for each in claims.values() for one in each}, terms
    )
    now = yield Now()
    left = terms.register.known.left
    open_ = {
        group: [
            one
            for one in each
            if one.attempt not in left and is_open(one, held.get(one.document), terms.forms)
        ]
        for group, each in claims.items()
    }
    dead = {one.document for each in open_.values() for one in each if one.until < now}
    if dead:
        yield Write(tuple(closing(held[id_], terms.forms) for id_ in sorted(dead)))
    counted = _Counted(held, terms)
    told = list(choices)
    for place, choice in joining.items():
        told[place] = (
            Stay.HOLD
            if any(one.document in dead for one in open_[choice.group])
            else counted.place(members[place], choice, open_[choice.group])
        )
    return told


def _claim(joining: Sequence[tuple[Member, int]], terms: Terms) -> Steps[None]:
    new = [(member.attempt, group) for member, group in joining if member.claim != group]
    for member, group in joining:
        member.claim = group
    if new:
        yield from terms.register.claim(new)
    yield from terms.register.look()


def _roomy(
    joining: Sequence[tuple[Member, int]], claims: Mapping[int, Sequence[Intent]], terms: Terms
) -> Steps[set[int]]:
    """Return the groups with a place for all, however much of what searches see is gone by now.

    What searches do not see yet was let in by somebody whose claim is known until they do. A few places are
    counted as they are now in any case.
    """
    most = terms.policy.most
    if most <= _FEW:
        return set()
    wanted = Counter(group for _, group in joining)
    beside: dict[int, int] = {}
    for member, group in joining:
        numberless = sum(like.group is None for like in member.likes)
        beside[group] = max(beside.get(group, 0), numberless)
    groups = tuple(wanted)
    counted: list[int] = yield CountGroups(groups, most)
    return {
        group
        for group, there in zip(groups, counted, strict=True)
        if there + wanted[group] + beside[group] + len(claims[group]) <= most
    }


def _there(groups: tuple[int, ...], beside: set[str], terms: Terms) -> Steps[dict[str, VersionedDocument]]:
    """Read the documents of groups, as many as decide whether there is a place, and others beside."""
    most = terms.policy.most
    found: list[Sequence[str]] = yield FindGroups(groups, most + _SPARE)
    held = yield from held_by({id_ for ids in found for id_ in ids} | beside)
    short = tuple(
        group
        for group, ids in zip(groups, found, strict=True)
        if len(ids) == most + _SPARE
        and sum(terms.forms.group(held[id_].source) == group for id_ in ids if id_ in held) <= most
    )
    if short:
        found = yield FindGroups(short, _ALL)
        held |= yield from held_by(id_ for ids in found for id_ in ids)
    return held


class _Counted:
    """Counts who is in a group, members of the batch that were given a place before included."""

    def __init__(self, held: Mapping[str, VersionedDocument], terms: Terms) -> None:
        self._groups = {id_: terms.forms.group(one.source) for id_, one in held.items()}
        self._sizes = Counter(self._groups.values())
        self._most = terms.policy.most

    def place(self, member: Member, choice: Join, claims: Sequence[Intent]) -> Choice:
        """Return a member's choice, or what becomes of it where there may be no place."""
        own = self._groups.get(member.id) == choice.group
        # Those without a number came past every gate; they are copies all the same.
        beside = sum(like.group is None for like in member.likes if like.id not in self._groups)
        place = place_in_group(member, self._sizes[choice.group] - own + beside, claims, self._most)
        if isinstance(place, Stay):
            return place
        if place:
            self._sizes[choice.group] += not own
            return choice
        assert choice.like is not None
        return Refuse(choice.like, full=True)
