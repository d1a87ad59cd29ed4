"""``python -m shinglefold.cli.spark read``: the fingerprints that an index stores, as Parquet."""

import click

from shinglefold.cli.framework.command import DONE, FAILED, Invocation, command
from shinglefold.cli.framework.output import remark, write_json, write_line
from shinglefold.cli.options.definitions import engine_option
from shinglefold.cli.session.open_index import opened_store
from shinglefold.cli.spark.job import free, job, job_options, progress, write
from shinglefold.engines import Connection, is_server, load_connection
from shinglefold.offline.spark.read_index import stored
from shinglefold.offline.spark.session import totals


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
    help="Executors that read side by side, each its slices.",
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
    """Write the fingerprints that an INDEX stores: _index, _id, _routing and dedup, a row a document.

    Nothing is written to the index. groups takes what comes out; numbers of groups are written by
    shinglefold regroup.
    """
    asked = invocation.asked(index, engine)
    with opened_store(asked) as store:
        recipe = store.recipe
    where: str | Connection = load_connection(asked.where) if is_server(asked.where) else asked.where
    with job(master) as session:
        free(session, output, overwrite, ())
        progress(f"reading {index} in {parts} parts")
        write(stored(session, where, index, recipe, parts=parts), output, overwrite)
        signed = "count_if(dedup.signature IS NOT NULL)"
        counts = totals(session.read.parquet(output), read="count(1)", signed=signed)
    if invocation.json:
        write_json({**counts, "scheme": recipe.scheme.id})
    else:
        write_line(f"{counts['read']:,} documents, {counts['signed']:,} with a signature of a fingerprint")
    if not counts["read"]:
        remark(f"index {index} has no documents")
        return FAILED
    return DONE
