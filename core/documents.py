"""Documents as JSON: ``_source`` filters, values at a path, encoding, and blocks of documents.

A path is dotted. Documents stay unchanged: writers return copies.
"""

import base64
import json
import re
import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeVar

from msgspec import MsgspecError
from msgspec.json import Encoder

from shinglefold.contracts.engine import Document
from shinglefold.errors import ProcessorError

#: The field of a document that names the format of its texts.
FORMAT = "format"
_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_FAST = Encoder()
_ENDS = frozenset((str, int, bool, type(None)))
_TEXT = frozenset((str,))
#: The value at a path that does not exist; None is JSON's null.
MISSING = object()
_TEMPLATE = re.compile(r"\{\{\{\s*([^{}]*?)\s*\}\}\}|\{\{\s*([^{}]*?)\s*\}\}")
_TYPE_NAMES = {
    str: "text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    # From Parquet.
    bytes: "binary",
}
T = TypeVar("T")
#: The most characters of plain text in a block to hash: 16–64 k tokens.
TEXT_BUDGET = 256_000
#: The most characters of raw documents, markup included, in a block for a worker.
RAW_BUDGET = 1_000_000
#: The same if each block becomes one bulk request: larger requests cost server and client less.
REQUEST_BUDGET = 2_000_000
#: The most documents in a block.
MAX_DOCUMENTS = 1_000
#: The most characters of one text: indexing takes some twenty bytes of memory per character.
MAX_TEXT = 20_000_000


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
        """Return the wanted parts of a document, not copied. Cost: linear in lengths of patterns × names."""
        if self.whole:
            return dict(source)
        return self._filter(source, "", included=not self.includes)

    def within(self, names: Container[str]) -> bool:
        """Return whether everything wanted lies within the top-level objects of these names.

        A path with a dot lies in some object. A top-level name with a dot counts as such a path.
        """
        return bool(self.includes) and all(
            "*" not in one and ("." in one or one in names) for one in self.includes
        )

    def shows(self, path: str) -> bool:
        """Return whether the value at a path is wanted."""
        if not self.wanted or _any_matches(self.excludes, path):
            return False
        return not self.includes or _any_matches(self.includes, path)

    def _filter(self, source: Mapping[str, Any], prefix: str, *, included: bool) -> dict[str, Any]:
        found = {}
        for name, value in source.items():
            path = prefix + name
            if _any_matches(self.excludes, path):
                continue
            here = included or _any_matches(self.includes, path)
            if here and not any(_may_fit(pattern, f"{path}.") for pattern in self.excludes):
                found[name] = value
                continue
            kept = self._filtered_value(value, f"{path}.", included=here)
            if here or kept not in (None, {}, []):
                found[name] = kept
        return found

    def _filtered_value(self, value: object, prefix: str, *, included: bool) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, Mapping):
            return self._filter(value, prefix, included=included)
        if isinstance(value, list):
            kept = [self._filtered_value(item, prefix, included=included) for item in value]
            # As on servers, objects and lists that became empty are removed from a list.
            return [item for item in kept if item not in ({}, []) and (included or item is not None)]
        return value if included else None


def _any_matches(patterns: tuple[str, ...], path: str) -> bool:
    """Return whether a pattern matches a path or one of its parents."""
    if not patterns:
        return False
    ends = [place for place, character in enumerate(path) if character == "."]
    above = [path[:end] for end in ends] + [path]
    return any(_fits(pattern, name) for pattern in patterns for name in above)


def _may_fit(pattern: str, start: str) -> bool:
    """Return whether a pattern may match a name that begins like this."""
    first, star, _ = pattern.partition("*")
    return first.startswith(start) or (bool(star) and start.startswith(first))


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
    return str(int(value)) if isinstance(value, float) and value.is_integer() else as_text(value)


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


def to_json(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON on one line.

    Raises:
        TypeError: it contains a type that JSON lacks.
        ValueError: it contains itself, or half of a surrogate pair.
    """
    made = plain_json(document)
    return _PLAIN.encode(document).encode() if made is None else made


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


def json_type(value: object) -> str:
    """Return the JSON type of a value for messages, such as ``a number``."""
    return "null" if value is None else _TYPE_NAMES.get(type(value), f"a {type(value).__name__}")


def split_path(path: str) -> list[str]:
    """Split a dotted path; a leading ``_source.`` is ignored, as on the servers."""
    return path.removeprefix("_source.").split(".")


def get(document: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - JSON
    """Return the value at a path, or ``MISSING``; a number is an index into a list."""
    if isinstance(document, dict) and "." not in path:
        # Fast path: nearly all paths are one name.
        return document.get(path, MISSING)
    value: Any = document
    for part in split_path(path):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


def put(document: Mapping[str, Any], path: str, value: object) -> Document:
    """Return a copy of the document with a value at a path; missing objects along the path are created.

    Raises:
        ProcessorError: the path leads through a value that is not an object, or past the end of a list.
    """
    if isinstance(document, dict) and "." not in path:
        return {**document, path: value}
    new: Document = _put(document, split_path(path), value, path)
    return new


def _put(node: Any, keys: Sequence[str], value: object, path: str) -> Any:  # noqa: ANN401 - JSON
    if not keys:
        return value
    key, rest = keys[0], keys[1:]
    if isinstance(node, Mapping):
        return {**node, key: _put(node.get(key, {} if rest else None), rest, value, path)}
    if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
        place = int(key)
        return [*node[:place], _put(node[place], rest, value, path), *node[place + 1 :]]
    raise ProcessorError(f"cannot set [{path}]: [{key}] would be inside {json_type(node)}")


def without_path(document: Mapping[str, Any], path: str) -> Document:
    """Return a copy of the document without the value at a path."""
    *above, last = split_path(path)
    parent = get(document, ".".join(above)) if above else document
    if isinstance(parent, Mapping) and last in parent:
        kept: Any = {key: value for key, value in parent.items() if key != last}
    elif isinstance(parent, list) and last.isdecimal() and int(last) < len(parent):
        kept = [*parent[: int(last)], *parent[int(last) + 1 :]]
    else:
        return dict(document)
    return put(document, ".".join(above), kept) if above else kept


def text(document: Mapping[str, Any], path: str, missing_ok: bool) -> str | None:
    """Return the text at a path, or None if it is missing or null and ``missing_ok``.

    Raises:
        ProcessorError: the text is missing and must not be, or the value is not text, or the path leads
            through a value that is not an object.
    """
    value = get(document, path)
    if isinstance(value, str):
        return value
    if value is not MISSING and value is not None:
        raise ProcessorError(f"field [{path}] is {json_type(value)}, expected text{_join_hint(path, value)}")
    if value is MISSING:
        _check_parents(document, path)
    if missing_ok:
        return None
    raise ProcessorError(f"field [{path}] is {'missing' if value is MISSING else 'null'}")


def _join_hint(path: str, value: object) -> str:
    """Return how to make one text of a list of texts, or text of bytes; empty for other values."""
    if isinstance(value, bytes):
        return "; cast the column to strings, for instance with pyarrow"
    if not (isinstance(value, list) and value and all(isinstance(one, str) for one in value)):
        return ""
    # Documents are stored with the joined text, which a backfill reads again.
    step = {"join": {"field": path, "separator": "\n", "ignore_failure": True}}
    return f"; to join its texts, put {json.dumps(step, ensure_ascii=False)} first in the pipeline"


def _check_parents(document: Mapping[str, Any], path: str) -> None:
    """Check that the parents of a missing field are objects.

    Raises:
        ProcessorError: one is not, or the whole path is one name, so that its text would be skipped silently.
    """
    if path in document and "." in path:
        raise ProcessorError(f"field [{path}] is one name with dots; make it an object")
    names = split_path(path)
    for length in range(1, len(names)):
        parent = ".".join(names[:length])
        found = get(document, parent)
        if found is MISSING or found is None:
            return
        is_index = isinstance(found, list) and names[length].isdecimal()
        if not isinstance(found, Mapping) and not is_index:
            kind = json_type(found)
            raise ProcessorError(f"field [{path}] can't be read: [{parent}] is {kind}, not an object")


def render(template: str, document: Mapping[str, Any]) -> str:
    """Replace each ``{{{path}}}`` or ``{{path}}`` of a template by its value, missing ones by nothing."""

    def value(match: re.Match[str]) -> str:
        found = get(document, match[1] or match[2] or "")
        return "" if found is MISSING or found is None else as_text(found)

    return _TEMPLATE.sub(value, template)


def template_paths(value: object) -> list[str]:
    """Return the paths in the templates of a value."""
    if isinstance(value, str):
        return [found[1] or found[2] or "" for found in _TEMPLATE.finditer(value)]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [path for one in value for path in template_paths(one)] if isinstance(value, list) else []


def merge_update(document: Mapping[str, Any], changes: Mapping[str, Any]) -> Document:
    """Return a document after a partial update: objects are merged, other values replaced."""
    made = dict(document)
    for name, value in changes.items():
        old = made.get(name)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        made[name] = merge_update(old, value) if both else value  # type: ignore[arg-type]
    return made


def random_id() -> str:
    """Return a new id for a document, as engines make them."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22].decode()


def with_id(action: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a bulk action whose document has an id, so that a retry can't store it a second time."""
    if action.get("_id") is None and action.get("_op_type", "index") in ("index", "create"):
        return {**action, "_id": random_id()}
    return action


def well_formed(text: str) -> str:
    """Return the text with lone surrogates replaced, for what needs valid Unicode."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def as_text(value: object) -> str:
    """Return a value as text, as JSON writes it."""
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return str(value).lower() if isinstance(value, bool) else str(value)


def blocks(
    items: Iterable[T], size: Callable[[T], int], budget: int, most: int = MAX_DOCUMENTS
) -> Iterator[list[T]]:
    """Yield the items in order, in lists of at most ``most`` items and ``budget`` characters, or of one."""
    block: list[T] = []
    used = 0
    for item in items:
        length = size(item)
        if block and (used + length > budget or len(block) >= most):
            yield block
            block, used = [], 0
        block.append(item)
        used += length
    if block:
        yield block


def weight(value: object) -> int:
    """Return roughly how many characters a JSON value holds."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        own = [len(one) if type(one) is str else weight(one) for one in value.values()]
        return sum(own) + 8 * len(own)
    if isinstance(value, list):
        return sum(map(weight, value)) + 8
    return 8


def too_long(value: object, path: str = "") -> str:
    """Return an error message if a document has a text longer than ``MAX_TEXT``, else an empty string.

    Args:
        value: the document, or its value at ``path``.
    """
    if isinstance(value, str):
        if len(value) <= MAX_TEXT:
            return ""
        return (
            f"[{path}] has {len(value):,} characters, and a text may have at most {MAX_TEXT:,}: "
            "split it into several documents, or leave the field out"
        )
    if isinstance(value, dict):
        inside = [(f"{path}.{name}" if path else str(name), one) for name, one in value.items()]
    else:
        inside = [(path, one) for one in value] if isinstance(value, list) else []
    return next(filter(None, (too_long(one, where) for where, one in inside)), "")
