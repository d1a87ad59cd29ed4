"""Edits of what is around a text: markup, boilerplate, another page, an end that is cut off."""

import random
from html import escape

from shinglefold.testing.edits.passage import EditedPassage, picked
from shinglefold.testing.edits.wording import new_word

_INLINE = ("b", "i", "em", "span class='x'", "a href='/p?id=1'")


def marked_up(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Return an HTML page: inline tags in a share of the words, scripts, comments and styles between them."""
    passage = EditedPassage.of(text)
    pieces = [escape(piece) for piece in passage.pieces]
    chosen = picked(range(len(passage.words)), share, chance)
    for place in chosen:
        tag = chance.choice(_INLINE)
        word = passage.words[place]
        cut = chance.randrange(len(word) + 1)
        inner = f"{escape(word[:cut])}<{tag}>{escape(word[cut:])}</{tag.split()[0]}>"
        pieces[2 * place + 1] = inner
    noise = "<!-- counter --><script>var a = '<p>';</script><style>p { color: red }</style>"
    body = "".join(pieces).replace("\n", f"<br>{noise}")
    return (
        f"<!doctype html><html><head><title>page</title></head><body>{noise}<p>{body}</p></body></html>",
        len(chosen),
    )


def framed(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Put menus before and after a text, as many words as a share of its own, half and half."""
    gap = "" if language == "zh" else " "
    count = round(share * len(EditedPassage.of(text).words))
    menu = [new_word(chance, language) for _ in range(count)]
    half = count // 2
    return f"{gap.join(menu[:half])}\n{text}\n{gap.join(menu[half:])}", count


def truncated(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Cut a share of the words off at the end."""
    passage = EditedPassage.of(text)
    count = round(share * len(passage.words))
    kept = passage.pieces[: len(passage.pieces) - 2 * count]
    return "".join(kept), count


def joined(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Append another page, as many new words as a share of the text's own."""
    gap = "" if language == "zh" else " "
    count = round(share * len(EditedPassage.of(text).words))
    other = gap.join(new_word(chance, language) for _ in range(count))
    return f"{text}\n{other}", count
