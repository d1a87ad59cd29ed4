"""What the templates of a server say of an index to come, which no guess of ours is to overrule."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from shinglefold.contracts.engine import JSON, Engine, Templates
from shinglefold.errors import PermissionDenied

if TYPE_CHECKING:
    from shinglefold.cli.framework.next_commands import Hints
    from shinglefold.cli.session.recipe import Target
    from shinglefold.contracts.engine import JSON, Engine, IndexInfo
    from shinglefold.grouping.rules import Rules
    from shinglefold.model.recipe import Recipe


@dataclass(frozen=True, slots=True)
class TemplateDefaults:
    """``settings`` by flat names, and ``properties``: fields with their mappings."""

    settings: JSON = field(default_factory=dict)
    properties: JSON = field(default_factory=dict)

    def not_in_templates(self, properties: Mapping[str, Any]) -> JSON:
        """Return mappings of fields but for those that are said here."""
        return {name: node for name, node in properties.items() if name not in self.properties}


def template_defaults(engine: Engine, index: str) -> TemplateDefaults:
    """Return what an index of this name is given; nothing where the engine has no templates."""
    if engine.templates is None:
        return TemplateDefaults()
    try:
        made = list(_applied(engine.templates, index))
    except PermissionDenied:
        # Who may not see templates can't be told what they say.
        return TemplateDefaults()
    settings: JSON = {}
    properties: JSON = {}
    for one in made:
        settings |= dict(_flat(one.get("settings") or {}))
        properties |= (one.get("mappings") or {}).get("properties") or {}
    return TemplateDefaults(settings, properties)


def _applied(templates: Templates, index: str) -> Iterator[Mapping[str, Any]]:
    """Yield what applies: one index template, or where there is none all legacy ones, the last word last."""
    fitting = _fitting(templates.index_templates(), index)
    if fitting:
        yield templates.resolved_template(max(fitting, key=lambda name: fitting[name].get("priority") or 0))
        return
    yield from sorted(
        _fitting(templates.legacy_templates(), index).values(), key=lambda body: body.get("order") or 0
    )


def _fitting(bodies: Mapping[str, JSON], index: str) -> dict[str, JSON]:
    return {
        name: body
        for name, body in bodies.items()
        if any(fnmatchcase(index, pattern) for pattern in body.get("index_patterns", ()))
    }


def _flat(settings: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        below = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            yield from _flat(value, below)
        else:
            yield below if below.startswith("index.") else f"index.{below}", value


#: Settings that a server makes by itself, or that would keep documents out.
_NOT_KEPT = (
    "index.allocation.existing_shards_allocator", "index.blocks.", "index.creation_date", "index.frozen",
    "index.history.", "index.lifecycle.indexing_complete", "index.provided_name", "index.remote_store.",
    "index.resize.", "index.routing.allocation.initial_recovery.", "index.store.snapshot", "index.uuid",
    "index.verified_before_close", "index.version.",
)  # fmt: skip
#: What servers make of fields that nobody has mapped.
_GUESSES = (
    *({"type": name} for name in ("long", "float", "boolean", "date")),
    {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
)


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """``settings`` by flat names, and ``properties``: the mappings of fields that somebody has made.

    ``left``: what of its mappings is not kept; empty where there is nothing to tell.
    """

    settings: "JSON" = field(default_factory=dict)
    properties: "JSON" = field(default_factory=dict)
    left: str = ""


def read_layout(target: "Target") -> IndexLayout:
    """Return the layout of the one index under a name; an embedded one has fields and no settings."""
    from contextlib import closing

    from shinglefold.engines import open_engine
    from shinglefold.errors import IndexMissing, PermissionDenied

    with closing(open_engine(target.where)) as engine:
        templates = engine.templates
        try:
            found = engine.all_mappings(target.index)
            none: dict[str, JSON] = {name: {} for name in found}
            settings = none if templates is None else templates.index_settings(target.index)
        except (IndexMissing, PermissionDenied):
            return IndexLayout()
    if len(found) != 1 or len(settings) != 1:
        # The name is refused anyway.
        return IndexLayout()
    ((name, mappings),) = found.items()
    kept = {at: one for at, one in settings[name].items() if not at.startswith(_NOT_KEPT)}
    return IndexLayout(
        kept, _made(mappings, target.settings.field), _left(name, mappings, templates is not None)
    )


def _made(mappings: Mapping[str, Any], dedup: str) -> "JSON":
    """Return the fields that somebody has mapped, but for that of the fingerprints."""
    from shinglefold.model.recipe import stored_recipe

    stored = stored_recipe(mappings) or {}
    ours = {str(name).partition(".")[0] for name in (dedup, stored.get("field") or dedup)}
    return dict(_said({name: one for name, one in _fields(mappings).items() if name not in ours}))


def _said(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield fields but for those that a server would map in the same way if it were given their values."""
    for name, node in fields.items():
        if node.keys() <= {"properties"}:
            if below := dict(_said(_fields(node))):
                yield name, {"properties": below}
        elif node not in _GUESSES:
            yield name, node


def _fields(node: Mapping[str, Any]) -> Mapping[str, Any]:
    return node.get("properties") or {}


def _left(name: str, mappings: Mapping[str, Any], templates: bool) -> str:
    """Return in words which options of the mappings, beside the fields, are not kept."""
    import json

    options = {key: one for key, one in mappings.items() if key not in ("_meta", "properties")}
    if not options:
        return ""
    told = json.dumps(options, ensure_ascii=False)
    only = "do so only by a template" if templates else "do not"
    return f"the mappings of {name!r} also said {told}, and those of the new index {only}"


#: What a mapping may say beside its properties.
_NOT_TAKEN = (
    "dynamic",
    "dynamic_templates",
    "date_detection",
    "numeric_detection",
    "_source",
    "_routing",
    "runtime",
)


def read_properties(path: str | None) -> dict[str, Any]:
    """Return the properties in a file: a mapping, its ``properties``, or a whole index with ``mappings``.

    Raises:
        InputError: the file can't be read.
        ConfigError: it is no mapping.
    """
    from shinglefold.cli.options.sources import read_json
    from shinglefold.errors import ConfigError

    if path is None:
        return {}
    found = read_json(path, "mapping")
    for name in ("mappings", "properties"):
        if isinstance(found, dict) and (
            beside := [key for key in _NOT_TAKEN if key in found and name in found]
        ):
            raise ConfigError(
                f"the mapping {path}: of a mapping the properties alone are taken, not {beside[0]!r}"
            )
        found = found.get(name, found) if isinstance(found, dict) else found
    if not isinstance(found, dict) or not all(isinstance(value, dict) for value in found.values()):
        raise ConfigError(f'the mapping {path} must hold fields, such as {{"price": {{"type": "float"}}}}')
    return found


def check_types(target: "Target", types: Mapping[str, Any], path: str) -> None:
    """Refuse types of fields for an index that is there and has others: no engine changes them in place.

    Raises:
        ConfigError: it has.
    """
    from shinglefold.engines import open_engine
    from shinglefold.errors import ConfigError

    with closing(open_engine(target.where)) as engine:
        there = engine.all_mappings(target.index).values() if engine.index_exists(target.index) else ()
    for mappings in there:
        known = mappings.get("properties") or {}
        for name, node in types.items():
            now, wanted = _type(known[name]) if name in known else "not mapped", _type(node)
            if now != wanted:
                raise ConfigError(
                    f"index {target.index!r} is there, and --mapping {path} is of a new one: {name!r} is "
                    f"{now} there, not {wanted}; leave it out, or build the index anew: --recreate"
                )


def _type(node: Mapping[str, Any]) -> str:
    return str(node.get("type", "object"))


@contextmanager
def mapping_errors_named(path: str | None) -> Iterator[None]:
    """Name the file of a mapping that the engine refuses to make an index with.

    Raises:
        ConfigError: it does.
    """
    from shinglefold.errors import ConfigError, UnsupportedQuery

    try:
        yield
    except UnsupportedQuery as error:
        if path is None:
            raise
        raise ConfigError(f"the mapping {path}: {error}") from error


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What is kept of how an index made its groups.

    ``grouping``: the rules that it notes. ``properties``: mappings of the fields that these go by. ``left``:
    what is not kept, and the command that gives it back; empty where there is nothing to tell.
    """

    grouping: Mapping[str, Any] = field(default_factory=dict)
    properties: "JSON" = field(default_factory=dict)
    left: str = ""


def read_group_settings(target: "Target", recipe: "Recipe", *, numbered: bool) -> GroupSettings:
    """Return what a new index keeps of how the one in its place made its groups, as no option says it.

    Args:
        recipe: of the new one.
        numbered: whether it numbers groups.
    """
    from shinglefold.cli.session.recipe import recipe_of_index
    from shinglefold.errors import ConfigError, IndexMissing, SchemeMismatch
    from shinglefold.grouping.rules import Rules
    from shinglefold.rerank.request.field_check import source_of

    try:
        old, found = recipe_of_index(target)
        rules = Rules.of(old)
    except (IndexMissing, ConfigError, SchemeMismatch):
        # What can't be read can't be kept either, and is what one recreates an index for.
        return GroupSettings()
    if not old.groups:
        return GroupSettings()
    regroup = _regroup_command(target, rules, str(old.grouping.get("linkage") or ""))
    if not numbered:
        from shinglefold.cli.framework.next_commands import chain

        numbers = chain([target.hints.command("setup", target.index, groups=True), regroup])
        told = f"index {target.index!r} numbered groups, and the new one does not"
        return GroupSettings(left=f"{told}; let it: {numbers}")
    if old.grouping and old.scheme.id != recipe.scheme.id:
        told = f"rules for its groups were noted in {target.index!r} for another scheme, and are not kept"
        return GroupSettings(left=f"{told}; to go by them: {regroup}")
    tops = {source_of(found.values(), name).partition(".")[0] for name in rules.scope}
    properties = {
        name: node
        for mappings in found.values()
        for name, node in (mappings.get("properties") or {}).items()
        if name in tops
    }
    return GroupSettings(old.grouping, properties)


def _regroup_command(target: "Target", rules: "Rules", linkage: str) -> str:
    """Return the command that makes the groups of an index by rules."""
    numbers = {"min_resemblance": rules.min_resemblance, "min_similarity": rules.min_similarity}
    return target.hints.command(
        "regroup",
        target.index,
        linkage=linkage or None,
        verify=rules.verify,
        scope=rules.scope,
        across_languages=rules.across_languages,
        **{name: None if value is None else str(value) for name, value in numbers.items()},
    )


def leftover_warnings(engine: "Engine", infos: "Iterable[IndexInfo]", hints: "Hints") -> Iterator[str]:
    """Yield which indices are left of a run that was killed, each with the command that deletes it."""
    from shinglefold.ingest.writing.target_index import left_behind

    for info, name in left_behind(engine, infos):
        count = "" if info.documents is None else f", with {info.documents:,} documents"
        also = f", also called {', '.join(info.aliases)}" if info.aliases else ""
        yield (
            f"the index {info.name!r}{also}{count}, was being built by an index --recreate of {name!r}, "
            f"which goes on or was killed; if it was killed, delete what it left: "
            f"{hints.command('delete', info.name, yes=True)}"
        )


def leftovers_of_index(target: "Target") -> list[str]:
    """Return a warning for each unfinished index that a killed ``index --recreate`` left."""
    from contextlib import closing

    from shinglefold.engines import open_engine
    from shinglefold.errors import EngineError

    try:
        with closing(open_engine(target.where)) as engine:
            return list(leftover_warnings(engine, engine.indices(f"{target.index}-*"), target.hints))
    except EngineError:
        # Whoever may not look for others may index all the same.
        return []
