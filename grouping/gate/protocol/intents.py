"""Intents, the records that publish them, those that a gate knows, and the register of a lone gate."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shinglefold.contracts.engine import JSON, Guard, VersionedDocument, WriteResult
from shinglefold.grouping.gate.protocol.pending_document import (
    Action,
    GateFields,
    Steps,
    Write,
)

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

    def is_open(self, held: VersionedDocument | None, gate_fields: GateFields) -> bool:
        """Return whether its document, of which ``held`` is the newest version, still has the guard."""
        if held is None:
            return False
        if self.guard is None:
            return gate_fields.intent_id(held.source) == self.intent_id
        return held.guard == self.guard

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

    def with_match_keys(self, keys: Sequence[str]) -> list[Intent]:
        """Return the intents that have one of these match keys, in the order of their ids."""
        ids = {id_ for key in keys for id_ in self._ids.get(key, ())}
        return [self._intents[id_] for id_ in sorted(ids)]

    def with_claims_on(self, group: int) -> list[Intent]:
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
