"""The recipe of an index for a command: read from the index, and held against flags and settings."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from shinglefold.cli.framework.next_commands import Hints, chain
from shinglefold.cli.options.json_files import read_definition
from shinglefold.contracts.engine import JSON, Templates
from shinglefold.engines import is_server, open_engine
from shinglefold.engines.http import named_addresses, without_secrets
from shinglefold.errors import ConfigError, IndexMissing, PermissionDenied, RecipeMismatch, Value
from shinglefold.model.recipe import Recipe, comparable, first_difference, has_recipe
from shinglefold.model.scheme import PRESETS
from shinglefold.registry import usable
from shinglefold.settings import Settings

_OPTIONS = ("mode", "drop_function_words", "drop_adjectives", "min_length")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command was told of an index: its name, flags, and the settings they win over."""

    index: str
    settings: Settings
    hints: Hints
    preset: str | None = None
    pipeline: str | None = None
    fields: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.pipeline and self.fields:
            raise ConfigError(
                "--pipeline says itself which fields it reads: leave out --field, or --pipeline"
            )
        if self.preset is not None and self.preset not in PRESETS:
            raise ConfigError.unknown("preset", self.preset, PRESETS)

    @property
    def where(self) -> str:
        """The address of the server, or the folder of the embedded engine.

        The setting may be an address, too, and then wins over those that a connection in the environment has.
        """
        folder = self.settings.data_dir
        return self.hints.engine or (not is_server(folder) and named_addresses()) or folder

    def definition(self, field: str) -> JSON | None:
        """Return the pipeline that is asked for, None where none is.

        Args:
            field: where a pipeline made for some fields writes fingerprints; one from a file says it itself.
        """
        if self.pipeline:
            found: JSON = read_definition(self.pipeline)
            return found
        if not self.fields:
            return None
        # Most commands take the pipeline that the index notes, and many none.
        from shinglefold.ingest import default_definition

        return default_definition(field, self.fields)

    def command(self, name: str) -> str:
        """Return another command for the same index, with the same options of where and how."""
        return self.hints.command(name, self.index)

    def change(self) -> str:
        """Return the commands that change the index to what is asked for.

        What a variable asks for is named: it may have been set for one command alone.
        """
        set_here = {
            name for name, where in self.settings.given.items() if where == f"SHINGLEFOLD_{name.upper()}"
        }
        flags = {
            "preset": self.preset or (self.settings.preset if "preset" in set_here else None),
            "pipeline": self.pipeline,
            "field": self.fields,
            "languages": ",".join(
                self.languages or (self.settings.languages if "languages" in set_here else ())
            )
            or None,
            "dedup_field": self.settings.field if "field" in set_here else None,
        }
        if flags["languages"] and not is_server(self.where):
            return self.anew(preset=flags["preset"], pipeline=self.pipeline, field=self.fields)
        return chain([self.hints.command("setup", self.index, **flags), self.command("backfill")])

    def anew(self, **options: Value) -> str:
        """Return the command that builds the index anew: an embedded one has its words by the languages."""
        return self.hints.command("index", "FILE", index=self.index, recreate=True, **options)


class Contradiction(NamedTuple):
    """Something asked for that the index was not made with, and who asks for it."""

    what: str
    found: str
    asked: str
    source: str


def recipe_of_index(asked: Asked) -> tuple[Recipe, dict[str, JSON]]:
    """Return the recipe of an index that is there, and the mappings of each index behind its name.

    Raises:
        IndexMissing: there is none.
        ConfigError: it was not made for fingerprints, or several are behind the name that were made with
            different recipes.
    """
    # No text is analysed for this, and the languages are known only afterwards.
    with closing(open_engine(asked.where)) as engine:
        found = engine.all_mappings(asked.index)
    return one_recipe(found, asked), found


def recipe_to_come(asked: Asked) -> tuple[Recipe, dict[str, JSON]] | None:
    """Return the recipe an index will get from the index template it is made of, None where there is none.

    Raises:
        SchemeMismatch: another version of shinglefold set the template up.
    """
    with closing(open_engine(asked.where)) as engine:
        found = None if engine.templates is None else _template_for(engine.templates, asked.index)
    if found is None or not has_recipe(found):
        return None
    mappings = {asked.index: found}
    return one_recipe(mappings, asked), mappings


def _template_for(templates: Templates, index: str) -> JSON | None:
    """Return the mappings with a recipe that the one template which applies is composed of."""
    try:
        fitting = [
            body
            for body in templates.index_templates().values()
            if any(fnmatchcase(index, pattern) for pattern in body.get("index_patterns", ()))
        ]
        applied = max(fitting, key=lambda body: body.get("priority") or 0, default={})
        parts = [templates.component_template(name) or {} for name in applied.get("composed_of", ())]
    except PermissionDenied:
        # Who may not see templates says by flags and settings what the index is to be.
        return None
    found = [(part.get("template") or {}).get("mappings") or {} for part in [*parts, applied]]
    return next((mappings for mappings in reversed(found) if has_recipe(mappings)), None)


def one_recipe(found: Mapping[str, JSON], asked: Asked) -> Recipe:
    """Return the recipe that indices have together.

    Raises:
        ConfigError: one of them has none, or they have different ones.
    """
    if not found:
        raise IndexMissing(f"no index fits {asked.index!r} in {without_secrets(asked.where)}; check the name")
    for name, mappings in found.items():
        if not has_recipe(mappings):
            raise ConfigError(
                f"index {name!r} was not made for fingerprints; set it up first: "
                f"{chain([asked.hints.command(step, name) for step in ('setup', 'backfill')])}"
            )
    recipes = {name: Recipe.of(mappings, name) for name, mappings in found.items()}
    (first, recipe), *others = recipes.items()
    for name, other in others:
        if _decisive(recipe) != _decisive(other):
            mine, theirs = _told(recipe), _told(other)
            if mine == theirs:
                mine, theirs = f"{mine}, by one pipeline", f"{theirs}, by another"
            raise ConfigError(
                f"the indices behind {asked.index!r} were made with different recipes: {first} with "
                f"{mine}, {name} with {theirs}; name one of them, or set up each for itself"
            )
    return recipe


def _decisive(recipe: Recipe) -> tuple[object, ...]:
    return recipe.scheme.id, recipe.field, recipe.pipeline, recipe.sealed


def check_asked(asked: Asked, recipe: Recipe) -> None:
    """Refuse what contradicts the recipe of an index.

    Raises:
        RecipeMismatch: a flag or a setting says otherwise; the message names both and what to do.
    """
    for one in _contradictions(asked, recipe):
        raise RecipeMismatch(
            one.what,
            one.found,
            f"{one.asked} ({one.source})",
            f"index {asked.index!r}",
            f"Leave it out, or change the index: {asked.change()}",
        )


def check_field(asked: Asked, recipe: Recipe) -> None:
    """Refuse a setting that names another field of fingerprints than the index has.

    Raises:
        RecipeMismatch: it does.
    """
    settings = asked.settings
    if "field" in settings.given and settings.field != recipe.field:
        raise RecipeMismatch(
            "fingerprints in the field",
            recipe.field,
            f"{settings.field} ({settings.given['field']})",
            f"index {asked.index!r}",
            f"Leave it out, or change the index: {asked.change()}",
        )


def chosen_codes(asked: Asked) -> tuple[tuple[str, ...], str]:
    """Return the codes of the languages that are asked for, and by whom; none where nobody asks."""
    if asked.languages:
        return (tuple(usable()[0]) if "all" in asked.languages else asked.languages), "--languages"
    given = asked.settings.given.get("languages", "")
    return (asked.settings.languages if given else ()), given


def chosen_preset(asked: Asked) -> tuple[str, str]:
    """Return the preset that is asked for, and by whom; nothing where nobody asks.

    Raises:
        ConfigError: there is no such preset.
    """
    settings = asked.settings
    if asked.preset is not None:
        return asked.preset, "--preset"
    if "preset" in settings.given and settings.preset not in PRESETS:
        raise ConfigError.unknown("preset", settings.preset, PRESETS)
    return (settings.preset, settings.given["preset"]) if "preset" in settings.given else ("", "")


def given_options(settings: Settings, code: str) -> dict[str, tuple[Any, str]]:
    """Return the options of a language that are set, and where: its own before those of all."""
    own = dict(settings.language)
    found = {}
    for name in _OPTIONS:
        if source := settings.given.get(f"language.{code}.{name}"):
            found[name] = getattr(own[code], name), source
        elif source := settings.given.get(name):
            found[name] = getattr(settings, name), source
    return found


def _contradictions(asked: Asked, recipe: Recipe) -> Iterator[Contradiction]:
    check_field(asked, recipe)
    preset, source = chosen_preset(asked)
    if preset and PRESETS[preset].sketch != recipe.scheme.sketch:
        yield Contradiction("the preset", recipe.scheme.name, preset, source)
    codes, source = chosen_codes(asked)
    made = {ref.code: ref for ref in recipe.scheme.languages}
    if codes and set(codes) != made.keys():
        yield Contradiction("the languages", ",".join(made), ",".join(sorted(codes)), source)
    for code, ref in made.items():
        for name, (value, source) in given_options(asked.settings, code).items():
            if getattr(ref.options, name) != value:
                yield Contradiction(f"{code} {name}", str(getattr(ref.options, name)), str(value), source)
    definition = asked.definition(recipe.field)
    if definition is not None and comparable(definition) != recipe.pipeline:
        from shinglefold.ingest import Pipeline

        # One that is not valid is reported as such, not as a difference.
        Pipeline.from_json(definition, recipe.scheme)
        ours, theirs = first_difference(recipe.pipeline, comparable(definition))
        source = "--field" if asked.fields else f"--pipeline {asked.pipeline}"
        yield Contradiction("the pipeline", ours, theirs, source)


def _told(recipe: Recipe) -> str:
    scheme = f"scheme {recipe.scheme.id} ({recipe.scheme.name})"
    seal = f", sealed with the key {recipe.sealed}" if recipe.sealed else ""
    return f"{scheme}, texts {', '.join(recipe.fields)}, fingerprints in {recipe.field}{seal}"
