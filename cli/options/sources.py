"""The options of commands that read documents, and the reading."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shinglefold.cli.options.definitions import options

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
    click.option(
        "--header/--no-header",
        "header",
        default=None,
        help="The first row of CSV has the names of the columns, or is data and they get numbers.",
    ),
)


def make_read_options(
    format: str,  # noqa: A002
    id_field: str,
    encoding: str,
    header: bool | None = None,
) -> "ReadOptions":
    """Return the reading options a command was given."""
    from shinglefold.ingest import ReadOptions

    return ReadOptions(format=format, id_field=id_field, encoding=encoding, header=header)  # type: ignore[arg-type]


def read_sources(
    sources: Sequence[str], options: "ReadOptions", replaying: Callable[[str], str] | None = None
) -> Iterator["Record"]:
    """Return the records of all sources in order; ``fraction`` is of all of them, each counting alike.

    Args:
        replaying: from the name of a dead-letter file, the command that indexes its documents again.

    Raises:
        InputError: one of them does not exist.
        ConfigError: while reading: one holds dead letters.
    """
    # Found by name before the first is read: a mistyped name costs no hour.
    from dataclasses import replace

    from shinglefold.ingest import read

    prefixes = page_prefixes(sources, options)
    return _joined(
        [
            _documents(source, read(source, replace(options, prefix=prefixes.get(number, ""))), replaying)
            for number, source in enumerate(sources)
        ]
    )


def _documents(
    source: str, records: Iterator["Record"], replaying: Callable[[str], str] | None
) -> Iterator["Record"]:
    """Yield records, unless the first of them is a dead letter: stored, nobody would ever find it."""
    from shinglefold.errors import ConfigError
    from shinglefold.ingest.writing.dead_letters import is_bare_letter

    first = next(records, None)
    if first is None:
        return
    if first.document is not None and is_bare_letter(first.document):
        how = f": they are tried again with: {replaying(source)}" if replaying and source != "-" else ""
        raise ConfigError(f"{first.source} holds dead letters, not documents{how}")
    yield first
    yield from records


def check_sources(sources: Sequence[str], options: "ReadOptions", dead_letters: str | None) -> None:
    """See that sources can be read and are what they should be, before the first is worked on.

    Raises:
        InputError: one does not exist.
        ConfigError: its name does not say its format, it holds dead letters, or they are to be written to it.
    """
    from shinglefold.errors import InputError
    from shinglefold.ingest import read
    from shinglefold.ingest.readers.jsonl import WHOLE
    from shinglefold.offline.sign.tasks import is_parquet, row_groups

    check_dead_letters(dead_letters, sources, "")
    for source in sources:
        if is_parquet(source):
            next(row_groups(source), None)
        else:
            records = read(source, options)
            if source != "-" and Path(source).is_file():
                first = next(_documents(source, records, None), None)
                if first is not None and first.document is None and first.reason.startswith(WHOLE):
                    raise InputError(f"{source}: {first.reason}")


def check_dead_letters(path: str | None, sources: Sequence[str], retried: str) -> None:
    """Refuse a file for dead letters that is a source: letters would be mixed with documents.

    Args:
        retried: the command that tries the letters of this file again; empty where there is none.

    Raises:
        ConfigError: it is one.
    """
    from pathlib import Path

    from shinglefold.errors import ConfigError

    if path is None or not Path(path).is_file():
        return
    if any(Path(source).is_file() and Path(source).samefile(path) for source in sources):
        raise ConfigError(
            f"--dead-letters {path} is a source, too, and would be mixed with what failed: name another"
            + (f"; dead letters are tried again with: {retried}" if retried else "")
        )


def page_prefixes(sources: Sequence[str], options: "ReadOptions") -> dict[int, str]:
    """Return what the ids of pages begin with, by the place of their source: nothing for a source alone.

    A page's id is its path in its folder, which another folder may have, too. So where there are several, the
    ids begin with the paths of the folders, as far as these differ.
    """
    places = {
        number: Path(os.path.abspath(one))
        for number, one in enumerate(sources)
        if is_page_source(one, options)
    }
    if len(places) < 2:
        return {}
    common = Path(os.path.commonpath([place.parent for place in places.values()]))
    found = {}
    for number, place in places.items():
        beside = place if place.is_dir() else place.parent
        found[number] = "" if beside == common else beside.relative_to(common).as_posix()
    return found


def is_page_source(source: str, options: "ReadOptions") -> bool:
    """Tell whether a source is a page or text, or a folder of them."""
    from shinglefold.ingest.readers.read import is_page

    if source == "-":
        return False
    return (
        Path(source).is_dir()
        or options.format in ("html", "text")
        or (options.format == "auto" and is_page(source.removesuffix(".gz")))
    )


def _joined(streams: Sequence[Iterator["Record"]]) -> Iterator["Record"]:
    from dataclasses import replace

    for number, stream in enumerate(streams):
        for record in stream:
            yield replace(record, fraction=(number + record.fraction) / len(streams))


def reading_notes(options: "ReadOptions", equal_ids: int = 0) -> Iterator[str]:
    """Yield what was passed over on purpose, and how many documents share their id with another, in words."""
    passed = {name: count for name, count in sorted(options.skipped.items()) if count}
    if passed:
        told = ", ".join(f"{name.replace('_', ' ')}: {count:,}" for name, count in passed.items())
        yield f"not read in folders: {told}"
    if equal_ids:
        have = (
            "1 document has the id of another one; it is"
            if equal_ids == 1
            else (f"{equal_ids:,} documents have the id of another one; they are")
        )
        yield f"{have} shown with where {'it stands' if equal_ids == 1 else 'they stand'}"
