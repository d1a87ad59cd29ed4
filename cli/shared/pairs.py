"""Pairs of documents: the verdict in words, and matched passages side by side, or one above the other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shinglefold.cli.shared.output import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from shinglefold.model.scheme import Decision
    from shinglefold.passages.alignment import Passage, Span

#: What decided that a hit folds, in words.
FOLDED_BY = {
    "same_text": "the same canonical text",
    "estimate": "decided by the estimate",
    "supershingles": "decided by supershingles",
    "similarity": "decided by the edit similarity of the texts",
    "tokens": "decided by the tokens of the texts, in any order",
    "chain": "connected by other members",
}


def verdict_line(folds: bool, why: str) -> str:
    """Return a verdict with its reason."""
    return f"{'they fold' if folds else 'they do not fold'} ({why})"


def reason(decided_by: str, pair: Mapping[str, Any], decision: "Decision") -> str:
    """Return what decided on a pair, with the value and the threshold.

    Args:
        decided_by: one of ``DecidedBy``.
        pair: the JSON of ``compare``.
        decision: the thresholds in force.
    """
    estimate = pair["estimate"] or {}
    shared = pair["shared"] if "shared" in pair else range(estimate.get("shared", 0))
    similarity = pair["text"]["similarity"] if "text" in pair else pair["similarity"]
    if decided_by == "too_short" and pair["same_text"]:
        return "the texts are the same, but one word alone is too little to tell duplicates by"
    if decided_by == "too_short":
        return "the texts differ, and a text has too few shingles for a signature"
    if decided_by == "supershingles":
        return f"supershingles decide: {len(shared)} shared, needed {decision.min_shared}"
    return {
        "same_text": "the canonical texts are the same",
        "scope": "the values of a scope differ",
        "length": f"the lengths decide: ratio {pair['length_ratio']:.3f}, needed {decision.min_length_ratio}",
        "estimate": f"the estimate decides: {estimate.get('resemblance', 0):.3f}, "
        f"needed {decision.min_resemblance}",
        "similarity": f"the edit similarity decides: {similarity or 0:.3f}, needed {decision.min_similarity}",
        "tokens": f"{(1 + decision.min_similarity) / 2:.2g} or more of the tokens are in both texts, in any "
        "order",
        "facts": "what must never differ differs",
        "chain": "a chain of documents that match connects them",
    }[decided_by]


#: The least width for two columns.
NARROW = 60
#: The number of characters kept at either end of a shortened equal span.
_EDGE = 90


def marked_parts(side: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the spans of a side of a passage, as JSON, and whether the other side lacks them."""
    begin, text = side["start"], side["text"]
    at = begin
    for mark in side["differing"]:
        yield text[at - begin : mark["start"] - begin], False
        yield mark["text"], True
        at = mark["end"]
    yield text[at - begin :], False


def passage_json(passage: "Passage", a: str, b: str) -> dict[str, Any]:
    """Return a passage as JSON: for each side its offsets, its text, and the differing words."""
    return {
        "equal_tokens": passage.equal,
        "a": _side_json(a, passage.a, passage.marks_a),
        "b": _side_json(b, passage.b, passage.marks_b),
    }


def _side_json(text: str, span: "Span", marks: Sequence["Span"]) -> dict[str, Any]:
    differing = [{"start": m.start, "end": m.end, "text": text[m.start : m.end]} for m in marks]
    return {"start": span.start, "end": span.end, "text": text[span.start : span.end], "differing": differing}


def print_compared(
    console: "Console",
    passages: Sequence[Mapping[str, Any]],
    names: tuple[str, str],
    most: int,
    *,
    least: int = 0,
) -> None:
    """Print the passages of two texts, or that there are none.

    Args:
        most: the most passages to print; 0 prints all of them in full.
        least: the least words of a passage, for the message that there is none.
    """
    if not passages:
        from shinglefold.passages.alignment import LEAST

        console.print(f"No passage of {max(LEAST, least)} words or more matches.")
        return
    shown = passages[:most] if most else passages
    print_passages(console, shown, names, sides=("a", "b"), cut=bool(most))
    if len(shown) < len(passages):
        console.print(
            f"… and {len(passages) - len(shown)} more passages; --passages 0 shows all of them in full."
        )


def print_passages(
    console: "Console",
    passages: Sequence[Mapping[str, Any]],
    names: tuple[str, str],
    *,
    sides: tuple[str, str] = ("shown", "member"),
    cut: bool = True,
) -> None:
    """Print passages, as JSON, with the differing words marked.

    Args:
        names: headings of the two columns; ``sides``: the keys of the two texts.
        cut: shorten long equal spans.
    """
    brackets = console.color_system is None or console.no_color
    one, other = sides
    rows = [
        (
            _apply_style(passage[one], "bold red", brackets, cut),
            _apply_style(passage[other], "bold green", brackets, cut),
        )
        for passage in passages
    ]
    if rows:
        _print_rows(console, rows, names)


def _print_rows(console: "Console", rows: Sequence[tuple["Text", "Text"]], names: tuple[str, str]) -> None:
    from rich.table import Table

    if console.width < NARROW:
        for row in rows:
            for name, text in zip(names, row, strict=True):
                console.print(f"{printable(name)}:", style="bold")
                console.print(text)
            console.print()
        return
    table = Table(show_lines=True, expand=True)
    for name in names:
        table.add_column(printable(name), ratio=1, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _apply_style(side: Mapping[str, Any], style: str, brackets: bool, cut: bool) -> "Text":
    from rich.text import Text

    line = Text()
    for part, marked in marked_parts(side):
        text = printable(part)
        if marked:
            line.append(f"[{text}]" if brackets else text, style=style)
        else:
            line.append(_shorten(text) if cut else text)
    return line


def _shorten(text: str) -> str:
    """Return an equal span without its middle, if it is long."""
    if len(text) <= 2 * _EDGE + 20:
        return text
    head, tail = text[:_EDGE].rsplit(" ", 1)[0], text[-_EDGE:].split(" ", 1)[-1]
    return f"{head} … {tail}"
