"""Pages of results on a console: of a folded search, and of documents found by a text."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.shared.definitions import Function, options
from shinglefold.cli.shared.next_commands import repeat_command
from shinglefold.cli.shared.output import printable
from shinglefold.cli.shared.pairs import FOLDED_BY
from shinglefold.documents import as_text, items
from shinglefold.errors import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from shinglefold.cli.shared.open_index import Store
    from shinglefold.rerank.similar.results import FoundPage

Hit = Mapping[str, Any]
#: Mark the words that match the query: control characters, which no text keeps and no terminal gets.
FOUND = ("\x02", "\x03")
_BETWEEN = re.compile("([\x02\x03])")
#: The most folded hits that the line below a result names.
_NAMED = 5


def print_page(
    console: "Console",
    answer: Mapping[str, Any],
    start: int = 0,
    show_duplicates: bool = False,
    next_page: str = "",
) -> None:
    """Print a page of results, its counters, and the command for the next page."""
    reasons = explanations(answer)
    for place, hit in enumerate(answer["hits"]["hits"], start + 1):
        _print_hit(console, place, hit)
        if show_duplicates or reasons:
            _print_duplicates(console, hit, reasons)
        elif line := folded_line(hit):
            _print_indented(console, line, style="cyan")
        console.print()
    console.print(counters_line(answer))
    if next_page:
        # Not wrapped, so that it can be copied.
        console.print(f"next page: {next_page}", soft_wrap=True)


def explanations(answer: Mapping[str, Any]) -> dict[tuple[Any, Any], Hit]:
    """Return the explanations of folded hits, by index and id."""
    groups = answer.get("dedup", {}).get("explain", ())
    return {(one["_index"], one["_id"]): one for group in groups for one in group["members"]}


def why_line(reason: Hit) -> str:
    """Return why a hit folds, as a line."""
    why = FOLDED_BY.get(reason.get("decided_by", ""), "")
    if "resemblance" not in reason:
        return why or "no estimate"
    alike = f"resemblance {reason['resemblance']:.2f} ± {reason['standard_error']:.2f} by estimate"
    text = reason.get("text", {}).get("similarity")
    parts = [alike, f"{len(reason['shared'])} supershingles shared"]
    return ", ".join([*parts, *([f"edit similarity {text:.2f}"] if text else []), *([why] if why else [])])


def title_of(hit: Hit) -> str:
    """Return the title of a hit, or its id."""
    return printable(_value(hit, "title") or hit["_id"])


def place_of(hit: Hit) -> str:
    """Return the URL of a hit, else its id."""
    return printable(_value(hit, "url") or hit["_id"])


def shown_value(value: object) -> str:
    """Return the value of a field for a reader: several are joined, a missing one is ""."""
    return ", ".join(filter(None, map(as_text, items(value))))


def host_of(hit: Hit) -> str:
    """Return the host of a hit, else its id."""
    return printable(_value(hit, "host") or hit["_id"])


def _value(hit: Hit, field: str) -> str:
    return shown_value((hit.get("_source") or {}).get(field))


def folded_count(hit: Hit) -> int:
    """Return how many hits are folded into one."""
    total = hit.get("inner_hits", {}).get("duplicates", {}).get("hits", {}).get("total", {}).get("value", 1)
    return max(0, int(total) - 1)


def folded_line(hit: Hit) -> str:
    """Return the line that names the folded hits, "" without any."""
    from shinglefold.rerank.page.response import duplicates

    count = folded_count(hit)
    if not count:
        return ""
    named = [_name(other) for other in duplicates(hit)[:_NAMED]]
    more = f" and {count - len(named)} more" if named and count > len(named) else ""
    names = f": {', '.join(named)}{more}" if named else ""
    return f"+ {counted(count, 'near-duplicate')} folded{names}"


def counters_line(answer: Mapping[str, Any]) -> str:
    """Return the counters of a page as a line whose numbers add up to the hits read."""
    total = answer["hits"].get("total", {})
    hits = len(answer["hits"]["hits"])
    counters = answer.get("dedup")
    if counters is None:
        return f"{hits} of {_hits_found(total)}, not folded"
    parts = [f"{counted(hits, 'result')} from {_hits_read(total, counters['window'])}"]
    if total.get("value") or counters["stopped_by"] != "end_of_results":
        parts[0] += f": {', '.join(_where_hits_are(answer, counters))}"
        if counters["window"] is None:
            parts.append(_collapsed_groups(counters["groups_total"]))
        else:
            parts.append(f"read until: {counters['stopped_by'].replace('_', ' ')}")
    if copies := counters.get("from_index", {}).get("members"):
        parts.append(f"{counted(copies, 'more copy', 'more copies')} from the whole index")
    if reason := counters.get("mode_reason"):
        parts.append(f"folded by window: {printable(reason)}")
    if counters["other_schemes"]:
        parts.append(f"{sum(counters['other_schemes'].values()):,} of other schemes, never folded")
    return "; ".join(parts)


def _hits_found(total: Mapping[str, Any]) -> str:
    least = "at least " if total.get("relation") == "gte" else ""
    return f"{least}{counted(total.get('value', 0), 'hit')}"


def _hits_read(total: Mapping[str, Any], window: int | None) -> str:
    """Return how many hits were read, and of how many if these are not all."""
    if window is None or (window, "eq") == (total.get("value"), total.get("relation")):
        return _hits_found(total)
    return f"{window:,} of {_hits_found(total)}"


def _where_hits_are(answer: Mapping[str, Any], counters: Mapping[str, Any]) -> list[str]:
    """Return what happened to the hits read that are not results of this page."""
    shown = answer["hits"]["hits"]
    folded = sum(map(folded_count, shown)) - counters.get("from_index", {}).get("members", 0)
    repeated, vanished = counters["repeated"], counters["vanished"]
    parts = [f"{folded:,} folded into {'it' if len(shown) == 1 else 'them'}" if folded else "none folded"]
    if repeated:
        parts.append(f"{repeated:,} read twice")
    if vanished:
        parts.append(f"{vanished:,} deleted meanwhile")
    total = answer["hits"].get("total", {})
    read = counters["window"]
    if read is None and total.get("relation") != "eq":
        return [*parts, "the others not on this page"]
    rest = (total["value"] if read is None else read) - len(shown) - folded - repeated - vanished
    return [*parts, f"{rest:,} not on this page"] if rest > 0 else parts


def _collapsed_groups(total: Mapping[str, Any]) -> str:
    about = {"eq": "", "estimate": "about ", "gte": "at least "}[total["relation"]]
    return f"{about}{counted(total['value'], 'group')}, collapsed by the engine"


def _print_indented(console: "Console", text: "str | Text", style: str = "") -> None:
    from rich.padding import Padding

    if console.soft_wrap:
        console.print("    ", text, sep="", style=style)
    else:
        console.print(Padding(text, (0, 0, 0, 4)), style=style)


def _mark_words(console: "Console", text: str, style: str = "") -> "Text":
    """Return a text with the matching words in bold, or in brackets on a console without colours."""
    from rich.text import Text

    brackets = console.color_system is None or console.no_color
    line = Text(style=style)
    found = False
    for part in _BETWEEN.split(text):
        if part in FOUND:
            found = part == FOUND[0]
        elif part:
            shown = printable(part)
            line.append(f"[{shown}]" if found and brackets else shown, style="bold red" if found else "")
    return line


def _name(hit: Hit) -> str:
    host = _value(hit, "host")
    return printable(f"{hit['_id']} ({host})" if host else hit["_id"])


def _print_hit(console: "Console", place: int, hit: Hit) -> None:
    score = f"  ({hit['_score']:.2f})" if hit.get("_score") is not None else ""
    shown = dict(hit.get("highlight") or {})
    title = ", ".join(shown.pop("title", None) or [title_of(hit)])
    console.print(_mark_words(console, f"{place:>2}. {title}{score}", style="bold"))
    if place_of(hit) != title:
        console.print(f"    {place_of(hit)}", style="green")
    snippet = " … ".join(part for parts in shown.values() for part in parts)
    if snippet:
        _print_indented(console, _mark_words(console, snippet))


def _print_duplicates(console: "Console", hit: Hit, reasons: Mapping[tuple[Any, Any], Hit]) -> None:
    from shinglefold.rerank.page.response import duplicates

    others = duplicates(hit)
    for other in others:
        named = dict.fromkeys((title_of(other), place_of(other)))
        console.print(f"    = {'  '.join(named)}", style="cyan")
        if why := reasons.get((other.get("_index"), other["_id"])):
            console.print(f"      {why_line(why)}", style="cyan")
            if "passages" in why:
                from shinglefold.cli.shared.pairs import print_passages

                print_passages(console, why["passages"], (place_of(hit), place_of(other)))
    if folded_count(hit) > len(others):
        console.print(f"    = and {folded_count(hit) - len(others)} more", style="cyan")


#: The fields that are shown of a document found by a text.
SHOWN = ["title", "url"]


def page_options(what: str, least: int) -> Callable[[Function], Function]:
    """Return the options of a page of documents.

    Args:
        what: their name in the help, such as ``copies``.
        least: the least size of a page.
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
            "--after", metavar="PLACE", help="Start after the previous page; the line below it has the value."
        ),
        click.option(
            "--filter",
            "filters",
            multiple=True,
            metavar="FIELD=VALUE",
            help=f"Find only {what} whose FIELD has this value; repeat it for more.",
        ),
    )


def print_found(console: "Console", place: int, name: str, source: Mapping[str, Any], remark: str) -> None:
    """Print the title of a document, and below it its URL, its name, and a remark."""
    title, url = shown_value(source.get("title")), shown_value(source.get("url"))
    console.print(f"{place}. {printable(title or name)}", soft_wrap=True, style="bold")
    named = [url, name if title else ""]
    console.print(f"   {printable('  '.join([one for one in [*named, remark] if one]))}", soft_wrap=True)


def print_page_end(console: "Console", line: str, page: "FoundPage[Any]", arguments: tuple[str, ...]) -> None:
    """Print the last lines of a page: the count, as ``found_line`` returns it, and the next command."""
    console.print(line)
    if page.next:
        # A command is one line, whatever the width of the terminal.
        console.print(f"next page: {repeat_command(arguments, after=page.next)}", soft_wrap=True)


def found_line(
    page: "FoundPage[Any]", names: tuple[str, str], among: tuple[str, str], unreadable: str
) -> str:
    """Return how many documents were found among how many candidates, as a line.

    Args:
        names: the singular and plural for the documents.
        among: the singular and plural for the candidates.
        unreadable: the predicate of candidates that could not be compared.
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


def filter_queries(store: "Store", index: str, filters: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    """Return the queries of ``--filter FIELD=VALUE``.

    Raises:
        UsageError: a value has another form.
        ConfigError: the index has no such field.
    """
    from shinglefold.rerank.index_fields import check_fields

    named = [_parse_filter(one) for one in filters]
    check_fields(store.mappings.values(), index, [name for name, _ in named], "--filter")
    return tuple({"term": {name: value}} for name, value in named)


def _parse_filter(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise click.UsageError(f"--filter {given!r}: expected FIELD=VALUE")
    return name, value
