"""Intents of writers that died: when one is open, and how it is closed."""

from shinglefold.contracts.engine import VersionedDocument
from shinglefold.groups.gate.protocol.placeholders import Forms
from shinglefold.groups.gate.protocol.requests import Action, Drop, Intent, Merge


def is_open(intent: Intent, held: VersionedDocument | None, forms: Forms) -> bool:
    """Tell whether an intent may still become a document: its document is as it is decided on.

    Args:
        held: the document as it is now.
    """
    if held is None:
        return False
    if intent.guard is None:
        return forms.attempt(held.source) == intent.attempt
    return held.guard == intent.guard


def closing(held: VersionedDocument, forms: Forms) -> Action:
    """Return what takes the guard of an open intent away, so that nothing is let in by it any more.

    A placeholder is deleted. A document that was to be changed stays, in another version.
    """
    if forms.pending(held.source) is not None:
        return Drop("documents", held.id, held.guard)
    return Merge("documents", held.id, {}, held.guard)
