"""Pure decisions: what to do with a member, given what it resembles and which intents are open."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from shinglefold.grouping.gate.protocol.member import Intent, Like, Member
from shinglefold.grouping.rules import Policy


class Stay(Enum):
    """The member is not decided now."""

    WAIT = "it goes first, and waits until the others have withdrawn or are decided"
    WITHDRAW = "another goes first: it withdraws its intent and begins again"


@dataclass(frozen=True, slots=True)
class Refuse:
    """It resembles a stored document."""

    like: Like
    full: bool = False


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """It joins a group, or claims a place in one."""

    group: int
    like: Like | None = None


@dataclass(frozen=True, slots=True)
class Adopt:
    """It resembles documents whose groups may have lost their leader, or that have none; most alike first."""

    likes: tuple[Like, ...]


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
