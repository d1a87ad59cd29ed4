"""What the mappings of an index say to a gate, and what a gate adds to them."""

from collections.abc import Mapping
from typing import Any

from shinglefold.contracts import JSON, Engine
from shinglefold.errors import ConfigError


def concrete_index(engine: Engine, index: str) -> str:
    """Return the index that a name means, so that all its names share intents."""
    names = [info.name for info in engine.indices(index)]
    if len(names) != 1:
        raise ConfigError(f"{index!r} means {len(names)} indices; a gate stands in front of one: name it")
    return names[0]


def check_scope(mappings: JSON, path: str, index: str) -> None:
    """Refuse a scope whose values an index can't tell.

    Raises:
        ConfigError: it is not mapped, or has no doc values.
    """
    node: Any = mappings
    for name in path.split("."):
        node = (node.get("properties") or {}).get(name) if isinstance(node, Mapping) else None
    kind = node.get("type") if isinstance(node, Mapping) else None
    if kind in (None, "text", "object"):
        raise ConfigError(
            f"index {index!r}: the scope {path!r} is {'not mapped' if kind is None else f'of type {kind}'}; "
            "name a field with doc values, such as a keyword"
        )


def nested(field: str, properties: JSON) -> JSON:
    """Return mappings in which properties stand below a field."""
    for name in reversed(field.split(".")):
        properties = {name: {"properties": properties}}
    return {"properties": properties}
