"""What the protocol asks of a store, and what it is answered: nothing here knows of engines."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from shinglefold.contracts import JSON, Guard, Held

if TYPE_CHECKING:
    from shinglefold.groups.gate.member import Member

Result = TypeVar("Result")
#: The two indices: the user's own, and that of intents beside it.
Where = Literal["documents", "intents"]
#: What a write answers that was not guarded, or whose guard held; and one whose guard did not.
DONE, CONFLICT, MISSING = 200, 409, 404


@dataclass(frozen=True, slots=True)
class Put:
    """Store a document: as a new one (``create``), under a guard, or whatever there is."""

    where: Where
    id: str
    source: JSON
    guard: Guard | None = None
    create: bool = False


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
    """Run actions; each is answered by status and new guard. ``refresh`` makes them visible before that."""

    actions: tuple[Action, ...]
    refresh: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """Read documents as they are now, visible to searches or not; None for one that is gone."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FindIntents:
    """Search the intents that match each member; answered with a list of ``Intent`` a member."""

    members: "tuple[Member, ...]"


@dataclass(frozen=True, slots=True)
class FindDocuments:
    """Search the documents that match each member; answered with ``Seen`` a member."""

    members: "tuple[Member, ...]"


@dataclass(frozen=True, slots=True)
class FindGroup:
    """Search a group: the intents that claim a place in it, and the ids of its documents.

    ``leaders``: only documents that lead it.
    """

    group: int
    most: int
    leaders: bool = False


@dataclass(frozen=True, slots=True)
class Refresh:
    """Make every document written so far visible to searches."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait about so many milliseconds, by chance more or less, for others to go on."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Now:
    """Tell the time, in milliseconds."""


Request = Write | Read | FindIntents | FindDocuments | FindGroup | Refresh | Pause | Now
#: Yields requests, is sent their answers, returns the result.
Steps = Generator[Request, Any, Result]


@dataclass(frozen=True, slots=True)
class Intent:
    """Somebody is deciding about a document.

    ``guard`` is the version of the document that it is decided on: as long as the document has it, the
    decision is open. ``order``: of two that match, who comes first. ``until``: when others may clear it.
    """

    attempt: str
    document: str
    guard: Guard
    order: tuple[int, str]
    until: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What a search of the documents found for a member: matching ones, and group numbers that are taken."""

    ids: tuple[str, ...] = ()
    taken: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Group:
    """What a search found of a group."""

    claims: tuple[Intent, ...] = ()
    ids: tuple[str, ...] = field(default=())


__all__ = ["Guard", "Held"]
