"""Intents of writers that died: when one is open, and how it is cleared."""

from shinglefold.contracts import Held, Written
from shinglefold.groups.gate.forms import Forms
from shinglefold.groups.gate.requests import DONE, MISSING, Action, Drop, Intent, Merge, Steps, Write


def is_open(intent: Intent, held: Held | None) -> bool:
    """Tell whether an intent may still become a document: its document has the version that it is decided on.

    Args:
        held: the document as it is now.
    """
    return held is not None and held.guard == intent.guard


def clear(intent: Intent, held: Held, forms: Forms) -> Steps[None]:
    """Take the guard of an open intent away, and only then the intent.

    A placeholder is deleted. A document that was to be changed stays, in another version.
    """
    guarded: Action = Merge("documents", intent.document, {}, intent.guard)
    if forms.pending(held.source) is not None:
        guarded = Drop("documents", intent.document, intent.guard)
    answers: list[Written] = yield Write((guarded,))
    if answers[0].status in (DONE, MISSING):
        yield Write((Drop("intents", intent.attempt),))
