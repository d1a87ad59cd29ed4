"""``shinglefold pairs FILE…``: every pair of documents the scheme folds, without an index."""

import math
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
    shinglefold pairs --json --field text --min-similarity 0.9 dump.csv
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

    One pair a line: id, id, estimated resemblance, and where texts decide their edit similarity, separated by
    tabs. FILE is JSONL, CSV, HTML, text, a folder, or - for standard input; pairs are found within all of
    them together.
    """
    found = collected(invocation, sources, **given)
    collection, scheme = found.collection, found.scheme
    if sort == "similarity" and scheme.decision.verify != "text":
        raise click.UsageError("--sort similarity: the texts are not asked; add --verify text")
    for row in _pairs(collection, scheme, sort):
        if invocation.json:
            write_json(row, indent=None)
        else:
            a, b, *alike = row.values()
            write_line("\t".join([printable(a), printable(b), *map(_share, alike)]))
    return ending(found)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.4f}"


def _pairs(collection: "Collection", scheme: "Scheme", sort: str) -> list[dict[str, Any]]:
    from shinglefold.ingest.collection import folding_pairs

    if not collection.prints:
        return []
    found = folding_pairs(collection, scheme)
    ids = collection.ids
    columns = {
        "a": [ids[place] for place in found.a.tolist()],
        "b": [ids[place] for place in found.b.tolist()],
        "resemblance": found.resemblance.round(4).tolist(),
    }
    if scheme.decision.verify == "text":
        columns["similarity"] = [
            None if math.isnan(one) else one for one in found.similarity.round(4).tolist()
        ]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if sort != "document":
        # Stable: equal ones stay in the order read.
        rows.sort(key=lambda row: -(row["resemblance"] if row[sort] is None else row[sort]))
    return rows
