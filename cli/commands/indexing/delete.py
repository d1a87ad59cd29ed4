"""``shinglefold delete INDEX``: delete an index, or some of its documents."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.shared.command import DONE, FAILED, PARTLY, Invocation, command
from shinglefold.cli.shared.definitions import engine_option
from shinglefold.cli.shared.output import format_size, printable, remark, write_line
from shinglefold.errors import counted

if TYPE_CHECKING:
    from shinglefold.cli.shared.recipe import Target
    from shinglefold.contracts.engine import Engine
    from shinglefold.maintenance.deletion import Deletion

_SHOWN = 10


@command(
    examples="""
    shinglefold delete pages --id page-17 --id page-18 --yes
    shinglefold delete pages --query '{"term": {"host": "mirror.example"}}' --dry-run
    shinglefold delete old --yes
    """
)
@click.argument("index", metavar="INDEX")
@engine_option
@click.option(
    "--id", "ids", multiple=True, metavar="ID", help="Id of a document to delete; repeat it for more."
)
@click.option(
    "--query", metavar="JSON", help="Delete the documents that match a query in the engine's language."
)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needed without a terminal.")
@click.pass_obj
def delete(
    invocation: Invocation,
    /,
    *,
    index: str,
    engine: str | None,
    ids: tuple[str, ...],
    query: str | None,
    dry_run: bool,
    yes: bool,
) -> int:
    """Delete an INDEX, or some of its documents.

    With --id or --query only those documents are deleted. On a terminal the command shows them and asks;
    elsewhere it needs --yes. Exit code 3 says that some documents were not deleted, or do not exist.
    """
    from shinglefold.cli.shared.recipe import no_such_index
    from shinglefold.errors import IndexMissing
    from shinglefold.maintenance.deletion import delete as carry_out
    from shinglefold.maintenance.deletion import plan_deletion
    from shinglefold.rerank.index_fields import check_fields, query_fields

    wanted = None if query is None else _parse_query(query)
    target = invocation.target(index, engine)
    with _open(target, analysed=query is not None) as opened:
        if wanted is not None and opened.index_exists(index):
            check_fields(opened.all_mappings(index).values(), index, query_fields(wanted), "--query")
        try:
            plan = plan_deletion(opened, index, ids or None, wanted)
        except IndexMissing as error:
            raise no_such_index(opened, target, remedy="Check the name.") from error
        if plan.unread:
            remark(printable(f"{plan.index} can't be read: {target.hints.complete(plan.unread)}"))
        if dry_run:
            unread = "; without --dry-run it is deleted all the same" if plan.unread else ""
            _show(invocation, plan, f"nothing was deleted: this was a dry run{unread}", deleted=0)
            return PARTLY if plan.missing else DONE
        if plan.documents or plan.query is None:
            _confirm(plan, yes)
            result = carry_out(opened, plan)
            deleted = None if plan.documents is None else result.indexed
            reasons = [target.hints.complete(failure.reason) for failure in result.failures]
        else:
            deleted, reasons = 0, []
    result_line = "deleted" if deleted is None else f"{deleted:,} deleted"
    _show(invocation, plan, result_line, deleted=deleted, reasons=reasons)
    if reasons and not deleted:
        return FAILED
    return PARTLY if reasons or plan.missing else DONE


def _parse_query(query: str) -> Mapping[str, Any]:
    try:
        found = json.loads(query)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--query is no JSON: {error}") from error
    if isinstance(found, dict) and set(found) == {"query"}:
        # The body of a search is accepted, too.
        found = found["query"]
    if not isinstance(found, dict) or not found:
        raise click.UsageError('--query wants a query, such as {"term": {"host": "mirror.example"}}')
    return found


@contextmanager
def _open(target: "Target", *, analysed: bool) -> Iterator["Engine"]:
    """Open the engine; only a query needs the languages of the index, so that any index can be deleted."""
    from shinglefold.engines import is_server, open_engine

    if analysed and not is_server(target.where):
        from shinglefold.cli.shared.open_index import open_store

        with open_store(target) as store:
            yield store.engine
        return
    with closing(open_engine(target.where)) as opened:
        yield opened


def _confirm(plan: "Deletion", yes: bool) -> None:
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(
            f"this deletes {_describe(plan)} for good; with --yes it is done without asking"
        )
    click.confirm(f"Delete {_describe(plan)} for good?", abort=True, err=True)


def _describe(plan: "Deletion") -> str:
    some = (
        "an unknown number of documents, as it can't be read"
        if plan.documents is None
        else counted(plan.documents, "document")
    )
    if plan.query is not None:
        return printable(f"{some} of the index {plan.index}")
    also = f" (also called {', '.join(plan.aliases)})" if plan.aliases else ""
    size = "" if plan.size is None else f", {format_size(plan.size)}"
    return printable(f"the whole index {plan.index}{also} with {some}{size}")


def _show(
    invocation: Invocation,
    plan: "Deletion",
    done: str,
    *,
    deleted: int | None,
    reasons: "list[str] | None" = None,
) -> None:
    if invocation.json:
        result = {**plan.to_json(), "deleted": deleted, "failures": reasons or []}
        invocation.write_summary(result)
        return
    more = ", …" if (plan.documents or 0) > len(plan.ids) else ""
    shown = f": {', '.join(plan.ids)}{more}" if plan.ids else ""
    write_line(printable(f"{_describe(plan)}{shown}"))
    if plan.missing:
        more = ", …" if len(plan.missing) > _SHOWN else ""
        write_line(printable(f"not there: {', '.join(plan.missing[:_SHOWN])}{more}"))
    for reason in dict.fromkeys(reasons or ()):
        remark(f"not deleted: {printable(reason)}")
    write_line(done)
