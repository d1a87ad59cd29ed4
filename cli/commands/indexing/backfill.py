"""``shinglefold backfill INDEX``: add fingerprints to the documents of an index."""

from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.shared.command import DONE, FAILED, PARTLY, Invocation, command
from shinglefold.cli.shared.maintenance import (
    checkpoint_option,
    checkpoint_path,
    open_for_scan,
    report_stop,
    scan_options,
)
from shinglefold.cli.shared.output import (
    format_times,
    printable,
    progress_bar,
    progress_reporter,
    remark,
    warn,
    write_lines,
)
from shinglefold.errors import counted

if TYPE_CHECKING:
    from shinglefold.cli.shared.next_commands import Hints
    from shinglefold.maintenance import BackfillSummary

_LISTED = 10


@command(
    examples="""
    shinglefold backfill pages
    shinglefold backfill pages --only-missing --requests-per-second 500
    """
)
@click.argument("index", metavar="INDEX")
@click.option("--only-missing", is_flag=True, help="Read only documents without a fingerprint of the scheme.")
@click.option(
    "--allow-poorer",
    is_flag=True,
    help="Go on if most fingerprints would be replaced by ones of far less text.",
)
@checkpoint_option
@scan_options
@click.pass_obj
def backfill(
    invocation: Invocation,
    /,
    *,
    index: str,
    checkpoint: str | None,
    engine: str | None,
    pipeline: str | None,
    part: str,
    workers: int | None,
    preset: str | None,
    **given: Any,  # noqa: ANN401 - of BackfillOptions
) -> int:
    """Give the documents of an INDEX their fingerprints.

    Only fingerprints are written, and the INDEX may be in use: a document that changes meanwhile keeps the
    change and gets its fingerprint. The same command continues an interrupted run. Exit code 3 says that some
    documents have no fingerprint.
    """
    from shinglefold.cli.shared.text_fields import TextFields, text_fields
    from shinglefold.maintenance import BackfillOptions
    from shinglefold.maintenance import backfill as run
    from shinglefold.maintenance.scan import Slice

    share = Slice.parse(part)
    target = invocation.target(index, engine, preset=preset, pipeline=pipeline)
    with open_for_scan(target) as (opened, chosen, recipe):
        settings = target.settings
        options = BackfillOptions(
            field=recipe.field,
            part=share,
            checkpoint=checkpoint or checkpoint_path(target, "backfill", f"-{share.number}-of-{share.of}"),
            workers=settings.workers if workers is None else workers,
            **given,
        )
        with progress_bar("backfill") as bar:
            summary = run(opened, index, chosen, options, progress=progress_reporter(bar, "read"))
        texts = TextFields() if summary.stopped else text_fields(opened, target, index, chosen, recipe)
    if invocation.json:
        invocation.write_summary(summary.to_json())
    else:
        write_lines(_lines(summary, target.hints))
    warn(texts.warnings)
    code = _exit_code(summary, invocation)
    return PARTLY if code == DONE and texts.misread else code


def _exit_code(summary: "BackfillSummary", invocation: Invocation) -> int:
    if summary.poorer:
        remark(f"stopped: {printable(invocation.hints().complete(summary.stopped))}")
        return FAILED
    if summary.stopped:
        return report_stop(summary.stopped, invocation, anew=summary.anew)
    failed = summary.counts.failed or summary.counts.textless
    known = 0 <= summary.remaining <= summary.counts.dropped
    return DONE if known and not failed else PARTLY


def _lines(summary: "BackfillSummary", hints: "Hints") -> list[str]:
    counts = summary.counts
    speed = counts.read / summary.seconds if summary.seconds else 0.0
    lines = [
        f"{counts.updated:,} updated, {counts.unchanged:,} right already, {counts.dropped:,} dropped, "
        f"{counts.failed:,} failed, {counts.gone:,} gone, of {counts.read:,} read in {summary.index}",
        f"{summary.seconds:.1f} s, {speed:,.0f} documents/s; scheme {summary.scheme}",
    ]
    if summary.resumed:
        lines.append("went on from its checkpoint; the figures are of all runs")
    # The last updates of a killed run may be lost, and are then repeated.
    if earlier := min(counts.earlier, counts.unchanged):
        were = "was" if earlier == 1 else "were"
        lines.append(f"{earlier:,} of those right already {were} updated before the scan had to begin anew")
    if counts.empty:
        listed = ", ".join(counts.without_text[:_LISTED])
        keep = "keeps the fingerprint it has" if counts.textless == 1 else "keep the fingerprint they have"
        kept = f"; {counts.textless:,} of them {keep}: {listed}" if counts.textless else ""
        have = "has" if counts.empty == 1 else "have"
        lines.append(f"{counts.empty:,} {have} no text in the fields the pipeline reads{kept}")
    if counts.changed:
        more = ", …" if len(counts.changed) > _LISTED else ""
        shown = ", ".join(counts.changed[:_LISTED])
        lines.append(f"{len(counts.changed):,} had changed meanwhile and were done again: {shown}{more}")
    reasons = list(counts.reasons.items())[:5]
    # Not whole lines: an id may look like a command.
    lines += [f"failed {format_times(count)}: {hints.complete(reason)}" for reason, count in reasons]
    if counts.failures:
        lines.append(f"failed: {', '.join(counts.failures[:_LISTED])}")
    if summary.remaining < 0:
        lines.append("how many documents have no fingerprint is unknown: the engine does not say")
    elif summary.remaining:
        lines.append(
            f"{counted(summary.remaining, 'document has', 'documents have')} no fingerprint of this scheme"
        )
    return lines
