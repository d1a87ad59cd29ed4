"""Two texts and their passages as one self-contained HTML file."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shinglefold.passages.alignment import Passage, Span

#: Hues of the passages, in turn.
_HUES = (48, 150, 205, 280, 340, 15)
_STYLE = """
:root{color-scheme:light dark;--ink:#1d2733;--soft:#5d6b7a;--paper:#fff;--line:#dde3ea;--light:88%;--full:85%;
--differs:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e8edf3;--soft:#9aa8b6;--paper:#14191f;--line:#2c3640;
--light:24%;--full:45%;--differs:#ff9d94}}
*{box-sizing:border-box}
body{font:16px/1.55 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:0;height:100vh;
display:flex;flex-direction:column}
header{padding:1.2rem 1.5rem .8rem;border-bottom:1px solid var(--line)}
h1{font-size:1.3rem;margin:0 0 .2rem}header p{color:var(--soft);margin:0}
main{flex:1;min-height:0;display:grid;grid-template-columns:1fr 1fr}
section{overflow:auto;padding:1rem 1.5rem 50vh;min-width:0}section+section{border-left:1px solid var(--line)}
h2{font-size:1rem;margin:0 0 .2rem;overflow-wrap:anywhere}
h2+p{color:var(--soft);margin:0 0 1rem;font-size:.9rem}
.text{white-space:pre-wrap;overflow-wrap:anywhere}
a{color:inherit;text-decoration:none;border-radius:3px;padding:.05em 0;scroll-margin:30vh;
background:hsl(var(--hue) var(--full) var(--light))}
a:hover,a:target{outline:2px solid hsl(var(--hue) 70% 50%)}
a sup{font-size:.7em;color:var(--soft);padding:0 .2em;user-select:none}
u{color:var(--differs);text-decoration-thickness:2px;text-underline-offset:3px}
@media(max-width:700px){body{height:auto;display:block}main{grid-template-columns:1fr}
section{max-height:75vh;padding-bottom:1rem}section+section{border-left:0;border-top:1px solid var(--line)}}
"""


class Shown(NamedTuple):
    """A text with its name, its number of words, and the share of them that the other text has."""

    name: str
    text: str
    words: int
    share: float


class TextRange(NamedTuple):
    """A range of a text. ``passage``: its passage, −1 for none; ``differs``: the other text lacks it."""

    start: int
    end: int
    passage: int
    differs: bool


def page(texts: Sequence[Shown], passages: Sequence[Passage], width: int) -> str:
    """Return two texts side by side as HTML, their passages coloured and linked; the texts are escaped.

    Args:
        width: shares count words in runs of at least this many equal words.
    """
    a, b = texts
    sides = (
        _side(("a", "b"), a, width, [one.a for one in passages], [one.marks_a for one in passages]),
        _side(("b", "a"), b, width, [one.b for one in passages], [one.marks_b for one in passages]),
    )
    title = f"Passages of {escape(a.name)} and {escape(b.name)}"
    count = "1 passage" if len(passages) == 1 else f"{len(passages):,} passages"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<header><h1>{title}</h1><p>{count} in common. A click leads to the other side; underlined words "
        f"are on one side only.</p></header><main>{''.join(sides)}</main></html>\n"
    )


def _side(
    names: tuple[str, str], shown: Shown, width: int, spans: Sequence[Span], marks: Sequence[Sequence[Span]]
) -> str:
    own, other = names
    parts, begun = [], set()
    for part in ranges(len(shown.text), spans, marks):
        text = escape(shown.text[part.start : part.end])
        if part.passage < 0:
            parts.append(text)
            continue
        number = part.passage + 1
        text = f"<u>{text}</u>" if part.differs else text
        anchor = "" if number in begun else f' id="{own}{number}"'
        label = "" if number in begun else f"<sup>{number}</sup>"
        begun.add(number)
        hue = _HUES[part.passage % len(_HUES)]
        parts.append(f'<a href="#{other}{number}"{anchor} style="--hue:{hue}">{label}{text}</a>')
    caption = f"{shown.share:.1%} of {shown.words:,} words stand {width} in a row in the other text, too"
    return (
        f'<section lang=""><h2>{escape(shown.name)}</h2><p>{caption}</p>'
        f'<div class="text">{"".join(parts)}</div></section>'
    )


def ranges(length: int, spans: Sequence[Span], marks: Sequence[Sequence[Span]]) -> Iterator[TextRange]:
    """Yield the ranges of a text in order, cut where passages, and differences in them, begin and end.

    If passages overlap, a character belongs to the passage that began last.
    """
    passages, differ = np.full(length, -1), np.zeros(length, np.bool_)
    for number in sorted(range(len(spans)), key=lambda one: spans[one].start):
        whole = slice(*spans[number])
        passages[whole], differ[whole] = number, False
        for mark in marks[number]:
            differ[slice(*mark)] = True
    cuts = np.flatnonzero(np.diff(2 * passages + differ)) + 1
    for start, end in pairwise(sorted({0, *cuts.tolist(), length})):
        yield TextRange(start, end, int(passages[start]), bool(differ[start]))
