"""Texts that come back from a worker as they went there are not sent: whoever asked has them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from shinglefold.ingest.pipeline.pipeline import Outcome

#: Characters from which on a text is spared; what stands for it is as heavy as a short one.
_WORTH = 200


class Same(NamedTuple):
    """Stands for the text of a field of the document that was asked about."""

    field: str


def spared(outcome: Outcome, asked: Mapping[str, Any]) -> Outcome:
    """Return an outcome without the texts that its document was given.

    Args:
        asked: the document as it came; a text is the same where it is the very object.
    """
    same = {
        name: Same(name)
        for name, value in (outcome.document or {}).items()
        if type(value) is str and len(value) >= _WORTH and asked.get(name) is value
    }
    return _replaced(outcome, same, {asked[name]: one for name, one in same.items()}) if same else outcome


def restored(outcome: Outcome, given: Mapping[str, Any] | None) -> Outcome:
    """Return an outcome with the texts of the document it was given."""
    same = {name: value.field for name, value in (outcome.document or {}).items() if type(value) is Same}
    if not same or given is None:
        return outcome
    texts = {name: given[field] for name, field in same.items()}
    return _replaced(outcome, texts, {Same(name): text for name, text in texts.items()})


def _replaced(outcome: Outcome, fields: Mapping[str, Any], texts: Mapping[Any, Any]) -> Outcome:
    """Return an outcome with other values in some fields, and other texts that its words are told by."""
    document, ready = {**(outcome.document or {}), **fields}, outcome.ready
    return outcome._replace(document=document, ready=ready and ready.of(texts))
