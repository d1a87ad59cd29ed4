"""One search printed twice: the page as it was, and the page folded."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shinglefold.cli.render.hits import counters_line, folded_count, title_of
from shinglefold.rerank import duplicates

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from shinglefold.examples import Query

#: Below this width the pages stand one under the other.
WIDE = 90
_HOSTS = 3


def print_search(
    console: "Console", query: "Query", before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Print a search: what it shows, and its page before and after folding."""
    console.print()
    console.rule(f"{query.text}  [{query.lang}]", align="left")
    # The pages side by side have a width, and what is said of them keeps to it.
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
        told = Text(title_of(hit))
        told.append(f"\n{_host(hit)}", style="green")
        if hit["_id"] in folded:
            told.append(f"\n{folded[hit['_id']]}", style="cyan")
        page.add_row(str(place), told)
    return page


def _folded_hosts(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return by id of a hit what is folded below it."""
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
