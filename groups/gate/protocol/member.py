"""A document on its way through the gate, and what becomes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from shinglefold.contracts.engine import JSON, Guard
from shinglefold.groups.gate.protocol.requests import Intent, Seen


class Alike(NamedTuple):
    """How alike two documents are; ``similarity``: that of their words, where texts decided."""

    likeness: float
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Like:
    """A stored document that a member resembles, as it is at this moment.

    ``likeness``: the measure of the policy, 0 to 1. ``group``: its number, None where it has none; ``leads``:
    whether it leads that group. ``similarity``: the edit similarity of the texts, where these decided.
    """

    id: str
    likeness: float
    guard: Guard
    group: int | None = None
    leads: bool = False
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a document: ``accepted``, ``refused`` because of ``like``, or ``failed`` and why.

    ``group``: the number it has, or that of the group that is full. ``leads``: it founded the group.
    ``full``: it was refused for want of a place in the group. ``replaced``: it took the place of a document
    with its id.
    """

    status: Literal["accepted", "refused", "failed"]
    id: str
    group: int | None = None
    leads: bool = False
    like: Like | None = None
    full: bool = False
    reason: str = ""
    replaced: bool = False

    def to_json(self) -> JSON:
        """Return the verdict as JSON, without what there is nothing to say of."""
        told: JSON = {"status": self.status, "_id": self.id}
        if self.group is not None:
            told |= {"group": self.group, "leader": self.leads}
        if self.like is not None:
            told["like"] = {"_id": self.like.id, "resemblance": round(self.like.likeness, 4)}
            if self.like.similarity is not None:
                told["like"]["similarity"] = round(self.like.similarity, 4)
        if self.replaced:
            told["replaced"] = True
        return told | ({"reason": self.reason} if self.reason else {})


@dataclass(slots=True, eq=False)
class Member:
    """A document of a batch and how far it is.

    Args:
        id: of the document.
        document: what is to be stored, with its fingerprint.
        print: what it is compared by; the protocol hands it on only.
        numbers: for its own group, in the order they are to be tried.
        words: two members that match have one in common.

    Attributes:
        started: since when it wants in: who waited longest goes first, and keeps its turn when it withdraws.
        attempt: the id of its intent.
        guard: the version of the document that it is decided on; None while it has none.
        changes: whether a document of this id is there already.
        nominated: documents that searches found, those first that are the likeliest to decide.
        known: further documents that concern it: of intents, and of members of its batch.
        kept: group and leadership of the document that is there, where it has the same text: it stays so.
        claim: the group it claims a place in.
        retried: whether the store failed once, so that what is there with its id may be itself.
        turned_away: why the store would not take its place just now.
        waits: earlier members of its batch that it resembles and that are undecided.
    """

    id: str
    document: Mapping[str, Any]
    print: Any
    numbers: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    started: int = 0
    until: int = 0
    attempt: str = ""
    guard: Guard | None = None
    changes: bool = False
    kept: tuple[int | None, bool] | None = None
    claim: int | None = None
    intents: list[Intent] = field(default_factory=list)
    seen: Seen = field(default_factory=Seen)
    nominated: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    likes: list[Like] = field(default_factory=list)
    pending: list[Intent] = field(default_factory=list)
    retried: bool = False
    turned_away: str = ""
    waits: set[int] = field(default_factory=set)
    verdict: Verdict | None = None

    @property
    def order(self) -> tuple[int, str]:
        """Return what tells who of two comes first."""
        return self.started, self.attempt

    @property
    def number(self) -> int:
        """Return the number of a group of its own: the first that is not taken."""
        return next((one for one in self.numbers if one not in self.seen.taken), self.numbers[-1])

    @property
    def replaces(self) -> bool:
        """Return whether it takes the place of a document with its id that was not itself."""
        return self.changes and not (self.retried and self.kept is not None)

    def reset(self) -> None:
        """Forget what was found, to begin again."""
        self.guard, self.attempt, self.claim, self.changes = None, "", None, False
        self.intents, self.likes, self.pending = [], [], []
        self.seen, self.kept = Seen(), None
