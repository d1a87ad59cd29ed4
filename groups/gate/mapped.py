"""What the mappings and settings of an index say to a gate, and what a gate adds to them."""

from collections.abc import Iterable
from typing import Any

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.documents.source_filter import SourceFilter
from shinglefold.errors import ConfigError
from shinglefold.maintenance.preconditions import change_obstacles, settings_of, source_obstacles

#: How the names of the indices behind data streams begin.
_STREAMED = ".ds-"
#: Modes of an index in which every document has a time, which a placeholder has not.
_TIMED = ("logsdb", "time_series")


def concrete_index(engine: Engine, index: str) -> str:
    """Return the index that a name means, so that all its names share intents."""
    names = [info.name for info in engine.indices(index)]
    if len(names) != 1:
        raise ConfigError(f"{index!r} means {len(names)} indices; a gate stands in front of one: name it")
    if names[0].startswith(_STREAMED):
        raise ConfigError(
            f"{index!r} is a data stream, whose documents can't be changed once they are written, and a gate "
            "keeps their places before: let it stand before an index"
        )
    return names[0]


def check_shown(mappings: JSON, index: str, paths: Iterable[str]) -> None:
    """Refuse an index whose ``_source`` does not keep what a decision reads again: all would be let in.

    Raises:
        ConfigError: it leaves one of these fields out.
    """
    source = mappings.get("_source") or {}
    stored = source.get("enabled") is not False and source.get("mode") != "disabled"
    kept = SourceFilter(stored, tuple(source.get("includes", ())), tuple(source.get("excludes", ())))
    hidden = [path for path in paths if not kept.shows(path)]
    if hidden:
        raise ConfigError(
            f"index {index!r}: its _source leaves out {', '.join(hidden)}, by which a gate decides: index "
            "the documents into an index that stores them whole"
        )


def check_keeps(engine: Engine, mappings: JSON, index: str) -> None:
    """Refuse an index that takes no placeholders, or whose documents an update would take something from.

    A stored document is updated when it is to lead a group, and when a writer dies that was to change it.

    Raises:
        ConfigError: it is one of these.
    """
    settings = settings_of(engine, index).get(index, {})
    if (mode := settings.get("index.mode")) in _TIMED:
        raise ConfigError(
            f"index {index!r} is in the mode {mode!r}, in which every document has a time, and a gate keeps "
            "places by documents without any: let it stand before an index of the standard mode"
        )
    for told in (*source_obstacles(mappings, settings), *change_obstacles(settings)):
        raise ConfigError(f"a gate can't stand before index {index!r}: {told}")


def has(mappings: JSON, field: str, properties: JSON) -> bool:
    """Tell whether properties stand below a field already, so that who may only write need not map them."""
    node: Any = mappings
    for name in field.split("."):
        node = (node.get("properties") or {}).get(name) or {}
    there = node.get("properties") or {}
    return all(there.get(name) == wanted for name, wanted in properties.items())


def nested(field: str, properties: JSON) -> JSON:
    """Return mappings in which properties stand below a field."""
    for name in reversed(field.split(".")):
        properties = {name: {"properties": properties}}
    return {"properties": properties}
