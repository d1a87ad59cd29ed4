"""``shinglefold report INDEX | FILE…``: show the groups of an index, or of files."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.commands.files.collection import comparison_options, finish, open_collection
from shinglefold.cli.shared.command import DONE, Invocation, Name, command, given_options
from shinglefold.cli.shared.definitions import engine_option, title_field_option
from shinglefold.cli.shared.next_commands import repeat_command
from shinglefold.cli.shared.output import (
    check_page,
    format_share,
    print_table,
    printable,
    progress_bar,
    write_json,
    write_line,
    write_page,
)
from shinglefold.errors import ShinglefoldError, counted
from shinglefold.model.linkage import LINKAGE, linkage_phrase

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shinglefold.cli.commands.files.collection import Collection
    from shinglefold.grouping.report import GroupReport, ListedGroup, ReportFields
    from shinglefold.offline.dedupe.slots import Labels

#: The options of a report of an index; a report of files has all options except ``engine``.
_OF_INDICES = ("page", "host_field", "date_field", "title_field", "most", "engine")
#: The name of the fingerprint field in documents of files, which need not be that of the settings.
_FIELD = "_dedup"
#: How many documents of files are counted at a time.
_TOGETHER = 1 << 14


@command(
    examples="""
    shinglefold report articles
    shinglefold report articles --page report.html
    shinglefold report articles.jsonl.gz --page report.html
    """
)
@click.argument("what", nargs=-1, required=True, metavar="INDEX|FILE...", type=Name("file"))
@click.option("--page", metavar="FILE", help="Write an HTML page with plots, which needs no network.")
@click.option("--host-field", default="", metavar="FIELD", help="Field of hosts or addresses.")
@click.option("--date-field", default="", metavar="FIELD", help="Field of dates.")
@title_field_option
@click.option(
    "--most",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    metavar="N",
    help="The most groups, hosts and languages to list.",
)
@engine_option
@comparison_options
@click.pass_context
def report(context: click.Context, /, **given: Any) -> int:  # noqa: ANN401 - as click gives them
    """Show the groups of an INDEX, or of files without an index.

    The argument is an index, or files if there are some of these names, which are read as by groups. Shows
    sizes, the largest and the newest groups, and the share of copies by host, language and month. A copy is a
    document that does not lead its group.
    """
    from shinglefold.grouping.report import ReportFields

    what, typed = given.pop("what"), given_options(context)
    invocation: Invocation = context.obj
    check_page(given["page"], "--page", what)
    of_files = any(map(_is_source, what))
    folders = _folders_remedy(invocation, what)
    if len(what) > 1 and not of_files:
        raise click.UsageError(
            f"{what[0]!r} and {what[1]!r} are not files, and a report is of one index{folders}"
        )
    refused = {"engine"} if of_files else given.keys() - set(_OF_INDICES)
    if wrong := [typed[name] for name in given if name in refused & typed.keys()]:
        reason = "files need no index" if of_files else f"{what[0]!r} is not a file, but an index"
        raise click.UsageError(f"{reason}: leave {wrong[0]} out{'' if of_files else folders}")
    fields = ReportFields(*(given.pop(name) for name in ("host_field", "date_field", "title_field")))
    page, most, engine = (given.pop(name) for name in ("page", "most", "engine"))
    if of_files:
        return _report_files(invocation, what, fields, page, most, **given)
    try:
        return _report_index(invocation, what[0], fields, page, most, engine)
    except ShinglefoldError as error:
        error.args = (f"{error}{folders}",)
        raise


def _folders_remedy(invocation: Invocation, what: Sequence[str]) -> str:
    """Return the command that reads the folders of these names, as the end of a message; "" without any."""
    folders = [name for name in what if os.path.isdir(name) and not _is_source(name)]
    if not folders:
        return ""
    words = [f"{word}/" if word in folders else word for word in invocation.arguments]
    # Files need no engine.
    return f". Of the files in {' and '.join(folders)}: {repeat_command(words, engine=None)}"


def _is_source(name: str) -> bool:
    """Return whether a name is that of files: a folder needs a slash, since an index may have its name."""
    return name == "-" or "/" in name or (os.path.exists(name) and not os.path.isdir(name))


def _report_index(  # noqa: PLR0917 - an option each
    invocation: Invocation,
    index: str,
    fields: "ReportFields",
    page: str | None,
    most: int,
    engine: str | None,
) -> int:
    from shinglefold.cli.commands.indexing.regroup import check_numbered
    from shinglefold.cli.shared.open_index import open_store
    from shinglefold.grouping.report import make_report
    from shinglefold.rerank.index_fields import check_fields

    target = invocation.target(index, engine)
    with open_store(target) as store:
        check_numbered(target, store.recipe)
        check_fields(store.mappings.values(), index, sorted(_required_fields(fields)), "report")
        with progress_bar("report") as bar:
            made = make_report(
                store.engine,
                index,
                fields,
                listed=most,
                progress=lambda read, share: bar(share, f"{read:,} read"),
            )
    _write(invocation, made, page, target.command("regroup"))
    return DONE


def _required_fields(fields: "ReportFields") -> set[str]:
    """Return the fields that must be there; the default one may be missing."""
    return {fields.host, fields.date, fields.title} - {"", type(fields)().title}


def _report_files(
    invocation: Invocation,
    sources: tuple[str, ...],
    names: "ReportFields",
    page: str | None,
    most: int,
    **given: Any,  # noqa: ANN401 - the options of every collection
) -> int:
    import numpy as np

    from shinglefold.grouping.report import MEMBERS, GroupTally, members_of

    tally = GroupTally(_FIELD, names)
    index = sources[0] if len(sources) == 1 else f"{len(sources)} files"
    with open_collection(invocation, sources, shown=names.shown, **given) as found:
        labels = found.linking.labels(LINKAGE)
        absent = _required_fields(names)
        for begin in range(0, len(labels), _TOGETHER):
            rows = np.arange(begin, min(begin + _TOGETHER, len(labels)))
            hits = list(found.until_interrupted(_hits(found, labels, rows, index)))
            tally.add(hits)
            absent = {name for name in absent if not any(name in hit["_source"] for hit in hits)}
        if absent and len(labels):
            raise click.UsageError(f"report: no document has the field {min(absent)!r}")
        made = replace(tally.report(index, most), linkage=LINKAGE)
        members = {}
        for number, one in made.listed.items():
            rows = np.flatnonzero(labels == number)[:MEMBERS]
            members[number] = members_of(_hits(found, labels, rows, index), (index, one.id), names)
        code = finish(found)
    _write(invocation, made.with_members(members), page, "")
    return code


def _hits(
    found: "Collection", labels: "Labels", rows: "NDArray[np.integer]", index: str
) -> Iterator[dict[str, Any]]:
    """Yield documents as a search in an index with group numbers would return them."""
    shown = zip(rows.tolist(), found.names.many(rows), found.table.shown_fields(rows), strict=True)
    for row, name, (language, fields) in shown:
        group = int(labels[row])
        own = {"group": group, "leader": group == row, "lang": language, "scheme": found.scheme.id}
        yield {"_index": index, "_id": name, "_source": fields | {_FIELD: own}}


def _write(invocation: Invocation, made: "GroupReport", page: str | None, remedy: str) -> None:
    """Print a report, and write its page."""
    from shinglefold.grouping.report_html import page as html_page

    if page is not None:
        write_page(page, html_page(made))
    if invocation.json:
        write_json(made.to_json())
        return
    _print(made, remedy)
    if page is not None:
        write_line(f"\nwritten to {printable(page)}")


def _print(made: "GroupReport", remedy: str) -> None:
    grouped = made.documents - made.without_group
    share = format_share(made.copies / grouped) if grouped else "0"
    write_line(
        f"{counted(made.documents, 'document')} in {printable(made.index)}: {counted(made.groups, 'group')}, "
        f"{made.shared:,} of them with copies, which have {counted(made.in_shared, 'document')}; "
        f"{counted(made.copies, 'copy', 'copies')} ({share})"
    )
    if how := linkage_phrase(made.linkage):
        # Documents that were replaced are not in the index, so they are not counted.
        write_line(f"{how}; of equal ids the index has the last document" if remedy else how)
    if made.without_group:
        write_line(f"{counted(made.without_group, 'document is', 'documents are')} in no group: {remedy}")
    if made.placeholders:
        write_line(
            f"not counted: {counted(made.placeholders, 'id')} that a gate reserved, without a document yet"
        )
    if unread := made.unread():
        write_line(f"{unread}: months and newest leave them out; --date-field names another field")
    if made.led_by_several:
        those = counted(made.led_by_several, "group is", "groups are")
        write_line(f"{those} led by several documents at once: {remedy}")
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
