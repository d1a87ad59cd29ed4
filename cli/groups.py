"""``shinglefold groups FILE…``: the groups of near-duplicates of a collection, without an index."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import click

from shinglefold.cli.collections import Scale, collected, collection_options, ending, scale_options
from shinglefold.cli.command import Invocation, command
from shinglefold.cli.output import printable, write_csv, write_json, write_line


@command(
    examples="""
    shinglefold groups articles.jsonl.gz
    shinglefold groups --sort size --min-size 3 articles.jsonl.gz | head
    shinglefold groups --csv dump.csv
    shinglefold groups --json --linkage leader site/
    shinglefold groups signed.parquet --memory 2G
    """
)
@collection_options
@click.option(
    "--linkage",
    type=click.Choice(["connected", "leader"]),
    default="connected",
    show_default=True,
    help="connected: chains of pairs are one group; leader: each member matches the first of its group.",
)
@click.option(
    "--min-size",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    metavar="N",
    help="Leave smaller groups out; 1 prints documents without a copy, too.",
)
@click.option(
    "--sort",
    type=click.Choice(["document", "size"]),
    default="document",
    show_default=True,
    help="Order of the groups: as their first documents were read, or the largest first.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV: number of the group and id, a row each.")
@scale_options
@click.pass_obj
def groups(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    linkage: Literal["connected", "leader"],
    min_size: int,
    sort: str,
    as_csv: bool,
    signed: bool | None,
    memory: str,
    most_shared: int | None,
    **given: Any,  # noqa: ANN401 - the options of every collection
) -> int:
    """Print the groups of documents that the scheme folds.

    One group a line: its ids in the order read, separated by tabs. FILE is JSONL, CSV, HTML, text, a folder,
    - for standard input, or what sign wrote, also as Parquet; groups are made of all of them together.

    A command that is stopped begins anew. For a long job over texts, run sign first, which goes on after a
    kill, and give what it wrote.
    """
    from shinglefold.ingest.linking.link import groups_of

    if as_csv and invocation.json:
        raise click.UsageError("--csv and --json are two forms: give one of them")
    with collected(invocation, sources, Scale(signed, memory, most_shared), **given) as found:
        labels = found.linking.labels(linkage)
        named = found.going(found.names.of_each(groups_of(labels, min_size, sort == "size")))
        if as_csv:
            _write_csv(named)
        else:
            _write(named, invocation.json)
        return ending(found)


def _write(named: Iterable[Sequence[str]], as_json: bool) -> None:
    for ids in named:
        if as_json:
            write_json({"size": len(ids), "ids": ids}, indent=None)
        else:
            write_line("\t".join(map(printable, ids)))


def _write_csv(named: Iterable[Sequence[str]]) -> None:
    write_csv(("group", "id"))
    for number, ids in enumerate(named, 1):
        for one in ids:
            write_csv((str(number), one))
