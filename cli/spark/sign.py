"""``python -m shinglefold.cli.spark sign``: documents with their fingerprints, as Parquet."""

import click

from shinglefold.cli.framework.command import DONE, FAILED, PARTLY, Invocation, command
from shinglefold.cli.framework.output import printable, remark, times, write_json, write_line
from shinglefold.cli.options.definitions import chosen_scheme, fields_option, preset_option
from shinglefold.cli.render.warnings import named_language
from shinglefold.cli.spark.job import free, job, job_options, progress, write
from shinglefold.model.recipe import TEXTS
from shinglefold.offline.sign.signer import SignOptions
from shinglefold.offline.spark.session import Frame, Session, columns_of, read, totals
from shinglefold.offline.spark.signing import PROBLEM, sign


@command(
    "sign",
    examples="""
    python -m shinglefold.cli.spark sign pages/ -o signed/
    python -m shinglefold.cli.spark sign s3a://crawl/2026-11/ -o s3a://crawl/signed/ --field text --html
    """,
)
@click.argument("sources", nargs=-1, required=True, metavar="ADDRESS...")
@job_options
@fields_option("Column with text, whose fingerprint is made", "title and body")
@click.option(
    "--language-field", default="lang", show_default=True, metavar="FIELD", help="Column with the language."
)
@click.option(
    "--html", is_flag=True, help="Take every document for HTML, not only those whose format says so."
)
@click.option(
    "--beside",
    is_flag=True,
    help="Add what groups needs to decide by the texts themselves: some 8 bytes a word.",
)
@preset_option
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
) -> int:
    """Write documents with their fingerprints, byte for byte those of shinglefold sign.

    ADDRESS is Parquet or JSON lines, by the names of its files. A document that can't be signed is written
    without a fingerprint; its column sign_problem says why. Exit code 3 says that there are some.
    """
    scheme = chosen_scheme(invocation, preset)
    target = invocation.settings().field
    options = SignOptions(fields or TEXTS, language_field, html, target=target)
    with job(master) as session:
        free(session, output, overwrite, sources)
        progress(f"signing with scheme {scheme.id}")
        documents = read(session, *sources)
        columns_of(documents, [name.partition(".")[0] for name in (*fields, *_named(language_field))])
        made = sign(documents, scheme, options, beside=beside)
        counts = _written(session, made, output, overwrite)
        worst = _problems(session, output) if counts["failed"] else []
    counts["scheme"] = scheme.id
    if invocation.json:
        write_json({**counts, "problems": worst})
    else:
        write_line(f"{counts['signed']:,} signed, {counts['failed']:,} failed; scheme {scheme.id}")
    for reason, count in worst:
        remark(f"failed {times(count)}: {printable(reason)}")
    if not counts["signed"]:
        remark("no document was signed; check the sources and --field")
        return FAILED
    return PARTLY if counts["failed"] else DONE


def _named(language_field: str) -> list[str]:
    """Return the column of languages where it is one that somebody has named."""
    named = named_language(language_field)
    return [named] if named else []


def _written(session: Session, made: Frame, output: str, overwrite: bool) -> dict[str, int | str]:
    write(made, output, overwrite)
    failed = f"count_if({PROBLEM} IS NOT NULL)"
    found = totals(session.read.parquet(output), read="count(1)", failed=failed)
    return {"signed": found["read"] - found["failed"], "failed": found["failed"]}


def _problems(session: Session, output: str) -> list[tuple[str, int]]:
    """Return the most frequent reasons."""
    found = session.read.parquet(output).where(f"{PROBLEM} IS NOT NULL").groupBy(PROBLEM).count()
    return [(row[0], row[1]) for row in found.orderBy("count", ascending=False).limit(5).collect()]
