"""``shinglefold pairs FILE…``: every pair of documents the scheme folds, without an index."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.collections import collected, collection_options, ending
from shinglefold.cli.command import Invocation, command
from shinglefold.cli.output import printable, write_json, write_line

if TYPE_CHECKING:
    from shinglefold.ingest.collection import Collection
    from shinglefold.scheme import Scheme


@command(
    examples="""
    shinglefold pairs articles.jsonl.gz
    shinglefold pairs site/ --sort resemblance | head
    shinglefold pairs --json --field text --min-resemblance 0.8 dump.csv
    """
)
@click.argument("sources", nargs=-1, required=True, metavar="FILE...")
@collection_options
@click.option(
    "--sort",
    type=click.Choice(["document", "resemblance"]),
    default="document",
    show_default=True,
    help="Order of the pairs: as the documents were read, or the most alike first.",
)
@click.pass_obj
def pairs(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    sort: str,
    **given: Any,  # noqa: ANN401 - the options of every collection
) -> int:
    """Print every pair of documents the scheme folds.

    One pair a line: id, id, estimated resemblance, separated by tabs. FILE is JSONL, CSV, HTML, text, a
    folder, or - for standard input; pairs are found within all of them together.
    """
    collection, scheme = collected(invocation, sources, **given)
    for a, b, resemblance in _found(collection, scheme, by_resemblance=sort == "resemblance"):
        if invocation.json:
            write_json({"a": a, "b": b, "resemblance": resemblance}, indent=None)
        else:
            write_line(f"{printable(a)}\t{printable(b)}\t{resemblance:.4f}")
    return ending(collection)


def _found(
    collection: "Collection", scheme: "Scheme", by_resemblance: bool
) -> Iterator[tuple[str, str, float]]:
    from shinglefold.ingest.collection import folding_pairs

    if not collection.prints:
        return
    found = folding_pairs(collection.prints, scheme)
    rows = list(zip(found.a.tolist(), found.b.tolist(), found.resemblance.round(4).tolist(), strict=True))
    if by_resemblance:
        # Stable: equal ones stay in the order read.
        rows.sort(key=lambda row: -row[2])
    for a, b, resemblance in rows:
        yield collection.ids[a], collection.ids[b], resemblance
