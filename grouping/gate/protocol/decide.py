"""Pure decisions: what to do with a member, given what it resembles and which intents are open."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from shinglefold.contracts.engine import VersionedDocument
from shinglefold.grouping.gate.protocol.context import DecisionContext
from shinglefold.grouping.gate.protocol.intents import Intent
from shinglefold.grouping.gate.protocol.member import (
    DONE,
    Action,
    CountGroups,
    FindGroups,
    Member,
    Now,
    Put,
    ReadDocuments,
    Refresh,
    SimilarDocument,
    Steps,
    Update,
    Write,
)
from shinglefold.grouping.gate.protocol.placeholders import GateFields, guard_revocation, is_open
from shinglefold.grouping.gate.protocol.reserve import read_documents
from shinglefold.grouping.rules import Policy


class Stay(Enum):
    """The member is not decided now."""

    WAIT = "it goes first, and waits until the others have withdrawn or are decided"
    WITHDRAW = "another goes first: it withdraws its intent and begins again"


@dataclass(frozen=True, slots=True)
class Refuse:
    """It resembles a stored document."""

    like: SimilarDocument
    full: bool = False


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """It joins a group, or claims a place in one."""

    group: int
    like: SimilarDocument | None = None


@dataclass(frozen=True, slots=True)
class Adopt:
    """It resembles documents whose groups may have lost their leader, or that have none; most alike first."""

    likes: tuple[SimilarDocument, ...]


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """It resembles nothing: it founds a group of its own."""


@dataclass(frozen=True, slots=True)
class Keep:
    """It is stored already with the same text, and others may have joined it: its group stays."""

    group: int | None
    leads: bool


Choice = Refuse | JoinGroup | Adopt | FoundGroup | Keep | Stay


def choose(member: Member, policy: Policy) -> Choice:
    """Return what to do with a member.

    A matching stored document decides at once. Without one, an open intent of a matching document makes the
    member wait or withdraw.
    """
    if member.kept is not None:
        return Keep(*member.kept)
    likes = sorted(member.likes, key=lambda like: (-like.likeness, like.id))
    if policy.action == "refuse" and likes:
        return Refuse(likes[0])
    for like in likes:
        if like.leads and like.group is not None:
            return JoinGroup(like.group, like)
    if stay := among(member, member.pending):
        return stay
    return Adopt(tuple(likes)) if likes else FoundGroup()


def among(member: Member, others: Sequence[Intent]) -> Stay | None:
    """Return whether a member waits or withdraws while matching intents are open; None where none is."""
    if any(other.order < member.order for other in others):
        return Stay.WITHDRAW
    return Stay.WAIT if others or member.earlier_duplicates else None


def place_in_group(member: Member, there: int, claims: Sequence[Intent], most: int) -> Stay | bool:
    """Return whether a group has a place for a member.

    Args:
        there: how many documents the group has.
        claims: open intents of others that claim a place.

    Returns:
        True or False, or whether to wait or withdraw while that depends on the others.
    """
    if there >= most:
        return False
    if there + len(claims) < most:
        return True
    return Stay.WITHDRAW if any(other.order < member.order for other in claims) else Stay.WAIT


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
        yield Write(tuple(guard_revocation(held[id_], context.gate_fields) for id_ in sorted(dead)))
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


def choices_of(members: Sequence[Member], context: DecisionContext) -> Steps[list[Choice]]:
    """Return what to do with members, reading their groups where the choice depends on them."""
    choices: list[Choice] = []
    for member in members:
        choice = choose(member, context.policy)
        if isinstance(choice, Adopt):
            choice = yield from _adopted(member, choice, context)
        choices.append(choice)
    if context.policy.action == "cap":
        return (yield from claim_places(members, choices, context))
    return choices


def _adopted(member: Member, choice: Adopt, context: DecisionContext) -> Steps[Choice]:
    """Join the first group without a leader; its most similar document leads it from now on.

    Where no group has lost its leader, the most similar document without a number leads a new group.
    """
    yield Refresh()
    groups = dict.fromkeys(like.group for like in choice.likes if like.group is not None)
    for group in groups:
        (found,) = yield FindGroups((group,), 10, leaders=True)
        # A document that is being changed does not lead its old group any more.
        held = yield from read_documents(set(found) - {member.id})
        if any(_is_leader(one, group, context.gate_fields) for one in held.values()):
            continue
        heir = next(like for like in choice.likes if like.group == group)
        return (yield from _make_leader(heir, group, context))
    for heir in choice.likes:
        if heir.group is None:
            return (yield from _make_leader(heir, member.number, context))
    return FoundGroup()


def _make_leader(heir: SimilarDocument, group: int, context: DecisionContext) -> Steps[Choice]:
    """Make a stored document the leader and join its group; wait where the document has changed since."""
    held: VersionedDocument | None
    (held,) = yield ReadDocuments((heir.id,), whole=True)
    if held is None or held.guard != heir.guard:
        return Stay.WAIT
    (written,) = yield Write((_leading(held, group, context.gate_fields),))
    return JoinGroup(group, heir) if written.status == DONE else Stay.WAIT


def _leading(held: VersionedDocument, group: int, gate_fields: GateFields) -> Action:
    if gate_fields.stands_elsewhere(held.source):
        whole = gate_fields.stamped(held.source, group, leads=True)
        return Put("documents", held.id, whole, held.guard, skip_pipeline=True)
    return Update("documents", held.id, gate_fields.leader(group), held.guard)


def _is_leader(held: VersionedDocument, group: int, gate_fields: GateFields) -> bool:
    return gate_fields.leads(held.source) and gate_fields.group(held.source) == group
