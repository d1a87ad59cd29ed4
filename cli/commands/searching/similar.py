"""``shinglefold similar`` and ``matches``: copies of a document or passages of a text in an index."""

import os
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.shared.command import DONE, PARTLY, Invocation, Name, command
from shinglefold.cli.shared.definitions import (
    NumberRange,
    engine_options,
    text_options,
    threshold_options,
    verify_by_options,
)
from shinglefold.cli.shared.hits import (
    SHOWN,
    filter_queries,
    found_line,
    page_options,
    print_found,
    print_page_end,
)
from shinglefold.cli.shared.output import make_console, printable, remark, write_json
from shinglefold.cli.shared.pairs import print_passages
from shinglefold.errors import InputError, counted

if TYPE_CHECKING:
    from rich.console import Console

    from shinglefold.cli.shared.open_index import Store
    from shinglefold.cli.shared.recipe import Target
    from shinglefold.rerank.matching import MatchPage, TextMatch
    from shinglefold.rerank.similar import Match, QueryDocument, SimilarOptions, SimilarPage


@command(
    examples="""
    shinglefold similar ru-bridge-repair-1
    shinglefold similar draft.txt --index site --min-resemblance 0.8
    curl -s https://example.org/ | shinglefold similar - --format html --json
    """
)
@click.argument("what", metavar="ID|FILE|-", type=Name("file"))
@engine_options
@click.option(
    "--id", "by_id", is_flag=True, help="The argument is an id, even if there is a file of this name."
)
@text_options("The argument is the text itself", "of the text")
@page_options("copies", 0)
@click.option(
    "--scope",
    multiple=True,
    metavar="FIELD",
    help="Find only copies with the same value of FIELD or, with FIELD:7d, with dates at most 7 days apart.",
)
@verify_by_options("a copy", "shares a supershingle")
@threshold_options("a copy")
@click.pass_obj
def similar(
    invocation: Invocation,
    /,
    *,
    what: str,
    index: str,
    engine: str | None,
    by_id: bool,
    text: bool,
    kind: str,
    encoding: str,
    language: str | None,
    after: str | None,
    filters: tuple[str, ...],
    **given: Any,  # noqa: ANN401 - as click gives them
) -> int:
    """Find the copies of a document or a text, anywhere in an index.

    The argument is the id of a document, a file if there is one of this name, or - for standard input. If
    several of the indices searched have the id, INDEX/ID names one. The most alike come first.
    """
    from shinglefold.cli.shared.open_index import open_store, same_id, seal_of_index, stored_hit
    from shinglefold.cli.shared.sources import refuse_options_of_files, text_as_indexed
    from shinglefold.rerank.similar import SimilarSearch

    if by_id and text:
        raise click.UsageError("--id and --text exclude each other")
    if text:
        refuse_options_of_files(kind, encoding)
    if not what and not text:
        raise click.UsageError("what is given is empty: name an id, a file, or - for standard input")
    is_text = text or what == "-" or (not by_id and _is_readable(what))
    if not is_text and (language or encoding or kind != "auto"):
        raise click.UsageError(
            f"--language, --encoding and --format are of a text, and {what!r} is not a file here"
        )
    if is_text and given["scope"]:
        raise click.UsageError(
            "--scope compares the fields of a document, and a text has none: narrow with --filter FIELD=VALUE"
        )
    target = invocation.target(index, engine)
    with open_store(target) as store:
        terms = filter_queries(store, index, filters)
        options = _options(terms, **given)
        seal = seal_of_index(target, store.recipe)
        search = SimilarSearch(store.engine, store.scheme, store.field, seal=seal)
        if is_text:
            read = (what, None) if text else text_as_indexed(what, kind, encoding, store.recipe)
            query_text, declared = read
            wanted: tuple[str, str] | QueryDocument = _query_document(store, query_text, language or declared)
            if not text and what != "-" and same_id(store, index, what):
                remark(f"note: {printable(what)} is a file and an id; for the document add --id")
        else:
            words = " (for this text itself add --text)" if " " in what else ""
            missing = f"no file {what!r}{words}, and no document of this id"
            hit = stored_hit(store, target, what, invocation.arguments, missing)
            wanted = hit["_index"], hit["_id"]
        page = search.find(index, wanted, options, place=after)
    if invocation.json:
        write_json(page.to_json())
    else:
        _print_copies(make_console(), page, invocation.arguments, several=len(store.mappings) > 1)
    return PARTLY if page.lacks else DONE


def _is_readable(what: str) -> bool:
    """Return whether there is a file or pipe of this name."""
    return os.path.exists(what) and not os.path.isdir(what)


def _options(
    filters: tuple[dict[str, Any], ...],
    *,
    size: int,
    scope: tuple[str, ...],
    **decision: Any,  # noqa: ANN401 - as click gives them
) -> "SimilarOptions":
    from shinglefold.rerank import Scope
    from shinglefold.rerank.similar import SimilarOptions

    scopes = tuple(Scope.parse(one) for one in scope)
    return SimilarOptions(size=size, source=SHOWN, filters=filters, scope=scopes, **decision)


def _query_document(store: "Store", text: str, language: str | None) -> "QueryDocument":
    """Return a text with the fingerprint that it would have in the index."""
    from shinglefold.cli.shared.sources import check_language
    from shinglefold.ingest import Fingerprinter
    from shinglefold.ingest.processors.texts import NeverDiffer
    from shinglefold.rerank.similar import QueryDocument

    check_language(store.scheme, language)
    facts = NeverDiffer.parse(store.recipe.never_differ)
    # A text has no values of fields, so that it is compared without facts where these count.
    own = None if facts.fields else facts.facts([text], [{}])
    (made,) = Fingerprinter(store.scheme).fingerprint([text], [language], own)
    if not made.digest:
        raise InputError(
            "the text has no word to find copies by; give another, or see what is left of it: "
            "shinglefold compare --help"
        )
    return QueryDocument(made, text=text)


def _print_copies(
    console: "Console", page: "SimilarPage", arguments: tuple[str, ...], *, several: bool
) -> None:
    for place, match in enumerate(page.matches, 1):
        name = f"{match.index}/{match.id}" if several else match.id
        print_found(console, place, name, match.hit.get("_source") or {}, _alike(match))
    if page.unasked:
        remark(f"note: by signatures alone, as texts can't be read: {page.unasked}")
    if page.matches:
        console.print()
    print_page_end(console, _copies_line(page), page, arguments)


def _alike(match: "Match") -> str:
    if match.same_text:
        return "the same canonical text"
    line = f"resemblance {match.resemblance:.2f} ± {match.standard_error:.2f} by estimate"
    if match.similarity is not None:
        line += f", edit similarity {match.similarity:.2f} by text"
    return line if match.group is None else f"{line}, group {match.group}"


def _copies_line(page: "SimilarPage") -> str:
    """Return the last line of a page: how many copies were found, among how many candidates."""
    return found_line(
        page,
        ("copy", "copies"),
        (
            "document that shares a supershingle or the text",
            "documents that share a supershingle or the text",
        ),
        "have a damaged fingerprint or lack the seal",
    )


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

    The argument is a file, or - for standard input. The index must store elements of passages ("index
    --passages"). The largest share comes first.
    """
    from shinglefold.cli.shared.open_index import no_passages, open_store, seal_of_index
    from shinglefold.cli.shared.sources import (
        check_language,
        refuse_options_of_files,
        text_as_indexed,
    )
    from shinglefold.rerank.matching import MatchOptions, MatchSearch

    if text:
        refuse_options_of_files(kind, encoding)
    if text and not what.strip():
        raise click.UsageError("there is no text: --text wants it in the place of the file")
    target = invocation.target(index, engine)
    with open_store(target) as store:
        check_language(store.scheme, language)
        if not store.recipe.passages:
            raise no_passages(target)
        terms = filter_queries(store, index, filters)
        wanted, declared = (what, None) if text else text_as_indexed(what, kind, encoding, store.recipe)
        language = language or declared
        seal = seal_of_index(target, store.recipe)
        search = MatchSearch(store.engine, language=language, seal=seal)
        options = MatchOptions(min_share=min_share, size=size, filters=terms, source=SHOWN)
        page = search.find(index, wanted, options, place=after)
        _warn_of_missing_passages(store, index, target)
    if invocation.json:
        write_json(page.to_json())
    else:
        _print_matches(make_console(), page, "A text" if text else what, passages, invocation.arguments)
    return PARTLY if page.lacks else DONE


def _warn_of_missing_passages(store: "Store", index: str, target: "Target") -> None:
    """Warn about documents that can't be found, because they lack the stored elements of passages."""
    from shinglefold.model.stored_fingerprint import placeholder_query

    stored = {"exists": {"field": f"{store.field}.passages"}}
    query = {"bool": {"must_not": [stored, placeholder_query(store.field)]}}
    body = {"size": 0, "track_total_hits": True, "query": query}
    count = store.engine.search(index, body)["hits"]["total"]["value"]
    if count:
        backfill = target.hints.command("backfill", index)
        those = counted(count, "document is", "documents are")
        remark(f"warning: {those} not found, without elements of passages: {backfill}")


def _print_matches(
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
    print_page_end(console, _matches_line(page), page, arguments)


def _shares(match: "TextMatch") -> str:
    return f"has {match.share:.1%} of the text, which is {match.of_document:.1%} of the document"


def _matches_line(page: "MatchPage") -> str:
    """Return the last line of a page: how many documents were found, among how many candidates."""
    if page.stopped_by == "nothing_to_compare":
        return "no documents: a text of fewer than five words has no passage to be found by"
    return found_line(
        page,
        ("document", "documents"),
        ("that shares an element with the text", "that share an element with the text"),
        "show no text that has it (hidden, or changed)",
    )
