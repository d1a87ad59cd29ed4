"""What is to be done with a member, given what it resembles and who else is deciding: no store is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from shinglefold.groups.gate.protocol.member import Like, Member
from shinglefold.groups.gate.protocol.policy import Policy
from shinglefold.groups.gate.protocol.requests import Intent


class Stay(Enum):
    """A member is not decided now."""

    HOLD = "it comes first, and waits for the others to withdraw or to be decided"
    WITHDRAW = "another comes first: it takes its intent back and begins again"


@dataclass(frozen=True, slots=True)
class Refuse:
    """It resembles a stored document."""

    like: Like
    full: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """It becomes a document of a group that is there, or claims a place in one."""

    group: int
    like: Like | None = None


@dataclass(frozen=True, slots=True)
class Adopt:
    """It resembles documents of groups that may have lost their leader, or of none; the most alike first."""

    likes: tuple[Like, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """It resembles nothing: it founds a group of its own."""


@dataclass(frozen=True, slots=True)
class Keep:
    """It is in already with the same text, and others may have joined it: it stays as it is."""

    group: int | None
    leads: bool


Choice = Refuse | Join | Adopt | Found | Keep | Stay


def choose(member: Member, policy: Policy) -> Choice:
    """Return what is to be done with a member.

    A stored document decides whoever else is deciding. Without one nobody is let in who sees an open intent
    of a document it resembles.
    """
    if member.kept is not None:
        return Keep(*member.kept)
    likes = sorted(member.likes, key=lambda like: (-like.likeness, like.id))
    if policy.action == "refuse" and likes:
        return Refuse(likes[0])
    for like in likes:
        if like.leads and like.group is not None:
            return Join(like.group, like)
    if stay := among(member, member.pending):
        return stay
    return Adopt(tuple(likes)) if likes else Found()


def among(member: Member, others: Sequence[Intent]) -> Stay | None:
    """Return what a member does while others that concern it are undecided; None where there are none."""
    if any(other.order < member.order for other in others):
        return Stay.WITHDRAW
    return Stay.HOLD if others or member.waits else None


def place_in_group(member: Member, there: int, claims: Sequence[Intent], most: int) -> Stay | bool:
    """Return whether there is a place in a group for a member.

    Args:
        there: documents of the group.
        claims: open intents of others that claim a place.

    Returns:
        True or False, or what to do while it depends on the others.
    """
    if there >= most:
        return False
    if there + len(claims) < most:
        return True
    return Stay.WITHDRAW if any(other.order < member.order for other in claims) else Stay.HOLD
