"""Edits of words (replaced, deleted, inflected …) and of pages (markup, menus, a cut-off end)."""

import random
from collections.abc import Callable
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from shinglefold.testing.edits.spelling import EditedPassage, picked, word_by_word

_SYLLABLES = {
    "ru": "ба ве го ду жи зо ка ле ми но пу ра си то фи ха це шу",
    "uk": "ба ве го ду жи зі ка ле ми но пу ра си то фі ха це щу",
    "en": "ba ve go du ji zo ka le mi no pu ra si to fi ha ce shu",
}
#: Rare characters, so a replaced one does not occur elsewhere by chance.
_RARE_HAN = (0x8C00, 0x9300)


def new_word(chance: random.Random, language: str) -> str:
    """Return a made-up word of three to five syllables, or a rare character."""
    if language == "zh":
        return chr(chance.randrange(*_RARE_HAN))
    return "".join(chance.choices(_SYLLABLES[language].split(), k=chance.randrange(3, 6)))


@word_by_word
def replaced(word: str, chance: random.Random, language: str) -> str:
    """Replace a word by a new one."""
    return new_word(chance, language)


def inserted(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Insert new words before a share of all words."""
    gap = "" if language == "zh" else " "
    passage = EditedPassage.of(text)
    words = list(passage.words)
    chosen = picked(range(len(words)), share, chance)
    for place in chosen:
        words[place] = f"{new_word(chance, language)}{gap}{words[place]}"
    return passage.text(words), len(chosen)


@word_by_word
def deleted(word: str, chance: random.Random, language: str) -> str:
    """Delete a word."""
    return ""


def swapped(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Swap a share of all words with their neighbours."""
    passage = EditedPassage.of(text)
    words = list(passage.words)
    chosen = picked(range(0, len(words) - 1, 2), share, chance)
    for place in chosen:
        words[place], words[place + 1] = words[place + 1], words[place]
    return passage.text(words), 2 * len(chosen)


@word_by_word
def function_words_changed(word: str, chance: random.Random, language: str) -> str:
    """Replace a function word by another one."""
    known = function_words(language)
    others = [other for other in known if other != word.lower()]
    return chance.choice(others) if word.lower() in known else word


@cache
def function_words(language: str) -> tuple[str, ...]:
    """Return the commonest function words of a language."""
    text = files("shinglefold.testing.edits").joinpath(f"function_words_{language}.txt").read_text("utf-8")
    return tuple(text.split())


@word_by_word
def inflected(word: str, chance: random.Random, language: str) -> str:
    """Replace a noun by another form of it; Chinese texts stay unchanged.

    Russian and Ukrainian forms come from pymorphy3. In English, words that end like nouns change their
    number.
    """
    others = [form for form in _forms(language)(word.lower()) if form != word.lower()]
    return chance.choice(others) if others else word


@cache
def _forms(language: str) -> Callable[[str], tuple[str, ...]]:
    if language == "en":
        return _english
    if language == "zh":
        return lambda _: ()
    import pymorphy3

    analyzer: Any = pymorphy3.MorphAnalyzer(lang=language)

    @cache
    def forms(word: str) -> tuple[str, ...]:
        parse = analyzer.parse(word)[0]
        if "NOUN" not in parse.tag.grammemes or not analyzer.word_is_known(word):
            return ()
        return tuple(dict.fromkeys(one.word for one in parse.lexeme))

    return forms


def _english(word: str) -> tuple[str, ...]:
    if len(word) < 4 or not word.isalpha() or word in function_words("en"):
        return ()
    endings = ("tion", "ment", "ness", "ity", "er", "or", "age", "ure", "ist", "ship")
    if word.endswith(endings):
        return (f"{word[:-1]}ies" if word.endswith("y") else f"{word}s",)
    one = f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")
    return (one,) if one != word and one.endswith(endings) else ()


_INLINE = ("b", "i", "em", "span class='x'", "a href='/p?id=1'")


def marked_up(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Return an HTML page with inline tags in a share of the words, and with scripts, comments and styles."""
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
    """Add menus before and after a text: together a share of its number of words, half on either side."""
    gap = "" if language == "zh" else " "
    count = round(share * len(EditedPassage.of(text).words))
    menu = [new_word(chance, language) for _ in range(count)]
    half = count // 2
    return f"{gap.join(menu[:half])}\n{text}\n{gap.join(menu[half:])}", count


def truncated(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Cut off a share of the words at the end."""
    passage = EditedPassage.of(text)
    count = round(share * len(passage.words))
    kept = passage.pieces[: len(passage.pieces) - 2 * count]
    return "".join(kept), count


def joined(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Append another page, with a share of the text's number of words."""
    gap = "" if language == "zh" else " "
    count = round(share * len(EditedPassage.of(text).words))
    other = gap.join(new_word(chance, language) for _ in range(count))
    return f"{text}\n{other}", count
