"""``shinglefold matches FILE | -``: find the documents of an index that contain passages of a text."""

from typing import TYPE_CHECKING

import click

from shinglefold.cli.framework.command import DONE, PARTLY, Invocation, Name, command
from shinglefold.cli.framework.output import make_console, remark, write_json
from shinglefold.cli.options.definitions import NumberRange, engine_options, text_options
from shinglefold.cli.render.hits import (
    SHOWN,
    filter_queries,
    found_line,
    page_options,
    print_found,
    print_page_end,
)
from shinglefold.cli.render.pairs import print_passages
from shinglefold.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from shinglefold.cli.session.open_index import Store
    from shinglefold.cli.session.recipe import Target
    from shinglefold.rerank.matching import MatchPage, TextMatch


@command(
    examples="""
    shinglefold matches draft.txt --index library
    shinglefold matches draft.txt --index library --min-share 0.2 --json
    """
)
@click.argument("what", metavar="FILE|-", type=Name("file"))
@engine_options
@text_options("The argument is the text itself", "of the text")
@click.option(
    "--min-share",
    type=NumberRange(0, 1, min_open=True),
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="Share of the text's words that a document must have, five in a row.",
)
@page_options("documents", 1)
@click.option(
    "--passages",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    metavar="N",
    help="Passages to print of each document; 0 prints all of them in full.",
)
@click.pass_obj
def matches(
    invocation: Invocation,
    /,
    *,
    what: str,
    index: str,
    engine: str | None,
    text: bool,
    kind: str,
    encoding: str,
    language: str | None,
    min_share: float,
    size: int,
    after: str | None,
    filters: tuple[str, ...],
    passages: int,
) -> int:
    """Find the documents that contain a part of a text.

    The argument is a file, or - for standard input. The index must store what passages are found by ("index
    --passages"). The largest share comes first.
    """
    from shinglefold.canon import Canonicalizer
    from shinglefold.cli.options.sources import check_language, read_text
    from shinglefold.cli.session.open_index import open_store, seal_of_index
    from shinglefold.rerank.matching import MatchOptions, MatchSearch

    if text and not what.strip():
        raise click.UsageError("there is no text: --text wants it in the place of the file")
    target = invocation.target(index, engine)
    with open_store(target) as store:
        check_language(store.scheme, language)
        if not store.recipe.passages:
            raise ConfigError(
                f"index {index!r} does not store what passages are found by. To store it: "
                f"{target.setup_and_backfill(passages=True)}"
            )
        terms = filter_queries(store, index, filters)
        wanted = what if text else read_text(what, kind, encoding)
        seal = seal_of_index(target, store.recipe)
        search = MatchSearch(store.engine, Canonicalizer.of(store.scheme), language=language, seal=seal)
        options = MatchOptions(min_share=min_share, size=size, filters=terms, source=SHOWN)
        page = search.find(index, wanted, options, place=after)
        _warn_of_missing_passages(store, index, target)
    if invocation.json:
        write_json(page.to_json())
    else:
        _print_page(make_console(), page, "A text" if text else what, passages, invocation.arguments)
    return PARTLY if page.lacks else DONE


def _warn_of_missing_passages(store: "Store", index: str, target: "Target") -> None:
    """Warn about documents that can't be found, because what passages are found by is not stored."""
    from shinglefold.model.stored_fingerprint import placeholder_query

    stored = {"exists": {"field": f"{store.field}.passages"}}
    query = {"bool": {"must_not": [stored, placeholder_query(store.field)]}}
    body = {"size": 0, "track_total_hits": True, "query": query}
    count = store.engine.search(index, body)["hits"]["total"]["value"]
    if count:
        backfill = target.hints.command("backfill", index)
        those = "1 document stores" if count == 1 else f"{count:,} documents store"
        found = "is" if count == 1 else "are"
        remark(f"warning: {those} no elements of passages and {found} not found: {backfill}")


def _print_page(
    console: "Console", page: "MatchPage", name: str, most: int, arguments: tuple[str, ...]
) -> None:
    for place, match in enumerate(page.matches, 1):
        print_found(console, place, match.id, match.source or {}, _shares(match))
        shown = match.passages[:most] if most else match.passages
        print_passages(console, shown, (name, match.id), sides=("text", "document"), cut=bool(most))
        if len(shown) < len(match.passages):
            console.print(
                f"   … and {len(match.passages) - len(shown):,} more passages; --passages 0 shows all"
            )
        console.print()
    print_page_end(console, _summary(page), page, arguments)


def _shares(match: "TextMatch") -> str:
    return f"has {match.share:.1%} of the text, which is {match.of_document:.1%} of the document"


def _summary(page: "MatchPage") -> str:
    """Return the last line of a page: how many documents were found, among how many candidates."""
    if page.stopped_by == "nothing_to_compare":
        return "no documents: a text of fewer than five words has no passage to be found by"
    return found_line(
        page,
        ("document", "documents"),
        ("that shares an element with the text", "that share an element with the text"),
        "show no text that has it (hidden, or changed)",
    )
