"""What stands against fingerprints in an index that somebody else made: told before the first write.

A fingerprint is added by a partial update, at which servers index the document again from its ``_source``:
what is not in there is lost.
"""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from shinglefold.contracts.engine import Engine
from shinglefold.errors import ConfigError, PermissionDenied, suggest
from shinglefold.ingest.field_paths import parts
from shinglefold.ingest.foreign_field import NOTES, PARTS
from shinglefold.maintenance.template_check import properties_at

#: Settings that keep writes from an index.
_BLOCKS = ("index.blocks.read_only", "index.blocks.write")
_SNAPSHOTS = ("snapshot", "remote_snapshot")
_REBUILT = ("logsdb", "time_series")


def check_updatable(engine: Engine, index: str, field: str) -> None:
    """Check that every index a name means takes fingerprints without losing anything.

    Raises:
        ConfigError: one does not; nothing was written.
        IndexMissing: there is no such index.
    """
    for name, found in obstacles(engine, index, field).items():
        raise ConfigError(f"index {name!r} was left as it is: {'; '.join(found)}")


def obstacles(engine: Engine, index: str, field: str, *, writes: bool = True) -> dict[str, tuple[str, ...]]:
    """Return, for each index a name, alias, pattern or data stream means, what stands against updating it.

    Args:
        writes: whether it counts that the index takes none.
    """
    settings = settings_of(engine, index)
    found = {
        name: (
            *source_obstacles(mappings, settings.get(name, {})),
            *change_obstacles(settings.get(name, {})),
            *field_obstacles(name, mappings, field),
            *(write_obstacles(name, settings.get(name, {})) if writes else ()),
        )
        for name, mappings in engine.all_mappings(index).items()
    }
    return {name: told for name, told in found.items() if told}


def closed_to_writes(engine: Engine, index: str) -> dict[str, tuple[str, ...]]:
    """Return which of the indices a name means take no writes, and why."""
    found = {name: tuple(write_obstacles(name, own)) for name, own in settings_of(engine, index).items()}
    return {name: told for name, told in found.items() if told}


def settings_of(engine: Engine, index: str) -> dict[str, Mapping[str, Any]]:
    """Return the settings of each index by flat name; {} where the engine has none to tell."""
    if engine.templates is None:
        return {}
    try:
        return dict(engine.templates.index_settings(index))
    except PermissionDenied:
        # Whoever may write but not look learns of a block at the first write, before anything is changed.
        return {}


def source_obstacles(mappings: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield why an update would lose what is indexed."""
    source = mappings.get("_source") or {}
    if source.get("enabled") is False or source.get("mode") == "disabled":
        yield "documents are not stored (_source is off), so that they can't be fingerprinted from here"
    named = [*source.get("excludes", ()), *(name for name in source.get("includes", ()) if name != "*")]
    if named:
        kind = "excludes" if source.get("excludes") else "includes"
        yield (
            f"its _source leaves fields out ({kind}: {', '.join(map(str, named))}), and an update would take "
            "them out of the index, too: index the documents into one that stores them whole"
        )
    mode = source.get("mode") or settings.get("index.mapping.source.mode")
    rebuilt = mode == "synthetic" or (mode is None and settings.get("index.mode") in _REBUILT)
    if rebuilt or str(settings.get("index.derived_source.enabled")).lower() == "true":
        yield (
            "its _source is rebuilt from the fields, and an update would store that and not what was sent: "
            "index the documents into one that stores them"
        )


def change_obstacles(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield why no document of an index can be changed, though new ones can come."""
    if _on(settings, "index.append_only.enabled"):
        yield (
            "its documents can't be changed once they are written (index.append_only.enabled): index them "
            "into an index whose documents can be"
        )


def field_obstacles(index: str, mappings: Mapping[str, Any], field: str) -> Iterator[str]:
    """Yield what somebody else keeps where fingerprints are to be."""
    node: Any = mappings
    for place, name in enumerate(way := parts(field)):
        node = (node.get("properties") or {}).get(name) or {}
        kind = node.get("type", "object")
        if kind != "object":
            yield _foreign(".".join(way[: place + 1]), f"is mapped as {kind}", index, mappings)
            return
        if node.get("enabled") is False:
            yield _foreign(".".join(way[: place + 1]), "is an object that is not indexed", index, mappings)
            return
    others = sorted(properties_at(mappings, field).keys() - PARTS - NOTES)
    if others:
        why = f"holds {', '.join(others)}, which are not parts of a fingerprint"
        yield _foreign(field, why, index, mappings)


def write_obstacles(index: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what keeps writes from an index."""
    if _on(settings, "index.verified_before_close"):
        yield f"it is closed; open it first: POST /{index}/_open"
    if settings.get("index.store.type") in _SNAPSHOTS:
        yield "it is a snapshot that is searched, and takes no writes: restore it as an index first"
    elif _on(settings, "index.frozen"):
        yield f"it is frozen, and takes no writes; thaw it first: POST /{index}/_unfreeze"
    else:
        for name in _BLOCKS:
            if _on(settings, name):
                yield f'it takes no writes ({name}); allow them: PUT /{index}/_settings {{"{name}": false}}'


def in_another_field(index: str, mappings: Mapping[str, Any]) -> str:
    """Return what to do where the field for fingerprints is taken, with the command."""
    taken = mappings.get("properties") or {}
    free = next(
        name for number in count(1) if (name := f"copies{number}" if number > 1 else "copies") not in taken
    )
    return f"keep fingerprints in another field: {suggest('setup', index, dedup_field=free)}"


def _foreign(field: str, why: str, index: str, mappings: Mapping[str, Any]) -> str:
    return f"[{field}] {why}, so it is not shinglefold's; {in_another_field(index, mappings)}"


def _on(settings: Mapping[str, Any], name: str) -> bool:
    return str(settings.get(name)).lower() == "true"
