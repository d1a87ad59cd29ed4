"""Documents to JSON, as they are sent to a server."""

import json
from collections.abc import Mapping
from typing import Any

from shinglefold.documents.fast_json import plain_json

_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def to_json(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON on one line.

    Raises:
        TypeError: the document holds what JSON has not.
        ValueError: it holds itself, or half of a surrogate pair.
    """
    made = plain_json(document)
    return _PLAIN.encode(document).encode() if made is None else made
