"""Fields of a document by dotted path; documents are never changed, changed copies are returned."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from shinglefold.contracts.engine import Document
from shinglefold.errors import ProcessorError

#: What a path leads to where there is nothing; JSON's null is None.
MISSING = object()
_TEMPLATE = re.compile(r"\{\{\{\s*([^{}]*?)\s*\}\}\}|\{\{\s*([^{}]*?)\s*\}\}")
_SAID = {
    str: "text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    # Of Parquet.
    bytes: "binary",
}


def json_type(value: object) -> str:
    """Return the JSON type of a value in words."""
    return "null" if value is None else _SAID.get(type(value), f"a {type(value).__name__}")


def split_path(path: str) -> list[str]:
    """Split a dotted path; a leading ``_source.`` means nothing, as on the servers."""
    return path.removeprefix("_source.").split(".")


def get(document: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - JSON
    """Return the value at a path, or ``MISSING``; a number steps into a list."""
    if isinstance(document, dict) and "." not in path:
        # Nearly all paths are one name.
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
    """Return a copy of the document with a value at a path, objects on the way made as needed.

    Raises:
        ProcessorError: something on the way is neither an object nor a list that long.
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
    """Return a copy of the document without the value at a path; the same where there is none."""
    *way, last = split_path(path)
    parent = get(document, ".".join(way)) if way else document
    if isinstance(parent, Mapping) and last in parent:
        kept: Any = {key: value for key, value in parent.items() if key != last}
    elif isinstance(parent, list) and last.isdecimal() and int(last) < len(parent):
        kept = [*parent[: int(last)], *parent[int(last) + 1 :]]
    else:
        return dict(document)
    return put(document, ".".join(way), kept) if way else kept


def text(document: Mapping[str, Any], path: str, missing_ok: bool) -> str | None:
    """Return the text at a path, or None where it is missing (or null) and may be.

    Raises:
        ProcessorError: it is missing and must not be, it is no text, or what should hold it is no object.
    """
    value = get(document, path)
    if isinstance(value, str):
        return value
    if value is not MISSING and value is not None:
        raise ProcessorError(f"field [{path}] is {json_type(value)}, expected text{_joined(path, value)}")
    if value is MISSING:
        _check_way(document, path)
    if missing_ok:
        return None
    raise ProcessorError(f"field [{path}] is {'missing' if value is MISSING else 'null'}")


def _joined(path: str, value: object) -> str:
    """Return what makes one text of a list of texts, or of bytes."""
    if isinstance(value, bytes):
        return "; make the column one of strings: cast it, for instance with pyarrow"
    if not (isinstance(value, list) and value and all(isinstance(one, str) for one in value)):
        return ""
    step = json.dumps({"join": {"field": path, "separator": "\n"}}, ensure_ascii=False)
    return f"; join its texts before: put {step} first in the pipeline"


def _check_way(document: Mapping[str, Any], path: str) -> None:
    """Check that nothing but objects is on the way to a field that is missing.

    Raises:
        ProcessorError: something else is, so that its text would be passed over without a word.
    """
    if path in document and "." in path:
        raise ProcessorError(f"field [{path}] stands there as one name with points; make it an object")
    names = split_path(path)
    for length in range(1, len(names)):
        way = ".".join(names[:length])
        found = get(document, way)
        if found is MISSING or found is None:
            return
        steps_in = isinstance(found, list) and names[length].isdecimal()
        if not isinstance(found, Mapping) and not steps_in:
            raise ProcessorError(
                f"field [{path}] can't be read: [{way}] is {json_type(found)}, not an object"
            )


def render(template: str, document: Mapping[str, Any]) -> str:
    """Return a template with every ``{{{path}}}`` (or ``{{path}}``) replaced, missing ones by nothing."""

    def value(match: re.Match[str]) -> str:
        found = get(document, match[1] or match[2] or "")
        return "" if found is MISSING or found is None else _shown(found)

    return _TEMPLATE.sub(value, template)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
