"""Plan and apply the changes to mappings and templates that indices need for fingerprints."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any, Literal, cast

from shinglefold.contracts.engine import JSON, Engine, Templates
from shinglefold.errors import ConfigError, IndexMissing, suggest
from shinglefold.ingest.index_mapping import USUAL_PROPERTIES, recipe_mappings
from shinglefold.ingest.pipeline.steps import written_fields
from shinglefold.maintenance.preconditions import (
    compare_mappings,
    conflicting_templates,
    differences,
    few,
    field_obstacles,
    incomplete_streams,
    keyword_obstacles,
    other_field_hint,
    pattern_of,
    patterns_overlap,
    settings_of,
    source_obstacles,
    unmapped_fields,
    unwritable_fields,
    write_obstacles,
)
from shinglefold.maintenance.reconcile import missing_query
from shinglefold.model.recipe import META_KEY, Recipe, fingerprint_field, stored_recipe
from shinglefold.options.validation import (
    check_bool,
    check_engine,
    check_int,
    check_str,
    check_strings,
    check_type,
)
from shinglefold.rerank.hits import check_complete

_VERSION = 1
_MOST_NAMES = 10_000
_MAKER = "shinglefold"
#: The default name of templates.
_NAME = "shinglefold"
Kind = Literal["component template", "index template", "new index", "mappings"]


@dataclass(frozen=True, slots=True)
class SetupRequest:
    """What to set up.

    ``recipe``: the recipe of the indices. ``indices``: names, aliases or patterns of existing indices; a
    plain name that is missing is created. ``patterns``: patterns of future indices, for which an index
    template is installed; existing indices that match are not changed. ``name``: the name of the templates.
    ``priority``: that of the index template. ``shadow``: install the index template even if others match the
    same indices and then no longer apply.
    """

    recipe: Recipe
    indices: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    name: str = _NAME
    priority: int = 100
    _: KW_ONLY
    shadow: bool = False

    def __post_init__(self) -> None:
        check_type("recipe", self.recipe, Recipe, "pipeline.recipe()")
        for name in ("indices", "patterns"):
            # A single string would be a list of its letters.
            check_strings(name, getattr(self, name), _MOST_NAMES)
        check_str("name", self.name)
        check_int("priority", self.priority)
        check_bool("shadow", self.shadow)
        if not self.indices and not self.patterns:
            raise ConfigError("nothing to set up: name an index, or a pattern of future indices")

    @property
    def written(self) -> tuple[str, ...]:
        """The fields that the pipeline adds to documents, other than the fingerprint field."""
        return written_fields(self.recipe.pipeline, self.recipe.field)

    @property
    def component(self) -> str:
        """The name of the component template."""
        return f"{self.name}-{self.recipe.field.replace('.', '-')}"


#: Why lines of a change make stored fingerprints useless, by how they begin.
_OUTDATES = {
    f"~ _meta.{META_KEY}.pipeline": "are of another pipeline",
    f"~ _meta.{META_KEY}.sealed": "are sealed with another key, and no search compares them",
    f"+ _meta.{META_KEY}.sealed": "are not sealed, and no search compares them",
}


@dataclass(frozen=True, slots=True)
class SetupChange:
    """One change: the ``body`` of the request, and its differences as lines of text."""

    kind: Kind
    name: str
    body: JSON
    lines: tuple[str, ...]
    new: bool = False

    @property
    def outdates(self) -> str:
        """Why the change of an index makes its stored fingerprints useless; "" if it does not."""
        lines = "\n".join(("", *self.lines)) if self.kind == "mappings" else ""
        return next((why for start, why in _OUTDATES.items() if f"\n{start}" in lines), "")


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes that setting up will make.

    ``problems``: messages on what can't be done in place, by index or template. ``backfills``: number of
    documents to be signed, by index. ``notes``: what stays as it is, and what to do about it.
    """

    changes: tuple[SetupChange, ...] = ()
    problems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    backfills: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> JSON:
        """Return the plan as JSON."""
        return asdict(self)


def make_plan(engine: Engine, request: SetupRequest) -> Plan:
    """Return the necessary changes without making them; none are left after ``carry_out``.

    Raises:
        ConfigError: the request has patterns, and the engine has no templates.
        EngineError: the engine can't be reached.
    """
    check_engine(engine)
    check_type("request", request, SetupRequest, "SetupRequest(…)")
    templates = engine.templates
    if request.patterns and templates is None:
        raise ConfigError("this engine has no templates: name the indices themselves, without a pattern")
    found, absent = _indices(engine, request)
    changes: list[SetupChange] = []
    problems: dict[str, tuple[str, ...]] = {}
    notes: list[str] = []
    if templates is not None:
        others = conflicting_templates(templates, request.patterns, request.name, request.component)
        streams = {
            name: reasons
            for index in request.indices
            for name, reasons in incomplete_streams(templates, index, request.component).items()
        }
        changes, users = _template_changes(templates, request, others, for_streams=bool(streams))
        problems |= users
        problems |= {} if request.shadow else others
        problems |= _not_ours(templates, request)
        problems |= streams
        notes += template_notes(engine, templates, request, found)
    changes += [_new_index(name, request) for name in absent]
    obstacles = {name: _obstacles(engine, name, mappings, request) for name, mappings in found.items()}
    refused = {name: reasons for name, reasons in obstacles.items() if reasons}
    problems |= refused
    changes += [
        change
        for name, mappings in found.items()
        if name not in refused
        for change in _mappings(name, mappings, request)
    ]
    ready = [name for name in found if name not in refused]
    if not (ready or absent or request.patterns):
        # No index can be set up, so that templates for the same recipe are of no use.
        changes.clear()
    outdated = {change.name for change in changes if change.outdates}
    backfills = {name: count for name in ready if (count := _count_to_sign(engine, name, request, outdated))}
    return Plan(tuple(changes), problems, backfills, tuple(notes))


def carry_out(engine: Engine, plan: Plan) -> None:
    """Make the changes of a plan, in order.

    Raises:
        EngineError: the engine refuses a change; earlier ones are made, and a new plan has the rest.
    """
    check_engine(engine)
    check_type("plan", plan, Plan, "what make_plan returns")
    for change in plan.changes:
        if change.kind == "new index":
            engine.create_index(change.name, change.body, {})
        elif change.kind == "mappings":
            engine.put_mappings(change.name, change.body)
        else:
            assert engine.templates is not None
            put = engine.templates.put_component_template
            if change.kind == "index template":
                put = engine.templates.put_index_template
            put(change.name, change.body)


def component_body(request: SetupRequest) -> JSON:
    """Return the component template with fields and recipe, for any index template."""
    return {
        "template": {"mappings": _plain(recipe_mappings(request.recipe))},
        "version": _VERSION,
        "_meta": {"made_by": _MAKER, "scheme": request.recipe.scheme.id},
    }


def template_body(request: SetupRequest) -> JSON:
    """Return the index template for the patterns."""
    return {
        "index_patterns": list(request.patterns),
        "composed_of": [request.component],
        "priority": request.priority,
        "version": _VERSION,
        "_meta": {"made_by": _MAKER},
    }


def _template_changes(
    templates: Templates,
    request: SetupRequest,
    others: Mapping[str, Sequence[str]],
    *,
    for_streams: bool,
) -> tuple[list[SetupChange], dict[str, tuple[str, ...]]]:
    """Return the changes of templates, and index templates that must keep the recipe they have.

    Without patterns, only a component template that no index template uses is installed, and only
    ``for_streams``. One in use may be that of other indices.
    """
    if request.patterns:
        users = _users_of_another_recipe(templates, request)
        if users:
            return [], users
        return [*_component(templates, request), *_template(templates, request, others)], {}
    used = any(
        request.component in body.get("composed_of", ()) for body in templates.index_templates().values()
    )
    return [*_component(templates, request)] if for_streams and not used else [], {}


def template_notes(
    engine: Engine, templates: Templates, request: SetupRequest, found: Mapping[str, JSON]
) -> list[str]:
    """Return what a plan leaves as it is: existing indices of a pattern, and templates of indices to come."""
    notes = [
        f"{few(existing)} exist already, and are not changed by a pattern: set them up, too: "
        f"{suggest('setup', pattern)}"
        for pattern in request.patterns
        if (existing := sorted(engine.all_mappings(pattern).keys() - found.keys()))
    ]
    component = templates.component_template(request.component)
    using = {
        name: tuple(body.get("index_patterns", ()))
        for name, body in templates.index_templates().items()
        if request.component in body.get("composed_of", ())
    }
    if not request.patterns and component is not None and next(_component(templates, request), None):
        notes += [
            f"index template {name}: new indices of {few(patterns)} still get the recipe of the component "
            f"template {request.component!r}, which is a different one; change it: "
            f"{suggest('setup', name=_unusual(request.name), pattern=patterns)}"
            for name, patterns in using.items()
            if any(patterns_overlap(index, pattern) for index in found for pattern in patterns)
        ]
    covered = [*request.patterns, *(pattern for patterns in using.values() for pattern in patterns)]
    for name in request.indices:
        behind = () if "*" in name else templates.writes_to(name)[0]
        to_come = tuple(dict.fromkeys(pattern_of(index, name) for index in behind if index != name))
        if open_ones := [one for one in to_come if not any(patterns_overlap(one, have) for have in covered)]:
            notes.append(
                f"{name} is an alias: an index that replaces {few(behind)} needs these fields before "
                "documents are copied into it, as a copy brings fingerprints that would be mapped as text. "
                "A template gives them: "
                f"{suggest('setup', pattern=tuple(open_ones), name=_unusual(request.name))}"
            )
    return notes


def _unusual(name: str) -> str | None:
    """Return the name of templates for a command; None if it is the default."""
    return None if name == _NAME else name


def _component(templates: Templates, request: SetupRequest) -> Iterator[SetupChange]:
    found = templates.component_template(request.component)
    if is_ours(found):
        mappings = ((found or {}).get("template") or {}).get("mappings") or {}
        wanted = component_body(request)
        wanted["template"]["mappings"]["_meta"][META_KEY] = _recipe_to_store(mappings, request.recipe)
        yield from _change("component template", request.component, found, wanted)


def _users_of_another_recipe(templates: Templates, request: SetupRequest) -> dict[str, tuple[str, ...]]:
    """Return index templates of other patterns whose recipe the component template would change."""
    lines = [line for change in _component(templates, request) for line in change.lines]
    if not any(line.startswith("~") for line in lines):
        return {}
    return {
        f"index template {name}": (
            f"gives indices of {', '.join(body.get('index_patterns', ()))} the recipe of the component "
            f"template {request.component!r}, which is a different recipe; use templates of another name: "
            "--name NAME",
        )
        for name, body in templates.index_templates().items()
        if request.component in body.get("composed_of", ())
        and not set(body.get("index_patterns", ())) <= set(request.patterns)
    }


def _template(
    templates: Templates, request: SetupRequest, others: Mapping[str, Sequence[str]]
) -> Iterator[SetupChange]:
    """Yield the change of the index template; if others match the same indices, only with ``shadow``."""
    found = templates.index_templates().get(request.name)
    if not request.patterns or not is_ours(found) or (others and not request.shadow):
        return
    wanted = template_body(request)
    # Keep patterns of earlier runs.
    wanted["index_patterns"] = list(
        dict.fromkeys([*(found or {}).get("index_patterns", ()), *wanted["index_patterns"]])
    )
    for change in _change("index template", request.name, found, wanted):
        warnings = tuple(f"! {name} {one}" for name, messages in others.items() for one in messages)
        yield replace(change, lines=(*change.lines, *warnings))


def _not_ours(templates: Templates, request: SetupRequest) -> dict[str, tuple[str, ...]]:
    """Return templates with our names that shinglefold did not make."""
    why = "was not made by shinglefold, and is not changed; use another name: --name NAME"
    found = {
        f"component template {request.component}": templates.component_template(request.component),
        f"index template {request.name}": templates.index_templates().get(request.name),
    }
    return {name: (why,) for name, body in found.items() if not is_ours(body)}


def is_ours(body: Mapping[str, Any] | None) -> bool:
    """Return whether a template is missing, or made by shinglefold."""
    return body is None or (body.get("_meta") or {}).get("made_by") == _MAKER


def _change(kind: Kind, name: str, found: JSON | None, wanted: JSON) -> Iterator[SetupChange]:
    lines = tuple(differences(found or {}, wanted))
    if lines:
        yield SetupChange(kind, name, _merge_template(found or {}, wanted), lines, new=found is None)


def _merge_template(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> JSON:
    """Return ``wanted`` with additional parts of ``found``, because a template is replaced as a whole.

    Of the recipe, and of the field of fingerprints, nothing found is kept: servers refuse a definition that
    is half that of another version.
    """
    merged = {**found, **wanted}
    for name, value in wanted.items():
        there = found.get(name)
        if name != META_KEY and isinstance(value, Mapping) and isinstance(there, Mapping):
            whole = fingerprint_field({"properties": {name: value}}) == name
            if not (whole or ("properties" in value and not _is_object(there))):
                merged[name] = _merge_template(there, value)
    return merged


def _is_object(definition: Mapping[str, Any]) -> bool:
    """Return whether a definition, or mappings, may have ``properties``."""
    return definition.get("type", "object") == "object" and definition.get("enabled") is not False


def _indices(engine: Engine, request: SetupRequest) -> tuple[dict[str, JSON], list[str]]:
    """Return the mappings of existing indices, and the names of those to create."""
    found: dict[str, JSON] = {}
    absent = []
    for name in request.indices:
        try:
            found |= engine.all_mappings(name)
        except IndexMissing:
            absent.append(name)
    return dict(sorted(found.items())), absent


def _obstacles(
    engine: Engine, name: str, mappings: Mapping[str, Any], request: SetupRequest
) -> tuple[str, ...]:
    """Return reasons why an index can't get fingerprints; it is not changed then."""
    settings = settings_of(engine, name).get(name, {})
    hint = f"this can't be changed in place: index into a new one, or {other_field_hint(name, mappings)}"
    return (
        *source_obstacles(mappings, settings),
        *field_obstacles(name, mappings, request.recipe.field, request.recipe.fields),
        *keyword_obstacles(name, settings),
        *unwritable_fields(name, mappings, request.written),
        *(f"{one}; {hint}" for one in compare_mappings(mappings, request.recipe).wrong),
        *write_obstacles(name, settings),
    )


def _new_index(name: str, request: SetupRequest) -> SetupChange:
    body = _plain(recipe_mappings(request.recipe))
    body["properties"] = {**_usual(unmapped_fields(body, request.written)), **body["properties"]}
    return SetupChange("new index", name, body, tuple(differences({}, body)), new=True)


def _mappings(name: str, found: Mapping[str, Any], request: SetupRequest) -> Iterator[SetupChange]:
    own = compare_mappings(found, request.recipe)
    missing = {**own.missing, **_usual(unmapped_fields(found, request.written))}
    meta = {**(found.get("_meta") or {}), META_KEY: _recipe_to_store(found, request.recipe)}
    lines = [f"+ {field}: {definition['type']}" for field, definition in missing.items()]
    lines += [f"{line[:1]} _meta.{line[2:]}" for line in differences(found.get("_meta") or {}, meta)]
    if lines:
        yield SetupChange("mappings", name, {"_meta": meta, **_additions(missing)}, tuple(lines))


def _usual(names: Iterable[str]) -> dict[str, JSON]:
    return {name: USUAL_PROPERTIES[name] for name in names if name in USUAL_PROPERTIES}


def _recipe_to_store(found: Mapping[str, Any], recipe: Recipe) -> JSON:
    """Return the recipe to store; if only the product version differs, the stored recipe stays."""
    stored, new = _plain(stored_recipe(found) or {}), _plain(recipe.to_json())
    same = not list(differences(stored, {**new, "product": stored.get("product")}))
    return _plain(found["_meta"][META_KEY]) if same else {**stored, **new}


def _additions(missing: Mapping[str, JSON]) -> JSON:
    """Return definitions by dotted path as nested ``properties``; existing fields must not be sent again."""
    body: JSON = {}
    for path, definition in missing.items():
        node = body
        *parents, last = path.split(".")
        for name in parents:
            node = node.setdefault("properties", {}).setdefault(name, {})
        node.setdefault("properties", {})[last] = definition
    return body


def _count_to_sign(engine: Engine, index: str, request: SetupRequest, outdated: set[str]) -> int:
    """Return the number of documents without a fingerprint of the scheme, or of all if these are outdated."""
    missing = missing_query(request.recipe.field, request.recipe.scheme.id)
    query = {"match_all": {}} if index in outdated else missing
    body = {"query": query, "size": 0, "track_total_hits": True, **engine.can.unaltered}
    return int(check_complete(engine.search(index, body, engine.can.newest))["hits"]["total"]["value"])


def _plain(value: Mapping[str, Any]) -> JSON:
    """Return a value with JSON's types: lists instead of tuples."""
    return cast("JSON", json.loads(json.dumps(value)))
