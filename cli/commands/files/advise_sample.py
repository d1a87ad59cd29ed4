"""``shinglefold advise sample FILE…``: how many documents fold at which threshold."""

import sys
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.commands.files.collection import collection_options, finish, open_collection
from shinglefold.cli.framework.command import Invocation, command
from shinglefold.cli.framework.output import print_table, printable, write_json, write_line

if TYPE_CHECKING:
    from shinglefold.cli.commands.files.collection import Collection
    from shinglefold.offline.dedupe.list_pairs import Rows

#: The thresholds of the table.
_THRESHOLDS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


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
    help="Pairs to show on either side of the threshold, those nearest to it.",
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
    """Show how many of your documents fold at which threshold, and the pairs nearest to it.

    FILE is as for groups. Texts decide unless --verify signature says otherwise. The threshold of the pairs
    shown is --min-similarity or --min-resemblance.
    """
    with open_collection(invocation, sources, **given) as found:
        scheme = found.scheme
        decision = scheme.decision
        if decision.verify == "keywords":
            raise click.UsageError(
                "advise sample: keywords have no threshold; add --verify signature or text"
            )
        name = "min_similarity" if decision.verify == "text" else "min_resemblance"
        threshold = getattr(decision, name)
        rows = [_row(found, name, tried) for tried in sorted({*_THRESHOLDS, threshold})]
        near = _nearest(found, name, threshold, nearest)
        if invocation.json:
            documents = len(found.table)
            write_json({"documents": documents, "threshold": threshold, "tried": rows, "nearest": near})
        else:
            _print(rows, near, name, threshold, len(found.table))
        return finish(found)


def _print(
    rows: Sequence[dict[str, Any]],
    near: Sequence[dict[str, Any]],
    name: str,
    threshold: float,
    documents: int,
) -> None:
    cells = [
        (f"{row['at']:g}" + (" *" if row["at"] == threshold else ""), str(row["pairs"]), str(row["folded"]))
        for row in rows
    ]
    print_table((name, "pairs", "documents folded"), cells)
    write_line(f"\n* the threshold; documents: {documents:,}")
    if near:
        write_line("The pairs nearest to it:")
    for pair in near:
        write_line(f"{pair['alike']:.4f}\t{printable(pair['a'])}\t{printable(pair['b'])}")


def _pairs_at(found: "Collection", name: str, threshold: float) -> "Rows":
    import numpy as np

    from shinglefold.offline.dedupe.link import Linking
    from shinglefold.offline.dedupe.slots import LinkOptions

    scheme = found.scheme
    table = found.table.with_scheme(
        scheme.with_options(**{name: threshold, "verify": scheme.decision.verify})
    )
    # No limits, because a sample is small.
    every = LinkOptions(memory=sys.maxsize, most_shared=max(1, len(table)))
    return np.concatenate([*Linking(table, every).pairs()])


def _row(found: "Collection", name: str, threshold: float) -> dict[str, Any]:
    import numpy as np

    from shinglefold.sketch import leader_clusters

    pairs = _pairs_at(found, name, threshold)
    leaders = leader_clusters(pairs["a"].astype(np.int64), pairs["b"].astype(np.int64), len(found.table))
    return {"at": threshold, "pairs": len(pairs), "folded": sum(map(int.__ne__, leaders.tolist(), count()))}


def _nearest(found: "Collection", name: str, threshold: float, most: int) -> list[dict[str, Any]]:
    """Return the pairs on either side of the threshold, the most alike first."""
    if not most:
        return []
    pairs = _pairs_at(found, name, min(_THRESHOLDS[0], threshold))
    alike = pairs["similarity" if name == "min_similarity" else "resemblance"]
    rows = sorted(
        (float(one), a, b)
        for one, a, b in zip(alike.tolist(), pairs["a"].tolist(), pairs["b"].tolist(), strict=True)
        if one == one  # noqa: PLR0124 - NaN: a text is too long to compare
    )
    below = [row for row in rows if row[0] < threshold][-most:]
    above = [row for row in rows if row[0] >= threshold][:most]
    return [
        {"alike": round(one, 4), "a": found.names[a], "b": found.names[b]}
        for one, a, b in reversed([*below, *above])
    ]
