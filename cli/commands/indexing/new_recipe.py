"""The recipe that ``setup`` gives indices: theirs, changed by flags and settings."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from shinglefold.api.index_recipe import mappings_or_none, with_languages, with_preset, with_profile
from shinglefold.cli.shared.open_index import (
    check_dictionaries,
    needed_seal,
    new_pipeline,
    parse_pipeline,
    seal_of_index,
    seal_of_settings,
)
from shinglefold.cli.shared.output import warn
from shinglefold.cli.shared.recipe import (
    Target,
    chosen_languages,
    chosen_preset,
    one_recipe,
    options_of_language,
)
from shinglefold.contracts.engine import JSON, Engine, Templates
from shinglefold.engines import open_engine
from shinglefold.errors import ConfigError, SchemeMismatch
from shinglefold.ingest.recipe_recovery import recover_recipe
from shinglefold.model.recipe import (
    META_KEY,
    Recipe,
    fingerprint_field,
    has_recipe,
    retarget,
    with_keywords,
    with_never_differ,
)
from shinglefold.model.scheme import LanguageRef, Scheme
from shinglefold.model.seal import Seal
from shinglefold.registry import installed_languages

if TYPE_CHECKING:
    from shinglefold.cli.shared.command import Invocation


def setup_recipe(
    target: Target,
    invocation: "Invocation",
    indices: Sequence[str],
    patterns: Sequence[str],
    template: str,
    *,
    seal: bool = False,
) -> Recipe:
    """Return the recipe for indices and for patterns of new ones.

    Args:
        template: the name of the templates. The recipe is read from them if no index matches the patterns.
        seal: seal existing indices, too, with the key in the settings.

    Raises:
        ConfigError: there is no key, the indices have different recipes, or a flag is not valid.
    """
    own = needed_seal(target.settings) if seal else None
    with closing(open_engine(target.where)) as engine:
        names = (*indices, *(() if engine.templates is None else patterns))
        found = {index: one for name in names for index, one in mappings_or_none(engine, name).items()}
        in_template = {} if engine.templates is None else _in_template(engine.templates, template)
        found = found or in_template
        noted = {index: mappings for index, mappings in found.items() if has_recipe(mappings)}
        lost = [index for index in found.keys() - noted.keys() if fingerprint_field(found[index])]
        known = [Recipe.of(one, name) for name, one in {**noted, **in_template}.items() if has_recipe(one)]
        noted |= _recover_recipes(target, engine, sorted(lost), known)
    try:
        recipe = one_recipe(noted, target) if noted else None
    except SchemeMismatch:
        # An index of another algorithm gets a new recipe.
        recipe = None
    if recipe is None:
        return new_pipeline(target, invocation)[1]
    if not chosen_languages(target)[0]:
        check_dictionaries(replace(target, index=target.index or min(noted)), recipe)
    return _change_recipe(target, recipe, own or seal_of_index(target, recipe))


def _recover_recipes(
    target: Target, engine: Engine, indices: Sequence[str], known: Sequence[Recipe]
) -> dict[str, JSON]:
    """Return for each index whose recipe is gone mappings with the recipe of its fingerprints.

    Raises:
        ConfigError: it can't be found out, and no flag names the fields.
    """
    found: dict[str, JSON] = {}
    for index in indices:
        settings = target.settings
        try:
            options = settings.canon_options(), dict(settings.language)
            recovered = recover_recipe(engine, index, known, seal_of_settings(settings), options)
        except ConfigError:
            if target.fields or target.pipeline:
                continue
            raise
        if recovered is not None:
            recipe, scheme = recovered.recipe, recovered.recipe.scheme
            found[index] = {"_meta": {META_KEY: recipe.to_json()}}
            note = (
                f"the recipe of {index} was gone; {recovered.matched} of {recovered.compared} "
                f"documents looked at show that it was scheme {scheme.id} ({scheme.name}), texts "
                f"{', '.join(recipe.fields)}"
            )
            warn([note], "note")
    return found


def _change_recipe(target: Target, recipe: Recipe, seal: Seal | None) -> Recipe:
    """Return a recipe with the changes of flags and settings.

    Raises:
        ConfigError: a flag or setting is not valid.
    """
    settings = target.settings
    field = settings.field if "field" in settings.given else recipe.field
    definition = target.definition(field, recipe.pipeline) or retarget(recipe.pipeline, recipe.field, field)
    if target.profile is not None or target.never_differ:
        definition = with_never_differ(definition, field, target.facts())
    pipeline = parse_pipeline(definition, _change_scheme(target, recipe), seal)
    # A pipeline of a file names the field itself.
    wanted = None if target.pipeline and "field" not in settings.given else field
    profile = recipe.profile if target.profile is None else target.profile
    return replace(pipeline.recipe(wanted).with_notes_of(recipe), profile=profile)


def with_keyword_storage(recipe: Recipe, *, keywords: bool) -> Recipe:
    """Return a recipe that stores supershingles if ``keywords``, else omits them.

    Raises:
        ConfigError: the scheme needs them.
    """
    if not keywords and recipe.scheme.decision.min_resemblance <= 0:
        raise ConfigError(
            f"the scheme {recipe.scheme.name!r} decides by supershingles alone, so they can't be left out"
        )
    return replace(recipe, pipeline=with_keywords(recipe.pipeline, recipe.field, keywords))


def _change_scheme(target: Target, recipe: Recipe) -> Scheme:
    """Return a scheme with the preset, the languages and the options of flags and settings."""
    preset, _ = chosen_preset(target)
    scheme = with_preset(recipe.scheme, preset) if preset else recipe.scheme
    if preset or target.profile:
        scheme = with_profile(scheme, target.profile or recipe.profile, recipe.profile)
    codes, _ = chosen_languages(target)
    if codes:
        if "all" in target.languages:  # also those of the index whose dictionaries are missing
            codes = tuple({*codes, *({ref.code for ref in scheme.languages} & installed_languages().keys())})
        scheme = with_languages(scheme, codes, target.settings.canon_options())
    languages = sorted(scheme.languages, key=lambda ref: ref.code)
    return replace(scheme, languages=tuple(_with_options(target, ref) for ref in languages))


def _with_options(target: Target, ref: LanguageRef) -> LanguageRef:
    given = {name: value for name, (value, _) in options_of_language(target.settings, ref.code).items()}
    return replace(ref, options=replace(ref.options, **given)) if given else ref


def _in_template(templates: Templates, name: str) -> dict[str, JSON]:
    """Return the mappings of the component templates of an index template."""
    template: Mapping[str, JSON] = templates.index_templates().get(name) or {}
    found = {}
    for part in template.get("composed_of", ()):
        mappings = ((templates.component_template(part) or {}).get("template") or {}).get("mappings")
        if isinstance(mappings, dict):
            found[f"component template {part}"] = mappings
    return found
