"""Edits of what a text says: words replaced, inserted, deleted, swapped, inflected."""

import random
from collections.abc import Callable
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from shinglefold.testing.edits.spelling import EditedPassage, picked, rewritten

_SYLLABLES = {
    "ru": "ба ве го ду жи зо ка ле ми но пу ра си то фи ха це шу",
    "uk": "ба ве го ду жи зі ка ле ми но пу ра си то фі ха це щу",
    "en": "ba ve go du ji zo ka le mi no pu ra si to fi ha ce shu",
}
#: Beyond the common characters, so that a replaced one stands nowhere else by chance.
_RARE_HAN = (0x8C00, 0x9300)


def new_word(chance: random.Random, language: str) -> str:
    """Return a word that no text has: of three to five syllables, or a rare character."""
    if language == "zh":
        return chr(chance.randrange(*_RARE_HAN))
    return "".join(chance.choices(_SYLLABLES[language].split(), k=chance.randrange(3, 6)))


def replaced(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Put new words in the place of a share of all words."""
    return rewritten(EditedPassage.of(text), share, chance, lambda _: new_word(chance, language))


def inserted(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Insert new words, as many as a share of all words is."""
    gap = "" if language == "zh" else " "
    passage = EditedPassage.of(text)
    words = list(passage.words)
    chosen = picked(range(len(words)), share, chance)
    for place in chosen:
        words[place] = f"{new_word(chance, language)}{gap}{words[place]}"
    return passage.text(words), len(chosen)


def deleted(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Delete a share of all words."""
    return rewritten(EditedPassage.of(text), share, chance, lambda _: "")


def swapped(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Let a share of all words change places with their neighbours."""
    passage = EditedPassage.of(text)
    words = list(passage.words)
    chosen = picked(range(0, len(words) - 1, 2), share, chance)
    for place in chosen:
        words[place], words[place + 1] = words[place + 1], words[place]
    return passage.text(words), 2 * len(chosen)


def function_words_changed(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Put other function words in the place of a share of them."""
    known = function_words(language)

    def change(word: str) -> str:
        others = [other for other in known if other != word.lower()]
        return chance.choice(others) if word.lower() in known else word

    return rewritten(EditedPassage.of(text), share, chance, change)


@cache
def function_words(language: str) -> tuple[str, ...]:
    """Return the function words that are exchanged in a language, the commonest ones."""
    text = files("shinglefold.testing.edits").joinpath(f"function_words_{language}.txt").read_text("utf-8")
    return tuple(text.split())


def inflected(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Put a share of the nouns into another form; Chinese has none, and stays as it is.

    The forms are of pymorphy3 in Russian and Ukrainian; in English the number of what ends like a noun
    changes.
    """
    forms = _forms(language)

    def change(word: str) -> str:
        others = [form for form in forms(word.lower()) if form != word.lower()]
        return chance.choice(others) if others else word

    return rewritten(EditedPassage.of(text), share, chance, change)


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
