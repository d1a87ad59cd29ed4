"""Read and write fields of a document by dotted path; documents stay unchanged, writers return copies."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from shinglefold.contracts.engine import Document
from shinglefold.errors import ProcessorError

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
    step = json.dumps({"join": {"field": path, "separator": "\n"}}, ensure_ascii=False)
    return f"; to join its texts, put {step} first in the pipeline"


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


def as_text(value: object) -> str:
    """Return a value as text, as JSON writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
