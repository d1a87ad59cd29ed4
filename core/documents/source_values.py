"""Values in documents, as an index has them: through lists of objects, and under names that hold dots."""

from collections.abc import Iterator, Mapping
from typing import Any


def values_at(source: Mapping[str, Any], path: str) -> list[Any]:
    """Return the values at a path of a source, through lists, whether names hold dots or not; no nulls."""
    at: Any = source
    for name in path.split("."):
        at = at.get(name) if type(at) is dict else None
    # The usual case first: it is asked some thousand times a window of hits.
    if isinstance(at, str | int | float):
        return [at]
    if type(at) is list and all(type(item) is str for item in at):
        return at
    return list(_values_at(source, path))


def items(value: object) -> Iterator[Any]:
    """Yield what is in a value, however deep in lists; no nulls."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from items(item)
    elif value is not None:
        yield value


def _values_at(source: object, path: str) -> Iterator[Any]:
    if not path:
        yield from items(source)
        return
    for item in items(source):
        if not isinstance(item, Mapping):
            continue
        parts = path.split(".")
        for count in range(1, len(parts) + 1):
            name = ".".join(parts[:count])
            if name in item:
                yield from _values_at(item[name], ".".join(parts[count:]))
