"""``shinglefold.setup`` and ``remove``: prepare an index for fingerprints, and undo it."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, get_args

from shinglefold.api.index_recipe import (
    MOST_NAMES,
    mappings_or_none,
    open_to_write,
    with_languages,
    with_preset,
    with_profile,
)
from shinglefold.contracts.engine import JSON, Engine
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError, EngineError, counted
from shinglefold.grouping.intent_index import intents_name
from shinglefold.ingest import Pipeline, default_definition
from shinglefold.ingest.index_mapping import usual_properties
from shinglefold.ingest.processors.texts import NeverDiffer
from shinglefold.ingest.recipe_recovery import recover_recipe
from shinglefold.maintenance.deletion import Removal, carry_out_removal, plan_removal
from shinglefold.maintenance.setup import Plan, SetupRequest, carry_out, make_plan
from shinglefold.model.profiles import profile_of
from shinglefold.model.recipe import (
    GateNote,
    Recipe,
    fingerprint_field,
    has_recipe,
    stored_recipe,
    with_never_differ,
    with_passages,
)
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.options.validation import check_bool, check_choice, check_strings
from shinglefold.registry import codes_with_any, make_scheme
from shinglefold.rerank.index_fields import check_fields, recipes_changed
from shinglefold.settings import Settings, load_settings


def setup(
    where: Any,  # noqa: ANN401 - a folder, an address, a client
    index: str,
    *,
    text: Sequence[str] | None = None,
    languages: Sequence[str] | None = None,
    preset: str | None = None,
    fingerprint_field: str | None = None,
    groups: bool = False,
    passages: bool = False,
    profile: str | None = None,
    never_differ: Sequence[str] | None = None,
    fold: bool | None = None,
    gate: GateNote | None = None,
    seal_key: str | None = None,
    properties: Mapping[str, Any] | None = None,
) -> Plan:
    """Prepare an index for fingerprints; create a missing one. A second call changes nothing.

    Existing documents need ``shinglefold.open(where, index).backfill()`` afterwards; ``backfills`` of the
    returned plan counts them.

    Args:
        where: a folder, the address of a server, or a client; see ``shinglefold.open``.
        text: the fields whose texts are compared. Nothing is guessed: name them.
        languages: codes such as ``["ru", "uk"]``; by default those of the index, else of the settings, else
            all installed ones.
        preset: the scheme; by default that of the index, else ``"default"``.
        fingerprint_field: the object field that fingerprints are stored in; by default that of the index,
            else that of the settings. Queries that name no field leave out names that begin with ``_``.
        groups: whether documents get the number of their group.
        passages: whether to store the elements by which ``matches`` finds passages.
        profile: the kind of content: ``"pages"``, ``"products"``, ``"chunks"`` or ``"messages"``; sets what
            it needs (docs/pipelines.md). By default that of the index.
        never_differ: what documents must have in common to fold: ``"numbers"``, ``"letters"`` and ``"names"``
            of their texts, and fields such as ``"size"``; by default that of the profile, else of the index.
        fold: whether folded clients fold searches that do not ask for it; by default unchanged.
        gate: ``"refuse"``: folded clients refuse new documents that resemble stored ones; ``"none"``: they
            do not. By default unchanged.
        seal_key: seals fingerprints; for a new index by default that of the settings.
        properties: the types of further fields of a new index, as in its mappings.

    Raises:
        ConfigError: no field is named, the index lacks a field, it can't be changed in place, or its recipe
            is gone and can't be found out. No index was changed; for a data stream the component template
            that its index template needs was made.
        EngineError: the engine refuses.
    """
    check_bool("groups", groups)
    check_bool("passages", passages)
    if fold is not None:
        check_bool("fold", fold)
    if gate is not None:
        check_choice("gate", gate, get_args(GateNote))
    chosen = profile_of("" if profile is None else profile)
    if never_differ is None and profile is not None:
        never_differ = chosen.never_differ
    settings = load_settings()
    with closing(open_engine(where)) as engine:
        found = mappings_or_none(engine, index)
        fields = _fields(text, index, found)
        stored = [Recipe.of(one, name) for name, one in found.items() if has_recipe(one)]
        before = stored[0] if stored else _recovered(engine, index, found, seal_key, settings)
        scheme = _scheme(before, codes_with_any(languages), preset, settings)
        kind = (before.profile if before else "") if profile is None else profile
        if profile is not None or preset is not None:
            scheme = with_profile(scheme, kind, before.profile if before else "")
        target = fingerprint_field or (before.field if before else settings.field)
        key = seal_key or (settings.seal_key if before is None or before.sealed else "")
        recipe = _recipe(scheme, target, fields, Seal.parse(key) if key else None, before)
        recipe = replace(recipe, groups=groups or bool(before and before.groups))
        recipe = replace(recipe, profile=kind, fold=fold, gate=gate)
        if passages:
            recipe = replace(recipe, pipeline=with_passages(recipe.pipeline, recipe.field))
        if never_differ is None and before is not None:
            never_differ = before.never_differ
        names = NeverDiffer.parse(never_differ or ()).names
        if names != NeverDiffer.parse(recipe.never_differ).names:
            recipe = replace(recipe, pipeline=with_never_differ(recipe.pipeline, recipe.field, names))
        plan = make_plan(engine, SetupRequest(recipe, (index,)))
        if plan.problems:
            # The request that a data stream needs names our component template.
            needed = tuple(change for change in plan.changes if change.kind == "component template")
            carry_out(engine, replace(plan, changes=needed))
            found_problems = (f"{name}: {one}" for name, some in plan.problems.items() for one in some)
            raise ConfigError(f"index {index!r} can't be set up in place: {'; '.join(found_problems)}")
        known = usual_properties(recipe) if engine.templates is None else {}
        plan = _with_properties(plan, {**known, **(properties or {})})
        try:
            carry_out(engine, plan)
        finally:
            recipes_changed()
    return plan


def remove(
    where: Any,  # noqa: ANN401 - as in setup
    index: str,
    *,
    dry_run: bool = False,
    requests_per_second: float = 0.0,
) -> Removal:
    """Remove everything that ``setup``, indexing and gates stored with an index; its documents stay.

    Documents lose their fingerprint field, and the mappings their recipe. Templates of these indices and the
    index of intents are deleted. The fields stay in the mappings, as engines remove none (``mapped``). No
    gate may be open.

    Args:
        where: a folder, the address of a server, or a client; see ``shinglefold.open``.
        dry_run: change nothing.
        requests_per_second: documents read, and written, a second; 0 sets no limit.

    Returns:
        What was removed, or would be.

    Raises:
        ConfigError: the index was not set up, or something prevents the removal; nothing was changed.
        EngineError: the engine failed, or a document keeps its fingerprint; a second call removes the rest.
    """
    check_bool("dry_run", dry_run)
    with closing(open_to_write(where, index)) as engine:
        names = dict.fromkeys([index, *engine.all_mappings(index)])
        plan = plan_removal(engine, index, [*map(intents_name, names)])
        if not dry_run:
            try:
                counts = carry_out_removal(engine, plan, requests_per_second=requests_per_second)
            finally:
                recipes_changed()
            if counts.left:
                id_, reason = next(iter(counts.reasons.items()))
                keep = counted(counts.left, "document keeps its", "documents keep their")
                raise EngineError(f"{keep} fingerprint, such as {id_}: {reason}")
    return plan


def _recovered(
    engine: Engine, index: str, found: Mapping[str, JSON], seal_key: str | None, settings: Settings
) -> Recipe | None:
    """Return the recipe of the fingerprints in an index that has lost its own; None without fingerprints.

    Raises:
        ConfigError: it can't be found out.
    """
    if not any(map(fingerprint_field, found.values())):
        return None
    key = seal_key or settings.seal_key
    options = settings.canon_options(), dict(settings.language)
    recovered = recover_recipe(engine, index, (), Seal.parse(key) if key else None, options)
    return None if recovered is None else recovered.recipe


def _with_properties(plan: Plan, properties: Mapping[str, Any]) -> Plan:
    """Return a plan that gives new indices these fields, too."""
    changes = [
        replace(one, body={**one.body, "properties": {**properties, **one.body["properties"]}})
        if one.kind == "new index"
        else one
        for one in plan.changes
    ]
    return replace(plan, changes=tuple(changes))


def _fields(text: Sequence[str] | None, index: str, found: dict[str, JSON]) -> tuple[str, ...]:
    """Return the fields with text, checked against the index.

    Raises:
        ConfigError: no field is named, or an index lacks one.
    """
    if not text:
        candidates = sorted(
            {
                name
                for mappings in found.values()
                for name, definition in (mappings.get("properties") or {}).items()
                if definition.get("type") == "text"
            }
        )
        there = f"; index {index!r} has text in {', '.join(candidates)}" if candidates else ""
        raise ConfigError(f'text: name the fields whose texts are compared: text=["title", "body"]{there}')
    fields = check_strings("text", text, MOST_NAMES)
    # An index without documents has the field of fingerprints only.
    with_fields = [
        mappings
        for mappings in found.values()
        if mappings.get("properties", {}).keys() - _fingerprint_field(mappings)
    ]
    if with_fields:
        check_fields(with_fields, index, fields, "text")
    return fields


def _fingerprint_field(mappings: JSON) -> set[str]:
    """Return the top-level field of the fingerprints of an index, if any."""
    stored = stored_recipe(mappings) or {}
    return {str(stored["field"]).split(".", maxsplit=1)[0]} if "field" in stored else set()


def _scheme(
    before: Recipe | None, codes: tuple[str, ...] | None, preset: str | None, settings: Settings
) -> Scheme:
    own = dict(settings.language)
    if before is None:
        codes = codes or codes_with_any(settings.languages or None)
        return make_scheme(preset or settings.preset, codes, settings.canon_options(), own)
    if codes is None and preset is None:
        return before.scheme
    scheme = with_preset(before.scheme, preset) if preset else before.scheme
    codes = codes or tuple(ref.code for ref in scheme.languages)
    return with_languages(scheme, codes, settings.canon_options(), own)


def _recipe(
    scheme: Scheme, target: str, fields: tuple[str, ...], seal: Seal | None, before: Recipe | None
) -> Recipe:
    """Return the recipe of these fields; an index with the same fields and target keeps its pipeline."""
    same = before is not None and before.fields == fields and before.field == target
    definition = before.pipeline if before is not None and same else default_definition(target, fields)
    return Pipeline.from_json(definition, scheme, seal=seal).recipe(target)
