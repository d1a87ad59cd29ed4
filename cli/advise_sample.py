"""``shinglefold advise sample FILE…``: what would fold of one's own documents, at which threshold."""

from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.collections import collected, collection_options, ending
from shinglefold.cli.command import Invocation, command
from shinglefold.cli.output import print_table, printable, write_json, write_line

if TYPE_CHECKING:
    from shinglefold.ingest.collection import Collection
    from shinglefold.scheme import Scheme

#: Thresholds that are tried.
_TRIED = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


@command(
    "sample",
    examples="""
    shinglefold advise sample articles.jsonl.gz
    shinglefold advise sample site/ --verify signature --nearest 20
    """,
)
@collection_options
@click.option(
    "--nearest",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    metavar="N",
    help="Pairs to show on either side of the threshold, the nearest to it: look at them.",
)
@click.pass_obj
def sample(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    nearest: int,
    **given: Any,  # noqa: ANN401 - the options of every collection
) -> int:
    """Tell how many of your documents fold at which threshold, and show the pairs nearest to it.

    FILE is as for pairs. Texts decide unless --verify signature says otherwise; what --min-similarity or
    --min-resemblance gives is the threshold the pairs are shown about.
    """
    found = collected(invocation, sources, **given)
    scheme = found.scheme
    decision = scheme.decision
    if decision.verify == "keywords":
        raise click.UsageError("advise sample: keywords have no threshold; add --verify signature or text")
    name = "min_similarity" if decision.verify == "text" else "min_resemblance"
    threshold = getattr(decision, name)
    rows = [_row(found.collection, scheme, name, tried) for tried in sorted({*_TRIED, threshold})]
    near = _nearest(found.collection, scheme, name, threshold, nearest)
    if invocation.json:
        documents = len(found.collection.ids)
        write_json({"documents": documents, "threshold": threshold, "tried": rows, "nearest": near})
        return ending(found)
    cells = [
        (f"{row['at']:g}" + (" *" if row["at"] == threshold else ""), str(row["pairs"]), str(row["folded"]))
        for row in rows
    ]
    print_table((name, "pairs", "documents folded"), cells)
    write_line(f"\n* the threshold; of {len(found.collection.ids):,} documents. The pairs nearest to it:")
    for pair in near:
        write_line(f"{pair['alike']:.4f}\t{printable(pair['a'])}\t{printable(pair['b'])}")
    return ending(found)


def _row(collection: "Collection", scheme: "Scheme", name: str, threshold: float) -> dict[str, Any]:
    from shinglefold.ingest.collection import folding_groups, folding_pairs

    tried = scheme.with_options(**{name: threshold, "verify": scheme.decision.verify})
    if not collection.prints:
        return {"at": threshold, "pairs": 0, "folded": 0}
    groups = folding_groups(collection, tried, "leader")
    pairs = len(folding_pairs(collection, tried))
    return {"at": threshold, "pairs": pairs, "folded": len(collection.prints) - len(groups)}


def _nearest(
    collection: "Collection", scheme: "Scheme", name: str, threshold: float, count: int
) -> list[dict[str, Any]]:
    """Return the pairs just above the threshold and those just below it, the most alike first."""
    from shinglefold.ingest.collection import folding_pairs

    if not collection.prints or not count:
        return []
    wide = scheme.with_options(**{name: min(_TRIED[0], threshold), "verify": scheme.decision.verify})
    found = folding_pairs(collection, wide)
    alike = found.similarity if name == "min_similarity" else found.resemblance
    rows = sorted(
        (float(one), a, b)
        for one, a, b in zip(alike.tolist(), found.a.tolist(), found.b.tolist(), strict=True)
        if one == one  # noqa: PLR0124 - NaN: a text too long to be asked
    )
    below = [row for row in rows if row[0] < threshold][-count:]
    above = [row for row in rows if row[0] >= threshold][:count]
    return [
        {"alike": round(one, 4), "a": collection.ids[a], "b": collection.ids[b]}
        for one, a, b in reversed([*below, *above])
    ]
