"""Documents as JSON: ``_source`` filters, the values at a path, and encoding."""

import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from msgspec import MsgspecError
from msgspec.json import Encoder


@dataclass(frozen=True, slots=True)
class SourceFilter:
    """A ``_source`` filter: paths and patterns with ``*``, which cover everything below; ``excludes`` win.

    If ``wanted`` is False, there is no source at all. Empty ``includes`` mean everything.
    """

    wanted: bool = True
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether documents are returned unchanged."""
        return self.wanted and not self.includes and not self.excludes

    def apply(self, source: Mapping[str, Any]) -> dict[str, Any]:
        """Return the wanted parts of a document. Cost: linear in the lengths of patterns × names."""
        if self.whole:
            return dict(source)
        return _filtered(source, "", self.includes, self.excludes, included=not self.includes)

    def within(self, names: Container[str]) -> bool:
        """Return whether everything wanted lies within the top-level objects of these names.

        A path with a dot lies in some object. A top-level name with a dot counts as such a path.
        """
        return bool(self.includes) and all(
            "*" not in one and ("." in one or one in names) for one in self.includes
        )

    def shows(self, path: str) -> bool:
        """Return whether the value at a path is wanted."""
        if not self.wanted or _found(self.excludes, path):
            return False
        return not self.includes or _found(self.includes, path)


def _filtered(
    source: Mapping[str, Any],
    prefix: str,
    includes: tuple[str, ...],
    excludes: tuple[str, ...],
    *,
    included: bool,
) -> dict[str, Any]:
    found = {}
    for name, value in source.items():
        path = prefix + name
        if _found(excludes, path):
            continue
        here = included or _found(includes, path)
        kept = _kept(value, path + ".", includes, excludes, included=here)
        if here or kept not in (None, {}, []):
            found[name] = kept
    return found


def _kept(
    value: object,
    prefix: str,
    includes: tuple[str, ...],
    excludes: tuple[str, ...],
    *,
    included: bool,
) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, Mapping):
        return _filtered(value, prefix, includes, excludes, included=included)
    if isinstance(value, list):
        kept = [_kept(item, prefix, includes, excludes, included=included) for item in value]
        return kept if included else [item for item in kept if item not in (None, {}, [])]
    return value if included else None


def _found(patterns: tuple[str, ...], path: str) -> bool:
    """Return whether a pattern matches a path or one of its parents."""
    if not patterns:
        return False
    ends = [place for place, character in enumerate(path) if character == "."]
    above = [path[:end] for end in ends] + [path]
    return any(_fits(pattern, name) for pattern in patterns for name in above)


def _fits(pattern: str, name: str) -> bool:
    """Return whether a pattern matches a whole name, without backtracking."""
    first, *others = pattern.split("*")
    if not others:
        return name == pattern
    *between, last = others
    if not name.startswith(first):
        return False
    at = len(first)
    for part in between:
        at = name.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return name.endswith(last) and len(name) - len(last) >= at


#: The field of a document that says what its texts are.
FORMAT = "format"


def holds_html(source: Mapping[str, Any], field: str) -> bool:
    """Return whether a field of a document holds HTML: its ``format`` is ``html``. A ``title`` never does."""
    return source.get(FORMAT) == "html" and field != "title"


def values_at(source: Mapping[str, Any], path: str) -> list[Any]:
    """Return the values at a path, in lists and under dotted names, too; no nulls."""
    at: Any = source
    for name in path.split("."):
        at = at.get(name) if type(at) is dict else None
    # Fast path: a window of hits makes some thousand calls.
    if isinstance(at, str | int | float):
        return [at]
    if type(at) is list and all(type(item) is str for item in at):
        return at
    return list(_values_at(source, path))


def plain_text(value: object) -> str:
    """Return a value as text; 5 and 5.0 are equal, as clients write and mappings store either."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def items(value: object) -> Iterator[Any]:
    """Yield the items of nested lists, or the value itself; no nulls."""
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


_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def to_json(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON on one line.

    Raises:
        TypeError: it contains a type that JSON lacks.
        ValueError: it contains itself, or half of a surrogate pair.
    """
    made = plain_json(document)
    return _PLAIN.encode(document).encode() if made is None else made


_FAST = Encoder()
_ENDS = frozenset((str, int, bool, type(None)))
_TEXT = frozenset((str,))


def plain_json(value: Any) -> bytes | None:  # noqa: ANN401 - whatever a document holds
    """Return a value as JSON on one line; None if the standard library must encode or reject it.

    The fast encoder accepts types that JSON lacks, and writes null for NaN. So it gets only values that both
    encoders write alike; it refuses integers of more than 64 bits and half of a surrogate pair.
    """
    try:
        return _FAST.encode(value) if is_plain(value) else None
    except (MsgspecError, ValueError, OverflowError, RecursionError):
        return None


def is_plain(value: Any) -> bool:  # noqa: ANN401 - whatever a document holds
    """Return whether a value consists of objects, lists, strings, finite numbers, bools and nulls only."""
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
