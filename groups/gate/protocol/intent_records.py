"""What gates write into the index of intents: who is there, the head of each, and rounds of intents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts.engine import JSON, Guard
from shinglefold.groups.gate.protocol.requests import Intent

#: The document that names all heads.
WRITERS = "writers"


@dataclass(frozen=True, slots=True)
class Head:
    """What one gate says of itself, small, as everybody reads it before each decision.

    ``until``: when others may clear it away. ``rounds``: the ids of its intents, which are written together
    and never change. ``left``: attempts that are given up. ``claims``: groups in which attempts want a place.
    ``closed``: others are clearing it away, and its gate writes it no more.
    """

    until: int = 0
    rounds: tuple[str, ...] = ()
    left: frozenset[str] = frozenset()
    claims: tuple[tuple[str, int], ...] = ()
    closed: bool = False

    def to_json(self) -> JSON:
        """Return it as it is stored."""
        told: JSON = {"until": self.until, "rounds": list(self.rounds)}
        if self.left:
            told["left"] = sorted(self.left)
        if self.closed:
            told["closed"] = True
        return told | ({"claims": dict(self.claims)} if self.claims else {})

    @classmethod
    def from_json(cls, source: Mapping[str, Any]) -> "Head":
        """Return a head as it was stored."""
        claims = tuple(sorted((source.get("claims") or {}).items()))
        left = frozenset(source.get("left", ()))
        return cls(source["until"], tuple(source["rounds"]), left, claims, source.get("closed", False))


def round_json(intents: Sequence[Intent]) -> JSON:
    """Return intents as they are stored."""
    return {"intents": [_intent_json(one) for one in intents]}


def round_intents(source: Mapping[str, Any]) -> tuple[Intent, ...]:
    """Return intents as they were stored."""
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
        "attempt": one.attempt,
        "document": one.document,
        "started": one.order[0],
        "until": one.until,
        "words": list(one.words),
        "print": one.print,
    }
    return told if one.guard is None else told | {"guard": [one.guard.seq_no, one.guard.primary_term]}
