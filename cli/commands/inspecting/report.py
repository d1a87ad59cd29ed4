"""``shinglefold report INDEX``: show the groups of an index."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from shinglefold.cli.framework.command import DONE, Invocation, command
from shinglefold.cli.framework.output import (
    check_page,
    format_share,
    print_table,
    printable,
    progress_bar,
    write_json,
    write_line,
    write_page,
)
from shinglefold.cli.options.definitions import engine_option

if TYPE_CHECKING:
    from shinglefold.grouping.report import GroupReport, ListedGroup


@command(
    examples="""
    shinglefold report articles
    shinglefold report articles --html report.html
    """
)
@click.argument("index", metavar="INDEX")
@click.option("--html", metavar="FILE", help="Write an HTML file with plots, which needs no network.")
@click.option("--host-field", default="", metavar="FIELD", help="Field of hosts or addresses.")
@click.option("--date-field", default="", metavar="FIELD", help="Field of dates.")
@click.option("--title-field", default="title", show_default=True, metavar="FIELD", help="Field of titles.")
@click.option(
    "--most",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    metavar="N",
    help="The most groups, hosts and languages to list.",
)
@engine_option
@click.pass_obj
def report(
    invocation: Invocation,
    /,
    *,
    index: str,
    html: str | None,
    host_field: str,
    date_field: str,
    title_field: str,
    most: int,
    engine: str | None,
) -> int:
    """Show the groups of an INDEX.

    Shows sizes, the largest and the newest groups, and the share of copies by host, language and month. A
    copy is a document that does not lead its group.
    """
    from shinglefold.cli.commands.indexing.regroup import check_numbered
    from shinglefold.cli.session.open_index import open_store
    from shinglefold.grouping.report import ReportFields, make_report
    from shinglefold.grouping.report_html import page
    from shinglefold.rerank.index_knowledge import check_fields

    check_page(html, "--html")
    target = invocation.target(index, engine)
    with open_store(target) as store:
        check_numbered(target, store.recipe)
        # The default fields may be missing.
        named = {host_field, date_field, title_field} - {ReportFields().title}
        check_fields(store.mappings.values(), index, sorted(named), "report")
        with progress_bar("report") as bar:
            made = make_report(
                store.engine,
                index,
                ReportFields(host_field, date_field, title_field),
                listed=most,
                progress=lambda read, share: bar(share, f"{read:,} read"),
            )
    if html is not None:
        write_page(html, page(made))
    if invocation.json:
        write_json(made.to_json())
    else:
        _print(made, target.command("regroup"))
        if html is not None:
            write_line(f"\nwritten to {printable(html)}")
    return DONE


def _print(made: "GroupReport", remedy: str) -> None:
    grouped = made.documents - made.without_group
    share = format_share(made.copies / grouped) if grouped else "0"
    copies = "1 copy" if made.copies == 1 else f"{made.copies:,} copies"
    write_line(
        f"{made.documents:,} documents in {printable(made.index)}: {made.groups:,} groups, "
        f"{made.shared:,} of them with copies; {copies} ({share})"
    )
    if made.without_group:
        write_line(f"{made.without_group:,} documents are in no group: {remedy}")
    if made.placeholders:
        write_line(f"not counted: {made.placeholders:,} ids that a gate reserved, without a document yet")
    if unread := made.unread():
        write_line(f"{unread}: months and newest leave them out; --date-field names another field")
    if made.led_by_several:
        write_line(f"{made.led_by_several:,} groups are led by several documents at once: {remedy}")
    for title, headings, rows, left_out in _tables(made):
        if rows:
            write_line(f"\n{title}")
            print_table(headings, rows)
            if left_out:
                write_line(left_out)


def _tables(made: "GroupReport") -> Iterator[tuple[str, Sequence[str], list[list[str]], str]]:
    sizes = [[one.size, f"{one.groups:,}", f"{one.documents:,}"] for one in made.sizes if one.groups]
    yield "groups by size", ("size", "groups", "documents"), sizes, ""
    for title, groups in (("the largest groups", made.largest), ("the newest groups", made.newest)):
        rows = [[f"{one.documents:,}", one.newest, _leader(one, made), one.title] for one in groups]
        yield title, ("documents", "newest", "leader", "title"), rows, ""
    for kind, shares in (("hosts", made.hosts), ("languages", made.languages), ("months", made.months)):
        title = kind.removesuffix("s")
        rows = [
            [one.value, f"{one.documents:,}", f"{one.copies:,}", format_share(one.share)] for one in shares
        ]
        yield f"copies by {title}", (title, "documents", "copies", "share"), rows, made.left_out(kind)


def _leader(one: "ListedGroup", made: "GroupReport") -> str:
    """Return the id of a leader, with its index if there are several."""
    several = len({each.index for each in (*made.largest, *made.newest)}) > 1
    return f"{one.index}/{one.id}" if several else one.id
