"""``shinglefold setup [INDEX…]``: prepare mappings and templates for fingerprints."""

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.shared.command import DONE, PARTLY, Invocation, command, given_options
from shinglefold.cli.shared.definitions import (
    content_options,
    engine_option,
    fields_option,
    note_missing_languages,
    pipeline_option,
    preset_option,
)
from shinglefold.cli.shared.maintenance import requests_per_second_option
from shinglefold.cli.shared.output import (
    printable,
    progress_bar,
    progress_reporter,
    warn,
    write_lines,
)
from shinglefold.errors import IndexMissing, counted

if TYPE_CHECKING:
    from shinglefold.cli.shared.next_commands import Hints
    from shinglefold.cli.shared.recipe import Target
    from shinglefold.contracts.engine import Engine
    from shinglefold.maintenance.deletion import Removal
    from shinglefold.maintenance.setup import Plan

#: The options that go with --remove, and those that need --pattern.
_OF_REMOVAL = {"engine", "remove", "requests_per_second", "dry_run", "json", "config"}
_OF_PATTERNS = ("priority", "shadow_templates")


@command(
    examples="""
    shinglefold setup pages --dry-run
    shinglefold setup pages archive
    shinglefold setup pages --remove --dry-run
    """
)
@click.argument("indices", nargs=-1, metavar="[INDEX]...")
@engine_option
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Pattern of new indices, such as 'news-*', for an index template; repeat it for more. Existing "
    "indices are not changed.",
)
@click.option(
    "--name", default="shinglefold", show_default=True, metavar="NAME", help="Name of the templates."
)
@click.option(
    "--priority",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    metavar="N",
    help="Priority of the index template among others that match.",
)
@pipeline_option("the index's, or that for pages")
@fields_option("Field with text for the fingerprint", "unchanged, or title and body")
@click.option(
    "--languages",
    metavar="CODES",
    help="Languages of the scheme, such as ru,uk, in their installed versions, or all; by default unchanged.",
)
@click.option(
    "--dedup-field",
    metavar="NAME",
    help="Field for fingerprints, if the usual one is taken; by default unchanged, or the setting field.",
)
@click.option(
    "--shadow-templates",
    is_flag=True,
    help="Install the index template even if it overrides others that match the same indices.",
)
@click.option(
    "--seal",
    is_flag=True,
    help="Seal the fingerprints of existing indices with the key of the setting seal_key, or change "
    "their key to it; new indices are sealed whenever it is set.",
)
@click.option(
    "--groups",
    is_flag=True,
    help="Give each new document the number of its group; by default unchanged.",
)
@click.option(
    "--keywords/--no-keywords",
    default=None,
    help="Whether to store supershingles. Without them fingerprints take about half the space and pages are "
    "folded, but no copies are found and no groups numbered. By default unchanged.",
)
@click.option(
    "--passages",
    is_flag=True,
    help="Store what shinglefold matches finds passages by; by default unchanged.",
)
@click.option(
    "--fold/--no-fold",
    default=None,
    help="Whether folded clients fold searches that do not ask for it; by default unchanged.",
)
@click.option(
    "--gate",
    type=click.Choice(["refuse", "none"]),
    help="What folded clients do with new documents that resemble stored ones: refuse them, or store them "
    "(none); by default unchanged.",
)
@click.option(
    "--remove",
    is_flag=True,
    help="Take away all that shinglefold stored with an INDEX; its documents stay, without fingerprints.",
)
@requests_per_second_option
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@preset_option
@content_options
@click.pass_context
def setup(
    context: click.Context,
    /,
    *,
    indices: tuple[str, ...],
    engine: str | None,
    patterns: tuple[str, ...],
    name: str,
    priority: int,
    languages: str | None,
    dedup_field: str | None,
    shadow_templates: bool,
    seal: bool,
    groups: bool,
    keywords: bool | None,
    passages: bool,
    fold: bool | None,
    gate: str | None,
    remove: bool,
    requests_per_second: float,
    dry_run: bool,
    **flags: Any,  # noqa: ANN401 - of Target
) -> int:
    """Set up indices for fingerprints: mappings and templates.

    A missing INDEX is made. What exists stays as it is, so a second run changes nothing. Exit code 3 says
    that something can't be changed in place, or that no document has text in the fields.
    """
    from shinglefold.api.index_recipe import mappings_or_none, search_canonicalizer
    from shinglefold.cli.commands.indexing.new_recipe import setup_recipe, with_keyword_storage
    from shinglefold.cli.shared.text_fields import text_fields
    from shinglefold.engines import open_engine
    from shinglefold.ingest import Pipeline
    from shinglefold.ingest.pipeline.steps import rerun_problems
    from shinglefold.maintenance.setup import SetupRequest, carry_out, make_plan
    from shinglefold.model.recipe import fingerprint_field, has_recipe, with_passages
    from shinglefold.registry import codes_with_any

    invocation: Invocation = context.obj
    named = [code.strip() for code in (languages or "").split(",") if code.strip()]
    codes = tuple(named) if "all" in named or not named else codes_with_any(named) or ()
    target = invocation.target(indices[0] if indices else "", engine, languages=codes, **flags)
    if remove:
        return _remove_from_each(context, target, indices, requests_per_second, dry_run)
    _refuse_without_effect(context, target, patterns, requests_per_second)
    target = _with_field(target, dedup_field)
    recipe = setup_recipe(target, invocation, indices, patterns, name, seal=seal)
    if "all" in codes:
        note_missing_languages(recipe.scheme)
    if keywords is not None:
        recipe = with_keyword_storage(recipe, keywords=keywords)
    if groups:
        recipe = replace(recipe, groups=True)
    if passages:
        recipe = replace(recipe, pipeline=with_passages(recipe.pipeline, recipe.field))
    # The rules for groups, and what no option names, are left out, so that each index keeps its own.
    wanted = replace(recipe, grouping={}, fold=fold, gate=gate)
    request = SetupRequest(wanted, indices, patterns, name, priority, shadow=shadow_templates)
    with closing(open_engine(target.where, search_canonicalizer(recipe.scheme))) as opened:
        _check_patterns(opened, indices, target.hints)
        plan = make_plan(opened, request)
        new_pipeline = Pipeline.from_json(recipe.pipeline, recipe.scheme)
        found = {index: one for given in indices for index, one in mappings_or_none(opened, given).items()}
        warnings: list[str] = []
        textless = False
        for index, mappings in found.items():
            texts = text_fields(opened, target, index, new_pipeline, recipe)
            if not (target.fields or target.pipeline or has_recipe(mappings) or fingerprint_field(mappings)):
                texts.check()
            warnings += texts.warnings
            textless |= texts.textless
        if not dry_run:
            carry_out(opened, plan)
    if invocation.json:
        done = {"fields": list(recipe.fields), "done": not dry_run}
        invocation.write_summary(plan.to_json() | done)
    else:
        write_lines(map(target.hints.complete, _lines(plan, recipe.fields, dry_run, target.hints)))
    warn(warnings)
    warn(map(target.hints.complete, plan.notes), "note")
    warn(rerun_problems(new_pipeline.steps, recipe.field), "note")
    return PARTLY if plan.problems or textless else DONE


def _with_field(target: "Target", dedup_field: str | None) -> "Target":
    from shinglefold.model.recipe import check_field

    if dedup_field is None:
        return target
    check_field("--dedup-field", dedup_field)
    given = {**target.settings.given, "field": "--dedup-field"}
    return replace(target, settings=replace(target.settings, field=dedup_field, given=given))


def _refuse_without_effect(
    context: click.Context, target: "Target", patterns: Sequence[str], rate: float
) -> None:
    if rate:
        raise click.UsageError(
            "setup reads no documents without --remove: leave --requests-per-second out; for fingerprints: "
            f"{target.command('backfill', requests_per_second=f'{rate:g}')}"
        )
    wrong = [one for name, one in given_options(context).items() if name in _OF_PATTERNS]
    if wrong and not patterns:
        raise click.UsageError(f"{wrong[0]} is of index templates: name their indices by --pattern")


def _remove_from_each(
    context: click.Context, target: "Target", indices: Sequence[str], rate: float, dry_run: bool
) -> int:
    if not indices or given_options(context).keys() - _OF_REMOVAL:
        raise click.UsageError(
            "--remove takes an INDEX, and besides it only --engine, --requests-per-second and --dry-run"
        )
    # For several indices, one line of JSON each, because one of them may fail.
    indent = None if len(indices) > 1 else 2
    each = [replace(target, index=name) for name in indices]
    return max([_remove(context.obj, one, rate, dry_run, indent) for one in each])


def _remove(invocation: Invocation, target: "Target", rate: float, dry_run: bool, indent: int | None) -> int:
    """Remove what shinglefold stored with an index, and print what was removed."""
    from shinglefold.api.index_recipe import open_to_write
    from shinglefold.cli.shared.maintenance import checkpoint_path
    from shinglefold.grouping.intent_index import intents_name
    from shinglefold.maintenance.deletion import RemovalCounts, carry_out_removal, plan_removal

    path = checkpoint_path(target, "backfill")
    name = re.escape(path.stem.removeprefix(".backfill-"))
    ours = re.compile(rf"\.(backfill|regroup)-{name}(-\d+-of-\d+)?\.json(\.plan|\.texts)?")
    files = sorted(file for file in path.parent.glob(".*.json*") if ours.fullmatch(file.name))
    counts = RemovalCounts()
    with closing(open_to_write(target.where, target.index)) as opened:
        names = dict.fromkeys([target.index, *opened.all_mappings(target.index)])
        plan = plan_removal(opened, target.index, [*map(intents_name, names)])
        if not (dry_run or plan.problems):
            with progress_bar("setup --remove") as bar:
                counts = carry_out_removal(
                    opened, plan, progress_reporter(bar, "read"), requests_per_second=rate
                )
            for file in files if not counts.left else ():
                file.unlink(missing_ok=True)
    if invocation.json:
        result = {
            **plan.to_json(),
            "files": [str(file) for file in files],
            "removed": counts.removed,
            "left": counts.left,
            "done": not (dry_run or plan.problems or counts.left),
        }
        invocation.write_summary(result, indent)
    else:
        write_lines(map(printable, _removal_lines(plan, [*map(str, files)], target.hints)))
        write_lines([f"{id_}: {reason}" for id_, reason in counts.reasons.items()])
        if plan.problems or dry_run:
            write_lines(["nothing was removed" + ("" if plan.problems else ": this was a dry run")])
        else:
            have = counted(counts.left, "document still has its own", "documents still have theirs")
            left = f", {have}; run it again" if counts.left else ""
            write_lines([f"fingerprints taken from {counted(counts.removed, 'document')}{left or '; done'}"])
    return PARTLY if plan.problems or counts.left else DONE


def _removal_lines(plan: "Removal", files: Sequence[str], hints: "Hints") -> list[str]:
    lines = [
        *(
            f"- documents of {name}: [{plan.fields[name]}] of {count:,}"
            for name, count in plan.documents.items()
        ),
        *(f"- mappings of {name}: the recipe in _meta" for name in plan.fields),
        *(f"- index template {name}" for name in plan.index_templates),
        *(f"- component template {name}" for name in plan.component_templates),
        *(f"- index {name}, where gates keep intents" for name in plan.helpers),
        *(f"- file {name}" for name in files),
    ]
    lines += [f"{place}: {hints.complete(one)}" for place, some in plan.problems.items() for one in some]
    lines += [
        f"index template {name} stays, as it serves {other}, too; remove that first, or delete the template: "
        f"DELETE /_index_template/{name}"
        for name, other in plan.shared_templates.items()
    ]
    if plan.mapped:
        fields = ", ".join(f"[{path}] of {name}" for name, path in plan.mapped.items())
        lines.append(
            f"{fields} stays in the mappings, empty, as no server removes a mapped field: create an index "
            "with the mappings that you want, copy the documents into it (POST /_reindex), and move the alias"
        )
    return lines


def _check_patterns(engine: "Engine", indices: Sequence[str], hints: "Hints") -> None:
    """Check that an index matches each pattern."""
    for pattern in indices:
        if "*" in pattern and not engine.indices(pattern):
            raise IndexMissing(
                f"no index fits {pattern!r}; this lists all: {hints.command('stats')}. For indices to come "
                "there is --pattern"
            )


def _lines(plan: "Plan", fields: Sequence[str], dry_run: bool, hints: "Hints") -> list[str]:
    lines = []
    for change in plan.changes:
        # The kind "new index" needs no remark.
        new = " (new)" if change.new and not change.kind.startswith("new") else ""
        lines.append(f"{change.kind} {change.name}{new}:")
        lines += [f"  {line}" for line in change.lines]
    if plan.changes:
        lines.append(f"fingerprints are made of: {', '.join(fields)}")
    for place, problems in plan.problems.items():
        lines += [f"{place}: {problem}" for problem in problems]
    why = {change.name: f"fingerprints that {change.outdates}" for change in plan.changes if change.outdates}
    lines += [
        f"{index}: {counted(count, 'document has', 'documents have')} "
        f"{why.get(index, 'no fingerprint of this scheme')}; then: {hints.command('backfill', index)}"
        for index, count in plan.backfills.items()
    ]
    if not plan.changes:
        return [*lines, "nothing was changed" if plan.problems else "nothing to change"]
    return [*lines, "nothing was changed: this was a dry run" if dry_run else "done"]
