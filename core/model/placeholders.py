"""Placeholders of the gate: empty documents that keep the place of one which is being decided on."""

from collections.abc import Mapping
from typing import Any

from shinglefold.contracts.engine import JSON
from shinglefold.model.stored_fingerprint import stored_parts

#: Parts of the field of fingerprints: until when a placeholder keeps its place, and for which attempt.
PENDING, ATTEMPT = "pending", "attempt"


def is_placeholder(source: Mapping[str, Any], field: str) -> bool:
    """Tell whether a source is that of a placeholder, which is no document yet, or never becomes one."""
    return PENDING in stored_parts(source, field)


def placeholder_query(field: str) -> JSON:
    """Return the query that finds placeholders: none where no gate was ever opened."""
    return {"exists": {"field": f"{field}.{PENDING}"}}
