"""What stands against fingerprints in an index that somebody else made: told before the first write.

A fingerprint is added by a partial update, at which servers index the document again from its ``_source``:
what is not in there is lost.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import Any

from shinglefold.contracts.engine import JSON, Engine, Templates
from shinglefold.errors import ConfigError, PermissionDenied, suggest
from shinglefold.ingest.field_paths import split_path
from shinglefold.ingest.index_mapping import BOOKKEEPING_PARTS, FINGERPRINT_PARTS, recipe_mappings
from shinglefold.model.recipe import META_KEY, PASSAGES, Recipe

#: For each part of a fingerprint the types it may have and what must not be switched off.
_NEEDED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "scheme": (("keyword",), ("index", "doc_values")),
        "lang": (("keyword",), ("doc_values",)),
        "shingles": (("integer", "long"), ("doc_values",)),
        "digest": (("keyword",), ("doc_values",)),
        "supershingles": (("keyword",), ("index",)),
        "signature": (("binary",), ("doc_values",)),
    }
)
#: The same for the number of the group.
_NEEDED_FOR_GROUPS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "group": (("long",), ("index", "doc_values")),
        "leader": (("boolean",), ("index", "doc_values")),
    }
)
_OFF_BY_DEFAULT = (("binary", "doc_values"),)
#: Keys of a template's parts worth telling; more are counted.
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """The mappings of an index beside those its scheme asks for.

    ``missing``: fields that can be added in place, with their definitions; ``wrong``: what can't be mended in
    place, in words; ``stored``: the scheme in ``_meta``, None where there is none.
    """

    missing: Mapping[str, JSON]
    wrong: tuple[str, ...]
    stored: Mapping[str, Any] | None


def compare_mappings(found: Mapping[str, Any], recipe: Recipe) -> FieldLayout:
    """Compare the mappings of an index with what a recipe needs.

    Args:
        found: the mappings.
        recipe: what it is to be made with.
    """
    field = recipe.field
    wanted = properties_at(recipe_mappings(recipe), field)
    there = properties_at(found, field)
    stored = (found.get("_meta") or {}).get(META_KEY)
    return FieldLayout(
        {f"{field}.{name}": definition for name, definition in wanted.items() if name not in there},
        tuple(_wrong(there, recipe)),
        stored if isinstance(stored, Mapping) else None,
    )


def properties_at(found: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """Return the definitions below a dotted path of mappings; {} where there are none."""
    node: Any = found
    for name in split_path(field):
        node = (node.get("properties") or {}).get(name)
        if not isinstance(node, Mapping):
            return {}
    return node.get("properties") or {}


def _wrong(there: Mapping[str, Any], recipe: Recipe) -> Iterator[str]:
    field = recipe.field
    wanted = {**_NEEDED, **(_NEEDED_FOR_GROUPS if recipe.groups else {})}
    if recipe.passages:
        wanted[PASSAGES] = (("keyword",), ("index",))
    for name, (types, needed) in wanted.items():
        definition = there.get(name)
        if definition is None:
            continue
        kind = definition.get("type", "object")
        if kind not in types:
            yield f"{field}.{name} is mapped as {kind}, {types[0]} is needed"
            continue
        for option in needed:
            if not definition.get(option, (kind, option) not in _OFF_BY_DEFAULT):
                yield f"{field}.{name} is mapped without {option}"


def conflicting_templates(
    templates: Templates, patterns: tuple[str, ...], own: str, component: str
) -> dict[str, tuple[str, ...]]:
    """Return, for each other template that may match the same indices, what installing ours would do to them.

    Servers apply one index template alone, that of highest priority, and no template of the older kind once
    an index template matches.

    Args:
        own: the name of our index template.
        component: the component template that makes the other one all that is needed.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, body in templates.index_templates().items():
        shared = _shared(patterns, body.get("index_patterns", ()))
        if shared and name != own and component not in body.get("composed_of", ()):
            lost = _told(templates.resolved_template(name))
            found[f"index template {name}"] = (
                f"also matches {shared} (priority {body.get('priority', 0)}), and only one template applies: "
                f"where ours does, an index is made without its {lost}. Let it have the fields instead: "
                f"{compose_request(name, body, component)}; then set up without this pattern",
            )
    for name, body in templates.legacy_templates().items():
        if shared := _shared(patterns, body.get("index_patterns", ())):
            found[f"legacy template {name}"] = (
                f"also matches {shared}, and no legacy template applies where an index template does: "
                f"an index would be made without its {_told(body)}. Move that into an index template with "
                f'"composed_of": ["{component}"], then set up without this pattern',
            )
    return found


def incomplete_streams(templates: Templates, index: str, component: str) -> dict[str, tuple[str, ...]]:
    """Return what the next index of each data stream that a name means will lack."""
    found: dict[str, tuple[str, ...]] = {}
    bodies: dict[str, JSON] = {}
    for stream, name in templates.data_streams(index).items():
        bodies = bodies or templates.index_templates()
        body = bodies.get(name, {})
        if component not in body.get("composed_of", ()):
            found[f"data stream {stream}"] = (
                f"its next index is made from the index template {name!r}, which lacks the fields: "
                f"{compose_request(name, body, component)}",
            )
    return found


def compose_request(name: str, body: Mapping[str, Any], component: str) -> str:
    """Return the request that adds our component template to an index template."""
    wanted = {**body, "composed_of": [*body.get("composed_of", ()), component]}
    return f"PUT /_index_template/{name} {json.dumps(wanted, ensure_ascii=False)}"


def patterns_overlap(one: str, other: str) -> bool:
    """Tell whether a name can fit two patterns with ``*``."""
    if not one or not other:
        return not (one + other).strip("*")
    if one[0] == "*":
        return patterns_overlap(one[1:], other) or patterns_overlap(one, other[1:])
    if other[0] == "*":
        return patterns_overlap(other, one)
    return one[0] == other[0] and patterns_overlap(one[1:], other[1:])


def _shared(patterns: tuple[str, ...], others: list[str]) -> str:
    """Return those of our patterns that share names with others, in words."""
    return ", ".join(ours for ours in patterns if any(patterns_overlap(ours, other) for other in others))


def _told(body: Mapping[str, Any]) -> str:
    """Return what a template gives an index, in words."""
    kinds = [
        ("settings", list(_flat(body.get("settings") or {}))),
        ("mappings", list((body.get("mappings") or {}).get("properties") or {})),
        ("aliases", list(body.get("aliases") or {})),
    ]
    rest = (body.get("mappings") or {}).keys() - {"properties"}
    kinds.append(("options of its mappings", sorted(rest)))
    return "; ".join(f"{kind} {_few(names)}" for kind, names in kinds if names) or "(empty) contents"


def _flat(settings: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for name, value in settings.items():
        below = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            yield from _flat(value, below)
        else:
            yield f"{below}: {value}"


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


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


def write_blocks(engine: Engine, index: str) -> dict[str, tuple[str, ...]]:
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
    for place, name in enumerate(way := split_path(field)):
        node = (node.get("properties") or {}).get(name) or {}
        kind = node.get("type", "object")
        if kind != "object":
            yield _foreign(".".join(way[: place + 1]), f"is mapped as {kind}", index, mappings)
            return
        if node.get("enabled") is False:
            yield _foreign(".".join(way[: place + 1]), "is an object that is not indexed", index, mappings)
            return
    others = sorted(properties_at(mappings, field).keys() - FINGERPRINT_PARTS - BOOKKEEPING_PARTS)
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


def other_field_hint(index: str, mappings: Mapping[str, Any]) -> str:
    """Return what to do where the field for fingerprints is taken, with the command."""
    taken = mappings.get("properties") or {}
    free = next(
        name for number in count(1) if (name := f"copies{number}" if number > 1 else "copies") not in taken
    )
    return f"keep fingerprints in another field: {suggest('setup', index, dedup_field=free)}"


def _foreign(field: str, why: str, index: str, mappings: Mapping[str, Any]) -> str:
    return f"[{field}] {why}, so it is not shinglefold's; {other_field_hint(index, mappings)}"


def _on(settings: Mapping[str, Any], name: str) -> bool:
    return str(settings.get(name)).lower() == "true"
