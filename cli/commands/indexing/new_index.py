"""What a new index is made with: templates, ``--mapping``, and what ``--recreate`` keeps of the old index."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shinglefold.cli.shared.next_commands import chain
from shinglefold.cli.shared.recipe import matching_templates, recipe_of_index
from shinglefold.cli.shared.sources import read_json
from shinglefold.contracts.engine import JSON, Engine, Templates
from shinglefold.engines import open_engine
from shinglefold.errors import (
    ConfigError,
    EngineError,
    IndexMissing,
    PermissionDenied,
    SchemeMismatch,
    UnsupportedQuery,
    counted,
)
from shinglefold.maintenance.preconditions import flat_settings

if TYPE_CHECKING:
    from shinglefold.cli.shared.next_commands import Hints
    from shinglefold.cli.shared.recipe import Target
    from shinglefold.contracts.engine import IndexInfo
    from shinglefold.grouping.rules import Rules
    from shinglefold.model.recipe import Recipe

#: Parts of a mapping that ``--mapping`` rejects instead of ignoring them.
_REJECTED = (
    "dynamic",
    "dynamic_templates",
    "date_detection",
    "numeric_detection",
    "_source",
    "_routing",
    "runtime",
)
#: Settings that a server makes by itself, or that would block writing.
_NOT_KEPT = (
    "index.allocation.existing_shards_allocator", "index.blocks.", "index.creation_date", "index.frozen",
    "index.history.", "index.lifecycle.indexing_complete", "index.provided_name", "index.remote_store.",
    "index.resize.", "index.routing.allocation.initial_recovery.", "index.store.snapshot", "index.uuid",
    "index.verified_before_close", "index.version.",
)  # fmt: skip
#: The mappings that servers make of fields by themselves.
_DYNAMIC = (
    *({"type": name} for name in ("long", "float", "boolean", "date")),
    {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
)


# Templates of the server


def template_defaults(engine: Engine, index: str) -> tuple[JSON, JSON]:
    """Return the settings, by flat names, and the properties that templates give an index of this name."""
    settings: JSON = {}
    properties: JSON = {}
    try:
        templates = list(_templates_of_index(engine.templates, index)) if engine.templates is not None else []
    except PermissionDenied:
        templates = []
    for one in templates:
        for path, value in flat_settings(one.get("settings") or {}):
            settings[path if path.startswith("index.") else f"index.{path}"] = value
        properties |= _properties(one.get("mappings") or {})
    return settings, properties


def _templates_of_index(templates: Templates, index: str) -> Iterator[Mapping[str, Any]]:
    """Yield the index template that applies, or without one all legacy templates, the strongest last."""
    matching = matching_templates(templates.index_templates(), index)
    if matching:
        yield templates.resolved_template(max(matching, key=lambda name: matching[name].get("priority") or 0))
        return
    legacy = matching_templates(templates.legacy_templates(), index)
    yield from sorted(legacy.values(), key=lambda body: body.get("order") or 0)


def _properties(mappings: Mapping[str, Any]) -> Mapping[str, Any]:
    return mappings.get("properties") or {}


# The file of --mapping


def read_properties(path: str | None) -> dict[str, Any]:
    """Return the properties in a file: a mapping, its ``properties``, or a whole index with ``mappings``.

    Raises:
        InputError: the file can't be read.
        ConfigError: it holds no mapping.
    """
    if path is None:
        return {}
    found = read_json(path, "mapping")
    for name in ("mappings", "properties"):
        if isinstance(found, dict) and (
            rejected := [key for key in _REJECTED if key in found and name in found]
        ):
            raise ConfigError(
                f"the mapping {path}: of a mapping the properties alone are taken, not {rejected[0]!r}"
            )
        found = found.get(name, found) if isinstance(found, dict) else found
    if not isinstance(found, dict) or not all(isinstance(value, dict) for value in found.values()):
        raise ConfigError(f'the mapping {path} must hold fields, such as {{"price": {{"type": "float"}}}}')
    return found


def check_types(target: "Target", types: Mapping[str, Any], path: str) -> None:
    """Check that an existing index has these types of fields, as no engine changes them in place."""
    with closing(open_engine(target.where)) as engine:
        exists = engine.index_exists(target.index)
        indices = engine.all_mappings(target.index).values() if exists else ()
    for mappings in indices:
        known = _properties(mappings)
        for name, node in types.items():
            found, wanted = _type(known[name]) if name in known else "not mapped", _type(node)
            if found != wanted:
                raise ConfigError(
                    f"index {target.index!r} is there, and --mapping {path} is of a new one: {name!r} is "
                    f"{found} there, not {wanted}; leave it out, or rebuild the index: --recreate"
                )


def _type(node: Mapping[str, Any]) -> str:
    return str(node.get("type", "object"))


@contextmanager
def explain_mapping_errors(path: str | None) -> Iterator[None]:
    """Name the file of ``--mapping`` in the error of an engine that rejects it.

    Raises:
        ConfigError: the engine rejects it.
    """
    try:
        yield
    except UnsupportedQuery as error:
        if path is None:
            raise
        raise ConfigError(f"the mapping {path}: {error}") from error


# What --recreate keeps


@dataclass(frozen=True, slots=True)
class ReplacedIndex:
    """What ``index --recreate`` keeps of the index that it replaces.

    ``settings`` (by flat names) and ``properties`` yield to the server's templates; ``scope_properties``, the
    fields that ``grouping`` compares, do not. ``losses``: a warning for each part that is not kept.
    """

    settings: JSON = field(default_factory=dict)
    properties: JSON = field(default_factory=dict)
    grouping: Mapping[str, Any] = field(default_factory=dict)
    scope_properties: JSON = field(default_factory=dict)
    losses: tuple[str, ...] = ()


def read_replaced_index(target: "Target", recipe: "Recipe", *, numbered: bool) -> ReplacedIndex:
    """Return what a new index keeps of the index under its name.

    Args:
        recipe: the recipe of the new index.
        numbered: whether the new index has group numbers.
    """
    settings, properties, lost_options = _layout(target)
    grouping, scope_properties, lost_groups = _grouping(target, recipe, numbered=numbered)
    losses = tuple(filter(None, (lost_groups, *lost_options)))
    return ReplacedIndex(settings, properties, grouping, scope_properties, losses)


def _layout(target: "Target") -> tuple[JSON, JSON, tuple[str, ...]]:
    """Return the settings and the mapped fields of an index, and warnings about its other mappings."""
    nothing: tuple[JSON, JSON, tuple[str, ...]] = {}, {}, ()
    with closing(open_engine(target.where)) as engine:
        templates = engine.templates
        try:
            found = engine.all_mappings(target.index)
            none: dict[str, JSON] = {name: {} for name in found}
            settings = none if templates is None else templates.index_settings(target.index)
        except (IndexMissing, PermissionDenied):
            return nothing
    if len(found) != 1 or len(settings) != 1:
        # A name of several indices is rejected elsewhere.
        return nothing
    ((name, mappings),) = found.items()
    kept = {at: one for at, one in settings[name].items() if not at.startswith(_NOT_KEPT)}
    lost = (_lost_options(name, mappings, templates is not None), _lost_notes(target, mappings))
    return kept, _mapped_fields(mappings, target.settings.field), lost


def _mapped_fields(mappings: Mapping[str, Any], dedup: str) -> JSON:
    """Return the fields that users have mapped, without that of the fingerprints."""
    from shinglefold.model.recipe import stored_recipe

    stored = stored_recipe(mappings) or {}
    ours = {str(name).partition(".")[0] for name in (dedup, stored.get("field") or dedup)}
    return dict(
        _without_dynamic({name: one for name, one in _properties(mappings).items() if name not in ours})
    )


def _without_dynamic(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields that a server would not map in the same way by itself."""
    for name, node in fields.items():
        if node.keys() <= {"properties"}:
            if below := dict(_without_dynamic(_properties(node))):
                yield name, {"properties": below}
        elif node not in _DYNAMIC:
            yield name, node


def _lost_options(name: str, mappings: Mapping[str, Any], templates: bool) -> str:
    """Return a warning about options of the mappings that are not kept, else ""."""
    options = {key: one for key, one in mappings.items() if key not in ("_meta", "properties")}
    if not options:
        return ""
    shown = json.dumps(options, ensure_ascii=False)
    only = "get that only from a template" if templates else "do not"
    return f"the mappings of {name!r} had {shown}, and those of the new index {only}"


def _lost_notes(target: "Target", mappings: Mapping[str, Any]) -> str:
    """Return a warning about what the recipe noted for folded clients, else ""."""
    from shinglefold.model.recipe import stored_recipe

    stored = stored_recipe(mappings) or {}
    noted = {"fold": stored.get("fold") or None, "gate": stored.get("gate")}
    noted = {name: value for name, value in noted.items() if value not in (None, "none")}
    if not noted:
        return ""
    return (
        f"index {target.index!r} noted for folded clients: {', '.join(noted)}; the new one does not. To note "
        f"it again: {target.command('setup', **noted)}"
    )


def _grouping(target: "Target", recipe: "Recipe", *, numbered: bool) -> tuple[Mapping[str, Any], JSON, str]:
    """Return the rules of an index for its groups, the fields that they compare, and a warning if lost."""
    from shinglefold.grouping.rules import Rules
    from shinglefold.rerank.index_fields import source_of

    try:
        old, found = recipe_of_index(target)
        rules = Rules.of(old)
    except (IndexMissing, ConfigError, SchemeMismatch):
        # An unreadable recipe is a reason to recreate an index.
        return {}, {}, ""
    if not old.groups:
        return {}, {}, ""
    regroup = _regroup_command(target, rules, str(old.grouping.get("linkage") or ""))
    if not numbered:
        numbers = chain([target.command("setup", groups=True), regroup])
        return (
            {},
            {},
            f"index {target.index!r} numbered groups, and the new one does not; to number them: {numbers}",
        )
    if old.grouping and old.scheme.id != recipe.scheme.id:
        lost = f"rules for its groups were noted in {target.index!r} for another scheme, and are not kept"
        return {}, {}, f"{lost}; to go by them: {regroup}"
    tops = {source_of(found.values(), name).partition(".")[0] for name in rules.scope}
    properties = {
        name: node
        for mappings in found.values()
        for name, node in _properties(mappings).items()
        if name in tops
    }
    return old.grouping, properties, ""


def _regroup_command(target: "Target", rules: "Rules", linkage: str) -> str:
    numbers = {"min_resemblance": rules.min_resemblance, "min_similarity": rules.min_similarity}
    return target.command(
        "regroup",
        linkage=linkage or None,
        verify=rules.verify,
        scope=rules.scope,
        **{name: None if value is None else str(value) for name, value in numbers.items()},
    )


# Unfinished indices


def leftover_warnings(engine: "Engine", infos: "Iterable[IndexInfo]", hints: "Hints") -> Iterator[str]:
    """Yield a warning for each unfinished index of a killed run, with the command that deletes it."""
    from shinglefold.ingest.writing.target_index import unfinished_rebuilds

    for info, name in unfinished_rebuilds(engine, infos):
        count = "" if info.documents is None else f", with {counted(info.documents, 'document')}"
        also = f", also called {', '.join(info.aliases)}" if info.aliases else ""
        yield (
            f"the index {info.name!r}{also}{count}, was being built by an index --recreate of {name!r}, "
            f"which goes on or was killed; if it was killed, delete what it left: "
            f"{hints.command('delete', info.name, yes=True)}"
        )


def leftovers_of_index(target: "Target") -> list[str]:
    """Return the warnings about unfinished indices that were to replace an index."""
    try:
        with closing(open_engine(target.where)) as engine:
            return list(leftover_warnings(engine, engine.indices(f"{target.index}-*"), target.hints))
    except EngineError:
        # A user who may not list indices may still write to them.
        return []
