"""``shinglefold demo``: search an example corpus, before and after folding."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.framework.command import DONE, Invocation, command
from shinglefold.cli.framework.next_commands import Hints
from shinglefold.cli.framework.output import make_console, progress_bar, progress_reporter, write_json
from shinglefold.cli.options.definitions import chosen_scheme
from shinglefold.cli.render.hits import counters_line, folded_count, title_of
from shinglefold.cli.render.run_summary import exit_code, summary_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from shinglefold.cli.session.open_index import Store
    from shinglefold.examples import Query
    from shinglefold.ingest.writing.accounting import Summary

_INDEX = "demo"
_NEXT = """What to try next:
  shinglefold index FILE.jsonl       your own pages: title, body, and more fields as you like
  shinglefold search WORDS           one hit a group; --show-duplicates shows what was folded
  shinglefold compare A.txt B.html   two texts, how alike they are and where
  shinglefold groups FILE.jsonl      the near-duplicates of a collection, without an index"""


@command(
    examples="""
    shinglefold demo
    shinglefold demo --json | jq '.searches[0].after.dedup'
    """
)
@click.option("--size", type=click.IntRange(1, 100), default=5, show_default=True, help="Results per page.")
@click.pass_obj
def demo(invocation: Invocation, /, *, size: int) -> int:
    """Show results of an example site before and after folding.

    Some 160 short articles in Russian, Ukrainian, Chinese and English; the index is temporary.
    """
    from shinglefold.examples import queries

    with indexed_examples(invocation) as (store, summary):
        if summary.stopped:
            return exit_code(summary)
        searches = [(query, *both_pages(store, query.text, size)) for query in queries()]
    if invocation.json:
        results = [
            {"query": query.text, "shows": query.shows, "before": before, "after": after}
            for query, before, after in searches
        ]
        write_json({"summary": summary.to_json(), "searches": results})
        return DONE
    console = make_console()
    for line in summary_lines(summary, Hints())[:3]:
        console.print(line)
    for query, before, after in searches:
        print_search(console, query, before, after)
    console.print()
    console.print(_NEXT)
    return DONE


@contextmanager
def indexed_examples(invocation: Invocation) -> "Iterator[tuple[Store, Summary]]":
    """Index the example corpus into a temporary folder."""
    from shinglefold.api.index_recipe import search_canonicalizer
    from shinglefold.cli.session.open_index import Store
    from shinglefold.engines import open_engine
    from shinglefold.examples import articles
    from shinglefold.ingest import Pipeline, default_definition, index_documents
    from shinglefold.ingest.index_mapping import USUAL_PROPERTIES
    from shinglefold.runtime.signals import deferred

    settings = invocation.settings()
    scheme = chosen_scheme(invocation)
    with ExitStack() as opened:
        with deferred():
            # A signal between making and noting the folder would leave it behind.
            folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="shinglefold-"))
        engine = opened.enter_context(closing(open_engine(folder, search_canonicalizer(scheme))))
        # One worker, as starting others would take longer than indexing.
        pipeline = Pipeline.from_json(default_definition(settings.field, pages=True), scheme)
        with progress_bar("indexing") as bar:
            summary = index_documents(
                engine, _INDEX, articles(), pipeline, properties=USUAL_PROPERTIES, field=settings.field,
                workers=1, progress=progress_reporter(bar, "indexed"),
            )  # fmt: skip
        yield Store(engine, pipeline.recipe(settings.field), engine.all_mappings(_INDEX)), summary


def both_pages(store: "Store", query: str, size: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a page of a search without folding, and folded."""
    from shinglefold.api.text_query import search_body
    from shinglefold.rerank import FoldedSearch, FoldOptions

    body = search_body(query, ("title^2", "body"), store.field, size=size)
    search = FoldedSearch(store.engine, store.scheme, store.field)
    return search.search(_INDEX, body, FoldOptions(fold=False)), search.search(_INDEX, body)


#: The least width for two columns.
WIDE = 90
_HOSTS = 3


def print_search(
    console: "Console", query: "Query", before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Print a search with its page before and after folding."""
    console.print()
    console.rule(f"{query.text}  [{query.lang}]", align="left")
    # Folded to the width of the pages below.
    console.print(query.shows, style="dim", soft_wrap=False)
    pages = (_page("before folding", before, {}), _page("after folding", after, _folded_hosts(after)))
    if console.width < WIDE:
        for page in pages:
            console.print(page)
    else:
        from rich.table import Table

        both = Table.grid(expand=True, padding=(0, 2))
        both.add_column(ratio=1)
        both.add_column(ratio=1)
        both.add_row(*pages)
        console.print(both)
    console.print(counters_line(after), style="dim", soft_wrap=False)


def _page(heading: str, answer: Mapping[str, Any], folded: Mapping[str, str]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    page = Table(
        box=None, pad_edge=False, title=heading, title_justify="left", show_header=False, expand=True
    )
    page.add_column(width=2, justify="right")
    page.add_column(ratio=1, overflow="fold")
    for place, hit in enumerate(answer["hits"]["hits"], 1):
        cell = Text(title_of(hit))
        cell.append(f"\n{_host(hit)}", style="green")
        if hit["_id"] in folded:
            cell.append(f"\n{folded[hit['_id']]}", style="cyan")
        page.add_row(str(place), cell)
    return page


def _folded_hosts(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return a line about the folded hits, by the id of the hit shown."""
    from shinglefold.rerank import duplicates

    found = {}
    for hit in answer["hits"]["hits"]:
        count = folded_count(hit)
        if count:
            hosts = list(dict.fromkeys(_host(other) for other in duplicates(hit)))
            more = ", …" if len(hosts) > _HOSTS else ""
            found[hit["_id"]] = f"+ {count} folded: {', '.join(hosts[:_HOSTS])}{more}"
    return found


def _host(hit: Mapping[str, Any]) -> str:
    return str((hit.get("_source") or {}).get("host", hit["_id"]))
