"""``shinglefold list``: the indices an engine has."""

from typing import TYPE_CHECKING

import click

from shinglefold.cli.framework.command import DONE, PARTLY, Invocation, command
from shinglefold.cli.framework.output import print_table, printable, remark, write_json, write_line
from shinglefold.cli.framework.sizes import share_of, size_of
from shinglefold.cli.options.definitions import engine_option

if TYPE_CHECKING:
    from shinglefold.cli.framework.next_commands import Hints
    from shinglefold.maintenance import IndexStatistics


@command(
    "list",
    examples="""
    shinglefold list
    shinglefold list 'news-*' --json
    """,
)
@click.argument("pattern", metavar="[PATTERN]", default="*")
@engine_option
@click.pass_obj
def list_indices(invocation: Invocation, /, *, pattern: str, engine: str | None) -> int:
    """List the indices of an engine.

    Shows the documents of each, the share of them that is signed, its size, and the scheme of its
    fingerprints. PATTERN is a name, and * in it stands for any letters. Exit code 3 says that
    some could not be read.
    """
    from contextlib import closing

    from shinglefold.cli.commands.indexing.recreate import left_lines
    from shinglefold.engines import open_engine
    from shinglefold.maintenance import statistics

    asked = invocation.asked(pattern, engine)
    with closing(open_engine(asked.where)) as opened:
        found = statistics(opened, pattern)
        left = list(left_lines(opened, [one.info for one in found if one.recipe], asked.hints))
    if invocation.json:
        write_json({"indices": [one.to_json() for one in found]})
    elif found:
        print_table(("index", "documents", "signed", "size", "scheme", "also called"), map(_row, found))
    else:
        write_line(_nothing(pattern, asked.hints))
    for one in found:
        if one.problem:
            remark(f"{printable(one.info.name)}: {printable(asked.hints.completed(one.problem))}")
    for line in left:
        remark(f"note: {printable(line)}")
    return PARTLY if any(one.problem for one in found) else DONE


def _nothing(pattern: str, hints: "Hints") -> str:
    if pattern == "*":
        return f"no index; make one: {hints.command('index', 'FILE')}"
    return f"no index fits {printable(pattern)!r}; this lists all: {hints.command('list')}"


def _row(one: "IndexStatistics") -> tuple[str, ...]:
    return (
        one.info.name,
        "?" if one.documents is None else f"{one.documents:,}",
        share_of(one.signed_share),
        size_of(one.info.size),
        "?" if one.unknown else one.scheme or "none: not made for fingerprints",
        " ".join(one.info.aliases),
    )
