"""Intents, and steps 1 and 2 of the protocol: reserve the id, publish the intent, then search; withdraw.

Records by which gates publish intents, what a gate knows of them, and the register of a gate without others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from shinglefold.contracts.engine import JSON, Guard, VersionedDocument, WriteResult
from shinglefold.errors import EngineUnavailable
from shinglefold.grouping.gate.protocol.member import (
    BUSY,
    CONFLICT,
    CREATED,
    DONE,
    EXISTS,
    Action,
    Delete,
    FindDocuments,
    Member,
    Now,
    Put,
    ReadDocuments,
    Steps,
    Verdict,
    Write,
    guard_revocation,
)

if TYPE_CHECKING:
    from shinglefold.grouping.gate.protocol.context import DecisionContext

#: The id of the document that lists the names of all writer records.
WRITERS = "writers"


@dataclass(frozen=True, slots=True)
class Intent:
    """The announcement that a writer decides about a document, kept until searches see the result.

    An intent is open as long as its document has the guard.

    Attributes:
        document: id and routing of the document, see ``document_key``.
        guard: the version of the document that is changed; None if a placeholder reserves the id of a new
            one.
        order: of two documents that match, the one with the lower order goes first.
        until: when the lease expires, so that others may clear it.
        match_keys: two documents that match have one of them in common.
        print: the parts by which the document is compared.
    """

    intent_id: str
    document: str
    guard: Guard | None
    order: tuple[int, str]
    until: int
    match_keys: tuple[str, ...] = ()
    print: Any = None

    def to_json(self) -> JSON:
        """Return the intent as it is stored."""
        stored: JSON = {
            "attempt": self.intent_id,
            "document": self.document,
            "started": self.order[0],
            "until": self.until,
            "words": list(self.match_keys),
            "print": self.print,
        }
        if self.guard is not None:
            stored["guard"] = [self.guard.seq_no, self.guard.primary_term]
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Intent":
        """Read a stored intent."""
        return cls(
            stored["attempt"],
            stored["document"],
            Guard(*stored["guard"]) if stored.get("guard") else None,
            (stored["started"], stored["attempt"]),
            stored["until"],
            tuple(stored["words"]),
            stored["print"],
        )


def batch_json(intents: Sequence[Intent]) -> JSON:
    """Return a batch of intents as it is stored."""
    return {"intents": [intent.to_json() for intent in intents]}


def batch_from_json(stored: Mapping[str, Any]) -> tuple[Intent, ...]:
    """Read a stored batch of intents."""
    return tuple(map(Intent.from_json, stored["intents"]))


@dataclass(frozen=True, slots=True)
class WriterRecord:
    """The record of one gate, small, because every gate reads it before each decision.

    Attributes:
        until: when others may clear it.
        batches: ids of its batches of intents, each written at once and never changed.
        withdrawn: ids of intents that were given up.
        claims: pairs of an intent id and the group in which the intent claims a slot.
        closed: another gate is clearing it, so that its own gate does not write it any more.
    """

    until: int = 0
    batches: tuple[str, ...] = ()
    withdrawn: frozenset[str] = frozenset()
    claims: tuple[tuple[str, int], ...] = ()
    closed: bool = False

    def to_json(self) -> JSON:
        """Return the record as it is stored."""
        stored: JSON = {"until": self.until, "rounds": list(self.batches)}
        if self.withdrawn:
            stored["left"] = sorted(self.withdrawn)
        if self.closed:
            stored["closed"] = True
        if self.claims:
            stored["claims"] = dict(self.claims)
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "WriterRecord":
        """Read a stored record."""
        return cls(
            stored["until"],
            tuple(stored["rounds"]),
            frozenset(stored.get("left", ())),
            tuple(sorted((stored.get("claims") or {}).items())),
            stored.get("closed", False),
        )


@dataclass(slots=True)
class KnownIntents:
    """Intents, open or decided, whose documents searches may not see yet, by their match keys.

    Attributes:
        withdrawn: ids of intents that were given up.
        claims: the group in which an intent claims a slot, by intent id.
    """

    withdrawn: set[str] = field(default_factory=set)
    claims: dict[str, int] = field(default_factory=dict)
    _intents: dict[str, Intent] = field(default_factory=dict)
    #: The ids of intents by match key; most keys have one.
    _ids: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: How many batches each intent is in.
    _batches: Counter[str] = field(default_factory=Counter)

    def add(self, intents: Iterable[Intent]) -> None:
        """Add the intents of a batch."""
        for intent in intents:
            id_ = intent.intent_id
            self._batches[id_] += 1
            self._intents[id_] = intent
            if self._batches[id_] == 1:
                for key in dict.fromkeys(intent.match_keys):
                    self._ids[key] = (*self._ids.get(key, ()), id_)

    def remove(self, intents: Iterable[Intent]) -> None:
        """Remove the intents of a batch, unless another batch has them, too."""
        for intent in intents:
            id_ = intent.intent_id
            self._batches[id_] -= 1
            if self._batches[id_]:
                continue
            del self._batches[id_], self._intents[id_]
            self.withdrawn.discard(id_)
            self.claims.pop(id_, None)
            for key in dict.fromkeys(intent.match_keys):
                if others := tuple(other for other in self._ids.pop(key) if other != id_):
                    self._ids[key] = others

    def sharing(self, keys: Sequence[str]) -> list[Intent]:
        """Return the intents that have one of these match keys, in the order of their ids."""
        ids = {id_ for key in keys for id_ in self._ids.get(key, ())}
        return [self._intents[id_] for id_ in sorted(ids)]

    def claiming(self, group: int) -> list[Intent]:
        """Return the intents that claim a slot in a group, in the order of their ids."""
        return [
            self._intents[id_]
            for id_, claimed in sorted(self.claims.items())
            if claimed == group and id_ in self._intents
        ]


@dataclass(slots=True)
class NullRegister:
    """The register of a gate that is the only writer: it publishes nothing."""

    known: KnownIntents = field(default_factory=KnownIntents)

    def publish(self, actions: Sequence[Action], intents: Sequence[Intent]) -> Steps[list[WriteResult]]:
        """Run actions."""
        return (yield Write(tuple(actions))) if actions else []

    def look(self) -> Steps[None]:
        """Do nothing."""
        yield from ()

    def withdraw(self, actions: Sequence[Action], intent_ids: Sequence[str]) -> Steps[list[WriteResult]]:
        """Run actions."""
        return (yield Write(tuple(actions))) if actions else []

    def claim(self, claims: Sequence[tuple[str, int]]) -> Steps[None]:
        """Do nothing."""
        yield from ()

    def settle(self, intent_ids: Iterable[str]) -> None:
        """Do nothing."""


def reserve(members: Sequence[Member], context: "DecisionContext") -> Steps[None]:
    """Reserve ids and publish intents; a member whose id another writer has reserved has no guard."""
    outside = [member for member in members if member.guard is None]
    now = yield Now()
    for member in outside:
        member.until, member.intent_id = now + context.lease, context.new_intent_id()
    puts = [
        Put(
            "documents",
            member.id,
            context.gate_fields.placeholder(member.until, member.intent_id),
            create=True,
        )
        for member in outside
    ]
    intents = [_intent(member, context) for member in outside]
    results = yield from context.register.publish(puts, intents)
    taken: list[Member] = []
    for member, written in zip(outside, results, strict=True):
        member.busy_reason = ""
        if written.status in (DONE, CREATED):
            member.guard = written.guard
        elif written.status == CONFLICT:
            taken.append(member)
        else:
            _drop_intent(member, context)
            if written.status in BUSY:
                member.busy_reason = written.reason
            else:
                member.verdict = Verdict("failed", member.id, reason=written.reason)
    if taken:
        yield from _take_over(taken, now, context)


def look(members: Sequence[Member], context: "DecisionContext") -> Steps[None]:
    """Read the intents of others, then search: a document stored in between is found as one of the two."""
    yield from context.register.look()
    hits = yield FindDocuments(tuple(members))
    own = {member.intent_id for member in members}
    nominated = [
        [one for one in context.register.known.sharing(member.match_keys) if one.intent_id not in own]
        for member in members
    ]
    pairs = [
        (member, intent.print)
        for member, intents in zip(members, nominated, strict=True)
        for intent in intents
    ]
    possible = iter(context.judge.possible(pairs))
    for member, intents, found in zip(members, nominated, hits, strict=True):
        member.intents = [intent for intent in intents if next(possible)]
        member.search_hits = found
        member.related_ids |= {intent.document for intent in member.intents}
        member.nominated = list(dict.fromkeys((*found.ids, *member.nominated)))


class Withdrawal(NamedTuple):
    """The results of ``first``, and why the store kept some placeholders; "" if it deleted all."""

    written: list[WriteResult]
    busy: str


def withdraw(
    members: Sequence[Member], context: "DecisionContext", first: Sequence[Action] = ()
) -> Steps[Withdrawal]:
    """Delete placeholders and give up intents, so that members have no guard any more.

    Args:
        first: actions to run in the same request.
    """
    reserved = [member for member in members if member.guard is not None and not member.changes]
    deletions = [Delete("documents", member.id, member.guard) for member in reserved]
    # A missing placeholder shows that its intent is over. An unchanged document does not show it.
    given_up = [member.intent_id for member in members if member.changes and member.intent_id]
    context.register.settle(member.intent_id for member in members)
    written = yield from context.register.withdraw([*first, *deletions], given_up)
    results = zip(reserved, written[len(first) :], strict=False)
    busy = {id(member): result.reason for member, result in results if result.status in BUSY}
    for member in members:
        if id(member) not in busy:
            member.reset()
    return Withdrawal(written[: len(first)], next(iter(busy.values()), ""))


def not_deleted(reason: str) -> EngineUnavailable:
    """Return the error of a store that was too busy to delete placeholders."""
    return EngineUnavailable(
        f"the server did not delete the gate's placeholders ({reason}): they expire by themselves; try again"
    )


def release(members: Sequence[Member], context: "DecisionContext") -> Steps[None]:
    """Revoke guards after a failure, when it is unknown which actions of the last request were done.

    If that fails, too, the intents stay open: a write that was sent may still be done under their guards.

    Raises:
        EngineUnavailable: the store was too busy to revoke some guards.
    """
    stored = yield from read_documents(member.id for member in members if member.intent_id)
    actions: list[Action] = []
    for member in members:
        held = stored.get(member.id)
        if held is None or not member.intent_id:
            continue
        if member.intent_id == context.gate_fields.intent_id(held.source) or (
            member.changes and member.guard == held.guard
        ):
            actions.append(guard_revocation(held, context.gate_fields))
    written = (yield from context.register.withdraw(actions, ())) if actions else []
    if busy := [result.reason for result in written if result.status in BUSY]:
        raise not_deleted(busy[0])
    context.register.settle(member.intent_id for member in members)
    for member in members:
        member.retried = True
        member.reset()


def read_documents(ids: Iterable[str]) -> Steps[dict[str, VersionedDocument]]:
    """Read the newest version of documents, by id; deleted ones are missing."""
    wanted = tuple(sorted(set(ids)))
    if not wanted:
        return {}
    documents: list[VersionedDocument | None] = yield ReadDocuments(wanted)
    return {id_: held for id_, held in zip(wanted, documents, strict=True) if held is not None}


def find_stale(documents: Mapping[str, VersionedDocument], context: "DecisionContext") -> Steps[set[str]]:
    """Return the ids of those documents whose fingerprint is of another text than they have."""
    if documents and context.judge.needs_texts:
        whole: list[VersionedDocument | None] = yield ReadDocuments(tuple(sorted(documents)), whole=True)
        documents = {one.id: one for one in whole if one is not None}
    return context.judge.stale({id_: one.source for id_, one in documents.items()}) if documents else set()


def _intent(member: Member, context: "DecisionContext") -> Intent:
    guard = member.guard if member.changes else None
    print_ = context.judge.print(member)
    return Intent(member.intent_id, member.id, guard, member.order, member.until, member.match_keys, print_)


def _drop_intent(member: Member, context: "DecisionContext") -> None:
    context.register.settle((member.intent_id,))
    member.intent_id = ""


def _take_over(members: Sequence[Member], now: int, context: "DecisionContext") -> Steps[None]:
    """Reserve ids that exist: guard the version of a stored document, or replace an expired placeholder."""
    stored = yield from read_documents(member.id for member in members)
    puts: list[Action] = []
    expired: list[Member] = []
    changing: list[Member] = []
    for member in members:
        held = stored.get(member.id)
        if held is not None and context.gate_fields.intent_id(held.source) == member.intent_id:
            # The connection broke, and the client sent the request twice.
            member.guard = held.guard
            continue
        _drop_intent(member, context)
        if held is None:
            continue
        until = context.gate_fields.pending(held.source)
        # The member itself may have been stored before the store failed.
        own = member.retried and context.gate_fields.same_text(member.document, held.source)
        if until is None and member.create and not own:
            member.verdict = Verdict("failed", member.id, reason=EXISTS)
        elif until is None:
            member.intent_id = context.new_intent_id()
            _change(member, held, context)
            changing.append(member)
        elif until < now:
            member.intent_id = context.new_intent_id()
            placeholder = context.gate_fields.placeholder(member.until, member.intent_id)
            puts.append(Put("documents", member.id, placeholder, held.guard))
            expired.append(member)
    if not expired and not changing:
        return
    intents = [_intent(member, context) for member in (*expired, *changing)]
    results: list[WriteResult] = yield from context.register.publish(puts, intents)
    for member, written in zip(expired, results, strict=True):
        if written.status == DONE:
            member.guard = written.guard
        else:
            _drop_intent(member, context)


def _change(member: Member, held: VersionedDocument, context: "DecisionContext") -> None:
    member.guard, member.changes = held.guard, True
    group = context.gate_fields.group(held.source)
    same_text = context.gate_fields.same_text(member.document, held.source)
    if same_text and (group is not None or not context.groups):
        member.kept = group, context.gate_fields.leads(held.source)
