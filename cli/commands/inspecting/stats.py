"""``shinglefold stats [INDEX]``: list the indices of an engine, or show what one holds."""

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import click

from shinglefold.cli.framework.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.framework.output import (
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
from shinglefold.cli.options.definitions import engine_option

if TYPE_CHECKING:
    from shinglefold.cli.framework.next_commands import Hints
    from shinglefold.maintenance.statistics import IndexStatistics
    from shinglefold.model.recipe import Recipe


@command(
    examples="""
    shinglefold stats
    shinglefold stats pages
    shinglefold stats 'news-*' --json
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
    from shinglefold.cli.session.recipe import no_such_index
    from shinglefold.engines import open_engine
    from shinglefold.errors import IndexMissing
    from shinglefold.maintenance.statistics import statistics

    target = invocation.target(index, engine)
    with closing(open_engine(target.where)) as opened:
        try:
            found = statistics(opened, index)
        except IndexMissing as error:
            raise no_such_index(opened, target) from error
        recipes = [one.info for one in found if one.recipe]
        leftovers = list(leftover_warnings(opened, recipes, target.hints)) if index == "*" else []
    if invocation.json:
        write_json({"indices": [one.to_json() for one in found]})
    else:
        _print(found, index, target.hints)
    for one in found:
        if one.problem:
            remark(f"{printable(one.info.name)}: {printable(target.hints.complete(one.problem))}")
    warn(leftovers, "note")
    return PARTLY if any(one.problem for one in found) else DONE


def _print(found: "Sequence[IndexStatistics]", index: str, hints: "Hints") -> None:
    if not found:
        write_line(_no_index(index, hints))
    elif index == "*":
        print_table(("index", "documents", "signed", "size", "scheme", "also called"), map(_row, found))
    else:
        for number, one in enumerate(found):
            write_lines([""] * bool(number) + _lines(one, hints))


def _no_index(pattern: str, hints: "Hints") -> str:
    if pattern == "*":
        return f"no index; make one: {hints.command('index', 'FILE')}"
    return f"no index fits {printable(pattern)!r}; this lists all: {hints.command('stats')}"


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
    return [*lines, *_signed(one, hints), *_recipe(one.recipe)]


def _signed(one: "IndexStatistics", hints: "Hints") -> list[str]:
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
    return [*lines, *_grouped(one, hints)]


def _grouped(one: "IndexStatistics", hints: "Hints") -> list[str]:
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
