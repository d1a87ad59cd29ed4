"""``python -m shinglefold.cli.spark COMMAND``, and the file for ``spark-submit``: our commands on Spark."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from shinglefold.cli.main import main
from shinglefold.cli.shared.command import (
    DONE,
    FAILED,
    HELP,
    PARTLY,
    CommandGroup,
    Invocation,
    command,
    common_options,
)
from shinglefold.cli.shared.definitions import (
    chosen_facts,
    chosen_scheme,
    content_options,
    decision_options,
    engine_option,
    fields_option,
    html_option,
    options,
    preset_option,
)
from shinglefold.cli.shared.open_index import open_store
from shinglefold.cli.shared.output import format_times, printable, remark, write_json, write_line
from shinglefold.cli.shared.run_summary import named_language_field
from shinglefold.engines import Connection, is_server, load_connection
from shinglefold.errors import ConfigError, counted
from shinglefold.model.linkage import linkage_phrase
from shinglefold.model.recipe import FIELD, TEXTS
from shinglefold.model.scheme import Scheme
from shinglefold.offline.sign.signer import SignOptions
from shinglefold.offline.spark.candidate_pairs import Bounds
from shinglefold.offline.spark.grouping import GroupOptions, SparkSummary, groups
from shinglefold.offline.spark.read_index import stored
from shinglefold.offline.spark.session import (
    Frame,
    Session,
    StageStore,
    columns_of,
    place_of,
    read,
    session,
    sql,
    totals,
    translate_errors,
)
from shinglefold.offline.spark.signing import PROBLEM, sign

_HELP = """Sign and group collections that no single machine holds, on Apache Spark.

Start with: python -m shinglefold.cli.spark sign pages/ -o signed/
"""
#: Replaces Spark's progress bar, because the commands write a line for each stage.
_QUIET = {"spark.ui.showConsoleProgress": "false", "spark.sql.execution.arrow.maxRecordsPerBatch": "4000"}

job_options: Callable[[Any], Any] = options(
    click.option("-o", "--output", required=True, metavar="ADDRESS", help="Folder for the Parquet output."),
    click.option("--overwrite", is_flag=True, help="Remove an existing output first."),
    click.option(
        "--master",
        metavar="ADDRESS",
        default="",
        help="Where Spark runs, such as local[8]; by default as spark-submit says, else here on all cores.",
    ),
)


@contextmanager
def job(master: str) -> Iterator[Session]:
    """Yield a Spark session, stopped at the end unless it existed before; translate Spark's errors."""
    before = sql().SparkSession.getActiveSession()
    found = session(_QUIET, master) if before is None else before
    try:
        # Warnings of Spark concern the cluster, not the job.
        found.sparkContext.setLogLevel("ERROR")
        with translate_errors():
            yield found
    finally:
        if before is None:
            found.stop()


def check_output(
    found: Session, output: str, overwrite: bool, inputs: tuple[str, ...], work: str = ""
) -> None:
    """Refuse an output that exists, or overlaps a source or the work folder."""
    system, place = place_of(found, output)
    for source in inputs:
        if any(_overlap(place.toString(), read) for read in _addresses_of(found, source)):
            raise ConfigError(f"{output} is read from, too: name another output with -o")
        if work and _inside(place_of(found, work)[1].toString(), _addresses_of(found, source)):
            raise ConfigError(
                f"{source} is read: name another folder with --work, as stages are not documents"
            )
    if work and _overlap(place.toString(), place_of(found, work)[1].toString()):
        raise ConfigError(f"{output} is worked in, too: name another output, or another folder with --work")
    if not overwrite and system.exists(place):
        raise ConfigError(f"{output} is there already: name another one, or replace it with --overwrite")


def _addresses_of(found: Session, source: str) -> list[str]:
    """Return the addresses that match one with wildcards; itself without wildcards."""
    system, place = place_of(found, source)
    return [one.getPath().toString() for one in system.globStatus(place) or ()] or [place.toString()]


def _inside(place: str, folders: list[str]) -> bool:
    """Return whether an address is one of the folders, or in one."""
    return any((place.rstrip("/") + "/").startswith(folder.rstrip("/") + "/") for folder in folders)


def _overlap(one: str, other: str) -> bool:
    """Return whether one of two addresses is the other, or contains it."""
    a, b = (address.rstrip("/") + "/" for address in (one, other))
    return a.startswith(b) or b.startswith(a)


def write(frame: Frame, output: str, overwrite: bool) -> None:
    """Write a frame as Parquet."""
    frame.write.mode("overwrite" if overwrite else "errorifexists").parquet(output)


def progress(line: str) -> None:
    """Write a line about the progress."""
    remark(printable(line))


@command(
    "sign",
    examples="""
    python -m shinglefold.cli.spark sign pages/ -o signed/
    python -m shinglefold.cli.spark sign s3a://crawl/2026-11/ -o s3a://crawl/signed/ --field text --html
    """,
)
@click.argument("sources", nargs=-1, required=True, metavar="ADDRESS...")
@job_options
@fields_option("Column with text for the fingerprint", "title and body")
@click.option(
    "--language-field", default="lang", show_default=True, metavar="FIELD", help="Column with the language."
)
@html_option
@click.option(
    "--beside",
    is_flag=True,
    help="Add what groups needs to decide by the texts: about 8 bytes a word.",
)
@preset_option
@content_options
@click.pass_obj
def sign_command(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    output: str,
    overwrite: bool,
    master: str,
    fields: tuple[str, ...],
    language_field: str,
    html: bool,
    beside: bool,
    preset: str | None,
    profile: str | None,
    never_differ: tuple[str, ...],
) -> int:
    """Write documents with their fingerprints, byte for byte those of shinglefold sign.

    ADDRESS is Parquet or JSON lines, by the names of its files. A document that can't be signed is written
    without a fingerprint; its column sign_problem says why. Exit code 3 says that there are some.
    """
    scheme = chosen_scheme(invocation, preset)
    target = invocation.settings().field
    facts = chosen_facts(never_differ, profile)
    options = SignOptions(fields or TEXTS, language_field, html, target=target, never_differ=facts)
    with job(master) as session:
        check_output(session, output, overwrite, sources)
        progress(f"signing with scheme {scheme.id}")
        documents = read(session, *sources)
        named = named_language_field(language_field)
        columns_of(documents, [name.partition(".")[0] for name in (*fields, named) if name])
        write(sign(documents, scheme, options, beside=beside), output, overwrite)
        failed = f"count_if({PROBLEM} IS NOT NULL)"
        found = totals(session.read.parquet(output), read="count(1)", failed=failed)
        counts: dict[str, int | str] = {"signed": found["read"] - found["failed"], "failed": found["failed"]}
        worst = _problems(session, output) if counts["failed"] else []
    counts["scheme"] = scheme.id
    if invocation.json:
        write_json({**counts, "problems": worst})
    else:
        write_line(f"{counts['signed']:,} signed, {counts['failed']:,} failed; scheme {scheme.id}")
    for reason, count in worst:
        remark(f"failed {format_times(count)}: {printable(reason)}")
    if not counts["signed"]:
        remark("no document was signed; check the sources and --field")
        return FAILED
    return PARTLY if counts["failed"] else DONE


def _problems(session: Session, output: str) -> list[tuple[str, int]]:
    """Return the most frequent reasons."""
    found = session.read.parquet(output).where(f"{PROBLEM} IS NOT NULL").groupBy(PROBLEM).count()
    return [(row[0], row[1]) for row in found.orderBy("count", ascending=False).limit(5).collect()]


@command(
    "read",
    examples="""
    python -m shinglefold.cli.spark read articles --engine https://search:9200 --parts 16 -o stored/
    """,
)
@click.argument("index", metavar="INDEX")
@job_options
@click.option(
    "--parts",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    metavar="N",
    help="Executors that read slices of the index in parallel.",
)
@engine_option
@click.pass_obj
def read_command(
    invocation: Invocation,
    /,
    *,
    index: str,
    output: str,
    overwrite: bool,
    master: str,
    parts: int,
    engine: str | None,
) -> int:
    """Write the fingerprints that an INDEX stores: _index, _id, _routing and _dedup, a row a document.

    Nothing is written to the index. groups reads the output; shinglefold regroup writes group numbers.
    """
    target = invocation.target(index, engine)
    with open_store(target) as store:
        recipe = store.recipe
    where: str | Connection = load_connection(target.where) if is_server(target.where) else target.where
    with job(master) as session:
        check_output(session, output, overwrite, ())
        progress(f"reading {index} in {parts} parts")
        write(stored(session, where, index, recipe, parts=parts), output, overwrite)
        signed = f"count_if({FIELD}.signature IS NOT NULL)"
        counts = totals(session.read.parquet(output), read="count(1)", signed=signed)
    if invocation.json:
        write_json({**counts, "scheme": recipe.scheme.id})
    else:
        write_line(
            f"{counted(counts['read'], 'document')}, {counts['signed']:,} with a signature of a fingerprint"
        )
    if not counts["read"]:
        remark(f"index {index} has no documents")
        return FAILED
    return DONE


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
    help="Folder that all machines can reach, for intermediate results; removed at the end.",
)
@click.option(
    "--keep-work", is_flag=True, help="Keep the intermediate results: prints, pairs and the last edges."
)
@click.option("--id-field", default="", metavar="FIELD", help="Column of ids; by default _id, or else id.")
@click.option(
    "--most-shared",
    type=click.IntRange(2, 100_000),
    default=Bounds().most,
    show_default=True,
    metavar="N",
    help="The most documents sharing a supershingle of which all pairs are compared.",
)
@click.option(
    "--centres",
    type=click.IntRange(1),
    default=Bounds().centres,
    show_default=True,
    metavar="N",
    help="If more share one, the number of them that each is compared with.",
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
    out. Chains of pairs are one group, as of shinglefold groups --linkage connected: leaders, as searches
    have them, are chosen one after another, which machines cannot share. Exit code 3 says that some
    fingerprints could not be compared.
    """
    scheme = chosen_scheme(invocation, preset, **decision)
    options = GroupOptions(invocation.settings().field, id_field, Bounds(most_shared, centres), min_size)
    with job(master) as session:
        check_output(session, output, overwrite, sources, work)
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
        for line in _lines(found.summary):
            write_line(line)
    return PARTLY if found.summary.unreadable or found.summary.foreign else DONE


def _check_decision(signed: Frame, scheme: Scheme, given: dict[str, Any]) -> None:
    """Refuse to let texts decide if there are only fingerprints; write what decides instead."""
    if "beside" in signed.columns:
        return
    if given.get("verify") == "text" or given.get("min_similarity") is not None:
        raise ConfigError(
            "only fingerprints are there, without texts: sign with --beside, or leave --verify text and "
            "--min-similarity out"
        )
    if scheme.decision.verify == "text":
        progress(
            f"signatures decide (--min-resemblance {scheme.decision.min_resemblance:g}), no text is read"
        )


def _lines(summary: SparkSummary) -> Iterator[str]:
    """Yield the lines of the summary."""
    yield (
        f"{counted(summary.groups, 'group')} of {counted(summary.members, 'document')}, "
        f"of {summary.read:,} read; {linkage_phrase(summary.linkage)}"
    )
    yield (
        f"{counted(summary.pairs, 'verified pair')} beside "
        f"{counted(summary.copies, 'exact copy', 'exact copies')}; "
        f"connected in {counted(summary.rounds, 'round')}"
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
            f"{summary.skipped:,} pairs of them were not compared; --most-shared and --centres bound that"
        )


spark = CommandGroup(
    "shinglefold.cli.spark",
    commands={one.name or "": one for one in (sign_command, read_command, groups_command)},
    params=[*common_options()],
    help=_HELP,
    context_settings={"help_option_names": HELP},
)

if __name__ == "__main__":
    sys.exit(main(program=spark))
