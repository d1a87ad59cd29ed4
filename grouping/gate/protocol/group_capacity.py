"""Places in groups under ``cap``: a batch publishes its claims first, and counts the documents after that."""

from collections import Counter
from collections.abc import Mapping, Sequence

from shinglefold.contracts.engine import VersionedDocument
from shinglefold.grouping.gate.protocol.context import DecisionContext
from shinglefold.grouping.gate.protocol.decisions import Choice, JoinGroup, Refuse, Stay, place_in_group
from shinglefold.grouping.gate.protocol.member import Intent, Member
from shinglefold.grouping.gate.protocol.placeholders import closing, is_open
from shinglefold.grouping.gate.protocol.requests import CountGroups, FindGroups, Now, Steps, Write
from shinglefold.grouping.gate.protocol.reserve import read_documents

#: Documents read of a group beyond its places, because some that a search finds may have left it since.
_SPARE = 20
_ALL = 9_999
#: Groups of at most so many places are read at once, without being counted.
_FEW = 50


def claim_places(
    members: Sequence[Member], choices: Sequence[Choice], context: DecisionContext
) -> Steps[list[Choice]]:
    """Return the choices; a member that would join a group is refused where that is full, or waits."""
    joining = {place: choice for place, choice in enumerate(choices) if isinstance(choice, JoinGroup)}
    if not joining:
        return list(choices)
    yield from _claim([(members[place], choice.group) for place, choice in joining.items()], context)
    groups = tuple(sorted({choice.group for choice in joining.values()}))
    own = {member.intent_id for member in members}
    claims = {
        group: [one for one in context.register.known.claiming(group) if one.intent_id not in own]
        for group in groups
    }
    wanted = [(members[place], choice.group) for place, choice in joining.items()]
    roomy = yield from _roomy(wanted, claims, context)
    joining = {place: choice for place, choice in joining.items() if choice.group not in roomy}
    if not joining:
        return list(choices)
    groups = tuple(group for group in groups if group not in roomy)
    likes = {choice.like.id for choice in joining.values() if choice.like is not None}
    held = yield from _there(
        groups, likes | {one.document for each in claims.values() for one in each}, context
    )
    now = yield Now()
    left = context.register.known.withdrawn
    open_ = {
        group: [
            one
            for one in each
            if one.intent_id not in left and is_open(one, held.get(one.document), context.gate_fields)
        ]
        for group, each in claims.items()
    }
    dead = {one.document for each in open_.values() for one in each if one.until < now}
    if dead:
        yield Write(tuple(closing(held[id_], context.gate_fields) for id_ in sorted(dead)))
    counted = _Counted(held, context)
    told = list(choices)
    for place, choice in joining.items():
        told[place] = (
            Stay.WAIT
            if any(one.document in dead for one in open_[choice.group])
            else counted.place(members[place], choice, open_[choice.group])
        )
    return told


def _claim(joining: Sequence[tuple[Member, int]], context: DecisionContext) -> Steps[None]:
    new = [(member.intent_id, group) for member, group in joining if member.claim != group]
    for member, group in joining:
        member.claim = group
    if new:
        yield from context.register.claim(new)
    yield from context.register.look()


def _roomy(
    joining: Sequence[tuple[Member, int]], claims: Mapping[int, Sequence[Intent]], context: DecisionContext
) -> Steps[set[int]]:
    """Return the groups with a place for all, even if every document that searches see still exists.

    A document that searches don't see yet has a claim that is known until they do. Groups of few places are
    never counted by searches.
    """
    most = context.policy.most
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


def _there(
    groups: tuple[int, ...], beside: set[str], context: DecisionContext
) -> Steps[dict[str, VersionedDocument]]:
    """Read as many documents of groups as decide whether they are full, and some further documents."""
    most = context.policy.most
    found: list[Sequence[str]] = yield FindGroups(groups, most + _SPARE)
    held = yield from read_documents({id_ for ids in found for id_ in ids} | beside)
    short = tuple(
        group
        for group, ids in zip(groups, found, strict=True)
        if len(ids) == most + _SPARE
        and sum(context.gate_fields.group(held[id_].source) == group for id_ in ids if id_ in held) <= most
    )
    if short:
        found = yield FindGroups(short, _ALL)
        held |= yield from read_documents(id_ for ids in found for id_ in ids)
    return held


class _Counted:
    """Counts the documents of groups, earlier members of the batch included."""

    def __init__(self, held: Mapping[str, VersionedDocument], context: DecisionContext) -> None:
        self._groups = {id_: context.gate_fields.group(one.source) for id_, one in held.items()}
        self._sizes = Counter(self._groups.values())
        self._most = context.policy.most

    def place(self, member: Member, choice: JoinGroup, claims: Sequence[Intent]) -> Choice:
        """Return a member's choice, a refusal where the group is full, or whether it waits or withdraws."""
        own = self._groups.get(member.id) == choice.group
        # Documents without a number were written past every gate; they are copies all the same.
        beside = sum(like.group is None for like in member.likes if like.id not in self._groups)
        place = place_in_group(member, self._sizes[choice.group] - own + beside, claims, self._most)
        if isinstance(place, Stay):
            return place
        if place:
            self._sizes[choice.group] += not own
            return choice
        assert choice.like is not None
        return Refuse(choice.like, full=True)
