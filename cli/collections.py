"""What commands over a collection without an index share: their options, and the fingerprints of it all."""

from typing import TYPE_CHECKING, NamedTuple

import click

from shinglefold.cli.command import DONE, FAILED, PARTLY, Invocation
from shinglefold.cli.hints import again
from shinglefold.cli.options import (
    chosen_scheme,
    decision_options,
    fields_option,
    options,
    preset_option,
    workers_option,
)
from shinglefold.cli.output import printable, remark
from shinglefold.cli.sources import make_read_options, read_sources, reading_notes, reading_options

if TYPE_CHECKING:
    from shinglefold.ingest.collection import Collection
    from shinglefold.scheme import Scheme

collection_options = options(
    click.argument("sources", nargs=-1, required=True, metavar="FILE..."),
    reading_options,
    fields_option("Field compared", "title and body"),
    click.option(
        "--language-field",
        default="lang",
        show_default=True,
        metavar="FIELD",
        help="Field with the language.",
    ),
    click.option(
        "--html", is_flag=True, help="Take every document for HTML, not only those whose format says so."
    ),
    preset_option,
    decision_options,
    workers_option,
)


class Collected(NamedTuple):
    """The fingerprints of a collection, the scheme they were made with, and fields named that it lacks."""

    collection: "Collection"
    scheme: "Scheme"
    absent: tuple[str, ...] = ()


def collected(
    invocation: Invocation,
    sources: tuple[str, ...],
    *,
    format: str,  # noqa: A002
    id_field: str,
    encoding: str,
    header: bool | None,
    fields: tuple[str, ...],
    language_field: str,
    html: bool,
    preset: str | None,
    workers: int | None,
    **decision: str | float | None,
) -> Collected:
    """Return the fingerprints of all documents of the sources, as the options say."""
    from shinglefold.cli.progress import progress_bar
    from shinglefold.cli.text_warnings import text_warnings
    from shinglefold.ingest.collection import collect, pipeline_for
    from shinglefold.ingest.text_fields import FieldWatch
    from shinglefold.recipe import TEXTS

    scheme = chosen_scheme(invocation, preset, **decision)
    named = bool(fields)
    fields = fields or TEXTS
    reading = make_read_options(format, id_field, encoding, header)
    records = read_sources(sources, reading)
    pipeline = pipeline_for(scheme, fields, language_field, html)
    wanted = dict.fromkeys((*fields, language_field, "format"))
    count = invocation.settings().workers if workers is None else workers
    watch = FieldWatch(fields)
    with progress_bar("fingerprints") as progress:
        collection = collect(watch.watch(records), pipeline, tuple(wanted), count, progress)
    for line in reading_notes(reading, collection.equal_ids):
        remark(f"note: {line}")
    unsigned = len(collection.prints) - int(collection.prints.valid.sum())
    for line in text_warnings(
        watch, unsigned, named, lambda other: again(invocation.arguments, field=tuple(other))
    ):
        remark(f"warning: {printable(line)}")
    return Collected(collection, scheme, watch.absent if named else ())


def ending(found: Collected) -> int:
    """Say on standard error what could not be compared; return the exit code."""
    collection = found.collection
    if not collection.failures:
        return PARTLY if found.absent else DONE
    count = len(collection.failures)
    remark(f"{count} document{'s' if count > 1 else ''} left out; first: {printable(collection.failures[0])}")
    return PARTLY if collection.prints else FAILED
