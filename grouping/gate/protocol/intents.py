"""The records in the index of intents: the list of writers, the head of each, and rounds of intents."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shinglefold.contracts.engine import JSON, Guard

#: The id of the document that lists all heads.
WRITERS = "writers"


@dataclass(frozen=True, slots=True)
class Intent:
    """The announcement that a writer decides about a document, kept until searches see the result.

    The decision is open as long as the document has the guard.

    Attributes:
        document: id and routing of the document, see ``document_key``.
        guard: the version of the document that is changed; None where a placeholder reserves the id of a new
            one.
        order: of two that match, the lower goes first.
        until: when the lease expires, so that others may clear it.
        match_keys: two that match have one of them in common.
        print: what the document is compared by.
    """

    intent_id: str
    document: str
    guard: Guard | None
    order: tuple[int, str]
    until: int
    match_keys: tuple[str, ...] = ()
    print: Any = None


@dataclass(frozen=True, slots=True)
class WriterRecord:
    """The head of one gate, small, because every gate reads it before each decision.

    Attributes:
        until: when others may clear it away.
        rounds: ids of its rounds of intents, each written at once and never changed.
        withdrawn: ids of intents that were given up.
        claims: intents that want a place in a group, by id and group.
        closed: others are clearing it away, and its gate does not write it any more.
    """

    until: int = 0
    rounds: tuple[str, ...] = ()
    withdrawn: frozenset[str] = frozenset()
    claims: tuple[tuple[str, int], ...] = ()
    closed: bool = False

    def to_json(self) -> JSON:
        """Return the record as it is stored."""
        told: JSON = {"until": self.until, "rounds": list(self.rounds)}
        if self.withdrawn:
            told["left"] = sorted(self.withdrawn)
        if self.closed:
            told["closed"] = True
        return told | ({"claims": dict(self.claims)} if self.claims else {})

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> "WriterRecord":
        """Read a stored record."""
        claims = tuple(sorted((source.get("claims") or {}).items()))
        left = frozenset(source.get("left", ()))
        return cls(source["until"], tuple(source["rounds"]), left, claims, source.get("closed", False))


def intents_json(intents: Sequence[Intent]) -> JSON:
    """Return a round of intents as it is stored."""
    return {"intents": [_intent_json(one) for one in intents]}


def intents_from_json(source: Mapping[str, Any]) -> tuple[Intent, ...]:
    """Read a stored round of intents."""
    return tuple(
        Intent(
            one["attempt"],
            one["document"],
            Guard(*one["guard"]) if one.get("guard") else None,
            (one["started"], one["attempt"]),
            one["until"],
            tuple(one["words"]),
            one["print"],
        )
        for one in source["intents"]
    )


def _intent_json(one: Intent) -> JSON:
    told: JSON = {
        "attempt": one.intent_id,
        "document": one.document,
        "started": one.order[0],
        "until": one.until,
        "words": list(one.match_keys),
        "print": one.print,
    }
    return told if one.guard is None else told | {"guard": [one.guard.seq_no, one.guard.primary_term]}


@dataclass(slots=True)
class KnownIntents:
    """Intents, open or decided, whose documents searches need not see yet, by their match keys.

    ``withdrawn``: ids of intents that were given up. ``claims``: the groups in which intents want a place.
    """

    withdrawn: set[str] = field(default_factory=set)
    claims: dict[str, int] = field(default_factory=dict)
    _intents: dict[str, Intent] = field(default_factory=dict)
    #: By match key the ids of the intents that have it: mostly one.
    _words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: How many rounds each is in.
    _times: Counter[str] = field(default_factory=Counter)

    def learn(self, intents: Iterable[Intent]) -> None:
        """Add the intents of a round."""
        words = self._words
        for one in intents:
            self._times[one.intent_id] += 1
            self._intents[one.intent_id] = one
            if self._times[one.intent_id] > 1:
                continue
            for word in dict.fromkeys(one.match_keys):
                words[word] = (*words.get(word, ()), one.intent_id)

    def forget(self, intents: Iterable[Intent]) -> None:
        """Remove the intents of a round."""
        for one in intents:
            self._times[one.intent_id] -= 1
            if self._times[one.intent_id]:
                continue
            del self._times[one.intent_id], self._intents[one.intent_id]
            self.withdrawn.discard(one.intent_id)
            self.claims.pop(one.intent_id, None)
            for word in dict.fromkeys(one.match_keys):
                if rest := tuple(other for other in self._words.pop(word) if other != one.intent_id):
                    self._words[word] = rest

    def sharing(self, words: Sequence[str]) -> list[Intent]:
        """Return the intents that have one of some match keys, in the order of their ids."""
        found = {intent_id for word in words for intent_id in self._words.get(word, ())}
        return [self._intents[intent_id] for intent_id in sorted(found)]

    def claiming(self, group: int) -> list[Intent]:
        """Return the intents that want a place in a group, in the order of their ids."""
        return [
            self._intents[intent_id]
            for intent_id, claimed in sorted(self.claims.items())
            if claimed == group and intent_id in self._intents
        ]
