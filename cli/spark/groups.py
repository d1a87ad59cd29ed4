"""``python -m shinglefold.cli.spark groups``: the groups of signed documents, as Parquet."""

from collections.abc import Iterator
from typing import Any

import click

from shinglefold.cli.framework.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.framework.output import write_json, write_line
from shinglefold.cli.options.definitions import chosen_scheme, decision_options, preset_option
from shinglefold.cli.spark.job import free, job, job_options, progress, write
from shinglefold.errors import ConfigError
from shinglefold.model.scheme import Scheme
from shinglefold.offline.spark.candidate_pairs import Bounds
from shinglefold.offline.spark.grouping import GroupOptions, SparkSummary, groups
from shinglefold.offline.spark.session import Frame, read
from shinglefold.offline.spark.stage_store import StageStore


@command(
    "groups",
    examples="""
    python -m shinglefold.cli.spark groups signed/ -o groups/ --work /tmp/groups
    python -m shinglefold.cli.spark groups s3a://crawl/signed/ -o s3a://crawl/groups/ --work s3a://crawl/stages/
    """,
)
@click.argument("sources", nargs=-1, required=True, metavar="ADDRESS...")
@job_options
@click.option(
    "--work",
    required=True,
    metavar="ADDRESS",
    help="Folder that all machines see, for what stages hand to each other; removed at the end.",
)
@click.option("--keep-work", is_flag=True, help="Leave the stages there: prints, pairs and the last edges.")
@click.option("--id-field", default="", metavar="FIELD", help="Column of ids; by default _id, or else id.")
@click.option(
    "--most-shared",
    type=click.IntRange(2, 100_000),
    default=Bounds().most,
    show_default=True,
    metavar="N",
    help="Documents of one supershingle up to which all pairs of them are compared.",
)
@click.option(
    "--centres",
    type=click.IntRange(1),
    default=Bounds().centres,
    show_default=True,
    metavar="N",
    help="Where more documents have one, how many of them each is compared with.",
)
@click.option(
    "--min-size",
    type=click.IntRange(2),
    default=2,
    show_default=True,
    metavar="N",
    help="Leave smaller groups out.",
)
@preset_option
@decision_options
@click.pass_obj
def groups_command(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    output: str,
    overwrite: bool,
    master: str,
    work: str,
    keep_work: bool,
    id_field: str,
    most_shared: int,
    centres: int,
    min_size: int,
    preset: str | None,
    **decision: Any,  # noqa: ANN401 - each option has its own type
) -> int:
    """Write the groups of near-duplicates: _id, group (the least id in it) and size, a row a document.

    ADDRESS is Parquet or JSON lines of signed documents, of either sign. Documents without a copy are left
    out. Exit code 3 says that some fingerprints could not be compared.
    """
    scheme = chosen_scheme(invocation, preset, **decision)
    options = GroupOptions(invocation.settings().field, id_field, Bounds(most_shared, centres), min_size)
    with job(master) as session:
        free(session, output, overwrite, sources, work)
        kept = StageStore(session, work)
        try:
            signed = read(session, *sources)
            _check_decision(signed, scheme, decision)
            found = groups(signed, scheme, kept, options, progress)
            write(found.groups, output, overwrite)
        finally:
            if not keep_work:
                kept.remove()
    if invocation.json:
        write_json({**found.summary.to_json(), "scheme": scheme.id})
    else:
        for line in told(found.summary):
            write_line(line)
    return PARTLY if found.summary.unreadable or found.summary.foreign else DONE


def _check_decision(signed: Frame, scheme: Scheme, given: dict[str, Any]) -> None:
    """Refuse to let texts decide where only fingerprints are there, and tell what does instead."""
    if "beside" in signed.columns:
        return
    if (
        given.get("verify") == "text"
        or given.get("facts") == "numbers"
        or given.get("min_similarity") is not None
    ):
        raise ConfigError(
            "only fingerprints are there, without texts: sign with --beside, or leave --verify text, "
            "--min-similarity and --facts out"
        )
    if scheme.decision.verify == "text":
        progress(
            f"signatures decide (--min-resemblance {scheme.decision.min_resemblance:g}), no text is read"
        )


def told(summary: SparkSummary) -> Iterator[str]:
    """Yield what a grouping did, in words."""
    yield f"{summary.groups:,} groups of {summary.members:,} documents, of {summary.read:,} read"
    yield (
        f"{summary.pairs:,} verified pairs beside {summary.copies:,} exact copies; "
        f"connected in {summary.rounds} rounds"
    )
    if summary.unsigned:
        yield f"{summary.unsigned:,} too short for a signature, or without a fingerprint: exact copies only"
    if summary.unreadable:
        yield f"{summary.unreadable:,} left out: their fingerprints are damaged, or sealed"
    if summary.foreign:
        yield f"{summary.foreign:,} left out: their fingerprints are of another scheme; sign them again"
    if summary.crowded:
        yield (
            f"{summary.crowded:,} supershingles that too many documents have ({summary.held:,} in all): "
            f"{summary.skipped:,} pairs of them were not looked at; --most-shared and --centres bound that"
        )
