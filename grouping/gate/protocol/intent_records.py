"""The records in the index of intents: the list of writers, the head of each, and rounds of intents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts.engine import JSON, Guard
from shinglefold.grouping.gate.protocol.member import Intent

#: The id of the document that lists all heads.
WRITERS = "writers"


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
