"""What the protocol asks of a store, and what it is answered: nothing here knows of engines."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from shinglefold.contracts.engine import JSON, Guard, VersionedDocument

if TYPE_CHECKING:
    from shinglefold.groups.gate.protocol.member import Member

Result = TypeVar("Result")
#: The two indices: the user's own, and that of intents beside it.
Where = Literal["documents", "intents"]
#: What a write answers that was not guarded, or whose guard held; and one whose guard did not.
DONE, CREATED, CONFLICT, MISSING = 200, 201, 409, 404

#: The store has too much to do; it was not done.
BUSY = (429, 503)


@dataclass(frozen=True, slots=True)
class Put:
    """Store a document: as a new one (``create``), under a guard, or whatever there is.

    ``again``: it went through the index's own pipeline when it came.
    """

    where: Where
    id: str
    source: JSON
    guard: Guard | None = None
    create: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """Change parts of a stored document under a guard; no parts at all still make it another version."""

    where: Where
    id: str
    parts: Mapping[str, Any]
    guard: Guard


@dataclass(frozen=True, slots=True)
class Drop:
    """Delete a document, under a guard where one is given."""

    where: Where
    id: str
    guard: Guard | None = None


Action = Put | Merge | Drop


@dataclass(frozen=True, slots=True)
class Write:
    """Run actions; each is answered by status and new guard.

    Those on one of the two indices are run in their order; searches need not see any of them.
    """

    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """Read documents as they are now, visible to searches or not; None for one that is gone.

    ``whole``: all fields of them, not only those that decide.
    """

    ids: tuple[str, ...]
    where: Where = "documents"
    whole: bool = False


@dataclass(frozen=True, slots=True)
class FindDocuments:
    """Search the documents that match each member; answered with ``Seen`` a member.

    ``far``: beyond those that share most with it.
    """

    members: "tuple[Member, ...]"
    far: bool = False


@dataclass(frozen=True, slots=True)
class FindGroups:
    """Search groups; answered with the ids of ``most`` documents of each. ``leaders``: that lead it."""

    groups: tuple[int, ...]
    most: int
    leaders: bool = False


@dataclass(frozen=True, slots=True)
class CountGroups:
    """Count the documents of groups that searches see; ``most`` stands for more, too."""

    groups: tuple[int, ...]
    most: int


@dataclass(frozen=True, slots=True)
class Refresh:
    """Make every document written so far visible to searches."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait about so many milliseconds, by chance more or less, for others to go on.

    ``alone``: what the same gate decides beside may not go on meanwhile.
    """

    milliseconds: int
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Now:
    """Tell the time, in milliseconds."""


Request = Write | Read | FindDocuments | FindGroups | CountGroups | Refresh | Pause | Now
#: Yields requests, is sent their answers, returns the result.
Steps = Generator[Request, Any, Result]


@dataclass(frozen=True, slots=True)
class Intent:
    """Somebody is deciding about a document, or has decided, and searches need not see it yet.

    ``guard``: the version of the document that is changed; None where the attempt keeps the place of a new
    one. As long as the document has it the decision is open. ``order``: of two that match, who comes first.
    ``until``: when others may clear it. ``words``: two that match have one in common. ``print``: what
    it is compared by.
    """

    attempt: str
    document: str
    guard: Guard | None
    order: tuple[int, str]
    until: int
    words: tuple[str, ...] = ()
    print: Any = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What a search of the documents found for a member: matching ones, and group numbers that are taken.

    ``ids``: leaders first, then the most alike. ``numberless``: of these, where places are counted. ``cut``:
    whether there are more. ``uncounted``: whether some of these may be without a number.
    """

    ids: tuple[str, ...] = ()
    taken: frozenset[int] = frozenset()
    numberless: frozenset[str] = frozenset()
    cut: bool = False
    uncounted: bool = False


__all__ = ["Guard", "VersionedDocument"]
