"""Bulk requests of documents that are JSON already: their lines joined, and nothing encoded again.

The clients' helpers look at every action key by key, and encode texts three times over: to know their size,
to join them, to send them. A document that comes as bytes needs none of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

Action = Mapping[str, Any]
_KEYS = frozenset(("_op_type", "_index", "_id", "_source"))
_VERBS = frozenset(("index", "create"))


def are_ready(actions: Sequence[Action]) -> bool:
    """Tell whether all actions write documents given as bytes, and say no more than where to."""
    return all(
        type(action.get("_source")) is bytes
        and type(action.get("_id")) is str
        and action.get("_op_type", "index") in _VERBS
        and action.keys() <= _KEYS
        for action in actions
    )


def as_texts(actions: Sequence[Action]) -> list[dict[str, Any]]:
    """Return actions as the clients' helpers take them: JSON as text."""
    return [
        {**action, "_source": source.decode()}
        if isinstance(source := action.get("_source"), bytes)
        else dict(action)
        for action in actions
    ]


def bodies(actions: Sequence[Action], most: int) -> Iterator[bytes]:
    """Yield the bodies of requests for actions that ``are_ready``, in order.

    Args:
        most: bytes of a body; a document that is larger goes alone.
    """
    heads: dict[tuple[str, str], str] = {}
    pieces: list[bytes] = []
    size = 0
    for action in actions:
        verb, index, source = action.get("_op_type", "index"), action["_index"], action["_source"]
        head = heads.get((verb, index))
        if head is None:
            head = heads[verb, index] = f'{{"{verb}":{{"_index":{quoted(index)},"_id":'
        line = f"{head}{quoted(action['_id'])}}}}}\n".encode()
        length = len(line) + len(source) + 1
        if pieces and size + length > most:
            yield b"".join(pieces)
            pieces, size = [], 0
        pieces += (line, source, b"\n")
        size += length
    if pieces:
        yield b"".join(pieces)


def told(answer: Mapping[str, Any]) -> Iterator[tuple[bool, Mapping[str, Any]]]:
    """Yield of each action whether it was done, and what the server says of it, as the helpers do."""
    for item in answer["items"]:
        (result,) = item.values()
        yield 200 <= result.get("status", 500) < 300, item
