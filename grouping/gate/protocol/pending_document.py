"""Values of the protocol: a pending document, its verdict, the gate's fields, and the requests."""

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from shinglefold.contracts.engine import JSON, Guard, VersionedDocument
from shinglefold.documents import get, put, without_path
from shinglefold.model.stored_fingerprint import ATTEMPT, PENDING, stored_parts, without_fingerprint
from shinglefold.model.values import Fingerprint

if TYPE_CHECKING:
    from shinglefold.grouping.gate.protocol.intents import Intent

Result = TypeVar("Result")
#: The two indices: the user's own, and the index of intents.
Where = Literal["documents", "intents"]
#: Statuses of a write that was done, and of one whose guard did not hold.
DONE, CREATED, CONFLICT, MISSING = 200, 201, 409, 404
#: Why a document that is only to be created is not stored.
EXISTS = "a document with its id is stored already"
#: Why a document is not stored that does not arrive at the shard where its id was reserved.
REROUTED = "the index's own pipeline gives it another routing"
#: Parts of the fingerprint field: the number of the group, and whether the document is its leader.
GROUP, LEADER = "group", "leader"
#: The first character of a key that has a routing.
_MARK = "\0"
#: How many numbers a text may have. The second is used if another group has the first, and so on.
_CHOICES = 4
_BITS = 63


class Similarity(NamedTuple):
    """How similar two documents are.

    Attributes:
        likeness: by the measure of the policy, 0 to 1.
        similarity: the edit similarity of the texts, if these decided.
    """

    likeness: float
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class SimilarDocument:
    """A stored document that a pending document resembles, in the version that was read.

    Attributes:
        likeness, similarity: as in ``Similarity``.
        group: the number of its group, None if it has none.
        leads: whether it leads that group.
    """

    id: str
    likeness: float
    guard: Guard
    group: int | None = None
    leads: bool = False
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about a document: ``accepted``, ``refused`` because of ``like``, or ``failed``.

    Attributes:
        group: the number of its group, or of the group that is full.
        leads: whether it founded the group.
        replaced: whether it replaced a document with its id.
        stale: stored documents that it resembles, or of the group that it would join, whose fingerprint was
            made of another text. They decide nothing, and take no place.
    """

    status: Literal["accepted", "refused", "failed"]
    id: str
    group: int | None = None
    leads: bool = False
    like: SimilarDocument | None = None
    reason: str = ""
    replaced: bool = False
    stale: frozenset[str] = frozenset()

    def to_json(self) -> JSON:
        """Return the verdict as JSON, without empty values."""
        verdict: JSON = {"status": self.status, "_id": self.id}
        if self.group is not None:
            verdict |= {"group": self.group, "leader": self.leads}
        if self.like is not None:
            verdict["like"] = {"_id": self.like.id, "resemblance": round(self.like.likeness, 4)}
            if self.like.similarity is not None:
                verdict["like"]["similarity"] = round(self.like.similarity, 4)
        if self.replaced:
            verdict["replaced"] = True
        if self.stale:
            verdict["stale"] = len(self.stale)
        if self.reason:
            verdict["reason"] = self.reason
        return verdict


@dataclass(frozen=True, slots=True)
class SearchHits:
    """What a search found for a document.

    Attributes:
        ids: the ids of matching documents, leaders first, then the most similar.
        taken: the numbers of the document that a group has already.
        ungrouped: the ids of documents without a group number, if the size of groups is limited.
        truncated: whether there are more documents.
        ungrouped_beyond: whether some of these may have no number.
    """

    ids: tuple[str, ...] = ()
    taken: frozenset[int] = frozenset()
    ungrouped: frozenset[str] = frozenset()
    truncated: bool = False
    ungrouped_beyond: bool = False


@dataclass(slots=True, eq=False)
class PendingDocument:
    """A document of a batch that is being decided, and the state of its decision.

    Args:
        id: id and routing of the document, see ``document_key``.
        document: the source to store, with its fingerprint.
        print: the parts by which it is compared; the protocol does not read them.
        numbers: the numbers for a new group, in the order to try them.
        match_keys: two documents that match have one of them in common.
        create: whether it fails where a document with its id is stored.

    Attributes:
        started: when it began to wait; the longest wait goes first. A document that withdraws keeps it.
        until: when its lease expires.
        intent_id: the id of its intent.
        guard: the version under which it is stored; None while it has not reserved its id.
        changes: whether it changes a stored document.
        kept: group and leadership of the stored document, if it has the same text; both stay.
        claim: the group in which it claims a slot.
        intents: the intents of other writers whose documents may match.
        nominated: the ids of candidates that searches found, those most likely to decide first.
        related_ids: further ids to read: those of intents, and of others of its batch.
        likes: stored documents that match.
        stale: the ids of those whose fingerprint matches, or has the number of its group, but is of another
            text than they have.
        open_intents: the open ones among ``intents``.
        retried: whether the store failed once, so that the stored document may be this one.
        busy_reason: why the store was too busy to reserve its id or to store it.
        stored: the version as which it was stored, None if it was not.
        earlier_duplicates: positions of earlier, undecided documents of its batch that it resembles.
    """

    id: str
    document: Mapping[str, Any]
    print: Any
    numbers: tuple[int, ...] = ()
    match_keys: tuple[str, ...] = ()
    create: bool = False
    started: int = 0
    until: int = 0
    intent_id: str = ""
    guard: Guard | None = None
    changes: bool = False
    kept: tuple[int | None, bool] | None = None
    claim: int | None = None
    intents: "list[Intent]" = field(default_factory=list)
    search_hits: SearchHits = field(default_factory=SearchHits)
    nominated: list[str] = field(default_factory=list)
    related_ids: set[str] = field(default_factory=set)
    likes: list[SimilarDocument] = field(default_factory=list)
    stale: set[str] = field(default_factory=set)
    open_intents: "list[Intent]" = field(default_factory=list)
    retried: bool = False
    busy_reason: str = ""
    earlier_duplicates: set[int] = field(default_factory=set)
    verdict: Verdict | None = None
    stored: Guard | None = None

    @property
    def order(self) -> tuple[int, str]:
        """The key by which the earlier of two documents goes first."""
        return self.started, self.intent_id

    @property
    def number(self) -> int:
        """The number for a new group: the first one that no group has."""
        return next((one for one in self.numbers if one not in self.search_hits.taken), self.numbers[-1])

    @property
    def replaces(self) -> bool:
        """Whether it replaces another document with its id, not one that it stored itself before."""
        return self.changes and not (self.retried and self.kept is not None)

    def reset(self) -> None:
        """Begin again: forget the guard and the results of searches."""
        self.guard, self.intent_id, self.claim, self.changes = None, "", None, False
        self.intents, self.likes, self.open_intents, self.stale = [], [], [], set()
        self.search_hits, self.kept = SearchHits(), None


@dataclass(frozen=True, slots=True)
class Put:
    """Store a document: as a new one (``create``), under a guard, or over any version.

    ``skip_pipeline``: the document went through the index's own pipeline before.
    """

    where: Where
    id: str
    source: JSON
    guard: Guard | None = None
    create: bool = False
    skip_pipeline: bool = False

    def operation(self) -> JSON:
        """Return the operation and the document of a bulk action."""
        return {"_op_type": "create" if self.create else "index", "_source": self.source}


@dataclass(frozen=True, slots=True)
class Update:
    """Change parts of a stored document under a guard; an empty change makes a new version, too."""

    where: Where
    id: str
    parts: Mapping[str, Any]
    guard: Guard

    def operation(self) -> JSON:
        """Return the operation and the change of a bulk action."""
        return {"_op_type": "update", "doc": dict(self.parts)}


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a document, under a guard if there is one."""

    where: Where
    id: str
    guard: Guard | None = None

    def operation(self) -> JSON:
        """Return the operation of a bulk action."""
        return {"_op_type": "delete"}


Action = Put | Update | Delete


@dataclass(frozen=True, slots=True)
class Write:
    """Run actions; each is answered by its status and new guard.

    Actions on the index of intents run in order. Searches need not see any of them.
    """

    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class ReadDocuments:
    """Read the newest version of documents, visible to searches or not; None for a missing one.

    ``whole``: read all fields, not only those that decide.
    """

    ids: tuple[str, ...]
    where: Where = "documents"
    whole: bool = False


@dataclass(frozen=True, slots=True)
class FindDocuments:
    """Search the documents that match each pending document; answered by ``SearchHits`` for each.

    ``deep``: search for more documents than those that share most with the pending document.
    """

    documents: tuple[PendingDocument, ...]
    deep: bool = False


@dataclass(frozen=True, slots=True)
class FindGroups:
    """Search groups; answered by the ids of up to ``limit`` documents, or leaders, of each."""

    groups: tuple[int, ...]
    limit: int
    leaders: bool = False


@dataclass(frozen=True, slots=True)
class CountGroups:
    """Count the documents of groups that searches see, up to ``limit`` of each."""

    groups: tuple[int, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class Refresh:
    """Make every document written so far visible to searches."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait about this many milliseconds, with jitter, for other writers.

    ``alone``: other jobs of the same gate may not run meanwhile.
    """

    milliseconds: int
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Now:
    """Return the time in milliseconds since 1970."""


Request = Write | ReadDocuments | FindDocuments | FindGroups | CountGroups | Refresh | Pause | Now
#: A generator that yields requests, is sent their answers, and returns the result.
Steps = Generator[Request, Any, Result]


@dataclass(frozen=True, slots=True)
class GateFields:
    """Reads and writes the gate's parts of the fingerprint field, which may be a dotted path."""

    field: str

    def placeholder(self, until: int, intent_id: str) -> JSON:
        """Return the document that reserves an id; it has no fingerprint and no field of the user."""
        return put({}, self.field, {PENDING: until, ATTEMPT: intent_id})

    def expiry_of(self, source: Mapping[str, Any]) -> int | None:
        """Return when a placeholder expires; None for a document."""
        until = stored_parts(source, self.field).get(PENDING)
        return until if isinstance(until, int) else None

    def intent_id(self, source: Mapping[str, Any]) -> str | None:
        """Return the id of the intent that a placeholder belongs to; None for a document."""
        intent_id = stored_parts(source, self.field).get(ATTEMPT)
        return intent_id if isinstance(intent_id, str) else None

    def group(self, source: Mapping[str, Any]) -> int | None:
        """Return the number of a document's group, None if it has none."""
        number = stored_parts(source, self.field).get(GROUP)
        return number if isinstance(number, int) else None

    def leads(self, source: Mapping[str, Any]) -> bool:
        """Return whether a document leads its group."""
        return stored_parts(source, self.field).get(LEADER) is True

    def same_text(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Return whether two documents have the same canonical text."""
        digest = stored_parts(one, self.field).get("digest")
        return bool(digest) and digest == stored_parts(other, self.field).get("digest")

    def add_group(self, document: Mapping[str, Any], group: int | None, leads: bool) -> JSON:
        """Return a document with its group, the fingerprint field in its usual form."""
        if group is None:
            return dict(document)
        parts = {**stored_parts(document, self.field), GROUP: group, LEADER: leads}
        return put(without_fingerprint(document, self.field), self.field, parts)

    def leader(self, group: int) -> JSON:
        """Return the partial update that makes a document lead a group, see ``has_other_form``."""
        return put({}, self.field, {GROUP: group, LEADER: True})

    def has_other_form(self, source: Mapping[str, Any]) -> bool:
        """Return whether the field also, or only, has a form that no partial update can change.

        Such forms are ``{"_dedup.digest": …}`` and lists. An update would keep the values of both forms, or
        replace the list.
        """
        if not source or (source.keys() == {self.field} and type(source[self.field]) is dict):
            return False
        usual = isinstance(get(source, self.field), Mapping)
        return not usual or without_fingerprint(source, self.field) != without_path(source, self.field)


def guard_revocation(held: VersionedDocument, gate_fields: GateFields) -> Action:
    """Return the action that revokes the guard of an open intent, so that nothing is stored under it.

    A placeholder is deleted. A document that was to be changed gets a new version.
    """
    if gate_fields.expiry_of(held.source) is not None:
        return Delete("documents", held.id, held.guard)
    return Update("documents", held.id, {}, held.guard)


def document_key(id_: str, routing: str | None = None) -> str:
    """Return id and routing as one key: the id itself if there is no routing.

    An id is unique only under its routing, and a document can be read and written only by both.
    """
    if not routing and not id_.startswith(_MARK):
        return id_
    return f"{_MARK}{len(id_)}:{id_}{routing or ''}"


def id_and_routing(key: str) -> tuple[str, str | None]:
    """Return the id and the routing of a key."""
    if not key.startswith(_MARK):
        return key, None
    length, _, rest = key[len(_MARK) :].partition(":")
    return rest[: int(length)], rest[int(length) :] or None


def numbers_of(
    fingerprint: Fingerprint,
    scope: Sequence[Sequence[Any]],
    index: str,
    id_: str,
    routing: str | None = None,
) -> tuple[int, ...]:
    """Return the numbers with which a document may found a group, in the order to try them.

    Equal texts of equal scope have equal numbers, so that indexing again changes none. A document without a
    text or without a value in the scope matches no other: it has one number, from its index, id and routing.

    Args:
        scope: the values of each scope field.
    """
    scoped = all(scope)
    digest = fingerprint.digest if scoped else ""
    values = [str(value) for value in scope] if scoped else []
    own = f"\0{index}\0{id_}" if routing is None else f"\0{index}\0{id_}\0{routing}"
    name = repr((fingerprint.scheme, digest or own, values))
    return tuple(_number(name, choice) for choice in range(_CHOICES if digest else 1))


def _number(name: str, choice: int) -> int:
    hash_ = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, salt=choice.to_bytes(1, "big"))
    return int.from_bytes(hash_.digest(), "big") >> (64 - _BITS)


def now() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
