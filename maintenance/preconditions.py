"""Check before the first write that mappings, settings and templates of an index allow fingerprints.

A fingerprint is added by a partial update, for which servers index the document again from its ``_source``.
Whatever ``_source`` lacks would be lost.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import Any

from shinglefold.contracts.engine import JSON, Engine, Templates
from shinglefold.documents import split_path
from shinglefold.errors import ConfigError, PermissionDenied, suggest
from shinglefold.ingest.index_mapping import USUAL_PROPERTIES, recipe_mappings
from shinglefold.model.recipe import META_KEY, PASSAGES, Recipe, first_difference
from shinglefold.model.stored_fingerprint import BOOKKEEPING_PARTS, FINGERPRINT_PARTS
from shinglefold.rerank.index_fields import definition_of, mapped_at

#: For each part of a fingerprint, and of placeholders: its valid types, and the options that must be on.
_NEEDED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "scheme": (("keyword",), ("index", "doc_values")),
        "shingles": (("integer", "long"), ("doc_values",)),
        "digest": (("keyword",), ("doc_values",)),
        "supershingles": (("keyword",), ("index",)),
        "signature": (("binary",), ("doc_values",)),
        "pending": (("long",), ()),
        "attempt": (("keyword",), ()),
    }
)
#: The same for group numbers.
_NEEDED_FOR_GROUPS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "group": (("long",), ("index", "doc_values")),
        "leader": (("boolean",), ("index", "doc_values")),
    }
)
_OFF_BY_DEFAULT = (("binary", "doc_values"),)
#: Settings that block writes.
_BLOCKS = ("index.blocks.read_only", "index.blocks.write")
_SNAPSHOTS = ("snapshot", "remote_snapshot")
#: Characters of a fingerprint's keywords, rounded up: a digest with seal and facts has some 90.
_LONGEST_KEYWORD = 128
_SYNTHETIC_MODES = ("logsdb", "time_series")
#: A value that is replaced as a whole, so that keys it lacks are removed.
_ATOMIC = f"{META_KEY}.pipeline"
#: How many keys of a template a message lists; further ones are counted.
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """The differences between the mappings of an index and those that a recipe needs.

    ``missing``: definitions of fields that can be added in place. ``wrong``: messages on what can't be
    changed in place. ``stored``: the recipe in ``_meta``, None if there is none.
    """

    missing: Mapping[str, JSON]
    wrong: tuple[str, ...]
    stored: Mapping[str, Any] | None


def compare_mappings(found: Mapping[str, Any], recipe: Recipe) -> FieldLayout:
    """Compare the mappings of an index with those that a recipe needs."""
    field = recipe.field
    wanted = properties_at(recipe_mappings(recipe), field)
    existing = properties_at(found, field)
    stored = (found.get("_meta") or {}).get(META_KEY)
    return FieldLayout(
        {f"{field}.{name}": definition for name, definition in wanted.items() if name not in existing},
        tuple(_wrong(existing, recipe)),
        stored if isinstance(stored, Mapping) else None,
    )


def differences(found: object, wanted: object, path: str = "") -> Iterator[str]:
    """Yield a line for each part of ``wanted`` that ``found`` lacks; its other parts are ignored.

    A pipeline and the definition of a field are compared as a whole.
    """
    if isinstance(found, Mapping) and isinstance(wanted, Mapping) and _is_whole(path, wanted):
        if found != wanted:
            ours, theirs = first_difference(found, wanted)
            yield f"~ {path}: {ours} → {theirs}"
    elif isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for name, value in wanted.items():
            below = f"{path}.{name}" if path else str(name)
            yield from differences(found.get(name), value, below)
    elif found is None:
        yield f"+ {path}: {_short(wanted)}"
    elif found != wanted:
        yield f"~ {path}: {_short(found)} → {_short(wanted)}"


def _is_whole(path: str, wanted: Mapping[str, Any]) -> bool:
    return path.endswith(_ATOMIC) or isinstance(wanted.get("type"), str)


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:99]}…"


def properties_at(mappings: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return the definitions below a dotted path of mappings; {} if there are none."""
    return (mapped_at(mappings, path) or {}).get("properties") or {}


def _wrong(existing: Mapping[str, Any], recipe: Recipe) -> Iterator[str]:
    field = recipe.field
    wanted = {**_NEEDED, **(_NEEDED_FOR_GROUPS if recipe.groups else {})}
    if recipe.passages:
        wanted[PASSAGES] = (("keyword",), ("index",))
    for name, (types, needed) in wanted.items():
        definition = existing.get(name)
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
    """Return other templates that may match the same indices, and what installing ours would do to them.

    Servers apply only the index template of highest priority, and no legacy template if an index template
    matches.

    Args:
        own: the name of our index template.
        component: our component template; an index template that includes it is not a conflict.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, body in templates.index_templates().items():
        shared = _overlapping_patterns(patterns, body.get("index_patterns", ()))
        if shared and name != own and component not in body.get("composed_of", ()):
            lost = _describe(templates.resolved_template(name))
            found[f"index template {name}"] = (
                f"also matches {shared} (priority {body.get('priority', 0)}), and only one template applies: "
                f"where ours does, an index is made without its {lost}. Add the fields to it instead: "
                f"{compose_request(name, body, component)}; then set up without this pattern",
            )
    for name, body in templates.legacy_templates().items():
        if shared := _overlapping_patterns(patterns, body.get("index_patterns", ())):
            found[f"legacy template {name}"] = (
                f"also matches {shared}, and no legacy template applies where an index template does: "
                f"an index would be made without its {_describe(body)}. Move those to an index template with "
                f'"composed_of": ["{component}"], then set up without this pattern',
            )
    return found


def incomplete_streams(templates: Templates, index: str, component: str) -> dict[str, tuple[str, ...]]:
    """Return data streams whose next index will lack our fields, each with a remedy."""
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
    """Return the request that adds our component template to an index template, as text."""
    wanted = {**body, "composed_of": [*body.get("composed_of", ()), component]}
    return f"PUT /_index_template/{name} {json.dumps(wanted, ensure_ascii=False)}"


def patterns_overlap(one: str, other: str) -> bool:
    """Return whether some name matches both of two patterns with ``*``."""
    if not one or not other:
        return not (one + other).strip("*")
    if one[0] == "*":
        return patterns_overlap(one[1:], other) or patterns_overlap(one, other[1:])
    if other[0] == "*":
        return patterns_overlap(other, one)
    return one[0] == other[0] and patterns_overlap(one[1:], other[1:])


def pattern_of(index: str, alias: str = "") -> str:
    """Return the pattern of an index and those that will replace it: ``pages-*`` for ``pages-000001``.

    Where the index is named after its alias, so is the pattern: the digits of ``news-2024`` stay.
    """
    if alias and (match := re.match(rf"({re.escape(alias)}[._-])\d", index)):
        return f"{match[1]}*"
    stem = re.sub(r"(?:(?<=[._-])\d[\d._-]*|\d+)$", "", index)
    return f"{stem}*" if stem not in {"", index} else f"{index}-*"


def _overlapping_patterns(patterns: tuple[str, ...], others: list[str]) -> str:
    """Return our patterns that overlap with others, as text."""
    return ", ".join(ours for ours in patterns if any(patterns_overlap(ours, other) for other in others))


def _describe(body: Mapping[str, Any]) -> str:
    """Describe what a template adds to an index."""
    kinds = [
        ("settings", [f"{name}: {value}" for name, value in flat_settings(body.get("settings") or {})]),
        ("mappings", list((body.get("mappings") or {}).get("properties") or {})),
        ("aliases", list(body.get("aliases") or {})),
    ]
    rest = (body.get("mappings") or {}).keys() - {"properties"}
    kinds.append(("options of its mappings", sorted(rest)))
    return "; ".join(f"{kind} {few(names)}" for kind, names in kinds if names) or "(empty) contents"


def flat_settings(settings: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings of a template by their dotted paths."""
    for name, value in settings.items():
        below = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            yield from flat_settings(value, below)
        else:
            yield below, value


def few(names: Sequence[str]) -> str:
    """Return the first names of a list as text, and the number of further ones."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def check_updatable(engine: Engine, index: str, field: str) -> None:
    """Check that fingerprints can be added to every index of a name without losing data.

    Raises:
        ConfigError: one index does not allow it; nothing was written.
        IndexMissing: there is no such index.
    """
    for name, found in obstacles(engine, index, field).items():
        raise ConfigError(f"index {name!r} was not changed: {'; '.join(found)}")


def obstacles(engine: Engine, index: str, field: str, *, writes: bool = True) -> dict[str, tuple[str, ...]]:
    """Return the indices of a name, alias, pattern or data stream that can't be updated, with the reasons.

    Args:
        writes: include write blocks.
    """
    settings = settings_of(engine, index)
    found = {
        name: (
            *source_obstacles(mappings, settings.get(name, {})),
            *change_obstacles(settings.get(name, {})),
            *field_obstacles(name, mappings, field),
            *keyword_obstacles(name, settings.get(name, {})),
            *(write_obstacles(name, settings.get(name, {})) if writes else ()),
        )
        for name, mappings in engine.all_mappings(index).items()
    }
    return {name: reasons for name, reasons in found.items() if reasons}


def write_blocks(engine: Engine, index: str) -> dict[str, tuple[str, ...]]:
    """Return the indices of a name that accept no writes, with the reasons."""
    found = {name: tuple(write_obstacles(name, own)) for name, own in settings_of(engine, index).items()}
    return {name: reasons for name, reasons in found.items() if reasons}


def settings_of(engine: Engine, index: str) -> dict[str, Mapping[str, Any]]:
    """Return the settings of each index by flat name; {} if the engine has none or does not show them."""
    if engine.templates is None:
        return {}
    try:
        return dict(engine.templates.index_settings(index))
    except PermissionDenied:
        # The user may not read settings. A blocked index refuses the first write, before anything is changed.
        return {}


def source_obstacles(mappings: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield reasons why an update would lose data."""
    source = mappings.get("_source") or {}
    if source.get("enabled") is False or source.get("mode") == "disabled":
        yield "documents are not stored (_source is off), so that their fingerprints can't be computed"
    named = [*source.get("excludes", ()), *(name for name in source.get("includes", ()) if name != "*")]
    if named:
        kind = "excludes" if source.get("excludes") else "includes"
        yield (
            f"its _source omits fields ({kind}: {', '.join(map(str, named))}), and an update would remove "
            "them from the index, too: index the documents into an index that stores all fields"
        )
    mode = source.get("mode") or settings.get("index.mapping.source.mode")
    synthetic = mode == "synthetic" or (mode is None and settings.get("index.mode") in _SYNTHETIC_MODES)
    if synthetic or _is_true(settings, "index.derived_source.enabled"):
        yield (
            "its _source is rebuilt from the fields, and an update would store that instead of the original: "
            "index the documents into an index that stores them"
        )


def change_obstacles(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reason if an index only accepts new documents."""
    if _is_true(settings, "index.append_only.enabled"):
        yield (
            "its documents can't be updated (index.append_only.enabled): index them into an index that "
            "allows updates"
        )


def field_obstacles(
    index: str, mappings: Mapping[str, Any], field: str, texts: Iterable[str] = ()
) -> Iterator[str]:
    """Yield a message if the fingerprint field can't be added, or only searches know the field of a text."""
    for text in texts:
        if (found := definition_of(mappings, text)) and found[0] != text:
            yield f"no document has a field [{text}], which only searches know: name [{found[0]}] instead"
    if mappings.get("disable_objects") is True:
        yield f"[{field}] is an object, and its mapping allows none (disable_objects): index into another one"
    if mappings.get("subobjects") is False and dynamic_of(mappings, field) == "strict":
        yield (
            f"[{field}] is an object, and a strict mapping without subobjects refuses those: let it ignore "
            f'unknown fields instead: PUT /{index}/_mapping {{"dynamic": false}}'
        )
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


def keyword_obstacles(index: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reason if the index leaves out keywords as long as those of a fingerprint."""
    name = "index.mapping.ignore_above"
    if int(settings.get(name, _LONGEST_KEYWORD)) < _LONGEST_KEYWORD:
        yield (
            f"it indexes no keyword of more than {settings[name]} characters ({name}), so fingerprints could "
            f'not be found; allow them: PUT /{index}/_settings?reopen=true {{"{name}": {_LONGEST_KEYWORD}}}'
        )


def unmapped_fields(mappings: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Return the fields that a mapping lacks and does not leave unmapped (``dynamic: false``)."""
    return [
        name
        for name in names
        if mapped_at(mappings, name) is None and dynamic_of(mappings, name) not in ("false", "disabled")
    ]


def unwritable_fields(index: str, mappings: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    """Yield a message for each field that a strict mapping refuses and whose type is not known."""
    for name in unmapped_fields(mappings, names):
        if dynamic_of(mappings, name) == "strict" and name not in USUAL_PROPERTIES:
            body: JSON = {"type": "keyword"}
            for part in reversed(split_path(name)):
                body = {"properties": {part: body}}
            yield (
                f"the pipeline writes [{name}], which its strict mapping refuses; add the field "
                f"with the type that you want: PUT /{index}/_mapping {json.dumps(body, ensure_ascii=False)}"
            )


def dynamic_of(mappings: Mapping[str, Any], path: str) -> str:
    """Return ``dynamic`` of the object that would get a field, such as ``strict``.

    ``disabled`` if an object above it is not read.
    """
    node: Mapping[str, Any] = mappings
    dynamic = "true"
    for name in split_path(path):
        if node.get("enabled") is False:
            return "disabled"
        dynamic = str(node.get("dynamic", dynamic)).lower()
        node = (node.get("properties") or {}).get(name) or {}
    return dynamic


def write_obstacles(index: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield reasons why an index accepts no writes, with remedies."""
    if _is_true(settings, "index.verified_before_close"):
        yield f"it is closed; open it first: POST /{index}/_open"
    if settings.get("index.store.type") in _SNAPSHOTS:
        yield "it is a searchable snapshot, and takes no writes: restore it as an index first"
    elif _is_true(settings, "index.frozen"):
        yield f"it is frozen, and takes no writes; unfreeze it first: POST /{index}/_unfreeze"
    else:
        for name in _BLOCKS:
            if _is_true(settings, name):
                yield f'it takes no writes ({name}); allow them: PUT /{index}/_settings {{"{name}": false}}'


def other_field_hint(index: str, mappings: Mapping[str, Any]) -> str:
    """Return the command that keeps fingerprints in an unused field."""
    used = mappings.get("properties") or {}
    free = next(name for number in count(1) if (name := f"_copies{number if number > 1 else ''}") not in used)
    return f"keep fingerprints in another field: {suggest('setup', index, dedup_field=free)}"


def _foreign(field: str, why: str, index: str, mappings: Mapping[str, Any]) -> str:
    return f"[{field}] {why}, so it is not shinglefold's; {other_field_hint(index, mappings)}"


def _is_true(settings: Mapping[str, Any], name: str) -> bool:
    return str(settings.get(name)).lower() == "true"
