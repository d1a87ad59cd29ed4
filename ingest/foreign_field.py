"""What stands in the field of fingerprints and is none: somebody else's, which must not be lost."""

from collections.abc import Mapping
from typing import Any

from shinglefold.ingest.field_paths import MISSING, get, said
from shinglefold.model.recipe import PASSAGES
from shinglefold.model.stored_fingerprint import ATTEMPT, PENDING, stored_parts

#: The parts of a fingerprint; whatever else is beside them is somebody else's.
PARTS = frozenset({"scheme", "lang", "shingles", "digest", "supershingles", "signature", PASSAGES})
#: What else of ours may be beside them: the number of the group, whether the document leads it, and what
#: keeps the place of one that a gate is deciding on.
NOTES = frozenset({"group", "leader", PENDING, ATTEMPT})
#: Names told in a message.
_SHOWN = 3


def no_fingerprint(document: Mapping[str, Any], field: str) -> str:
    """Return, in words, what a document has in the place of its fingerprint that is no part of one.

    A fingerprint itself is nothing to be told, however damaged or forged it is: it is made anew.

    Args:
        field: of the fingerprint; may be a dotted path.
    """
    if others := sorted(map(repr, stored_parts(document, field).keys() - PARTS - NOTES)):
        return f"[{field}] holds {', '.join(others[:_SHOWN])}, no fingerprint"
    # The same name with points in it is the same field to an engine.
    for found in (get(document, field), document.get(field, MISSING)):
        several = found if isinstance(found, list) else [found]
        if not all(one is MISSING or one is None or isinstance(one, Mapping | list) for one in several):
            return f"[{field}] is {said(found)}, no fingerprint"
    return ""


def refusal(document: Mapping[str, Any], field: str) -> str:
    """Return why a document can't be given a fingerprint in a field, and what to do; mostly nothing."""
    held = no_fingerprint(document, field)
    another = 'keep fingerprints in another field (the setting "field", or setup --dedup-field)'
    return f"{held}, and would be lost: {another}" if held else ""
