"""How the gate's own notes stand in documents: group, leader, and the placeholder of one to come."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.ingest.field_paths import cut, get, put
from shinglefold.model.stored_fingerprint import ATTEMPT, PENDING, stored_parts, without_fingerprint

#: Parts of the field of fingerprints: the group's number, and whether the document leads it.
GROUP, LEADER = "group", "leader"


@dataclass(frozen=True, slots=True)
class Forms:
    """Reads and writes the notes in the field of fingerprints, which may be a dotted path."""

    field: str

    def placeholder(self, until: int, attempt: str) -> JSON:
        """Return the document that keeps a place: no field of the user's, no fingerprint."""
        return put({}, self.field, {PENDING: until, ATTEMPT: attempt})

    def pending(self, source: Mapping[str, Any]) -> int | None:
        """Return until when a placeholder keeps its place; None for a document."""
        until = stored_parts(source, self.field).get(PENDING)
        return until if isinstance(until, int) else None

    def attempt(self, source: Mapping[str, Any]) -> str | None:
        """Return the attempt that a placeholder keeps its place for; None for a document."""
        attempt = stored_parts(source, self.field).get(ATTEMPT)
        return attempt if isinstance(attempt, str) else None

    def group(self, source: Mapping[str, Any]) -> int | None:
        """Return the number of a document's group, None where it has none."""
        number = stored_parts(source, self.field).get(GROUP)
        return number if isinstance(number, int) else None

    def leads(self, source: Mapping[str, Any]) -> bool:
        """Tell whether a document leads its group."""
        return stored_parts(source, self.field).get(LEADER) is True

    def same_text(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Tell whether two documents have the same canonical text."""
        digest = stored_parts(one, self.field).get("digest")
        return bool(digest) and digest == stored_parts(other, self.field).get("digest")

    def stamped(self, document: Mapping[str, Any], group: int | None, leads: bool) -> JSON:
        """Return a document with its group, the field of fingerprints in its usual form."""
        if group is None:
            return dict(document)
        parts = {**stored_parts(document, self.field), GROUP: group, LEADER: leads}
        return put(without_fingerprint(document, self.field), self.field, parts)

    def leader(self, group: int) -> JSON:
        """Return the change that makes a document lead a group, where none ``stands_elsewhere``."""
        return put({}, self.field, {GROUP: group, LEADER: True})

    def stands_elsewhere(self, source: Mapping[str, Any]) -> bool:
        """Tell whether the field stands in another form (``{"dedup.digest": …}``, a list), too.

        An update of a part would leave the values of both, or take the place of the list.
        """
        if not source or (source.keys() == {self.field} and type(source[self.field]) is dict):
            return False
        usual = isinstance(get(source, self.field), Mapping)
        return not usual or without_fingerprint(source, self.field) != cut(source, self.field)
