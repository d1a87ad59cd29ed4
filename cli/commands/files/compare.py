"""``shinglefold compare A B``: how alike two texts are, or two documents of an index, and where."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.shared.command import DONE, Invocation, Name, command, given_options
from shinglefold.cli.shared.definitions import (
    chosen_facts,
    chosen_scheme,
    content_options,
    decision_options,
    engine_option,
    options,
    preset_option,
    text_options,
)
from shinglefold.cli.shared.output import (
    check_page,
    make_console,
    printable,
    remark,
    write_json,
    write_page,
)
from shinglefold.cli.shared.pairs import passage_json, print_compared, reason, verdict_line

if TYPE_CHECKING:
    from shinglefold.model.scheme import Scheme
    from shinglefold.offline.compare_texts import Comparison
    from shinglefold.passages.shingle_positions import Elements

#: Options that apply to stored documents.
_OF_DOCUMENTS = {"a", "b", "index", "engine", "fields", "passages"}
#: Options about passages.
_passage_options = options(
    click.option(
        "--width",
        type=click.IntRange(1, 10),
        default=5,
        show_default=True,
        metavar="N",
        help="Words in a row that must be equal somewhere in a passage.",
    ),
    click.option(
        "--gap",
        type=click.IntRange(0, 100),
        default=6,
        show_default=True,
        metavar="N",
        help="Words that may differ within a passage, one after another.",
    ),
    click.option("--tolerant", is_flag=True, help="Also match words in another order; takes longer."),
    click.option(
        "--passages",
        type=click.IntRange(0),
        default=5,
        show_default=True,
        metavar="N",
        help="Matched passages to print; 0 prints all of them in full.",
    ),
    click.option("--page", metavar="FILE", help="Write both texts side by side as an HTML page."),
)


@command(
    examples="""
    shinglefold compare draft.txt published.html
    shinglefold compare draft.txt published.html --page passages.html
    shinglefold compare --text 'Мост закроют на ремонт в мае' 'Мост закрыли на ремонт в мае'
    curl -s https://example.org/ | shinglefold compare --format html - saved.html
    shinglefold compare page-17 page-18 --index site
    """
)
@click.argument("a", type=Name("file"))
@click.argument("b", type=Name("file"))
@click.option("--index", metavar="NAME", help="A and B are ids of documents in this index.")
@engine_option
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="FIELD",
    help="With --index: field to find passages in; repeat it for more. By default the fields with "
    "fingerprints.",
)
@text_options("A and B are the texts themselves, not files", "of both")
@_passage_options
@preset_option
@decision_options
@content_options
@click.pass_context
def compare(context: click.Context, /, **given: Any) -> int:  # noqa: ANN401 - as click gives them
    """Compare two texts, or two documents of an index.

    A and B are files, or - for standard input; with --index they are ids of documents. The figures are the
    language and the shingles of each, the resemblance, shared supershingles, whether the two fold, and the
    passages that match.
    """
    if given["index"] is None:
        if given["fields"] or given["engine"]:
            raise click.UsageError("--field and --engine are of stored documents: name their --index")
        return _compare_files(
            context.obj, **{name: given[name] for name in given.keys() - {"index", "engine", "fields"}}
        )
    typed = given_options(context)
    if wrong := [typed[name] for name in given if name in typed.keys() - _OF_DOCUMENTS]:
        raise click.UsageError(f"--index compares documents as they are stored: leave {wrong[0]} out")
    return _compare_documents(context.obj, **{name: given[name] for name in _OF_DOCUMENTS})


def _compare_files(
    invocation: Invocation,
    *,
    a: str,
    b: str,
    text: bool,
    kind: str,
    encoding: str,
    language: str | None,
    width: int,
    gap: int,
    tolerant: bool,
    passages: int,
    page: str | None,
    preset: str | None,
    profile: str | None,
    never_differ: tuple[str, ...],
    **decision: str | float | None,
) -> int:
    """Compare two texts, or the texts of two files."""
    from shinglefold.canon import Canonicalizer
    from shinglefold.cli.shared.sources import check_language, two_texts
    from shinglefold.offline.compare_texts import compare_texts
    from shinglefold.passages.alignment import covered_shares, passages_between
    from shinglefold.passages.html_report import Shown
    from shinglefold.passages.html_report import page as html_page
    from shinglefold.passages.shingle_positions import elements_of

    check_page(page, "--page", () if text else (a, b))
    scheme = chosen_scheme(invocation, preset, profile, **decision)
    check_language(scheme, language)
    texts, names = two_texts(a, b, kind, encoding, itself=text)
    canonicalizer = Canonicalizer.of(scheme)
    facts = chosen_facts(never_differ, profile).facts(texts, [{}, {}])
    found = compare_texts(texts, names, (language, language), scheme, facts)
    sides = [elements_of(canonicalizer.placed(one, language), width, tolerant) for one in texts]
    matched, left_out, crowded = passages_between(*sides, gap=gap, tolerant=tolerant)
    _warn_of_repetitions(names[0], left_out, crowded)
    parts = covered_shares(*sides)
    if page is not None:
        tokens = [side.tokens for side in sides]
        shown = [Shown(*one) for one in zip(names, texts, tokens, parts, strict=True)]
        write_page(page, html_page(shown, matched, width))
    told = [passage_json(one, *texts) for one in matched]
    if invocation.json:
        result = found.to_json(scheme)
        for side, share in zip(("a", "b"), parts, strict=True):
            result[side]["share"] = round(share, 4)
        write_json({**result, "passages": told, "left_out": left_out, "crowded": crowded})
        return DONE
    console = make_console()
    _print_figures(found, scheme)
    for line in _share_lines(names, sides, parts, width):
        console.print(line, highlight=False, markup=False)
    console.print()
    print_compared(console, told, names, passages, least=width)
    if page is not None:
        console.print(f"\nwritten to {printable(page)}", highlight=False, markup=False, soft_wrap=True)
    return DONE


def _warn_of_repetitions(name: str, left_out: int, crowded: int) -> None:
    if left_out:
        remark(
            f"warning: both texts repeat much: {left_out:,} pairs of equal places were not compared each "
            "with each, but in the order in which they come, so that some repetitions may be missing"
        )
    if crowded:
        remark(
            f"warning: {crowded:,} places of {printable(name)} resemble so many others by a word that "
            "they repeat that they were compared with those of the same words alone"
        )


def _share_lines(
    names: Sequence[str], sides: "Sequence[Elements]", parts: Sequence[float], width: int
) -> list[str]:
    sizes = [f"{side.tokens:,} words of {printable(name)}" for name, side in zip(names, sides, strict=True)]
    return [
        f"{share:6.1%} of the {words} stand {width} in a row in the other text"
        for words, share in zip(sizes, parts, strict=True)
    ]


def _compare_documents(
    invocation: Invocation,
    *,
    a: str,
    b: str,
    index: str,
    engine: str | None,
    fields: tuple[str, ...],
    passages: int,
) -> int:
    """Compare two documents of an index by their stored fingerprints and texts."""
    from shinglefold.cli.shared.open_index import open_store, seal_of_index, stored_hit
    from shinglefold.model.profiles import profile_of
    from shinglefold.rerank import FoldOptions
    from shinglefold.rerank.explanation import explain_pair
    from shinglefold.rerank.index_fields import check_fields

    if not (a and b):
        raise click.UsageError("an id is empty: name two documents")
    target = invocation.target(index, engine)
    with open_store(target) as store:
        check_fields(store.mappings.values(), index, fields, "--field")
        scheme, seal = store.scheme, seal_of_index(target, store.recipe)
        one = stored_hit(store, target, a, invocation.arguments)
        other = stored_hit(store, target, b, invocation.arguments)
    found = explain_pair(
        (one, other),
        scheme,
        store.field,
        fields or store.recipe.fields,
        seal=seal,
        mappings=store.mappings,
        options=FoldOptions.parse(profile_of(store.recipe.profile).dedup),
    )
    matched = [passage_json(passage, *found.texts) for passage in found.passages]
    if invocation.json:
        write_json({**found.facts, "passages": matched})
        return DONE
    console = make_console()
    for line in _stored_figures(found.facts, scheme):
        console.print(line)
    console.print()
    print_compared(console, matched, (a, b), passages)
    return DONE


def _stored_figures(pair: dict[str, Any], scheme: "Scheme") -> list[str]:
    """Return an explanation as lines, the verdict last."""
    one, other = pair["a"], pair["b"]
    keywords = f"{len(pair['shared'])} of {scheme.sketch.groups} shared {' '.join(pair['shared'])}".rstrip()
    shown = [
        f"A  {_stored_print(one)}",
        f"B  {_stored_print(other)}",
        f"scheme            {pair['scheme']}",
        f"same canonical text: {'yes' if pair['same_text'] else 'no'}",
        f"supershingles     {keywords}",
    ]
    if pair["estimate"] is None:
        shown.append("resemblance       no estimate: too few shingles for a signature")
    else:
        estimate = pair["estimate"]
        shown.append(
            f"resemblance       {estimate['resemblance']:.3f} ± {estimate['standard_error']:.3f} by estimate"
        )
    shown.append(f"length ratio      {pair['length_ratio']:.3f}, needed {scheme.decision.min_length_ratio}")
    missing = "a text is missing, or has over 20,000 words"
    shown.append(f"edit similarity   {_similarity(pair['text']['similarity'], missing)}")
    text, decision = pair["text"], scheme.decision
    by_text = reason(text["decided_by"], pair, decision)
    if not text["decided"]:
        by_text = f"{'the texts cannot be compared' if text['asked'] else 'no doubt'}; {by_text}"
    return [
        *shown,
        f"verdict: {verdict_line(pair['folds'], reason(pair['decided_by'], pair, decision))}",
        f"by text: {verdict_line(text['folds'], by_text)}",
    ]


def _similarity(share: float | None, missing: str) -> str:
    return f"not computed: {missing}" if share is None else f"{share:.3f} of the words as written"


def _stored_print(side: dict[str, Any]) -> str:
    """Return a document and its fingerprint as a line."""
    stale = ", stale: of another text than it has now" if side.get("stale") else ""
    return f"{printable(side['id'])}: {side['lang']}, {side['shingles']:,} shingles{stale}"


def _print_figures(found: "Comparison", scheme: "Scheme") -> None:
    from rich.table import Table

    console = make_console()
    table = Table("", "language", "tokens", "shingles", "distinct", "repairs", box=None, pad_edge=False)
    for side in (found.a, found.b):
        counts = (side.tokens, side.shingles, side.distinct, side.repairs)
        table.add_row(printable(side.name), side.language, *(f"{count:,}" for count in counts))
    console.print(table)
    console.print()
    for line in _figures(found, scheme):
        console.print(line)
    console.print()


def _figures(found: "Comparison", scheme: "Scheme") -> list[str]:
    """Return the figures as lines, the verdict last."""
    one, other = found.containment
    lines = [
        f"resemblance       {found.resemblance:.3f} exact" + _describe_estimate(found),
        f"containment       {one:.3f} of A in B, {other:.3f} of B in A",
        f"Sørensen          {found.sorensen:.3f}",
        f"edit similarity   {_similarity(found.similarity, 'a text has over 20,000 words')}",
        f"length ratio      {found.length_ratio:.3f}, needed {scheme.decision.min_length_ratio}",
        f"same canonical text: {'yes' if found.same_text else 'no'}",
    ]
    if found.estimate is not None:
        lines.insert(
            3,
            f"supershingles     {found.estimate.shared} of {scheme.sketch.groups} shared, "
            f"needed {scheme.decision.min_shared}",
        )
    why = reason(found.decided_by, found.to_json(scheme), scheme.decision)
    return [
        *lines,
        f"scheme            {scheme.id}",
        f"verdict: {verdict_line(found.folds, why)}",
    ]


def _describe_estimate(found: "Comparison") -> str:
    if found.estimate is None:
        return "; no estimate: too few shingles for a signature"
    return f", {found.estimate.resemblance:.3f} ± {found.estimate.standard_error:.3f} by estimate"
