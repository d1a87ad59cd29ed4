"""Edits of spelling: variants of letters, homoglyphs, invisible characters, misread letters."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

HAN = "\u3400-\u9fff"
_WORD = re.compile(rf"([{HAN}]|[^\W_{HAN}]+(?:['’ʼ`][^\W_{HAN}]+)*)")


@dataclass(frozen=True, slots=True)
class EditedPassage:
    """A text as ``pieces``: words at odd positions, the text between them at even ones."""

    pieces: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "EditedPassage":
        """Split a text into words; each Han character is a word."""
        return cls(tuple(_WORD.split(text)))

    @property
    def words(self) -> tuple[str, ...]:
        """The words in order."""
        return self.pieces[1::2]

    def text(self, words: Sequence[str] | None = None) -> str:
        """Return the text, optionally with its words replaced by others."""
        pieces = list(self.pieces)
        if words is not None:
            pieces[1::2] = words
        return "".join(pieces)


def picked(eligible: Sequence[int], share: float, chance: random.Random) -> list[int]:
    """Return a random share of the eligible positions, in order."""
    return sorted(chance.sample(eligible, round(share * len(eligible))))


def rewritten(
    passage: EditedPassage,
    share: float,
    chance: random.Random,
    change: Callable[[str], str],
) -> tuple[str, int]:
    """Apply a change to a share of the words it affects; return the text and how many changed.

    Args:
        change: returns the new word, or the same word if it does not apply.
    """
    words = list(passage.words)
    changed = {place: new for place, word in enumerate(words) if (new := change(word)) != word}
    chosen = picked(list(changed), share, chance)
    for place in chosen:
        words[place] = changed[place]
    return passage.text(words), len(chosen)


_HOMOGLYPHS = str.maketrans("аеорсухікјАВЕКМНОРСТХ", "aeopcyxikjABEKMHOPCTX")
_LATIN_HOMOGLYPHS = str.maketrans("aeopcyxijABEKMHOPCTX", "аеорсухіјАВЕКМНОРСТХ")
_APOSTROPHES = "'’ʼ`"
#: Pairs of letters that OCR confuses.
_MISREAD = (
    "н и",
    "ш щ",
    "о 0",
    "з 3",
    "б 6",
    "rn m",
    "l 1",
    "o 0",
    "e c",
    "日 曰",
    "未 末",
    "己 已",
    "土 士",
    "人 入",
)
_INVISIBLE = ("\u200b", "\u200c", "\u2060", "\ufeff")
_SOFT_HYPHEN = "\u00ad"


def yo(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Write е for ё in a share of the words that have one."""
    return rewritten(
        EditedPassage.of(text), share, chance, lambda word: word.replace("ё", "е").replace("Ё", "Е")
    )


def ghe(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Write г for ґ in a share of the words that have one."""
    return rewritten(
        EditedPassage.of(text), share, chance, lambda word: word.replace("ґ", "г").replace("Ґ", "Г")
    )


def apostrophes(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Write another apostrophe in a share of the words that have one."""

    def change(word: str) -> str:
        for one in _APOSTROPHES:
            if one in word:
                return word.replace(one, chance.choice(_APOSTROPHES.replace(one, "")))
        return word

    return rewritten(EditedPassage.of(text), share, chance, change)


def look_alikes(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Replace a letter by a homoglyph of the other alphabet in a share of the words that have one."""
    table = _LATIN_HOMOGLYPHS if language == "en" else _HOMOGLYPHS

    def change(word: str) -> str:
        places = [p for p, letter in enumerate(word) if letter.translate(table) != letter]
        # If all letters have homoglyphs, the word could belong to the other alphabet.
        if not places or len(places) == len(word):
            return word
        place = chance.choice(places)
        return word[:place] + word[place].translate(table) + word[place + 1 :]

    return rewritten(EditedPassage.of(text), share, chance, change)


def invisible(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Insert a zero-width character into a share of the words."""
    return rewritten(
        EditedPassage.of(text), share, chance, lambda word: _insert(word, chance.choice(_INVISIBLE), chance)
    )


def soft_hyphens(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Insert a soft hyphen into a share of the words."""
    return rewritten(EditedPassage.of(text), share, chance, lambda word: _insert(word, _SOFT_HYPHEN, chance))


def _insert(word: str, by: str, chance: random.Random) -> str:
    if len(word) < 2:
        return f"{word}{by}"
    place = chance.randrange(1, len(word))
    return f"{word[:place]}{by}{word[place:]}"


def traditional(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Write a share of the Simplified characters in their Traditional form."""
    table = _traditional()
    return rewritten(EditedPassage.of(text), share, chance, lambda word: table.get(word, word))


@cache
def _traditional() -> Mapping[str, str]:
    """Return a map from Simplified to Traditional; the first form in OpenCC's table."""
    lines = files("opencc").joinpath("dictionary", "STCharacters.txt").read_text("utf-8").splitlines()
    pairs = (line.split()[:2] for line in lines if line.strip())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def full_width(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Write a share of the words of ASCII in full-width characters."""

    def change(word: str) -> str:
        return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in word)

    return rewritten(EditedPassage.of(text), share, chance, change)


def misread(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
    """Misread a letter, as OCR does, in a share of the words that have a confusable one."""
    pairs = [pair.split() for pair in _MISREAD]

    def change(word: str) -> str:
        possible = [(a, b) for a, b in pairs if a in word]
        if not possible:
            return word
        seen, read = chance.choice(possible)
        return word.replace(seen, read, 1)

    return rewritten(EditedPassage.of(text), share, chance, change)
