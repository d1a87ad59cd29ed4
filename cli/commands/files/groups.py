"""``shinglefold groups FILE…``: the groups or pairs of near-duplicates in files, without an index."""

import math
from typing import TYPE_CHECKING, Any, Literal

import click

from shinglefold.cli.commands.files.collection import (
    Scale,
    collection_options,
    finish,
    open_collection,
    scale_options,
)
from shinglefold.cli.framework.command import Invocation, command
from shinglefold.cli.framework.output import printable, write_csv, write_json, write_line

if TYPE_CHECKING:
    from shinglefold.cli.commands.files.collection import Collection
    from shinglefold.model.scheme import Decision
    from shinglefold.offline.dedupe.list_pairs import Rows
    from shinglefold.sketch import DecidedBy


@command(
    examples="""
    shinglefold groups articles.jsonl.gz
    shinglefold groups --sort size --min-size 3 articles.jsonl.gz | head
    shinglefold groups --csv dump.csv
    shinglefold groups --json --linkage leader site/
    shinglefold groups signed.parquet --memory 2G
    shinglefold groups --pairs articles.jsonl.gz
    shinglefold groups --pairs --sort resemblance site/ | head
    shinglefold groups --pairs --json --field text --min-similarity 0.9 dump.csv
    """
)
@collection_options
@click.option("--pairs", "as_pairs", is_flag=True, help="Print every pair instead of groups.")
@click.option(
    "--linkage",
    type=click.Choice(["connected", "leader"]),
    show_default="connected",
    help="connected: chains of pairs are one group; leader: each member matches the first of its group.",
)
@click.option(
    "--min-size",
    type=click.IntRange(1),
    show_default="2",
    metavar="N",
    help="Leave smaller groups out; 1 prints documents without a copy, too.",
)
@click.option(
    "--sort",
    type=click.Choice(["document", "size", "resemblance", "similarity"]),
    default="document",
    show_default=True,
    help="document: in the order read; size: the largest group first; resemblance, similarity: the most "
    "alike pair first, by signature or by text.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV: number of the group and id, a row each.")
@scale_options
@click.pass_obj
def groups(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    as_pairs: bool,
    linkage: Literal["connected", "leader"] | None,
    min_size: int | None,
    sort: Literal["document", "size", "resemblance", "similarity"],
    as_csv: bool,
    signed: bool | None,
    memory: str,
    most_shared: int | None,
    **given: Any,  # noqa: ANN401 - the options of every collection
) -> int:
    """Print the groups of documents that fold, or every pair of them.

    One group a line: its ids in the order read, separated by tabs. One pair a line: id, id, estimated
    resemblance, edit similarity where texts decide, and what decided. FILE is JSONL, CSV, HTML, text, a
    folder, - for standard input, or what sign wrote, also as Parquet; all files are compared together.

    A stopped command starts from the beginning. For many texts run sign first, which continues after a kill,
    then groups on its output.
    """
    _check_forms(as_pairs, linkage, min_size, sort, as_csv, invocation.json)
    with open_collection(invocation, sources, Scale(signed, memory, most_shared), **given) as found:
        if as_pairs:
            _print_pairs(found, sort, invocation.json)
        else:
            form = "csv" if as_csv else "json" if invocation.json else "text"
            _print_groups(found, linkage or "connected", min_size or 2, sort == "size", form)
        return finish(found)


def _check_forms(  # noqa: PLR0917 - an option each
    as_pairs: bool, linkage: str | None, min_size: int | None, sort: str, as_csv: bool, as_json: bool
) -> None:
    """Refuse options that contradict each other."""
    if as_csv and as_json:
        raise click.UsageError("--csv and --json are two forms: give one of them")
    of_groups = {"--linkage": linkage, "--min-size": min_size, "--csv": as_csv, "--sort size": sort == "size"}
    if as_pairs and (wrong := [name for name, is_given in of_groups.items() if is_given]):
        raise click.UsageError(f"{wrong[0]} is for groups: leave it or --pairs out")
    if not as_pairs and sort in {"resemblance", "similarity"}:
        raise click.UsageError(f"--sort {sort} is for pairs: add --pairs")


def _print_pairs(found: "Collection", sort: Any, as_json: bool) -> None:  # noqa: ANN401 - checked by click
    by_text = found.scheme.decision.verify == "text" and found.table.whole
    if sort == "similarity" and not by_text:
        raise click.UsageError("--sort similarity: no texts are compared; add --verify text")
    for rows in found.linking.pairs(sort):
        _write_pairs(found, rows, by_text, as_json)


def _write_pairs(found: "Collection", rows: "Rows", by_text: bool, as_json: bool) -> None:
    ones, others = found.names.many(rows["a"]), found.names.many(rows["b"])
    names = ["a", "b", "resemblance"]
    columns = [ones, others, rows["resemblance"].round(4).tolist()]
    if by_text:
        names.append("similarity")
        columns.append([None if math.isnan(one) else one for one in rows["similarity"].round(4).tolist()])
    decision = found.scheme.decision
    names.append("decided_by")
    exact = zip(rows["resemblance"].tolist(), rows["similarity"].tolist(), strict=True)
    columns.append([_decided_by(*pair, decision, by_text=by_text) for pair in exact])
    for row in found.until_interrupted(zip(*columns, strict=True)):
        if as_json:
            write_json(dict(zip(names, row, strict=True)), indent=None)
        else:
            a, b, *alike, decided = row
            write_line("\t".join([printable(a), printable(b), *map(_share, alike), decided]))


def _decided_by(resemblance: float, similarity: float, decision: "Decision", *, by_text: bool) -> "DecidedBy":
    """Return what decided that a pair was kept."""
    from shinglefold.sketch import text_decided_by

    if (resemblance, similarity) == (1.0, 1.0):
        return "same_text"
    if decision.verify == "keywords":
        return "supershingles"
    if not by_text or math.isnan(similarity):
        return "estimate"
    return text_decided_by(similarity, decision.min_similarity, alike=True)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.4f}"


def _print_groups(
    found: "Collection",
    linkage: Literal["connected", "leader"],
    min_size: int,
    by_size: bool,
    form: str,
) -> None:
    from shinglefold.offline.dedupe.link import groups_of

    labels = found.linking.labels(linkage)
    named = found.until_interrupted(found.names.of_each(groups_of(labels, min_size, by_size)))
    if form == "csv":
        write_csv(("group", "id"))
    for number, ids in enumerate(named, 1):
        if form == "csv":
            for one in ids:
                write_csv((str(number), one))
        elif form == "json":
            write_json({"size": len(ids), "ids": ids}, indent=None)
        else:
            write_line("\t".join(map(printable, ids)))
