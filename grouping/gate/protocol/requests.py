"""The requests of the protocol to a store, and their answers, independent of any engine."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from shinglefold.contracts.engine import JSON, Guard
from shinglefold.grouping.gate.protocol.member import Member

Result = TypeVar("Result")
#: The two indices: the user's own, and the index of intents beside it.
Where = Literal["documents", "intents"]
#: Statuses of a write that was done, and of one whose guard did not hold.
DONE, CREATED, CONFLICT, MISSING = 200, 201, 409, 404

#: Statuses of a store that is too busy: nothing was done.
BUSY = (429, 503)


@dataclass(frozen=True, slots=True)
class Put:
    """Store a document: as a new one (``create``), under a guard, or over any version.

    ``skip_pipeline``: it went through the index's own pipeline before.
    """

    where: Where
    id: str
    source: JSON
    guard: Guard | None = None
    create: bool = False
    skip_pipeline: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """Change parts of a stored document under a guard; an empty change makes a new version, too."""

    where: Where
    id: str
    parts: Mapping[str, Any]
    guard: Guard


@dataclass(frozen=True, slots=True)
class DropPlaceholder:
    """Delete a document, under a guard where there is one."""

    where: Where
    id: str
    guard: Guard | None = None


Action = Put | Merge | DropPlaceholder


@dataclass(frozen=True, slots=True)
class Write:
    """Run actions; each is answered by its status and new guard.

    Actions on the index of intents run in order. Searches need not see any of them.
    """

    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class ReadDocuments:
    """Read documents as they are now, visible to searches or not; None for one that is gone.

    ``whole``: with all fields, not only those that decide.
    """

    ids: tuple[str, ...]
    where: Where = "documents"
    whole: bool = False


@dataclass(frozen=True, slots=True)
class FindDocuments:
    """Search the documents that match each member; answered by ``SearchHits`` for each.

    ``far``: also those beyond the ones that share most with it.
    """

    members: tuple[Member, ...]
    far: bool = False


@dataclass(frozen=True, slots=True)
class FindGroups:
    """Search groups; answered by the ids of up to ``most`` documents, or leaders, of each."""

    groups: tuple[int, ...]
    most: int
    leaders: bool = False


@dataclass(frozen=True, slots=True)
class CountGroups:
    """Count the documents of groups that searches see, up to ``most``."""

    groups: tuple[int, ...]
    most: int


@dataclass(frozen=True, slots=True)
class Refresh:
    """Make every document written so far visible to searches."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait about so many milliseconds, with jitter, for other writers.

    ``alone``: other jobs of the same gate may not go on meanwhile.
    """

    milliseconds: int
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Now:
    """Return the time in milliseconds since 1970."""


Request = Write | ReadDocuments | FindDocuments | FindGroups | CountGroups | Refresh | Pause | Now
#: Yields requests, is sent their answers, returns the result.
Steps = Generator[Request, Any, Result]
