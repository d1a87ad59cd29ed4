"""``shinglefold groups FILE…``: the groups of near-duplicates of a collection, without an index."""

from collections.abc import Sequence
from typing import Any

import click

from shinglefold.cli.collections import collected, collection_options, ending
from shinglefold.cli.command import Invocation, command
from shinglefold.cli.output import printable, write_csv, write_json, write_line


@command(
    examples="""
    shinglefold groups articles.jsonl.gz
    shinglefold groups --sort size --min-size 3 articles.jsonl.gz | head
    shinglefold groups --csv dump.csv
    shinglefold groups --json --linkage leader site/
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
@click.pass_obj
def groups(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    linkage: str,
    min_size: int,
    sort: str,
    as_csv: bool,
    **given: Any,  # noqa: ANN401 - the options of every collection
) -> int:
    """Print the groups of documents that the scheme folds.

    One group a line: its ids in the order read, separated by tabs. FILE is JSONL, CSV, HTML, text, a folder,
    or - for standard input; groups are made of all of them together.
    """
    from shinglefold.ingest.collection import folding_groups

    if as_csv and invocation.json:
        raise click.UsageError("--csv and --json are two forms: give one of them")
    found = collected(invocation, sources, **given)
    every = folding_groups(found.collection, found.scheme, linkage)
    large = [places for places in every if len(places) >= min_size]
    if sort == "size":
        # Stable: equal ones stay in the order read.
        large.sort(key=lambda places: -len(places))
    named = [[found.collection.ids[place] for place in places] for places in large]
    if as_csv:
        _write_csv(named)
    else:
        _write(named, invocation.json)
    return ending(found)


def _write(named: Sequence[Sequence[str]], as_json: bool) -> None:
    for ids in named:
        if as_json:
            write_json({"size": len(ids), "ids": ids}, indent=None)
        else:
            write_line("\t".join(map(printable, ids)))


def _write_csv(named: Sequence[Sequence[str]]) -> None:
    write_csv(("group", "id"))
    for number, ids in enumerate(named, 1):
        for one in ids:
            write_csv((str(number), one))
