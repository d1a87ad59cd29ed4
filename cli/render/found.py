"""What the commands share that find documents by a text: options, and a page of them on a console."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.framework.next_commands import again
from shinglefold.cli.framework.output import printable
from shinglefold.cli.options.definitions import Function, options

if TYPE_CHECKING:
    from rich.console import Console

    from shinglefold.cli.session.open_index import Store
    from shinglefold.rerank.similar.results import FoundPage

#: What is shown of a document.
SHOWN = ["title", "url"]


def page_options(what: str, least: int) -> Callable[[Function], Function]:
    """Return the options of a page of what is found.

    Args:
        what: is found, such as ``copies``.
        least: of them on a page.
    """
    return options(
        click.option(
            "--size",
            type=click.IntRange(least, 1000),
            default=10,
            show_default=True,
            help=f"{what.capitalize()} per page.",
        ),
        click.option(
            "--after", metavar="PLACE", help="Go on where a page ended; the line below it has the place."
        ),
        click.option(
            "--filter",
            "filters",
            multiple=True,
            metavar="FIELD=VALUE",
            help=f"Find only {what} whose FIELD has this value; repeat it for more.",
        ),
    )


def print_found(console: "Console", place: int, name: str, source: Mapping[str, Any], told: str) -> None:
    """Print the title of a document, and below it where it is from, its name, and what is told of it."""
    console.print(f"{place}. {printable(source.get('title') or name)}", soft_wrap=True, style="bold")
    named = [source.get("url"), name if source.get("title") else ""]
    console.print(f"   {printable('  '.join([one for one in [*named, told] if one]))}", soft_wrap=True)


def print_end(console: "Console", line: str, page: "FoundPage[Any]", arguments: tuple[str, ...]) -> None:
    """Print the last lines of a page: how many there are, and the command for the next page.

    Args:
        line: as ``found_line`` returns it.
        arguments: the command, as it was typed.
    """
    console.print(line)
    if page.next:
        # A command is one line, whatever the width of the terminal.
        console.print(f"next page: {again(arguments, after=page.next)}", soft_wrap=True)


def found_line(
    page: "FoundPage[Any]", names: tuple[str, str], among: tuple[str, str], unreadable: str
) -> str:
    """Return in a line how many documents were found, and among how many.

    Args:
        names: of one and of several of them.
        among: what was looked at, for one and for several, in words.
        unreadable: what those have, or lack, that can't be decided on.
    """
    one, several = names
    count = f"1 {one}" if page.total == 1 else f"{page.total:,} {several}"
    line = (
        f"{'' if page.exact else 'at least '}{count} among {page.candidates:,} {among[page.candidates != 1]}"
    )
    if page.unreadable:
        line += f"; {page.unreadable:,} of them {unreadable}"
    if page.lacks:
        line += f"; the answer is partial: {', '.join(page.lacks)}"
    return line


def checked_terms(store: "Store", index: str, filters: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    """Return filters as queries.

    Raises:
        UsageError: one is no field with a value.
        ConfigError: the index has no such field.
    """
    from shinglefold.rerank.index_knowledge import check_fields

    named = [_parted(one) for one in filters]
    check_fields(store.mappings.values(), index, [name for name, _ in named], "--filter")
    return tuple({"term": {name: value}} for name, value in named)


def _parted(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise click.UsageError(f"--filter {given!r}: expected FIELD=VALUE")
    return name, value
