"""``shinglefold compare A B``: two texts, how alike they are and where."""

from typing import TYPE_CHECKING

import click

from shinglefold.cli.framework.command import DONE, Invocation, Name, command
from shinglefold.cli.framework.output import make_console, printable, write_json
from shinglefold.cli.options.definitions import (
    chosen_scheme,
    decision_options,
    passages_option,
    preset_option,
    text_options,
)

if TYPE_CHECKING:
    from shinglefold.model.scheme import Scheme
    from shinglefold.offline.compare_texts import Comparison


@command(
    examples="""
    shinglefold compare draft.txt published.html
    shinglefold compare --text 'Мост закроют на ремонт в мае' 'Мост закрыли на ремонт в мае'
    curl -s https://example.org/ | shinglefold compare --format html - saved.html
    """
)
@click.argument("a", type=Name("file"))
@click.argument("b", type=Name("file"))
@text_options("A and B are the texts themselves, not files", "of both")
@passages_option
@preset_option
@decision_options
@click.pass_obj
def compare(
    invocation: Invocation,
    /,
    *,
    a: str,
    b: str,
    text: bool,
    kind: str,
    encoding: str,
    language: str | None,
    passages: int,
    preset: str | None,
    **decision: str | float | None,
) -> int:
    """Compare two texts and show the passages that match.

    A and B are files, or - for standard input. The figures are the tokens, shingles and language of each, the
    resemblance, exact and estimated, containment, shared supershingles, and whether the scheme folds the two.
    """
    from shinglefold.canon import Canonicalizer
    from shinglefold.cli.options.text_input import check_language, two_texts
    from shinglefold.cli.render.side_by_side import passage_json, print_passages
    from shinglefold.offline.compare_texts import compare_texts
    from shinglefold.rerank import find_passages

    scheme = chosen_scheme(invocation, preset, **decision)
    check_language(scheme, language)
    texts, names = two_texts(a, b, kind, encoding, itself=text)
    canonicalizer = Canonicalizer.of(scheme)
    found = compare_texts(texts, names, (language, language), scheme, canonicalizer)
    matched = find_passages(*(canonicalizer.placed(one, language) for one in texts))
    if invocation.json:
        told = [passage_json(passage, *texts) for passage in matched]
        write_json({**found.to_json(scheme), "passages": told})
        return DONE
    console = make_console()
    _print_figures(found, scheme)
    print_passages(console, matched, texts, names, passages)
    return DONE


def _print_figures(found: "Comparison", scheme: "Scheme") -> None:
    from rich.table import Table

    console = make_console()
    table = Table("", "language", "tokens", "shingles", "distinct", "repairs", box=None, pad_edge=False)
    for side in (found.a, found.b):
        counts = (side.tokens, side.shingles, side.distinct, side.repairs)
        table.add_row(printable(side.name), side.language, *(f"{count:,}" for count in counts))
    console.print(table)
    console.print()
    for line in figures(found, scheme):
        console.print(line)
    console.print()


def figures(found: "Comparison", scheme: "Scheme") -> list[str]:
    """Return the figures as lines, the verdict last."""
    one, other = found.containment
    lines = [
        f"resemblance       {found.resemblance:.3f} exact" + _estimated(found),
        f"containment       {one:.3f} of A in B, {other:.3f} of B in A",
        f"Sørensen          {found.sorensen:.3f}",
        f"edit similarity   {_similar(found)}",
        f"length ratio      {found.length_ratio:.3f}, needed {scheme.decision.min_length_ratio}",
        f"same canonical text: {'yes' if found.same_text else 'no'}",
    ]
    if found.estimate is not None:
        lines.insert(
            3,
            f"supershingles     {found.estimate.shared} of {scheme.sketch.groups} shared, "
            f"needed {scheme.decision.min_shared}",
        )
    verdict = "they fold" if found.folds else "they do not fold"
    if found.same_text and not found.folds:
        verdict += ": the same, but one word alone is too little to tell duplicates by"
    return [
        *lines,
        f"verdict: {verdict} (scheme {scheme.id}, {_needed(found, scheme)})",
    ]


def _similar(found: "Comparison") -> str:
    if found.similarity is None:
        return "not asked: a text of over 20,000 words is left to its signature"
    return f"{found.similarity:.3f} of the words as written"


def _needed(found: "Comparison", scheme: "Scheme") -> str:
    """Say what decided, and what it takes."""
    decision = scheme.decision
    if decision.verify == "keywords":
        return f"supershingles needed {decision.min_shared}"
    if decision.verify == "text" and found.similarity is not None:
        return f"edit similarity needed {decision.min_similarity}"
    return f"estimate needed {decision.min_resemblance}"


def _estimated(found: "Comparison") -> str:
    if found.estimate is None:
        return "; no estimate: too few shingles for a signature"
    return f", {found.estimate.resemblance:.3f} ± {found.estimate.standard_error:.3f} by estimate"
