"""A page of results on a console: titles, addresses, snippets, and what was folded."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.framework.next_commands import repeat_command
from shinglefold.cli.framework.output import printable
from shinglefold.cli.options.definitions import Function, options

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from shinglefold.cli.session.open_index import Store
    from shinglefold.rerank.similar.results import FoundPage

Hit = Mapping[str, Any]
#: Stand before and behind the words that were found: no text has them, and no terminal gets to see them.
FOUND = ("\x02", "\x03")
_BETWEEN = re.compile("([\x02\x03])")
#: Folded hits named in the line below a result; the others are only counted.
_NAMED = 5


def print_page(
    console: "Console",
    answer: Mapping[str, Any],
    start: int = 0,
    show_duplicates: bool = False,
    next_page: str = "",
) -> None:
    """Print the hits of an answer, folded or not, the counters, and the command for the next page."""
    told = explained(answer)
    for place, hit in enumerate(answer["hits"]["hits"], start + 1):
        _print_hit(console, place, hit)
        if show_duplicates or told:
            _print_duplicates(console, hit, told)
        elif line := folded_line(hit):
            _print_indented(console, line, style="cyan")
        console.print()
    console.print(counters_line(answer))
    if next_page:
        # A command is one line, whatever the width of the terminal.
        console.print(f"next page: {next_page}", soft_wrap=True)


def explained(answer: Mapping[str, Any]) -> dict[tuple[Any, Any], Hit]:
    """Return what an answer tells of folded hits, by index and id."""
    groups = answer.get("dedup", {}).get("explain", ())
    return {(one["_index"], one["_id"]): one for group in groups for one in group["members"]}


def why_line(told: Hit) -> str:
    """Return in a line why a hit folds."""
    if "resemblance" not in told:
        return "the same canonical text" if told.get("same_text") else "no estimate"
    alike = f"resemblance {told['resemblance']:.2f} ± {told['standard_error']:.2f} by estimate"
    same = ", the same canonical text" if told["same_text"] else ""
    return f"{alike}, {len(told['shared'])} supershingles shared{same}"


def title_of(hit: Hit) -> str:
    """Return the title of a hit, or its id."""
    return printable((hit.get("_source") or {}).get("title") or hit["_id"])


def place_of(hit: Hit) -> str:
    """Return where a hit is from: its address, else its id."""
    return printable((hit.get("_source") or {}).get("url") or hit["_id"])


def folded_count(hit: Hit) -> int:
    """Return how many hits are folded below one."""
    total = hit.get("inner_hits", {}).get("duplicates", {}).get("hits", {}).get("total", {}).get("value", 1)
    return max(0, int(total) - 1)


def folded_line(hit: Hit) -> str:
    """Return the line that names the folded hits, or nothing."""
    from shinglefold.rerank.page.response import duplicates

    count = folded_count(hit)
    if not count:
        return ""
    named = [_name(other) for other in duplicates(hit)[:_NAMED]]
    more = f" and {count - len(named)} more" if named and count > len(named) else ""
    told = f": {', '.join(named)}{more}" if named else ""
    return f"+ {count} near-duplicate{'s' if count > 1 else ''} folded{told}"


def counters_line(answer: Mapping[str, Any]) -> str:
    """Return the totals of an answer as a line."""
    total = answer["hits"].get("total", {})
    of = f"{'at least ' if total.get('relation') == 'gte' else ''}{total.get('value', 0):,}"
    one = "" if total.get("value") == 1 else "s"
    hits = len(answer["hits"]["hits"])
    counters = answer.get("dedup")
    if counters is None:
        return f"{hits} of {of} hit{one}, not folded"
    parts = [f"{hits} result{'' if hits == 1 else 's'} from {of} hit{one}"]
    if total.get("value") or counters["stopped_by"] != "end_of_results":
        until = counters["stopped_by"].replace("_", " ")
        parts += [_folded_part(counters), f"read until: {until}"]
    if reason := counters.get("mode_reason"):
        parts.append(f"folded by window: {printable(reason)}")
    if counters["other_schemes"]:
        parts.append(f"{sum(counters['other_schemes'].values()):,} of other schemes, never folded")
    return "; ".join(parts)


def _folded_part(counters: Mapping[str, Any]) -> str:
    """Return what was folded: of a window, or by the engine, which tells the groups of the whole result."""
    if counters["window"] is not None:
        if not counters["folded"]:
            return "none folded"
        return f"{counters['folded']:,} of the first {counters['window']:,} hits folded"
    total = counters["groups_total"]
    about = {"eq": "", "estimate": "about ", "gte": "at least "}[total["relation"]]
    return f"{about}{total['value']:,} groups, collapsed by the engine"


def _print_indented(console: "Console", text: "str | Text", style: str = "") -> None:
    from rich.padding import Padding

    if console.soft_wrap:
        console.print("    ", text, sep="", style=style)
    else:
        console.print(Padding(text, (0, 0, 0, 4)), style=style)


def _marked(console: "Console", text: str, style: str = "") -> "Text":
    """Return a text whose words that were found are bold, or in brackets where nothing can be."""
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
    host = (hit.get("_source") or {}).get("host")
    return printable(f"{hit['_id']} ({host})" if host else hit["_id"])


def _print_hit(console: "Console", place: int, hit: Hit) -> None:
    score = f"  ({hit['_score']:.2f})" if hit.get("_score") is not None else ""
    shown = dict(hit.get("highlight") or {})
    titles = shown.pop("title", None) or [title_of(hit)]
    console.print(_marked(console, f"{place:>2}. {titles[0]}{score}", style="bold"))
    if place_of(hit) != titles[0]:  # One without a title stands there by its id.
        console.print(f"    {place_of(hit)}", style="green")
    snippet = " … ".join(part for parts in shown.values() for part in parts)
    if snippet:
        _print_indented(console, _marked(console, snippet))


def _print_duplicates(console: "Console", hit: Hit, told: Mapping[tuple[Any, Any], Hit]) -> None:
    from shinglefold.rerank.page.response import duplicates

    others = duplicates(hit)
    for other in others:
        named = dict.fromkeys((title_of(other), place_of(other)))
        console.print(f"    = {'  '.join(named)}", style="cyan")
        if why := told.get((other.get("_index"), other["_id"])):
            console.print(f"      {why_line(why)}", style="cyan")
            if "passages" in why:
                from shinglefold.cli.render.side_by_side import print_matched_json

                print_matched_json(console, why["passages"], (place_of(hit), place_of(other)))
    if folded_count(hit) > len(others):
        console.print(f"    = and {folded_count(hit) - len(others)} more", style="cyan")


#: What is shown of a document.
SHOWN = ["title", "url"]


def page_options(what: str, least: int) -> Callable[[Function], Function]:
    """Return the options of a page of what is found.

    Args:
        what: is found, such as ``copies``.
        least: of them on a page.
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
            "--after", metavar="PLACE", help="Go on where a page ended; the line below it has the place."
        ),
        click.option(
            "--filter",
            "filters",
            multiple=True,
            metavar="FIELD=VALUE",
            help=f"Find only {what} whose FIELD has this value; repeat it for more.",
        ),
    )


def print_found(console: "Console", place: int, name: str, source: Mapping[str, Any], told: str) -> None:
    """Print the title of a document, and below it where it is from, its name, and what is told of it."""
    console.print(f"{place}. {printable(source.get('title') or name)}", soft_wrap=True, style="bold")
    named = [source.get("url"), name if source.get("title") else ""]
    console.print(f"   {printable('  '.join([one for one in [*named, told] if one]))}", soft_wrap=True)


def print_page_end(console: "Console", line: str, page: "FoundPage[Any]", arguments: tuple[str, ...]) -> None:
    """Print the last lines of a page: how many there are, and the command for the next page.

    Args:
        line: as ``found_line`` returns it.
        arguments: the command, as it was typed.
    """
    console.print(line)
    if page.next:
        # A command is one line, whatever the width of the terminal.
        console.print(f"next page: {repeat_command(arguments, after=page.next)}", soft_wrap=True)


def found_line(
    page: "FoundPage[Any]", names: tuple[str, str], among: tuple[str, str], unreadable: str
) -> str:
    """Return in a line how many documents were found, and among how many.

    Args:
        names: of one and of several of them.
        among: what was looked at, for one and for several, in words.
        unreadable: what those have, or lack, that can't be decided on.
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
    """Return filters as queries.

    Raises:
        UsageError: one is no field with a value.
        ConfigError: the index has no such field.
    """
    from shinglefold.rerank.request.field_check import check_fields

    named = [_parted(one) for one in filters]
    check_fields(store.mappings.values(), index, [name for name, _ in named], "--filter")
    return tuple({"term": {name: value}} for name, value in named)


def _parted(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise click.UsageError(f"--filter {given!r}: expected FIELD=VALUE")
    return name, value
