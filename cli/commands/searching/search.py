"""``shinglefold search QUERY…``: one hit for each group of near-duplicates; ``shinglefold demo``."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, get_args

import click

from shinglefold.api.text_query import default_fields, search_body
from shinglefold.cli.shared.command import DONE, Invocation, command
from shinglefold.cli.shared.definitions import chosen_scheme, engine_options, options, threshold_options
from shinglefold.cli.shared.hits import FOUND, counters_line, folded_count, host_of, print_page, title_of
from shinglefold.cli.shared.next_commands import Hints, repeat_command
from shinglefold.cli.shared.output import make_console, progress_bar, progress_reporter, write_json
from shinglefold.cli.shared.run_summary import exit_code, summary_lines
from shinglefold.model.linkage import LINKAGE, Linkage

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from shinglefold.cli.shared.open_index import Store
    from shinglefold.examples import Query
    from shinglefold.ingest.writing.accounting import Summary
    from shinglefold.rerank import FoldOptions

#: Folded hits to fetch for ``--show-duplicates``.
_ALL = 1000
#: The value of ``--cursor`` for the first page.
NEW = "new"

fold_options = options(
    click.option("--no-fold", is_flag=True, help="Show every hit."),
    click.option(
        "--mode",
        type=click.Choice(["window", "server", "native", "auto"]),
        help="window (the default): fold a window of hits; server: let the plugin on the server fold; "
        "native: let the engine collapse by the numbers of groups; auto: the first of native, server and "
        "window that is possible.",
    ),
    click.option("--show-duplicates", is_flag=True, help="Print the folded hits below the one shown."),
    click.option(
        "--representative",
        multiple=True,
        metavar="POLICY",
        help="Which member of a group to show: rank, newest:FIELD, oldest:FIELD, longest, shortest_url, "
        "https_first or prefer:FIELD=A,B; repeat it to break ties.",
    ),
    click.option(
        "--linkage",
        type=click.Choice(get_args(Linkage)),
        show_default=LINKAGE,
        help="leader: members must match the hit shown; connected: any other member.",
    ),
    threshold_options("hits", 0, "0 where a resemblance decides"),
    click.option(
        "--verify",
        type=click.Choice(["signature", "text"]),
        help="What decides: signatures (the default), or the texts of pairs on the page for which "
        "signatures are uncertain.",
    ),
    click.option(
        "--scope",
        multiple=True,
        metavar="FIELD",
        help="Fold only hits with the same value of FIELD or, with FIELD:7d, with dates at most 7 days "
        "apart.",
    ),
    click.option(
        "--members",
        type=click.IntRange(0),
        metavar="N",
        help="Folded hits to fetch with each hit; by default 5.",
    ),
    click.option(
        "--member-field",
        multiple=True,
        metavar="FIELD",
        help="Field of the folded hits to fetch; repeat it for more. By default the fields of the other "
        "hits.",
    ),
    click.option(
        "--members-from",
        type=click.Choice(["results", "index"]),
        help="Where folded hits come from: the results (the default), or the whole index, also copies that"
        " do not match the query.",
    ),
    click.option("--window", type=click.IntRange(1), metavar="N", help="Hits read at first; by default 200."),
    click.option(
        "--max-window", type=click.IntRange(1), metavar="N", help="Hits read at most; by default 1000."
    ),
    click.option("--explain", is_flag=True, help="Show why each folded hit folds."),
    click.option("--passages", is_flag=True, help="Also show the passages that match."),
    click.option(
        "--passage-field",
        multiple=True,
        metavar="FIELD",
        help="Field to find passages in; repeat it for more. By default the fields with fingerprints.",
    ),
    click.option(
        "--cursor",
        metavar="CURSOR",
        help='Page with a cursor: "new" for the first page, then the cursor printed below each page.',
    ),
    click.option("--renew", is_flag=True, help="Continue with a cursor whose point in time has expired."),
)


def parse_fold_options(
    given: Mapping[str, Any], *, show_duplicates: bool, profile: str = ""
) -> "FoldOptions":
    """Return the fold options of a search from those of the command, else from the profile of the index.

    Raises:
        ConfigError: one of them is not valid.
    """
    from shinglefold.model.profiles import profile_of
    from shinglefold.rerank import FoldOptions

    parsed = {
        name: value for name, value in given.items() if name not in _TRANSLATED and value not in (None, ())
    }
    size = _ALL if show_duplicates and given["members"] is None else given["members"]
    members: dict[str, Any] = {} if size is None else {"size": size}
    if given["member_field"]:
        members["_source"] = list(given["member_field"])
    if given["members_from"]:
        members["from"] = given["members_from"]
    parsed |= {"members": members, "fold": not given["no_fold"], "explain": _explain(given)}
    if given["cursor"] is not None:
        parsed["cursor"] = True if given["cursor"] == NEW else given["cursor"]
    return FoldOptions.parse(parsed, FoldOptions.parse(profile_of(profile).dedup))


#: Options whose names or values differ from those of a request.
_TRANSLATED = {
    "no_fold",
    "members",
    "member_field",
    "members_from",
    "explain",
    "passages",
    "passage_field",
    "cursor",
}


def _explain(given: Mapping[str, Any]) -> bool | dict[str, Any]:
    if given["passages"] or given["passage_field"]:
        return {"passages": True, "fields": list(given["passage_field"])}
    return bool(given["explain"])


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
    help="Field to search, optionally with ^ and a weight; repeat it for more. By default the fields "
    "with fingerprints.",
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
    help="Mark the matching words; by default only on a terminal.",
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
    from shinglefold.cli.shared.open_index import open_store, seal_of_index
    from shinglefold.engines import is_server
    from shinglefold.rerank import FoldedSearch
    from shinglefold.rerank.index_fields import check_fields
    from shinglefold.rerank.representatives import load_policies
    from shinglefold.rerank.request.fold_options import Explain

    words = " ".join(query)
    if not words.strip():
        raise click.UsageError("QUERY is empty: give the words to search for")
    order = [_sort(one) for one in sorts]
    if nameless := [one for one in fields if not one.partition("^")[0]]:
        raise click.UsageError(f"--field {nameless[0]!r}: expected FIELD, or FIELD^2 with a weight")
    chosen = parse_fold_options(folding, show_duplicates=show_duplicates)
    # An invalid policy is reported before dictionaries are loaded.
    load_policies(chosen.representative)
    target = invocation.target(index, engine)
    marked = sys.stdout.isatty() and not invocation.json if highlight is None else highlight
    with open_store(target) as store:
        wanted = fields or default_fields(store.recipe)
        chosen = parse_fold_options(folding, show_duplicates=show_duplicates, profile=store.recipe.profile)
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
            # Passages are found in the texts of the hits.
            texts=isinstance(chosen.explain, Explain) and chosen.explain.passages,
            marks=(("<em>", "</em>") if invocation.json else FOUND) if marked else None,
        )
        # The key is public: it detects cursors of other indices, not forged ones.
        key = f"{index} {store.scheme.id}".encode()
        tiebreaker = store.engine.tiebreaker()
        seal = seal_of_index(target, store.recipe)
        folded = FoldedSearch(
            store.engine,
            store.scheme,
            store.field,
            tiebreaker,
            cursor_key=key,
            seal=seal,
            # A command shows the remedy, not the engine's page.
            on_trouble="raise",
        )
        found = folded.search(index, body, chosen)
    if reason := found.get("dedup", {}).get("mode_reason"):
        found["dedup"]["mode_reason"] = target.hints.complete(reason)
    if invocation.json:
        write_json(found)
    else:
        # A point in time of the embedded engine ends with the command.
        renew = not is_server(target.where)
        print_page(
            make_console(), found, start, show_duplicates, next_page(invocation.arguments, found, renew)
        )
    return DONE


def next_page(arguments: Sequence[str], answer: Mapping[str, Any], renew: bool) -> str:
    """Return the command for the next page, "" without a cursor."""
    cursor = answer.get("dedup", {}).get("cursor")
    return repeat_command(arguments, cursor=cursor, renew=renew) if cursor else ""


def _sort(given: str) -> dict[str, str]:
    field, _, direction = given.partition(":")
    if not field or direction not in ("", "asc", "desc"):
        raise click.UsageError(f"--sort {given!r}: expected FIELD, FIELD:asc or FIELD:desc")
    return {field: direction or ("desc" if field == "_score" else "asc")}


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
    console.print(_NEXT.replace("  shinglefold", f"  {_typed_program()}"))
    return DONE


def _typed_program() -> str:
    """Return how to type the program here: as it was typed now, if the shell does not find its name."""
    name, typed = "shinglefold", sys.argv[0]
    return typed if os.path.basename(typed) == name and shutil.which(name) is None else name


@contextmanager
def indexed_examples(invocation: Invocation) -> "Iterator[tuple[Store, Summary]]":
    """Index the example corpus into a temporary folder."""
    from shinglefold.api.index_recipe import search_canonicalizer
    from shinglefold.cli.shared.open_index import Store
    from shinglefold.engines import open_engine
    from shinglefold.examples import articles
    from shinglefold.ingest import Pipeline, default_definition, index_documents
    from shinglefold.ingest.index_mapping import USUAL_PROPERTIES
    from shinglefold.runtime.signals import defer_interrupts

    settings = invocation.settings()
    scheme = chosen_scheme(invocation)
    with ExitStack() as opened:
        with defer_interrupts():
            # A signal between making and noting the folder would leave it behind.
            folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="shinglefold-"))
        engine = opened.enter_context(closing(open_engine(folder, search_canonicalizer(scheme))))
        # One worker, because starting others would take longer than indexing.
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
    # Wrapped to the width of the pages below.
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
        cell.append(f"\n{host_of(hit)}", style="green")
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
            hosts = list(dict.fromkeys(host_of(other) for other in duplicates(hit)))
            more = ", …" if len(hosts) > _HOSTS else ""
            found[hit["_id"]] = f"+ {count} folded: {', '.join(hosts[:_HOSTS])}{more}"
    return found
