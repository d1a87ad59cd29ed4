"""The options of commands that read documents, and the reading."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from shinglefold.cli.options import options

if TYPE_CHECKING:
    from shinglefold.ingest import ReadOptions, Record

reading_options = options(
    click.option(
        "--format",
        "format",
        type=click.Choice(["auto", "jsonl", "csv", "html", "text"]),
        default="auto",
        show_default=True,
        help="How sources are written; auto goes by the name, standard input is JSONL.",
    ),
    click.option(
        "--id-field",
        default="",
        metavar="FIELD",
        help="Field of the id, which no record may lack; by default _id, else id.",
    ),
    click.option(
        "--encoding",
        default="",
        metavar="NAME",
        help="Encoding; by default what the text declares, else UTF-8.",
    ),
)


def make_read_options(format: str, id_field: str, encoding: str) -> "ReadOptions":  # noqa: A002
    """Return the reading options a command was given."""
    from shinglefold.ingest import ReadOptions

    return ReadOptions(format=format, id_field=id_field, encoding=encoding)  # type: ignore[arg-type]


def read_sources(
    sources: Sequence[str], options: "ReadOptions", replayed: bool = False
) -> Iterator["Record"]:
    """Return the records of all sources in order; ``fraction`` is of all of them, each counting alike.

    Args:
        replayed: the sources are dead-letter files.

    Raises:
        InputError: one of them does not exist.
    """
    from shinglefold.ingest import read, replay

    # Found by name before the first is read: a mistyped name costs no hour.
    return _joined([replay(source, options) if replayed else read(source, options) for source in sources])


def _joined(streams: Sequence[Iterator["Record"]]) -> Iterator["Record"]:
    from dataclasses import replace

    for number, stream in enumerate(streams):
        for record in stream:
            yield replace(record, fraction=(number + record.fraction) / len(streams))
