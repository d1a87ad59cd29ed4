"""``shinglefold groups FILE…``: the groups or pairs of near-duplicates in files, without an index."""

import math
import sys
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from shinglefold.cli.commands.files.collection import (
    collection_options,
    finish,
    open_collection,
    scale_options,
)
from shinglefold.cli.shared.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.shared.definitions import title_field_option
from shinglefold.cli.shared.output import printable, remark, write_csv, write_json, write_line
from shinglefold.cli.shared.sources import refuse_index
from shinglefold.errors import counted, suggest
from shinglefold.model.linkage import LINKAGE, Linkage, linkage_phrase

if TYPE_CHECKING:
    from shinglefold.cli.commands.files.collection import Collection
    from shinglefold.model.scheme import Decision
    from shinglefold.offline.dedupe.link import Rows
    from shinglefold.offline.dedupe.slots import Labels
    from shinglefold.sketch.verification import DecidedBy


@command(
    examples="""
    shinglefold groups articles.jsonl.gz
    shinglefold groups --sort size --min-size 3 articles.jsonl.gz | head
    shinglefold groups --csv dump.csv
    shinglefold groups --json --linkage connected site/
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
    type=click.Choice(get_args(Linkage)),
    show_default=LINKAGE,
    help="leader: each member matches the first of its group, as in searches; connected: chains of pairs are "
    "one group.",
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
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV: number of the group, id, title, a row each.")
@click.option(
    "--titles/--no-titles",
    default=None,
    help="Print titles: of groups a document a line, of pairs behind the other columns. By default only on "
    "a terminal; CSV and JSON always have them.",
)
@title_field_option
@scale_options
@click.pass_obj
def groups(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    as_pairs: bool,
    linkage: Linkage | None,
    min_size: int | None,
    sort: Literal["document", "size", "resemblance", "similarity"],
    as_csv: bool,
    titles: bool | None,
    title_field: str,
    **given: Any,  # noqa: ANN401 - the options of every collection, and of its scale
) -> int:
    """Print the groups of documents that fold, or every pair of them.

    One group a line: its ids in the order read, separated by tabs; with titles one document a line. One pair
    a line: id, id, estimated resemblance, edit similarity where texts decide, and what decided. FILE is
    JSONL, CSV, HTML, text, a folder, - for standard input, or what sign wrote, also as Parquet; all files are
    compared together.

    A stopped command starts from the beginning. For many texts run sign first, which continues after a kill,
    then groups on its output.
    """
    _check_forms(as_pairs, linkage, min_size, sort, as_csv, invocation.json)
    form = "csv" if as_csv else "json" if invocation.json else "text"
    named = title_field if form != "text" or (sys.stdout.isatty() if titles is None else titles) else ""
    shown = (named,) if named else ()
    wanted = "--titles" if titles else "--title-field" if title_field != "title" else ""
    for name in sources:
        refuse_index(name, lambda index: f"Of an index: {suggest('report', index)}")
    with open_collection(invocation, sources, shown=shown, titles=wanted, **given) as found:
        # The texts of signed files are not read.
        named = named if found.table.whole else ""
        if as_pairs:
            _print_pairs(found, sort, named, invocation.json)
        else:
            _print_groups(found, linkage or LINKAGE, min_size or 2, sort == "size", named, form)
        code = finish(found)
        if found.untitled and title_field != "title":
            remark(f"none of these documents has the field {title_field}, which titles are to come from")
            code = PARTLY if code == DONE else code
        return code


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


def _print_pairs(found: "Collection", sort: Any, title: str, as_json: bool) -> None:  # noqa: ANN401 - checked by click
    by_text = found.scheme.decision.verify == "text" and found.table.whole
    if sort == "similarity" and not by_text:
        raise click.UsageError("--sort similarity: no texts are compared; add --verify text")
    for rows in found.linking.pairs(sort):
        _write_pairs(found, rows, by_text, title, as_json)


def _write_pairs(found: "Collection", rows: "Rows", by_text: bool, title: str, as_json: bool) -> None:
    columns: dict[str, list[Any]] = {
        "a": found.names.many(rows["a"]),
        "b": found.names.many(rows["b"]),
        "resemblance": rows["resemblance"].round(4).tolist(),
    }
    if by_text:
        similarity = rows["similarity"].round(4).tolist()
        columns["similarity"] = [None if math.isnan(one) else one for one in similarity]
    decision = found.scheme.decision
    exact = zip(rows["resemblance"].tolist(), rows["similarity"].tolist(), strict=True)
    columns["decided_by"] = [_decided_by(*pair, decision, by_text=by_text) for pair in exact]
    if title:
        columns |= {f"title_{one}": found.titles(rows[one], title) for one in ("a", "b")}
    for row in found.until_interrupted(zip(*columns.values(), strict=True)):
        if as_json:
            write_json(dict(zip(columns, row, strict=True)), indent=None)
        else:
            write_line("\t".join(printable(one) if isinstance(one, str) else _share(one) for one in row))


def _decided_by(resemblance: float, similarity: float, decision: "Decision", *, by_text: bool) -> "DecidedBy":
    """Return what decided that a pair was kept."""
    from shinglefold.sketch.verification import text_decided_by

    if (resemblance, similarity) == (1.0, 1.0):
        return "same_text"
    if decision.verify == "keywords":
        return "supershingles"
    if not by_text or math.isnan(similarity):
        return "estimate"
    return text_decided_by(similarity, decision.min_similarity)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.4f}"


def _print_groups(  # noqa: PLR0917 - an option each
    found: "Collection",
    linkage: Linkage,
    min_size: int,
    by_size: bool,
    title: str,
    form: str,
) -> None:
    from shinglefold.offline.dedupe.link import groups_of

    labels = found.linking.labels(linkage)
    groups = groups_of(labels, min_size, by_size)
    if form == "csv":
        write_csv(("group", "id", "title"))
    for number, (documents, ids) in enumerate(found.until_interrupted(found.names.of_each(groups)), 1):
        titles = found.titles(documents, title) if title else [""] * len(ids)
        if form == "csv":
            for one, its in zip(ids, titles, strict=True):
                write_csv((str(number), one, its))
        elif form == "json":
            write_json({"size": len(ids), "ids": ids} | ({"titles": titles} if title else {}), indent=None)
        elif title:
            for one, its in zip(ids, titles, strict=True):
                write_line(f"{printable(one)}\t{printable(its)}")
            write_line("")
        else:
            write_line("\t".join(map(printable, ids)))
    _count(found, labels, linkage)


def _count(found: "Collection", labels: "Labels", linkage: str) -> None:
    """Write to standard error how many documents are in groups, and what makes a group."""
    import numpy as np

    sizes = np.bincount(labels)
    several = sizes[sizes > 1]
    groups = counted(len(several), "group with copies, which has", "groups with copies, which have")
    line = f"{counted(len(labels), 'document')}: {groups} {counted(several.sum(), 'document')}; "
    line += linkage_phrase(linkage)
    if unsigned := len(labels) - int(found.table.valid().sum()):
        line += f"; {unsigned:,} with too little text for a signature fold only with exact copies"
    remark(line)
