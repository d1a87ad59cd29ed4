"""Whether who examines an index sees the texts its fingerprints are of: roles may hide fields.

No server tells that it hides a field: it is neither in the mappings nor in the documents that a user sees.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shinglefold.ingest.paths import MISSING, get, parts

#: Findings that may come of texts which are there and not shown.
SUSPECT = ("stale", "textless")


def unmapped(mappings: Mapping[str, Any], fields: Sequence[str]) -> tuple[str, ...]:
    """Return which fields mappings do not have."""
    return tuple(name for name in fields if not _is_mapped(mappings, name))


def _is_mapped(mappings: Mapping[str, Any], name: str) -> bool:
    node: Any = mappings
    for part in parts(name):
        node = (node.get("properties") or {}).get(part)
        if not isinstance(node, Mapping):
            return False
    return True


@dataclass(slots=True)
class Sight:
    """Notes of documents whether their fingerprints are of more text than is shown.

    ``fields``: those the pipeline reads and the mappings lack.
    """

    fields: tuple[str, ...]
    _found: Counter[str] = field(default_factory=Counter)
    _elsewise: bool = False

    def note(
        self, hit: Mapping[str, Any], finding: str, stored: Mapping[str, Any], new: Mapping[str, Any]
    ) -> None:
        """Note a document, what was found of it, and its fingerprint as stored and as made now."""
        if not self.fields:
            return
        lacks = any(get(hit["_source"], name) is MISSING for name in self.fields)
        if finding in SUSPECT and not (lacks and _length(stored) > _length(new)):
            # Somebody changed this text: hiding a part of it makes every text shorter.
            self._elsewise = True
        elif lacks:
            self._found[finding] += 1

    @property
    def blind(self) -> bool:
        """Whether the texts are hidden: most fingerprints are of longer ones than those shown."""
        suspected = sum(self._found[name] for name in SUSPECT)
        return not self._elsewise and suspected > self._found["sound"]


def _length(fingerprint: Mapping[str, Any]) -> int:
    count = fingerprint.get("shingles")
    return count if isinstance(count, int) else 0
