"""``shinglefold pairs FILE…``: every pair of documents the scheme folds, without an index."""

import math
from typing import TYPE_CHECKING, Any, Literal

import click

from shinglefold.cli.collections import Scale, collected, collection_options, ending, scale_options
from shinglefold.cli.command import Invocation, command
from shinglefold.cli.output import printable, write_json, write_line

if TYPE_CHECKING:
    from shinglefold.cli.collections import Collected
    from shinglefold.ingest.linking.list_pairs import Rows


@command(
    examples="""
    shinglefold pairs articles.jsonl.gz
    shinglefold pairs site/ --sort resemblance | head
    shinglefold pairs --json --field text --min-similarity 0.9 dump.csv
    shinglefold pairs signed.parquet --memory 2G
    """
)
@collection_options
@click.option(
    "--sort",
    type=click.Choice(["document", "resemblance", "similarity"]),
    default="document",
    show_default=True,
    help="Order of the pairs: as the documents were read, or the most alike first, by signature or text.",
)
@scale_options
@click.pass_obj
def pairs(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    sort: Literal["document", "resemblance", "similarity"],
    signed: bool | None,
    memory: str,
    most_shared: int | None,
    **given: Any,  # noqa: ANN401 - the options of every collection
) -> int:
    """Print every pair of documents the scheme folds.

    One pair a line: id, id, estimated resemblance, and where texts decide their edit similarity, separated by
    tabs. FILE is JSONL, CSV, HTML, text, a folder, - for standard input, or what sign wrote, also as Parquet;
    pairs are found within all of them together.

    A command that is stopped begins anew. For a long job over texts, run sign first, which goes on after a
    kill, and give what it wrote.
    """
    with collected(invocation, sources, Scale(signed, memory, most_shared), **given) as found:
        by_text = found.scheme.decision.verify == "text" and found.table.whole
        if sort == "similarity" and not by_text:
            raise click.UsageError("--sort similarity: the texts are not asked; add --verify text")
        for rows in found.linking.pairs(sort):
            _write(found, rows, by_text, invocation.json)
        return ending(found)


def _write(found: "Collected", rows: "Rows", by_text: bool, as_json: bool) -> None:
    ones, others = found.names.many(rows["a"]), found.names.many(rows["b"])
    columns = [ones, others, rows["resemblance"].round(4).tolist()]
    if by_text:
        columns.append([None if math.isnan(one) else one for one in rows["similarity"].round(4).tolist()])
    for row in found.going(zip(*columns, strict=True)):
        if as_json:
            write_json(dict(zip(("a", "b", "resemblance", "similarity"), row, strict=False)), indent=None)
        else:
            a, b, *alike = row
            write_line("\t".join([printable(a), printable(b), *map(_share, alike)]))


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.4f}"
