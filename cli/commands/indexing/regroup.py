"""``shinglefold regroup INDEX``: group a whole index again."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args

import click

from shinglefold.cli.shared.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.shared.definitions import NumberRange, engine_option, verify_by_options
from shinglefold.cli.shared.maintenance import (
    checkpoint_option,
    checkpoint_path,
    report_stop,
    requests_per_second_option,
)
from shinglefold.cli.shared.next_commands import chain, repeat_command
from shinglefold.cli.shared.output import format_times, progress_bar, remark, warn, write_lines
from shinglefold.errors import ConfigError, counted
from shinglefold.model.linkage import LINKAGE, Linkage

if TYPE_CHECKING:
    from shinglefold.cli.shared.recipe import Target
    from shinglefold.grouping.regroup import RegroupSummary
    from shinglefold.model.recipe import Recipe


@command(
    examples="""
    shinglefold regroup articles --dry-run
    shinglefold regroup articles --linkage connected
    shinglefold regroup articles --order published_at --requests-per-second 500
    """
)
@click.argument("index", metavar="INDEX")
@click.option(
    "--linkage",
    type=click.Choice(get_args(Linkage)),
    help="leader: each member resembles the leader of its group; connected: chains of pairs are one group; "
    f"by default as the index notes, else {LINKAGE}.",
)
@click.option(
    "--order",
    default="",
    metavar="FIELD",
    help="Which document leads a group: that with the least value of FIELD, with -FIELD the greatest; "
    "by default the present leader.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@verify_by_options("a pair", "shares a supershingle")
@click.option(
    "--min-resemblance",
    type=NumberRange(0, 1),
    metavar="SHARE",
    help="Estimated resemblance a pair must reach, where signatures decide; by default the scheme's.",
)
@click.option(
    "--scope",
    multiple=True,
    metavar="FIELD",
    help="Group only documents with the same value of FIELD; repeat it for more.",
)
@click.option(
    "--by-scheme",
    is_flag=True,
    help="Ignore the linkage, thresholds and scope that an earlier run stored in the index.",
)
@requests_per_second_option
@checkpoint_option
@engine_option
@click.pass_obj
def regroup(
    invocation: Invocation,
    /,
    *,
    index: str,
    checkpoint: str | None,
    engine: str | None,
    **given: Any,  # noqa: ANN401 - of RegroupOptions
) -> int:
    """Regroup all documents of an INDEX, while it is in use.

    Pairs are found from the stored fingerprints, texts decide on uncertain ones, and only changed numbers are
    written. The index keeps linkage, thresholds and scope for later runs and new documents. The same command
    continues an interrupted run. Exit code 3 says that some documents could not be written, or that others
    wrote until the end.
    """
    from shinglefold.cli.shared.open_index import open_store, parse_pipeline, seal_of_index
    from shinglefold.cli.shared.text_fields import text_fields
    from shinglefold.grouping.regroup import RegroupOptions
    from shinglefold.grouping.regroup import regroup as run

    target = invocation.target(index, engine)
    options = RegroupOptions(checkpoint=checkpoint or checkpoint_path(target, "regroup"), **given)
    with open_store(target) as store:
        check_numbered(target, store.recipe)
        pipeline = parse_pipeline(store.recipe.pipeline, store.scheme)
        texts = text_fields(store.engine, target, index, pipeline, store.recipe)
        with progress_bar("regroup") as bar:
            summary = run(
                store.engine,
                index,
                options,
                seal=seal_of_index(target, store.recipe),
                report=lambda what, documents, share: bar(share, f"{what}: {documents:,}"),
            )
    if invocation.json:
        invocation.write_summary(summary.to_json())
    else:
        write_lines(map(target.hints.complete, _lines(summary)))
    warn(texts.warnings)
    return _exit_code(summary, invocation)


def check_numbered(target: "Target", recipe: "Recipe") -> None:
    """Check that an index numbers its groups."""
    if not recipe.groups:
        change = [target.command("setup", groups=True), target.command("regroup")]
        raise ConfigError(f"index {target.index!r} numbers no groups. Give it numbers: {chain(change)}")


def _exit_code(summary: "RegroupSummary", invocation: Invocation) -> int:
    if summary.stopped:
        return report_stop(summary.stopped, invocation, anew=summary.anew)
    if summary.dry_run:
        return DONE
    if not summary.settled:
        remark(f"others wrote until the end; to group that, too: {repeat_command(invocation.arguments)}")
    return DONE if summary.settled and not summary.counts.failed else PARTLY


def _lines(summary: "RegroupSummary") -> Iterator[str]:
    counts = summary.counts
    earlier = f"{max(0, counts.groups_before):,} before"
    yield (
        f"{counted(counts.groups, 'group')} ({earlier}), {counts.shared:,} of them with copies, "
        f"of {counted(counts.read, 'document')} in {summary.index}"
    )
    yield (
        f"merged: {counted(counts.merged_from, 'group')} into {counts.merged:,}; "
        f"split: {counted(counts.split, 'group')} into {counts.split_into:,}"
    )
    verb = "to be written" if summary.dry_run else "decided on"
    yield (
        f"{counted(counts.planned, 'document')} {verb}: {counts.numbered:,} without a number before, "
        f"{counts.moved:,} to another group, {counts.relabelled:,} that lead now or lead no more"
    )
    if not summary.dry_run:
        yield (
            f"{counts.written:,} written, {counts.already:,} right already, {counts.changed:,} changed "
            f"meanwhile, {counts.gone:,} gone, {counts.failed:,} failed; "
            f"{counted(counts.conflicts, 'conflict')}"
        )
    readings = counted(summary.passes, "reading")
    yield f"{summary.seconds:.1f} s, {readings}; linkage {summary.linkage}, verified by {summary.verify}"
    if counts.by_text or counts.by_signature:
        unread = ""
        if counts.by_signature:
            unread = f", {counts.by_signature:,} by signature, as a text is missing, too long or was changed"
        pairs = counted(counts.by_text, "pair")
        yield f"in doubt by signature: {pairs} decided by their texts{unread}"
    if summary.missing:
        yield f"no texts were compared: {summary.missing}"
    if summary.resumed:
        yield "went on from its checkpoint; the figures are of all runs"
    if counts.without_fingerprint:
        left = counted(counts.without_fingerprint, "document")
        yield f"left as they are: {left} without a readable fingerprint of the scheme"
    for reason, count in list(counts.reasons.items())[:5]:
        yield f"failed {format_times(count)}: {reason}"
