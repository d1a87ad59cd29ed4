"""The index of intents: beside the user's, hidden from patterns, small, and empty most of the time."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts import JSON, Engine, Guard, Parameters
from shinglefold.errors import EngineError, IndexExists
from shinglefold.groups.gate.forms import GROUP, LEADER, PENDING
from shinglefold.groups.gate.member import Member
from shinglefold.groups.gate.requests import Intent
from shinglefold.groups.likeness import Likeness
from shinglefold.groups.lookup import Lookup
from shinglefold.ingest.mapping import recipe_mappings
from shinglefold.ingest.paths import put
from shinglefold.recipe import Recipe
from shinglefold.stored import stored_parts

_NOTES = ("document", "seq_no", "primary_term", "started", "until", "claim")
_PREFIX = "shinglefold-gate-"
#: Claims of places in one group that are looked at.
_CLAIMS = 9_999


def intents_name(index: str) -> str:
    """Return the name of the index of intents beside an index."""
    return f"{_PREFIX}{index}"


def ensure_intents(engine: Engine, index: str, recipe: Recipe, scopes: Mapping[str, JSON]) -> str:
    """Create the index of intents beside an index where it is missing, and return its name.

    Args:
        scopes: of the fields within which documents are alike their definitions.
    """
    name = intents_name(index)
    if engine.index_exists(name):
        if scopes:
            engine.put_mappings(name, _properties(scopes))
        return name
    made = recipe_mappings(recipe)
    notes: JSON = {note: {"type": "long", "index": False} for note in _NOTES}
    notes |= {"document": {"type": "keyword", "index": False}, "claim": {"type": "long"}}
    properties = {**made["properties"], "gate": {"properties": notes}}
    for path, definition in scopes.items():
        _add(properties, path, definition)
    settings = {
        "index": {
            "hidden": True,
            "number_of_shards": 1,
            "auto_expand_replicas": "0-1",
            # The gate refreshes it itself, with each batch.
            "refresh_interval": "-1",
        }
    }
    # Another writer may be faster.
    with suppress(IndexExists):
        engine.create_index(name, {"dynamic": False, "properties": properties}, settings)
    return name


def _properties(scopes: Mapping[str, JSON]) -> JSON:
    properties: JSON = {}
    for path, definition in scopes.items():
        _add(properties, path, definition)
    return {"properties": properties}


def _add(properties: JSON, path: str, definition: JSON) -> None:
    *above, name = path.split(".")
    for part in above:
        properties = properties.setdefault(part, {}).setdefault("properties", {})
    properties.setdefault(name, definition)


@dataclass(slots=True)
class Intents:
    """Reads and writes intents.

    Attributes:
        read_back: the fields of documents that a decision reads again.
    """

    name: str
    likeness: Likeness
    lookup: Lookup
    read_back: tuple[str, ...]

    @classmethod
    def of(cls, engine: Engine, name: str, likeness: Likeness, parameters: Parameters) -> "Intents":
        """Return the intents of an index."""
        lookup = Lookup(
            engine,
            name,
            likeness,
            beside=[f"gate.{note}" for note in _NOTES],
            parameters=parameters,
            window=_CLAIMS,
            whole=True,
        )
        field = likeness.field
        parts = ("digest", "signature", "supershingles", GROUP, LEADER, PENDING)
        scopes = [scope.field for scope in likeness.scopes]
        return cls(name, likeness, lookup, (*(f"{field}.{part}" for part in parts), *scopes))

    def source(self, member: Member) -> JSON:
        """Return what stands in the index for a member."""
        assert member.guard is not None
        field = self.likeness.field
        parts = stored_parts(member.document, field)
        kept = {
            name: parts[name] for name in ("lang", "digest", "signature", "supershingles") if name in parts
        }
        source: JSON = put({}, field, kept)
        for path, values in member.print.values.items():
            if not path.startswith(f"{field}."):
                source = put(source, path, list(values))
        return source | {
            "gate": {
                "document": member.id,
                "seq_no": member.guard.seq_no,
                "primary_term": member.guard.primary_term,
                "started": member.started,
                "until": member.until,
                "claim": member.claim,
            }
        }

    def matching(self, members: Sequence[Member]) -> list[list[Intent]]:
        """Return for each member the intents that resemble it; its own is among them."""
        found = self.lookup.find([member.print for member in members])
        intents = [_intent(hit) for hit in found.hits]
        matching: list[list[Intent]] = [[] for _ in members]
        for pair in found.pairs:
            matching[pair.one].append(intents[pair.other])
        return matching

    def claims(self, group: int) -> list[Intent]:
        """Return the intents that claim a place in a group."""
        hits = self.lookup.group([{"term": {"gate.claim": group}}], _CLAIMS)
        if len(hits) == _CLAIMS:
            raise EngineError(f"more than {_CLAIMS:,} documents want into one group at once; try again")
        return [_intent(hit) for hit in hits]


def _intent(hit: Mapping[str, Any]) -> Intent:
    fields = hit["fields"]

    def one(note: str) -> Any:  # noqa: ANN401 - JSON
        return fields[f"gate.{note}"][0]

    guard = Guard(one("seq_no"), one("primary_term"))
    return Intent(hit["_id"], one("document"), guard, (one("started"), hit["_id"]), one("until"))
