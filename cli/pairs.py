"""``shinglefold pairs FILE…``: every pair of documents the scheme folds, without an index."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from shinglefold.cli.command import DONE, FAILED, PARTLY, Invocation, command
from shinglefold.cli.options import chosen_scheme, decision_options, preset_option, workers_option
from shinglefold.cli.output import printable, remark, write_json, write_line
from shinglefold.cli.sources import make_read_options, read_sources, reading_options

if TYPE_CHECKING:
    from shinglefold.cli.duplicates import Collection
    from shinglefold.scheme import Scheme


@command(
    examples="""
    shinglefold pairs articles.jsonl.gz
    shinglefold pairs site/ --sort resemblance | head
    shinglefold pairs --json --field text --min-resemblance 0.8 dump.csv
    """
)
@click.argument("sources", nargs=-1, required=True, metavar="FILE...")
@reading_options
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="FIELD",
    help="Field compared; give it again for more. By default title and body.",
)
@click.option(
    "--language-field", default="lang", show_default=True, metavar="FIELD", help="Field with the language."
)
@click.option(
    "--html", is_flag=True, help="Take every document for HTML, not only those whose format says so."
)
@click.option(
    "--sort",
    type=click.Choice(["document", "resemblance"]),
    default="document",
    show_default=True,
    help="Order of the pairs: as the documents were read, or the most alike first.",
)
@preset_option
@decision_options
@workers_option
@click.pass_obj
def pairs(
    invocation: Invocation,
    /,
    *,
    sources: tuple[str, ...],
    format: str,  # noqa: A002
    id_field: str,
    encoding: str,
    fields: tuple[str, ...],
    language_field: str,
    html: bool,
    sort: str,
    preset: str | None,
    workers: int | None,
    **decision: float | None,
) -> int:
    """Print every pair of documents the scheme folds.

    One pair a line: id, id, estimated resemblance, separated by tabs. FILE is JSONL, CSV, HTML, text, a
    folder, or - for standard input; pairs are found within all of them together.
    """
    from shinglefold.cli.duplicates import collect, pipeline_for
    from shinglefold.cli.progress import progress_bar

    scheme = chosen_scheme(invocation, preset, **decision)
    fields = fields or ("title", "body")
    records = read_sources(sources, make_read_options(format, id_field, encoding))
    pipeline = pipeline_for(scheme, fields, language_field, html)
    wanted = dict.fromkeys((*fields, language_field, "format"))
    count = invocation.settings().workers if workers is None else workers
    with progress_bar("fingerprints") as progress:
        collection = collect(records, pipeline, tuple(wanted), count, progress)
    for a, b, resemblance in _found(collection, scheme, by_resemblance=sort == "resemblance"):
        if invocation.json:
            write_json({"a": a, "b": b, "resemblance": resemblance}, indent=None)
        else:
            write_line(f"{printable(a)}\t{printable(b)}\t{resemblance:.4f}")
    return _end(collection)


def _found(
    collection: "Collection", scheme: "Scheme", by_resemblance: bool
) -> Iterator[tuple[str, str, float]]:
    from shinglefold.cli.duplicates import folding_pairs

    if not collection.prints:
        return
    found = folding_pairs(collection.prints, scheme)
    rows = list(zip(found.a.tolist(), found.b.tolist(), found.resemblance.round(4).tolist(), strict=True))
    if by_resemblance:
        # Stable: equal ones stay in the order read.
        rows.sort(key=lambda row: -row[2])
    for a, b, resemblance in rows:
        yield collection.ids[a], collection.ids[b], resemblance


def _end(collection: "Collection") -> int:
    """Say on standard error what could not be compared; return the exit code."""
    if not collection.failures:
        return DONE
    count = len(collection.failures)
    remark(f"{count} document{'s' if count > 1 else ''} left out; first: {printable(collection.failures[0])}")
    return PARTLY if collection.prints else FAILED
