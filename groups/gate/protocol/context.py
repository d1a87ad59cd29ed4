"""What decisions are made by: the rules, who compares, and what gates tell each other."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from shinglefold.groups.gate.protocol.intent_register import Register
from shinglefold.groups.gate.protocol.member import Alike, Member
from shinglefold.groups.gate.protocol.placeholders import Forms
from shinglefold.groups.gate.protocol.policy import Policy
from shinglefold.runtime.backoff import Backoff


class Judge(Protocol):
    """Compares documents."""

    def likenesses(self, pairs: Sequence[tuple[Member, Any]]) -> list[Alike | None]:
        """Return how alike members and sources of stored documents are; None where they do not match.

        It must not matter which of two is the member.
        """
        ...

    def possible(self, pairs: Sequence[tuple[Member, Any]]) -> list[bool]:
        """Return whether members and the prints of others may match: true wherever they do as documents.

        Nobody is refused by it: who may match is waited for, and then compared as a stored document.
        """
        ...

    def pairs(self, members: Sequence[Member]) -> Iterable[tuple[int, int]]:
        """Yield the pairs of members that match, by their places, the earlier one first."""
        ...

    def print(self, member: Member, /) -> Any:  # noqa: ANN401 - JSON
        """Return what others compare a member by, as a stored document has it."""
        ...


@dataclass(frozen=True, slots=True)
class Terms:
    """What a decision is made by.

    ``groups``: whether documents are given the number of their group. ``lease``: milliseconds after which
    others may clear an intent; ``patience``: after which a member gives up. ``again``: how often to begin
    again where the store is not there. ``attempts``: makes ids.
    ``glance``: documents read at first of those that a search found for a member.
    """

    policy: Policy
    judge: Judge
    forms: Forms
    attempts: Callable[[], str]
    register: Register
    groups: bool = True
    lease: int = 30_000
    patience: int = 90_000
    glance: int = 20
    again: Backoff = field(default_factory=Backoff)
