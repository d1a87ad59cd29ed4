"""What the templates of a server say of an index to come, which no guess of ours is to overrule."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from shinglefold.contracts.engine import JSON, Engine, Templates
from shinglefold.errors import PermissionDenied

if TYPE_CHECKING:
    from shinglefold.cli.session.recipe import Asked
    from shinglefold.contracts.engine import JSON


@dataclass(frozen=True, slots=True)
class Templated:
    """``settings`` by flat names, and ``properties``: fields with their mappings."""

    settings: JSON = field(default_factory=dict)
    properties: JSON = field(default_factory=dict)

    def unsaid(self, properties: Mapping[str, Any]) -> JSON:
        """Return mappings of fields but for those that are said here."""
        return {name: node for name, node in properties.items() if name not in self.properties}


def templated(engine: Engine, index: str) -> Templated:
    """Return what an index of this name is given; nothing where the engine has no templates."""
    if engine.templates is None:
        return Templated()
    try:
        made = list(_applied(engine.templates, index))
    except PermissionDenied:
        # Who may not see templates can't be told what they say.
        return Templated()
    settings: JSON = {}
    properties: JSON = {}
    for one in made:
        settings |= dict(_flat(one.get("settings") or {}))
        properties |= (one.get("mappings") or {}).get("properties") or {}
    return Templated(settings, properties)


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


def kept_layout(asked: "Asked") -> IndexLayout:
    """Return the layout of the one index under a name; an embedded one has fields and no settings."""
    from contextlib import closing

    from shinglefold.engines import open_engine
    from shinglefold.errors import IndexMissing, PermissionDenied

    with closing(open_engine(asked.where)) as engine:
        templates = engine.templates
        try:
            found = engine.all_mappings(asked.index)
            none: dict[str, JSON] = {name: {} for name in found}
            settings = none if templates is None else templates.index_settings(asked.index)
        except (IndexMissing, PermissionDenied):
            return IndexLayout()
    if len(found) != 1 or len(settings) != 1:
        # The name is refused anyway.
        return IndexLayout()
    ((name, mappings),) = found.items()
    kept = {at: one for at, one in settings[name].items() if not at.startswith(_NOT_KEPT)}
    return IndexLayout(
        kept, _made(mappings, asked.settings.field), _left(name, mappings, templates is not None)
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
