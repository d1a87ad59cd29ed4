"""``shinglefold passages A B``: what two texts have in common, side by side."""

from typing import TYPE_CHECKING, Any

import click

from shinglefold.cli.framework.command import DONE, Invocation, Name, command
from shinglefold.cli.framework.output import (
    check_page,
    make_console,
    printable,
    remark,
    write_json,
    write_line,
    write_page,
)
from shinglefold.cli.options.definitions import chosen_scheme, options, passages_option, text_options

if TYPE_CHECKING:
    from shinglefold.passages.alignment import Passage
    from shinglefold.passages.shingle_positions import Elements

#: How passages are told apart from chance.
passage_options = options(
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
)


@command(
    examples="""
    shinglefold passages draft.txt published.html
    shinglefold passages draft.txt published.html --html passages.html
    curl -s https://example.org/ | shinglefold passages --format html - saved.html --json
    """
)
@click.argument("a", type=Name("file"))
@click.argument("b", type=Name("file"))
@text_options("A and B are the texts themselves, not files", "of both")
@passage_options
@click.option("--tolerant", is_flag=True, help="Also take words in another order for equal; takes longer.")
@passages_option
@click.option("--html", metavar="FILE", help="Write both texts side by side as one HTML file.")
@click.pass_obj
def passages(
    invocation: Invocation,
    /,
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
    html: str | None,
) -> int:
    """Show the passages that two texts have in common.

    A and B are files, or - for standard input. Words are compared by their canonical forms, so that other
    endings match. For a text against a whole index there is "shinglefold matches".
    """
    from shinglefold.canon import Canonicalizer
    from shinglefold.cli.options.text_input import check_language, two_texts
    from shinglefold.cli.render.side_by_side import print_passages
    from shinglefold.passages.alignment import passages_between
    from shinglefold.passages.coverage import shares
    from shinglefold.passages.html_report import Shown, page
    from shinglefold.passages.shingle_positions import elements_of

    check_page(html, "--html", () if text else (a, b))
    scheme = chosen_scheme(invocation)
    check_language(scheme, language)
    texts, names = two_texts(a, b, kind, encoding, itself=text)
    canonicalizer = Canonicalizer.of(scheme)
    sides = [elements_of(canonicalizer.placed(one, language), width, tolerant) for one in texts]
    found, left_out, crowded = passages_between(*sides, gap=gap, tolerant=tolerant)
    if left_out:
        remark(
            f"warning: both texts repeat much: {left_out:,} pairs of equal places were not compared each "
            "with each, but in the order in which they come, so that some repetitions may be missing"
        )
    if crowded:
        remark(
            f"warning: {crowded:,} places of {printable(names[0])} resemble so many others by a word that "
            "they repeat that they were compared with those of the same words alone"
        )
    parts = shares(*sides)
    if html is not None:
        shown = [
            Shown(*one) for one in zip(names, texts, [side.tokens for side in sides], parts, strict=True)
        ]
        write_page(html, page(shown, found, width))
    if invocation.json:
        write_json(_told(sides, names, parts, found, texts) | {"left_out": left_out, "crowded": crowded})
        return DONE
    for name, side, share in zip(names, sides, parts, strict=True):
        words = f"{side.tokens:,} words of {printable(name)}"
        write_line(f"{share:6.1%} of the {words} stand {width} in a row in the other text, too")
    if found:
        write_line(f"{len(found):,} {'passage' if len(found) == 1 else 'passages'}\n")
    print_passages(make_console(), found, texts, names, passages, least=width)
    if html is not None:
        write_line(f"\nwritten to {printable(html)}")
    return DONE


def _told(
    sides: "list[Elements]",
    names: tuple[str, str],
    parts: tuple[float, float],
    found: "list[Passage]",
    texts: tuple[str, str],
) -> dict[str, Any]:
    from shinglefold.cli.render.side_by_side import passage_json

    told = [
        {"name": name, "tokens": side.tokens, "share": round(share, 4)}
        for name, side, share in zip(names, sides, parts, strict=True)
    ]
    return {"a": told[0], "b": told[1], "passages": [passage_json(one, *texts) for one in found]}
