"""``shinglefold stats [INDEX]`` and ``shinglefold info``: what indices hold, what is set and installed."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.shared.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.shared.definitions import engine_option
from shinglefold.cli.shared.output import (
    format_share,
    format_size,
    print_table,
    printable,
    remark,
    warn,
    write_json,
    write_line,
    write_lines,
)
from shinglefold.errors import MissingExtra, ShinglefoldError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from shinglefold.cli.shared.next_commands import Hints
    from shinglefold.maintenance.statistics import IndexStatistics
    from shinglefold.model.recipe import Recipe
    from shinglefold.settings import SettingOrigin, Settings


@command(
    examples="""
    shinglefold stats
    shinglefold stats pages
    shinglefold stats 'articles*' --json
    """
)
@click.argument("index", metavar="[INDEX]", default="*")
@engine_option
@click.pass_obj
def stats(invocation: Invocation, /, *, index: str, engine: str | None) -> int:
    """List the indices of an engine, or show what an INDEX holds.

    Shows its documents, how many of them are signed, their languages, its size, and the recipe of its
    fingerprints. For an alias or a pattern, each index behind it is shown. Without INDEX there is one line
    for each index. Exit code 3 says that some could not be read.
    """
    from shinglefold.cli.commands.indexing.new_index import leftover_warnings
    from shinglefold.cli.shared.recipe import no_index_fits, no_such_index
    from shinglefold.engines import open_engine
    from shinglefold.errors import IndexMissing
    from shinglefold.maintenance.statistics import statistics

    target = invocation.target(index, engine)
    with closing(open_engine(target.where)) as opened:
        try:
            found = statistics(opened, index)
        except IndexMissing as error:
            raise no_such_index(opened, target) from error
        if not found and index != "*":
            raise no_index_fits(target)
        recipes = [one.info for one in found if one.recipe]
        leftovers = list(leftover_warnings(opened, recipes, target.hints)) if index == "*" else []
    if invocation.json:
        invocation.write_summary({"indices": [one.to_json() for one in found]})
    else:
        _print(found, index, target.hints)
    for one in found:
        if one.problem:
            remark(f"{printable(one.info.name)}: {printable(target.hints.complete(one.problem))}")
    warn(leftovers, "note")
    return PARTLY if any(one.problem for one in found) else DONE


def _print(found: "Sequence[IndexStatistics]", index: str, hints: "Hints") -> None:
    if not found:
        write_line(f"no index; make one: {hints.command('index', 'FILE')}")
    elif index == "*":
        print_table(("index", "documents", "signed", "size", "scheme", "also called"), map(_row, found))
    else:
        for number, one in enumerate(found):
            write_lines([""] * bool(number) + _lines(one, hints))


def _row(one: "IndexStatistics") -> tuple[str, ...]:
    return (
        one.info.name,
        "?" if one.documents is None else f"{one.documents:,}",
        format_share(one.signed_share),
        format_size(one.info.size),
        "?" if one.unknown else one.scheme or "none: not made for fingerprints",
        " ".join(one.info.aliases),
    )


def _lines(one: "IndexStatistics", hints: "Hints") -> list[str]:
    documents = "unknown" if one.documents is None else f"{one.documents:,}"
    lines = [f"index         {one.info.name}"]
    if one.info.aliases:
        lines.append(f"also called   {', '.join(one.info.aliases)}")
    lines += [f"documents     {documents}", f"size          {format_size(one.info.size)}"]
    if one.scheme:
        lines.append(f"scheme        {one.scheme}")
    if one.recipe is None:
        name = one.info.name
        return (
            lines
            if one.scheme or one.unknown
            else [*lines, f"not made for fingerprints: {hints.command('setup', name)}"]
        )
    return [*lines, *_fingerprint_rows(one, hints), *_recipe(one.recipe)]


def _fingerprint_rows(one: "IndexStatistics", hints: "Hints") -> list[str]:
    if one.problem:
        # The request failed, so there may be fingerprints.
        return ["signed        ?", "languages     ?"]
    languages = ", ".join(f"{code} {count:,}" for code, count in one.languages.items())
    lines = [
        f"signed        {one.signed:,} ({format_share(one.signed_share)})",
        f"languages     {languages or 'none'}",
    ]
    short = one.fingerprints - one.signed
    if short > 0:
        lines.append(f"too short     {short:,}: they fold with equal texts only")
    if (without := one.without_fingerprint) > 0:
        backfill = hints.command("backfill", one.info.name)
        lines.append(f"to backfill   {without:,} without a fingerprint: {backfill}")
    return [*lines, *_group_rows(one, hints)]


def _group_rows(one: "IndexStatistics", hints: "Hints") -> list[str]:
    lines = []
    if one.grouped is not None:
        lines.append(f"in groups     {one.grouped:,}")
        if one.ungrouped:
            number = hints.command("regroup", one.info.name)
            lines.append(
                f"ungrouped     {one.ungrouped:,} have no number of a group; to number them: {number}"
            )
    if one.placeholders:
        lines.append(
            f"placeholders  {one.placeholders:,} reserved by a gate while it decides about documents. "
            f"To remove those of crashed writers: {hints.command('doctor', one.info.name, fix=True)}"
        )
    return lines


def _recipe(recipe: "Recipe") -> list[str]:
    sketch = recipe.scheme.sketch
    dictionaries = ", ".join(f"{ref.code} {ref.version}" for ref in recipe.scheme.languages)
    steps = [next(iter(step)) for step in recipe.pipeline.get("processors", ()) if step]
    lines = [
        f"preset        {recipe.scheme.name}: {sketch.groups} supershingles of {sketch.group_size} values, "
        f"{sketch.values} values of {sketch.bits} bits",
        f"dictionaries  {dictionaries}",
        f"texts         {', '.join(recipe.fields) or 'title, body'}, fingerprints in {recipe.field}"
        + (f", sealed with the key {recipe.sealed}" if recipe.sealed else ""),
    ]
    if steps:
        lines.append(f"pipeline      {', '.join(steps)}")
    if recipe.fold:
        lines.append("searches      folded by default")
    if recipe.gate is not None:
        lines.append(f"gate          {recipe.gate}")
    if recipe.product:
        lines.append(f"made by       shinglefold {recipe.product}")
    return lines


@command(
    examples="""
    shinglefold info
    SHINGLEFOLD_WORKERS=1 shinglefold info --json
    """
)
@click.pass_obj
def info(invocation: Invocation, /) -> int:
    """Show the engine, the settings and the languages in use.

    Each setting has its value and its origin: the file, the environment or the defaults. Each installed
    language has its scripts, unit, modes, version and distribution; an unusable one has what it lacks.
    """
    from shinglefold.engines.http.connection import without_secrets
    from shinglefold.registry import installed_languages
    from shinglefold.settings import SECRETS, settings_with_origins

    settings, origins = settings_with_origins(invocation.config)
    values = {name: _plain(getattr(settings, name)) for name in origins}
    values |= {name: "(set)" for name in SECRETS if values[name]}
    values["data_dir"] = without_secrets(settings.data_dir)
    engine = without_secrets(invocation.target("*", None).where)
    languages = [_describe(point) for point in installed_languages().values()]
    scheme, problem = _scheme(settings)
    if invocation.json:
        shown = {
            name: {"value": values[name], "from": origins[name].kind, "where": origins[name].where}
            for name in origins
        }
        write_json({"engine": engine, "settings": shown, **scheme, "languages": languages})
        return DONE
    write_line(f"engine: {engine}\n")
    print_table(("setting", "value", "from"), _rows(settings, values, origins, languages))
    write_line(f"scheme of these settings: {problem or scheme['scheme']} ({settings.preset})\n")
    _print_languages(languages)
    return DONE


def _scheme(settings: "Settings") -> tuple[dict[str, Any], str]:
    """Return the id of the scheme that the settings describe, or why there is none."""
    try:
        return {"scheme": settings.scheme().id}, ""
    except ShinglefoldError as error:
        return {"scheme": None, "problem": str(error)}, f"none: {error}"
    except Exception as error:
        # A plugin may raise anything.
        problem = f"{type(error).__name__}: {error}"
        return {"scheme": None, "problem": problem}, f"none: {problem}"


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the value of a setting as JSON; the options of languages by code."""
    if isinstance(value, tuple) and value and not isinstance(value[0], str):
        return {code: asdict(options) for code, options in value}
    return list(value) if isinstance(value, tuple) else value


def _rows(
    settings: "Settings",
    values: Mapping[str, Any],
    origins: "Mapping[str, SettingOrigin]",
    languages: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[str, str, str]]:
    """Yield the settings as typed in a file, with the default values of those that are not set."""
    for name, value in values.items():
        origin = f"{origins[name].kind} {origins[name].where}".strip()
        if name == "language" and value:
            yield from _language_rows(settings, origin)
        elif name == "languages" and not value:
            codes = ",".join(one["code"] for one in languages if one["usable"])
            yield name, f"all installed: {codes}", origin
        else:
            yield name, _as_typed(name, value), origin


def _language_rows(settings: "Settings", origin: str) -> Iterator[tuple[str, str, str]]:
    """Yield the options that are set for single languages."""
    known = dict(settings.language)
    for name in settings.given:
        table, _, rest = name.partition(".")
        code, _, option = rest.partition(".")
        if table == "language" and code in known:
            yield name, _as_typed(option, getattr(known[code], option)), origin


def _as_typed(name: str, value: Any) -> str:  # noqa: ANN401 - of any setting
    if isinstance(value, list):
        return ",".join(value) or "none"
    if name == "workers" and not value:
        return "0 (one per core)"
    if isinstance(value, bool | int):
        return json.dumps(value)
    return str(value or "none")


def _describe(point: "EntryPoint") -> dict[str, Any]:
    """Return the properties of a language; an error is not raised, but returned in ``problem``."""
    from shinglefold.model.scheme import CanonOptions
    from shinglefold.registry import language_class

    distribution = f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""
    shown: dict[str, Any] = {"code": point.name, "plugin": point.value, "distribution": distribution}
    try:
        cls = language_class(point.name)
        shown |= {"scripts": sorted(cls.scripts), "unit": cls.unit, "modes": sorted({*cls.modes, "surface"})}
        cls(CanonOptions())
        # Last, because the version of a missing dictionary is unknown.
        shown["version"] = cls.version()
    except MissingExtra as error:
        return {
            **shown,
            "usable": False,
            "problem": str(error),
            "install": f"pip install 'shinglefold[{error.extra}]'",
        }
    except ShinglefoldError as error:
        return {**shown, "usable": False, "problem": str(error)}
    except Exception as error:
        # A plugin may raise anything.
        return {**shown, "usable": False, "problem": f"{type(error).__name__}: {error}"}
    return {**shown, "usable": True}


def _print_languages(found: list[dict[str, Any]]) -> None:
    print_table(
        ("language", "scripts", "unit", "modes", "version", "from", "usable"),
        [
            (
                one["code"],
                " ".join(one.get("scripts", ())),
                one.get("unit", ""),
                " ".join(one.get("modes", ())),
                one.get("version", ""),
                one["distribution"],
                "yes" if one["usable"] else f"no: {one.get('install', one['problem'])}",
            )
            for one in found
        ],
    )
