"""The index a command works on, and its recipe: read from the index, and compared with flags and settings."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, NoReturn

from shinglefold.api.index_recipe import common_recipe, missing_index
from shinglefold.cli.shared.next_commands import Hints, chain
from shinglefold.cli.shared.sources import read_definition
from shinglefold.contracts.engine import JSON, Engine, Templates
from shinglefold.documents import FORMAT
from shinglefold.engines import is_server, open_engine
from shinglefold.engines.http.connection import named_addresses, without_secrets
from shinglefold.errors import ConfigError, IndexMissing, PermissionDenied, RecipeMismatch, Value
from shinglefold.model.profiles import profile_of
from shinglefold.model.recipe import (
    Recipe,
    comparable,
    first_difference,
    has_recipe,
    missing_recipe,
    never_differ,
    with_never_differ,
)
from shinglefold.model.scheme import PRESETS
from shinglefold.registry import codes_with_any, usable
from shinglefold.settings import Settings

_OPTIONS = ("mode", "drop_function_words", "drop_adjectives", "min_length")


@dataclass(frozen=True, slots=True)
class Target:
    """The index a command works on: its name, the flags about it, and the settings that flags override."""

    index: str
    settings: Settings
    hints: Hints
    preset: str | None = None
    pipeline: str | None = None
    fields: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    profile: str | None = None
    never_differ: tuple[str, ...] = ()

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

        An address in the setting ``data_dir`` overrides the addresses of a connection in the environment.
        """
        folder = self.settings.data_dir
        return self.hints.engine or (not is_server(folder) and named_addresses()) or folder

    def definition(
        self, field: str, stored: Mapping[str, Any] | None = None, *, pages: bool = False
    ) -> JSON | None:
        """Return the pipeline that ``--pipeline`` or ``--field`` name, else None.

        Args:
            field: the field to which the pipeline of ``--field`` writes fingerprints; a file names its own.
            stored: the pipeline of the index, which is kept if it is for these fields.
            pages: a new index is for files of HTML.
        """
        if self.pipeline:
            found: JSON = read_definition(self.pipeline)
            return found
        if not self.fields:
            return None
        # Imported here because few commands make a default pipeline.
        from shinglefold.ingest import default_definition

        if stored is not None:
            whole = default_definition(field, self.fields, pages=True)
            pages = with_never_differ(stored, field, ()) == comparable(whole)
            kept = never_differ(stored, field)
            return with_never_differ(default_definition(field, self.fields, pages=pages), field, kept)
        return default_definition(field, self.fields, pages=pages)

    def facts(self) -> list[str]:
        """Return what must not differ in copies by ``--never-differ``, else by ``--profile``."""
        # Imported here because few commands make a pipeline.
        from shinglefold.ingest.processors.texts import NeverDiffer

        given = self.never_differ or profile_of(self.profile or "").never_differ
        return NeverDiffer.parse(given, "--never-differ").names

    def command(self, name: str, *arguments: str, **options: Value) -> str:
        """Return another command for the same index, with the same ``--engine`` and ``--config``."""
        return self.hints.command(name, self.index, *arguments, **options)

    def setup_and_backfill(self, **options: Value) -> str:
        """Return the commands that set the index up with options, and then make its fingerprints."""
        return chain([self.command("setup", **options), self.command("backfill")])

    def take_text_from(self, fields: Sequence[str]) -> str:
        """Return the commands that make the fingerprints from other fields."""
        return self.setup_and_backfill(field=tuple(fields))

    def say_html(self) -> str:
        """Return the commands that declare stored documents as HTML, and sign them without markup."""
        if not is_server(self.where):
            return self.rebuild_command(html=True)
        script = json.dumps({"script": f"ctx._source.{FORMAT} = 'html'"})
        return f"POST /{self.index}/_update_by_query {script}, and then {self.command('backfill')}"

    def change_commands(self) -> str:
        """Return the commands that make the index fit flags and settings.

        Settings from environment variables become flags: a variable may be set for this command only.
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
            "profile": self.profile,
            "never_differ": self.never_differ,
        }
        if flags["languages"] and not is_server(self.where):
            return self.rebuild_command(preset=flags["preset"], pipeline=self.pipeline, field=self.fields)
        return self.setup_and_backfill(**flags)

    def rebuild_command(self, **options: Value) -> str:
        """Return the command that rebuilds the index; an embedded one stores words by language."""
        return self.hints.command("index", "FILE", index=self.index, recreate=True, **options)


class Contradiction(NamedTuple):
    """A part of the recipe: as the index has it, as a flag or setting wants it, and which one wants it."""

    what: str
    found: str
    wanted: str
    source: str


def recipe_of_index(target: Target, *, groups: bool = False) -> tuple[Recipe, dict[str, JSON]]:
    """Return the recipe of an index, and the mappings of each index behind its name; see ``open_store``.

    Raises:
        IndexMissing: there is no such index.
        ConfigError: it was not set up for fingerprints, or the name has indices with several recipes.
    """
    # The engine is opened without a canonicalizer, whose languages are only known from the recipe.
    with closing(open_engine(target.where)) as engine:
        try:
            found = engine.all_mappings(target.index)
        except IndexMissing as error:
            raise no_such_index(engine, target, groups=groups) from error
    return one_recipe(found, target), found


def no_such_index(engine: Engine, target: Target, *, groups: bool = False, remedy: str = "") -> IndexMissing:
    """Return the error for a missing index: which indices there are, and the remedy.

    Args:
        remedy: by default the commands that make the index, empty or of files.
    """
    of_files = target.hints.command("index", "FILE", index=target.index, groups=groups)
    remedy = remedy or (
        f"To make {target.index!r}: {target.command('setup', groups=groups)}; of files: {of_files}"
    )
    return missing_index(engine, target.index, remedy, without_secrets(target.where))


def no_index_fits(target: Target) -> IndexMissing:
    """Return the error for a pattern that is the name of no index."""
    where, every = without_secrets(target.where), target.hints.command("stats")
    return IndexMissing(f"no index fits {target.index!r} in {where}; this lists all: {every}")


def is_set_up(target: Target) -> bool:
    """Return whether the index exists.

    Raises:
        ConfigError: it was not set up for fingerprints.
    """
    try:
        return bool(recipe_of_index(target))
    except IndexMissing:
        return False


def recipe_of_template(target: Target) -> Recipe | None:
    """Return the recipe that an index template will give an index; None without one.

    Raises:
        SchemeMismatch: another version of shinglefold set the template up.
    """
    with closing(open_engine(target.where)) as engine:
        found = None if engine.templates is None else _template_for(engine.templates, target.index)
    return None if found is None else one_recipe({target.index: found}, target)


def _template_for(templates: Templates, index: str) -> JSON | None:
    """Return the mappings with a recipe in the template that applies, or in its component templates."""
    try:
        matching = matching_templates(templates.index_templates(), index)
        applied = max(matching.values(), key=lambda body: body.get("priority") or 0, default={})
        parts = [templates.component_template(name) or {} for name in applied.get("composed_of", ())]
    except PermissionDenied:
        # The user may not read templates, so flags and settings decide.
        return None
    found = [(part.get("template") or {}).get("mappings") or {} for part in [*parts, applied]]
    return next((mappings for mappings in reversed(found) if has_recipe(mappings)), None)


def matching_templates(bodies: Mapping[str, JSON], index: str) -> dict[str, JSON]:
    """Return the templates whose patterns match the name of an index."""
    return {
        name: body
        for name, body in bodies.items()
        if any(fnmatchcase(index, pattern) for pattern in body.get("index_patterns", ()))
    }


def one_recipe(found: Mapping[str, JSON], target: Target) -> Recipe:
    """Return the recipe that all of several indices have.

    Raises:
        IndexMissing: there is no index.
        ConfigError: one of them has no recipe, or they have different ones.
    """
    if not found:
        raise no_index_fits(target)

    def not_set_up(name: str) -> str:
        return missing_recipe(found[name], name, target.hints.command)

    def different(first: tuple[str, Recipe], other: tuple[str, Recipe]) -> str:
        mine, theirs = _describe(first[1]), _describe(other[1])
        if mine == theirs:
            mine, theirs = f"{mine}, by one pipeline", f"{theirs}, by another"
        return (
            f"the indices behind {target.index!r} were made with different recipes: {first[0]} with "
            f"{mine}, {other[0]} with {theirs}; name one of them, or set up each for itself"
        )

    return common_recipe(found, not_set_up, different)


def check_target(target: Target, recipe: Recipe) -> None:
    """Check that no flag or setting contradicts the recipe of an index."""
    for one in _contradictions(target, recipe):
        _refuse(target, one)


def check_field(target: Target, recipe: Recipe) -> None:
    """Check that the setting ``field`` names the fingerprint field of the index."""
    settings = target.settings
    if "field" in settings.given and settings.field != recipe.field:
        what, source = "fingerprints in the field", settings.given["field"]
        _refuse(target, Contradiction(what, recipe.field, settings.field, source))


def _refuse(target: Target, one: Contradiction) -> NoReturn:
    raise RecipeMismatch(
        one.what,
        one.found,
        f"{one.wanted} ({one.source})",
        f"index {target.index!r}",
        f"Leave it out, or change the index: {target.change_commands()}",
    )


def chosen_languages(target: Target) -> tuple[tuple[str, ...], str]:
    """Return the languages that a flag or setting names, and which one; empty without one."""
    if target.languages:
        return (tuple(usable()[0]) if "all" in target.languages else target.languages), "--languages"
    given = target.settings.given.get("languages", "")
    named = target.settings.languages if given else ()
    return codes_with_any(named or None) or (), given


def chosen_preset(target: Target) -> tuple[str, str]:
    """Return the preset that a flag or setting names, and which one; empty without one.

    Raises:
        ConfigError: there is no such preset.
    """
    settings = target.settings
    if target.preset is not None:
        return target.preset, "--preset"
    if "preset" in settings.given and settings.preset not in PRESETS:
        raise ConfigError.unknown("preset", settings.preset, PRESETS)
    return (settings.preset, settings.given["preset"]) if "preset" in settings.given else ("", "")


def options_of_language(settings: Settings, code: str) -> dict[str, tuple[Any, str]]:
    """Return the options of a language and where each was set; its own override those of all languages."""
    own = dict(settings.language)
    found = {}
    for name in _OPTIONS:
        if source := settings.given.get(f"language.{code}.{name}"):
            found[name] = getattr(own[code], name), source
        elif source := settings.given.get(name):
            found[name] = getattr(settings, name), source
    return found


def _contradictions(target: Target, recipe: Recipe) -> Iterator[Contradiction]:
    check_field(target, recipe)
    preset, source = chosen_preset(target)
    if preset and PRESETS[preset].sketch != recipe.scheme.sketch:
        yield Contradiction("the preset", recipe.scheme.name, preset, source)
    codes, source = chosen_languages(target)
    made = {ref.code: ref for ref in recipe.scheme.languages}
    if codes and set(codes) != made.keys():
        yield Contradiction("the languages", ",".join(made), ",".join(sorted(codes)), source)
    for code, ref in made.items():
        for name, (value, source) in options_of_language(target.settings, code).items():
            if getattr(ref.options, name) != value:
                yield Contradiction(f"{code} {name}", str(getattr(ref.options, name)), str(value), source)
    if target.profile and target.profile != recipe.profile:
        yield Contradiction("the profile", recipe.profile or "none", target.profile, "--profile")
    if target.never_differ and target.facts() != list(recipe.never_differ):
        found, wanted = ", ".join(recipe.never_differ) or "nothing", ", ".join(target.facts())
        yield Contradiction("what never differs", found, wanted, "--never-differ")
    definition = target.definition(recipe.field, recipe.pipeline)
    if definition is not None and comparable(definition) != recipe.pipeline:
        from shinglefold.ingest import Pipeline

        # Parsed first, so that an invalid pipeline is not reported as a difference.
        Pipeline.from_json(definition, recipe.scheme)
        ours, theirs = first_difference(recipe.pipeline, comparable(definition))
        source = "--field" if target.fields else f"--pipeline {target.pipeline}"
        yield Contradiction("the pipeline", ours, theirs, source)


def _describe(recipe: Recipe) -> str:
    scheme = f"scheme {recipe.scheme.id} ({recipe.scheme.name})"
    seal = f", sealed with the key {recipe.sealed}" if recipe.sealed else ""
    return f"{scheme}, texts {', '.join(recipe.fields)}, fingerprints in {recipe.field}{seal}"
