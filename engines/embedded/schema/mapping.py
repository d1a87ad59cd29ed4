"""Mappings: read, checked, flattened, and grown by new fields."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from shinglefold.engines.embedded.schema.body_options import checked, truth, unsupported, whole
from shinglefold.engines.embedded.schema.field_types import TYPES, looks_like_date
from shinglefold.errors import UnsupportedQuery

_ROOT = ("properties", "dynamic", "date_detection", "_meta")
_OBJECT = ("type", "properties", "dynamic", "enabled")
_VALUE = ("type", "index", "doc_values", "fields")
_OPTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "text": ("type", "index", "fields"),
        # Norms are taken, and not needed: keywords have no length to be scored by.
        "keyword": (*_VALUE, "ignore_above", "norms"),
        "date": (*_VALUE, "format"),
        "binary": ("type", "doc_values"),
    }
)
_FORMATS = ("strict_date_optional_time||epoch_millis", "strict_date_optional_time", "epoch_millis")
_DYNAMIC = {"true": "true", "false": "false", "strict": "strict"}
_WHY_NO_ANALYZER = "; text is analysed by the canonicalizer the engine was opened with, so leave it out"


@dataclass(frozen=True, slots=True)
class Leaf:
    """One field of a mapping: its path, the path of its value in a document, its definition."""

    path: str
    source: str
    definition: Mapping[str, Any]


def check_mappings(mappings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the mappings after making sure that all of it is supported.

    Raises:
        UnsupportedQuery: a type or an option is not.
    """
    checked("mappings", mappings, _ROOT)
    if "date_detection" in mappings:
        truth("date_detection", mappings["date_detection"])
    _dynamic("mappings", mappings)
    _check_properties("", mappings.get("properties", {}))
    try:
        copy: dict[str, Any] = json.loads(json.dumps(mappings))
    except (TypeError, ValueError) as error:
        raise UnsupportedQuery(f"mappings: not JSON ({error})") from error
    copy.setdefault("properties", {})
    return copy


def leaves(properties: Mapping[str, Any], prefix: str = "") -> Iterator[Leaf]:
    """Yield every field below some properties, multi-fields after their own."""
    for name, definition in properties.items():
        path = prefix + name
        if is_object(definition):
            yield from leaves(definition.get("properties", {}), path + ".")
            continue
        yield Leaf(path, path, definition)
        for sub, own in definition.get("fields", {}).items():
            yield Leaf(f"{path}.{sub}", path, own)


def objects(mappings: Mapping[str, Any]) -> dict[str, str]:
    """Return the path of every object (the root is ``""``) and how it takes new fields.

    ``true`` maps them, ``false`` only stores them, ``strict`` refuses them, ``disabled`` stores all unread.
    """
    return dict(_objects("", mappings, "true"))


def definition_for(value: object, date_detection: bool) -> dict[str, Any]:
    """Return what dynamic mapping makes of a value that is seen for the first time."""
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "long"}
    if isinstance(value, float):
        return {"type": "float"}
    if isinstance(value, dict):
        return {"properties": {}}
    if isinstance(value, str) and date_detection and looks_like_date(value):
        return {"type": "date"}
    return {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}


def with_properties(mappings: Mapping[str, Any], new: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a copy of the mappings with new fields, given by path, parents before children."""
    grown: dict[str, Any] = json.loads(json.dumps(mappings))
    for path, definition in new.items():
        parent = grown
        *above, name = path.split(".")
        for part in above:
            parent = parent.setdefault("properties", {}).setdefault(part, {})
        parent.setdefault("properties", {})[name] = json.loads(json.dumps(definition))
    return grown


def is_object(definition: Mapping[str, Any]) -> bool:
    """Tell whether a definition is an object's."""
    return str(definition.get("type", "object")) == "object"


def _objects(path: str, definition: Mapping[str, Any], inherited: str) -> Iterator[tuple[str, str]]:
    if definition.get("enabled") is False:
        yield path, "disabled"
        return
    dynamic = _dynamic(path, definition) or inherited
    yield path, dynamic
    for name, child in definition.get("properties", {}).items():
        if is_object(child):
            yield from _objects(f"{path}.{name}" if path else name, child, dynamic)


def _dynamic(where: str, definition: Mapping[str, Any]) -> str:
    if "dynamic" not in definition:
        return ""
    text = str(definition["dynamic"]).lower()
    if text not in _DYNAMIC:
        raise unsupported(f"value of dynamic in {where or 'mappings'}", text, _DYNAMIC)
    return text


def _check_properties(prefix: str, properties: object) -> None:
    if not isinstance(properties, Mapping):
        raise UnsupportedQuery(f"properties of {prefix or 'mappings'}: expected an object")
    for name, definition in properties.items():
        path = f"{prefix}{name}"
        if not name or not isinstance(definition, Mapping):
            raise UnsupportedQuery(f"mapping of {path!r}: expected a name and an object with a type")
        if is_object(definition):
            checked(f"object {path!r}", definition, _OBJECT)
            _dynamic(path, definition)
            _check_properties(path + ".", definition.get("properties", {}))
        else:
            _check_leaf(path, definition)


def _check_leaf(path: str, definition: Mapping[str, Any]) -> None:
    kind = str(definition.get("type"))
    if kind not in TYPES:
        raise unsupported(f"field type (of {path!r})", kind, (*TYPES, "object"))
    if "analyzer" in definition or "search_analyzer" in definition:
        raise UnsupportedQuery(f"mapping of {path!r}: no analyzer can be named{_WHY_NO_ANALYZER}")
    checked(f"{kind} field {path!r}", definition, _OPTIONS.get(kind, _VALUE))
    for name in ("index", "doc_values", "norms"):
        if name in definition:
            truth(f"{name} of {path!r}", definition[name])
    if "ignore_above" in definition:
        whole(f"ignore_above of {path!r}", definition["ignore_above"], 1)
    if definition.get("format", _FORMATS[0]) not in _FORMATS:
        raise unsupported(f"date format (of {path!r})", str(definition["format"]), _FORMATS)
    for sub, own in definition.get("fields", {}).items():
        if "fields" in own:
            raise UnsupportedQuery(f"mapping of {path}.{sub}: a multi-field can't have multi-fields")
        _check_leaf(f"{path}.{sub}", own)
