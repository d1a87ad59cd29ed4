"""What the gate calls a document by: its id and, where it has one, its routing, as one text.

An id is unique in an index and under a routing only, and who does not know the routing of a document can
neither read nor write it.
"""

#: Begins the keys that are more than an id.
_MARK = "\0"


def key(id_: str, routing: str | None = None) -> str:
    """Return what names a document: its id where that is enough."""
    if not routing and not id_.startswith(_MARK):
        return id_
    return f"{_MARK}{len(id_)}:{id_}{routing or ''}"


def id_and_routing(key: str) -> tuple[str, str | None]:
    """Return the id and the routing that a key was made of."""
    if not key.startswith(_MARK):
        return key, None
    length, _, rest = key[len(_MARK) :].partition(":")
    return rest[: int(length)], rest[int(length) :] or None
