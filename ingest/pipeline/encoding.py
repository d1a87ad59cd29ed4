"""Documents to JSON: several times faster than by the standard library, to the same values."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from msgspec import MsgspecError
from msgspec.json import Encoder

_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_FAST = Encoder()
_ENDS = frozenset((str, int, bool, type(None)))
_TEXT = frozenset((str,))


def to_json(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON on one line.

    The fast encoder knows types that JSON has not, and writes null for a number that is none: it gets only
    what both write alike.

    Raises:
        TypeError: the document holds what JSON has not.
        ValueError: it holds itself, or half of a surrogate pair.
    """
    try:
        if is_plain(document):
            return _FAST.encode(document)
    except (MsgspecError, ValueError, OverflowError, RecursionError):
        # A whole number of more than 64 bits, half of a surrogate pair: what to do is the other's to say.
        return _PLAIN.encode(document).encode()
    return _PLAIN.encode(document).encode()


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
    return set(map(type, items)) <= _ENDS or all(map(is_plain, items))
