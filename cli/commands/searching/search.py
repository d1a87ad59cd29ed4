"""``shinglefold search QUERY…``: one hit a group of near-duplicates."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.framework.command import DONE, Invocation, command
from shinglefold.cli.framework.next_commands import again
from shinglefold.cli.framework.output import make_console, write_json
from shinglefold.cli.options.definitions import engine_options
from shinglefold.cli.options.fold import fold_options, folding_of

if TYPE_CHECKING:
    from shinglefold.model.recipe import Recipe

#: The part of a long field that is shown.
_PART = {"number_of_fragments": 1, "fragment_size": 120, "no_match_size": 120}


@command(
    examples="""
    shinglefold search ремонт моста
    shinglefold search 绿茶 --size 5 --show-duplicates
    shinglefold search water --highlight
    shinglefold search water main --representative newest:date --scope lang
    shinglefold search bridge --explain --passages --scope date:30d
    shinglefold search --no-fold --sort date:desc --json bridge
    """
)
@click.argument("query", nargs=-1, required=True)
@engine_options
@click.option("--size", type=click.IntRange(0, 1000), default=10, show_default=True, help="Results per page.")
@click.option("--from", "start", type=click.IntRange(0), default=0, metavar="N", help="Results to skip.")
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="FIELD",
    help="Field to search, with ^ and a weight if you like; repeat it for more. By default those signed.",
)
@click.option(
    "--sort",
    "sorts",
    multiple=True,
    metavar="FIELD",
    help="Order: FIELD or FIELD:desc; by default the score.",
)
@click.option(
    "--highlight/--no-highlight",
    default=None,
    help="Mark the words that were found; by default only on a terminal.",
)
@fold_options
@click.pass_obj
def search(
    invocation: Invocation,
    /,
    *,
    query: tuple[str, ...],
    index: str,
    engine: str | None,
    size: int,
    start: int,
    fields: tuple[str, ...],
    sorts: tuple[str, ...],
    highlight: bool | None,
    show_duplicates: bool,
    **folding: Any,  # noqa: ANN401 - as click gives them
) -> int:
    """Search an index; near-duplicate hits are folded into one."""
    from shinglefold.cli.render.hits import FOUND, print_page
    from shinglefold.cli.session.open_index import opened_store
    from shinglefold.cli.session.seal import seal_of_index
    from shinglefold.engines import is_server
    from shinglefold.rerank import Explain, FoldedSearch
    from shinglefold.rerank.index_knowledge import check_fields
    from shinglefold.rerank.representatives import load_policies

    words = " ".join(query)
    if not words.strip():
        raise click.UsageError("QUERY is empty: give the words to search for")
    order = [_sort(one) for one in sorts]
    if nameless := [one for one in fields if not one.partition("^")[0]]:
        raise click.UsageError(f"--field {nameless[0]!r}: expected FIELD, or FIELD^2 with a weight")
    chosen = folding_of(folding, show_duplicates=show_duplicates)
    # A policy that is not valid is reported before dictionaries are loaded.
    load_policies(chosen.representative)
    asked = invocation.asked(index, engine)
    marked = sys.stdout.isatty() and not invocation.json if highlight is None else highlight
    with opened_store(asked) as store:
        wanted = fields or default_fields(store.recipe)
        known = store.mappings.values()
        check_fields(known, index, [one.partition("^")[0] for one in fields], "--field")
        check_fields(known, index, [name for one in order for name in one], "--sort")
        body = search_body(
            words,
            wanted,
            store.field,
            size=size,
            start=start,
            order=order,
            # Passages are compared in what the hits themselves may show.
            texts=isinstance(chosen.explain, Explain) and chosen.explain.passages,
            marks=(("<em>", "</em>") if invocation.json else FOUND) if marked else None,
        )
        # Who can type a command can also make this key: it finds mistakes, not forgeries.
        key = f"{index} {store.scheme.id}".encode()
        tiebreaker = store.engine.tiebreaker()
        seal = seal_of_index(asked, store.recipe)
        folded = FoldedSearch(store.engine, store.scheme, store.field, tiebreaker, cursor_key=key, seal=seal)
        found = folded.search(index, body, chosen)
    if invocation.json:
        write_json(found)
    else:
        # The embedded engine's point in time ends with the command.
        renew = not is_server(asked.where)
        if reason := found.get("dedup", {}).get("mode_reason"):
            found["dedup"]["mode_reason"] = asked.hints.completed(reason)
        print_page(
            make_console(), found, start, show_duplicates, next_page(invocation.arguments, found, renew)
        )
    return DONE


def next_page(arguments: Sequence[str], answer: Mapping[str, Any], renew: bool) -> str:
    """Return the command that shows the page behind one that has a cursor, or nothing."""
    cursor = answer.get("dedup", {}).get("cursor")
    return again(arguments, cursor=cursor, renew=renew) if cursor else ""


def default_fields(recipe: "Recipe") -> tuple[str, ...]:
    """Return the fields to search where none is named: those fingerprinted, the title counting double."""
    return tuple(f"{name}^2" if name == "title" else name for name in recipe.fields)


def search_body(
    query: str,
    fields: tuple[str, ...],
    dedup: str,
    *,
    size: int,
    start: int = 0,
    order: Sequence[Mapping[str, str]] = (),
    texts: bool = False,
    marks: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """Return the request for a query over some fields, with the part of each that was found.

    Args:
        texts: whether the hits bring all of their texts, too.
        marks: what stands before and behind the words that were found; None leaves them unmarked.
    """
    # The title is shown whole, of the other fields the part that was found.
    names = [field.partition("^")[0] for field in fields]
    cut = [name for name in names if name != "title"]
    shown: dict[str, Any] = dict.fromkeys(cut, _PART)
    if marks and "title" in names:
        shown["title"] = {"number_of_fragments": 0}
    body: dict[str, Any] = {
        "query": {"multi_match": {"query": query, "fields": list(fields)}},
        "from": start,
        "size": size,
        "_source": {"excludes": [dedup] if texts else [dedup, *cut]},
    }
    if shown:
        before, behind = marks or ("", "")
        body["highlight"] = {"pre_tags": [before], "post_tags": [behind], "fields": shown}
    if order:
        body["sort"] = list(order)
    return body


def _sort(given: str) -> dict[str, str]:
    field, _, direction = given.partition(":")
    if not field or direction not in ("", "asc", "desc"):
        raise click.UsageError(f"--sort {given!r}: expected FIELD, FIELD:asc or FIELD:desc")
    return {field: direction or ("desc" if field == "_score" else "asc")}
