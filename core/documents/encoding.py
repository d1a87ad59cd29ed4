"""Documents to JSON, as they are sent to a server."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from msgspec import MsgspecError
from msgspec.json import Encoder

_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def to_json(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON on one line.

    Raises:
        TypeError: the document holds what JSON has not.
        ValueError: it holds itself, or half of a surrogate pair.
    """
    made = plain_json(document)
    return _PLAIN.encode(document).encode() if made is None else made


_FAST = Encoder()
_ENDS = frozenset((str, int, bool, type(None)))
_TEXT = frozenset((str,))


def plain_json(value: Any) -> bytes | None:  # noqa: ANN401 - whatever a document holds
    """Return a value as JSON on one line; None where what to do is the standard library's to say.

    The fast encoder knows types that JSON has not, and writes null for a number that is none: it gets only
    what both write alike, and refuses whole numbers of more than 64 bits and half of a surrogate pair.
    """
    try:
        return _FAST.encode(value) if is_plain(value) else None
    except (MsgspecError, ValueError, OverflowError, RecursionError):
        return None


def is_plain(value: Any) -> bool:  # noqa: ANN401 - whatever a document holds
    """Tell whether a value is made of objects, lists, texts, finite numbers, true, false and null alone."""
    kind = type(value)
    if kind is dict:
        if not set(map(type, value)) <= _TEXT:
            return False
        items = value.values()
    elif kind is list:
        items = value
    else:
        return kind in _ENDS or (kind is float and isfinite(value))
    return all(map(is_plain, [one for one in items if type(one) not in _ENDS]))
