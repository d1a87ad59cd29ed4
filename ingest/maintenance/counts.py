"""The counts of a backfill: every document read ends in exactly one count."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from shinglefold.errors import InputError

#: Ids and reasons kept; the counts go on.
_LISTED = 1_000
_LONGEST_REASON = 500
_OUTCOMES = ("read", "updated", "unchanged", "dropped", "failed", "gone", "kept")
_COUNTS = (*_OUTCOMES, "conflicts", "earlier", "empty")


@dataclass(slots=True)
class BackfillCounts:
    """``read == updated + unchanged + dropped + failed + gone + kept``.

    ``unchanged``: its fingerprint was the right one already; ``dropped``: the pipeline drops such documents,
    they are left as they are; ``gone``: deleted while the backfill ran; ``kept``: they have a fingerprint
    and no text to make another of, so that it stays. ``empty``: documents without any text, kept ones among
    them. ``conflicts``: updates that another writer was faster than; each was made again from the newer
    version. ``changed``: ids of documents that had changed between being read and being updated. ``earlier``:
    documents updated before the point in time was lost and the scan began anew; they are met again as
    unchanged.
    """

    read: int = 0
    updated: int = 0
    unchanged: int = 0
    dropped: int = 0
    failed: int = 0
    gone: int = 0
    kept: int = 0
    empty: int = 0
    conflicts: int = 0
    earlier: int = 0
    changed: list[str] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    without_text: list[str] = field(default_factory=list)

    def fail(self, id: str, reason: str) -> None:  # noqa: A002 - the engines' own word
        """Count a document that can't be fingerprinted, and why."""
        self.failed += 1
        self._because(reason[:_LONGEST_REASON], 1)
        self.failures.append(id)

    def keep(self, id: str) -> None:  # noqa: A002
        """Count a document whose fingerprint stays, because there is no text to make another of."""
        self.kept += 1
        self.without_text.append(id)

    def change(self, id: str) -> None:  # noqa: A002
        """List a document that changed meanwhile."""
        if id not in self.changed:
            self.changed.append(id)

    def add(self, other: "BackfillCounts") -> None:
        """Add the counts of some more documents."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for reason, count in other.reasons.items():
            self._because(reason, count)
        self.without_text = [*self.without_text, *other.without_text][:_LISTED]
        self.failures = [*self.failures, *other.failures][:_LISTED]
        self.changed = list(dict.fromkeys([*self.changed, *other.changed]))[:_LISTED]

    def restart(self) -> None:
        """Begin the counts anew with the scan; what was updated stays known."""
        self.earlier += self.updated
        for name in _OUTCOMES:
            setattr(self, name, 0)
        self.empty = 0
        self.without_text.clear()
        self.reasons.clear()
        self.failures.clear()

    def _because(self, reason: str, count: int) -> None:
        known = reason if reason in self.reasons or len(self.reasons) < _LISTED else "(other reasons)"
        self.reasons[known] = self.reasons.get(known, 0) + count

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "BackfillCounts":
        """Read what ``to_json`` wrote.

        Raises:
            InputError: it is something else.
        """
        try:
            return cls(**data)
        except TypeError as error:
            raise InputError(f"not the counts of a backfill: {error}") from error
