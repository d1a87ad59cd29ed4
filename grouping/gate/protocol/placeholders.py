"""The gate's parts of the fingerprint field (group, leader, placeholder), and the keys of documents."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts.engine import JSON, VersionedDocument
from shinglefold.grouping.gate.protocol.intents import Intent
from shinglefold.grouping.gate.protocol.member import Action, Delete, Update
from shinglefold.ingest.field_paths import get, put, without_path
from shinglefold.model.stored_fingerprint import ATTEMPT, PENDING, stored_parts, without_fingerprint

#: Parts of the fingerprint field: the number of the group, and whether the document is its leader.
GROUP, LEADER = "group", "leader"


@dataclass(frozen=True, slots=True)
class GateFields:
    """Reads and writes the gate's parts of the fingerprint field, which may be a dotted path."""

    field: str

    def placeholder(self, until: int, intent_id: str) -> JSON:
        """Return the document that reserves an id; it has no fingerprint and no field of the user."""
        return put({}, self.field, {PENDING: until, ATTEMPT: intent_id})

    def pending(self, source: Mapping[str, Any]) -> int | None:
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

    def stamped(self, document: Mapping[str, Any], group: int | None, leads: bool) -> JSON:
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


def is_open(intent: Intent, held: VersionedDocument | None, gate_fields: GateFields) -> bool:
    """Return whether an intent is open: its document still has the guard.

    Args:
        held: the newest version of its document, None if there is none.
    """
    if held is None:
        return False
    if intent.guard is None:
        return gate_fields.intent_id(held.source) == intent.intent_id
    return held.guard == intent.guard


def guard_revocation(held: VersionedDocument, gate_fields: GateFields) -> Action:
    """Return the action that revokes the guard of an open intent, so that nothing is stored under it.

    A placeholder is deleted. A document that was to be changed gets a new version.
    """
    if gate_fields.pending(held.source) is not None:
        return Delete("documents", held.id, held.guard)
    return Update("documents", held.id, {}, held.guard)


#: The first character of a key that has a routing.
_MARK = "\0"


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
