"""``shinglefold doctor INDEX``: check that stored fingerprints are those of the texts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from shinglefold.cli.shared.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.shared.maintenance import open_for_scan, scan_options
from shinglefold.cli.shared.next_commands import chain
from shinglefold.cli.shared.output import (
    printable,
    progress_bar,
    progress_reporter,
    remark,
    write_lines,
)
from shinglefold.cli.shared.run_summary import suggest_products, unstated_markup
from shinglefold.errors import counted

if TYPE_CHECKING:
    from shinglefold.cli.shared.recipe import Target
    from shinglefold.grouping.gate.server_store import Placeholder
    from shinglefold.maintenance import Diagnosis
    from shinglefold.model.recipe import Recipe

_SHOWN = 10
#: The line of each finding, in the order of the report.
_FINDINGS = {
    "sound": "have the fingerprint of their text",
    "without_fingerprint": "have no fingerprint",
    "other_scheme": "have one of another scheme",
    "stale": "have one of an earlier text: somebody updated the text alone",
    "other_facts": "have facts of the rules of another version, or of earlier values of fields",
    "unsealed": "have one that lacks the seal of the index: altered, or made without its key",
    "damaged": "have one with parts missing or altered",
    "textless": "have a fingerprint, and no text in the fields the pipeline reads",
    "hidden": "have one of more text than you see in the fields read",
    "foreign": "have something else in its place, which is left alone",
    "unreadable": "can't be fingerprinted: the pipeline fails on them",
    "dropped": "are such as the pipeline drops",
    "placeholder": "are placeholders: a gate reserves their ids while it decides",
}
_MENDED_BY_BACKFILL = ("without_fingerprint", "other_scheme", "stale", "other_facts", "damaged", "unsealed")


@command(
    examples="""
    shinglefold doctor pages
    shinglefold doctor pages --fix
    """
)
@click.argument("index", metavar="INDEX")
@click.option("--fix", is_flag=True, help="First remove the placeholders of crashed writers.")
@scan_options
@click.pass_obj
def doctor(
    invocation: Invocation,
    /,
    *,
    index: str,
    fix: bool,
    engine: str | None,
    pipeline: str | None,
    part: str,
    requests_per_second: float,
    workers: int | None,
    preset: str | None,
) -> int:
    """Examine the mappings and the fingerprints of an INDEX.

    Shows whether each fingerprint is that of its text. Nothing is changed, except that --fix removes the
    placeholders of crashed writers. Exit code 3 says that something must be mended; the last lines say how.
    """
    from shinglefold.cli.commands.indexing.new_index import leftovers_of_index
    from shinglefold.grouping.gate.server_store import SweepResult, placeholders, sweep
    from shinglefold.maintenance import DoctorOptions, diagnose
    from shinglefold.maintenance.scan import Slice

    share = Slice.parse(part)
    target = invocation.target(index, engine, preset=preset, pipeline=pipeline)
    with open_for_scan(target) as (opened, chosen, recipe):
        count = target.settings.workers if workers is None else workers
        options = DoctorOptions(recipe.field, share, requests_per_second, count)
        swept = sweep(opened, index, recipe.field) if fix else SweepResult()
        expired = [one for one in placeholders(opened, index, recipe.field) if one.expired] if fix else []
        with progress_bar("doctor") as bar:
            found = diagnose(opened, index, chosen, options, progress=progress_reporter(bar, "read"))
    found = replace(found, remarks=(*found.remarks, *leftovers_of_index(target)))
    if invocation.json:
        removed = {"removed": [place.to_json() for place in swept.removed], "reasons": swept.reasons}
        invocation.write_summary({**found.to_json(), **(removed if fix else {})})
    else:
        write_lines([*(_removed_lines(swept.removed) if fix else ()), *_lines(found, target, recipe)])
    if expired:
        why = "; ".join(swept.reasons) or "they were left meanwhile"
        remark(printable(f"{len(expired):,} placeholders could not be removed: {why}"))
    return DONE if found.healthy and not expired else PARTLY


def _removed_lines(removed: "Sequence[Placeholder]") -> Iterator[str]:
    yield f"removed {len(removed):,} placeholders of crashed writers"
    for place in removed[:_SHOWN]:
        until = datetime.fromtimestamp(place.until / 1000, UTC)
        yield f"  {place.id}, reserved until {until:%Y-%m-%d %H:%M:%S} UTC"
    if len(removed) > _SHOWN:
        yield f"  and {len(removed) - _SHOWN:,} more"


def _lines(found: "Diagnosis", target: "Target", recipe: "Recipe") -> list[str]:
    lines = [f"{counted(found.documents, 'document')} in {found.index}, scheme {found.scheme}"]
    for finding, predicate in _FINDINGS.items():
        count = found.findings.get(finding, 0)
        if count:
            ids = found.listed.get(finding, ())
            lines.append(f"  {count:,} {predicate}{': ' if ids else ''}{', '.join(ids)}")
    if found.ungrouped:
        lines.append(f"  {found.ungrouped:,} have no number of a group, though the index numbers its groups")
    if found.titles_alone:
        lines.append(f"  {found.titles_alone:,} have a fingerprint of titles alone")
    if found.textless:
        lines.append("  none has text in the fields the pipeline reads, so that nothing folds")
    lines += [f"  of scheme {scheme}: {count:,}" for scheme, count in found.schemes.items()]
    # Only messages are completed, not the lines above: an id in them may look like a command.
    complete = target.hints.complete
    lines += [f"mappings: {complete(problem)}" for problem in found.mapping]
    lines += [f"can't be mended in place: {complete(obstacle)}" for obstacle in found.obstacles]
    lines += [f"remark: {complete(remark)}" for remark in found.remarks]
    if found.unread and not found.misread:
        lines.append(f"remark: there is text in {', '.join(found.unread)}, which is not read")
    if found.markup:
        lines.append(f"remark: {unstated_markup(found.markup)}; to take it off: {target.say_html()}")
    if found.cards and not recipe.profile:
        lines.append(f"remark: {suggest_products(target)}")
    return [*lines, *_remedies(found, target, recipe)]


def _remedies(found: "Diagnosis", target: "Target", recipe: "Recipe") -> list[str]:
    if found.healthy and not found.findings.get("placeholder"):
        return [] if found.markup else ["all is well"]
    if found.obstacles:
        return []
    flags = {"preset": target.preset, "pipeline": target.pipeline}
    other_fields = found.misread or found.findings.get("textless")
    commands = []
    if found.mapping:
        commands.append(target.command("setup", **flags))
    if any(found.findings.get(finding) for finding in _MENDED_BY_BACKFILL):
        commands.append(target.command("backfill", **flags))
    if found.ungrouped:
        commands.append(target.command("regroup"))
    lines = [_other_fields_remedy(found, target, recipe)] if other_fields else []
    if found.unseen:
        lines.append(_unseen_remedy(found, target))
    if found.findings.get("placeholder"):
        fix = target.command("doctor", fix=True)
        lines.append(f"placeholders whose writers crashed are removed by: {fix}")
    if found.findings.get("unreadable"):
        why = target.command("backfill", **flags)
        lines.append(
            f"mend the documents the pipeline fails on, or the pipeline; this says why it fails: {why}"
        )
    return [*lines, *([f"to mend it: {chain(commands)}"] if commands else [])]


def _unseen_remedy(found: "Diagnosis", target: "Target") -> str:
    """Return what to do about fields that the mappings lack: they are mistyped, or hidden from this user."""
    named = ", ".join(found.unseen)
    if found.resembling:
        near = ", ".join(f"{name!r} (nearest: {near!r})" for name, near in found.resembling.items())
        return (
            f"the mappings have no field {near}: if it is mistyped, correct the pipeline; if this user may "
            "not see it, examine the index as a user who does"
        )
    change = target.command("setup", field="FIELD")
    return (
        f"the mappings have no field {named}: if the text is in another field, name that: {change}; if this "
        "user may not see it, examine the index as a user who does"
    )


def _other_fields_remedy(found: "Diagnosis", target: "Target", recipe: "Recipe") -> str:
    """Return the remedy for fingerprints of other fields than the pipeline reads: never a backfill."""
    problem = f"the pipeline reads {', '.join(recipe.fields)}"
    if found.findings.get("textless"):
        problem += ", and the fingerprints are of other texts"
    texts = found.unread if found.titles_alone or not found.text_in else found.text_in
    other = tuple(name for name in texts if name not in recipe.fields)
    if found.textless and not (other or found.findings.get("textless")):
        return f"{problem}; to name the fields to compare: {target.take_text_from(['FIELD'])}"
    if not other:
        return (
            f"{problem}: restore the texts, or set the index up with the pipeline that made the fingerprints"
        )
    titles = [name for name in recipe.fields if found.titles_alone and name not in found.lacking]
    commands = target.take_text_from([*titles, *texts])
    return f"{problem}; there is text in {', '.join(other)}. If that is it: {commands}"
