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

    def text(self, words: Sequence[str]) -> str:
        """Return the text with these words in place of its own."""
        pieces = list(self.pieces)
        pieces[1::2] = words
        return "".join(pieces)


#: Takes a text, a share, a random generator and a language; returns the new text and how many words changed.
Edit = Callable[[str, float, random.Random, str], tuple[str, int]]


def picked(eligible: Sequence[int], share: float, chance: random.Random) -> list[int]:
    """Return a random share of the eligible positions, in order."""
    return sorted(chance.sample(eligible, round(share * len(eligible))))


def word_by_word(change: Callable[[str, random.Random, str], str]) -> Edit:
    """Return the edit that applies a change to a share of the words it affects.

    Args:
        change: takes a word, a random generator and a language; returns the new word, or the same word if it
            does not apply.
    """

    def edit(text: str, share: float, chance: random.Random, language: str) -> tuple[str, int]:
        passage = EditedPassage.of(text)
        words = list(passage.words)
        changed = {
            place: new for place, word in enumerate(words) if (new := change(word, chance, language)) != word
        }
        chosen = picked(list(changed), share, chance)
        for place in chosen:
            words[place] = changed[place]
        return passage.text(words), len(chosen)

    return edit


_HOMOGLYPHS = str.maketrans("аеорсухікјАВЕКМНОРСТХ", "aeopcyxikjABEKMHOPCTX")
_LATIN_HOMOGLYPHS = str.maketrans("aeopcyxijABEKMHOPCTX", "аеорсухіјАВЕКМНОРСТХ")
_APOSTROPHES = "'’ʼ`"
#: Letters that OCR reads as others.
_MISREAD = dict(zip((*"ншозб", "rn", *"loe日未己土人"), "ищ036m10c曰末已士入", strict=True))
_INVISIBLE = ("\u200b", "\u200c", "\u2060", "\ufeff")
_SOFT_HYPHEN = "\u00ad"


@word_by_word
def yo(word: str, chance: random.Random, language: str) -> str:
    """Write е for ё."""
    return word.replace("ё", "е").replace("Ё", "Е")


@word_by_word
def ghe(word: str, chance: random.Random, language: str) -> str:
    """Write г for ґ."""
    return word.replace("ґ", "г").replace("Ґ", "Г")


@word_by_word
def apostrophes(word: str, chance: random.Random, language: str) -> str:
    """Write another apostrophe."""
    for one in _APOSTROPHES:
        if one in word:
            return word.replace(one, chance.choice(_APOSTROPHES.replace(one, "")))
    return word


@word_by_word
def look_alikes(word: str, chance: random.Random, language: str) -> str:
    """Replace a letter by a homoglyph of the other alphabet."""
    table = _LATIN_HOMOGLYPHS if language == "en" else _HOMOGLYPHS
    places = [p for p, letter in enumerate(word) if letter.translate(table) != letter]
    # If all letters have homoglyphs, the word could belong to the other alphabet.
    if not places or len(places) == len(word):
        return word
    place = chance.choice(places)
    return word[:place] + word[place].translate(table) + word[place + 1 :]


@word_by_word
def invisible(word: str, chance: random.Random, language: str) -> str:
    """Insert a zero-width character."""
    return _insert(word, chance.choice(_INVISIBLE), chance)


@word_by_word
def soft_hyphens(word: str, chance: random.Random, language: str) -> str:
    """Insert a soft hyphen."""
    return _insert(word, _SOFT_HYPHEN, chance)


def _insert(word: str, by: str, chance: random.Random) -> str:
    if len(word) < 2:
        return f"{word}{by}"
    place = chance.randrange(1, len(word))
    return f"{word[:place]}{by}{word[place:]}"


@word_by_word
def traditional(word: str, chance: random.Random, language: str) -> str:
    """Write a Simplified character in its Traditional form."""
    return _traditional().get(word, word)


@cache
def _traditional() -> Mapping[str, str]:
    """Return a map from Simplified to Traditional; the first form in OpenCC's table."""
    lines = files("opencc").joinpath("dictionary", "STCharacters.txt").read_text("utf-8").splitlines()
    pairs = (line.split()[:2] for line in lines if line.strip())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


@word_by_word
def full_width(word: str, chance: random.Random, language: str) -> str:
    """Write ASCII in full-width characters."""
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in word)


@word_by_word
def misread(word: str, chance: random.Random, language: str) -> str:
    """Misread a letter, as OCR does."""
    possible = [(seen, read) for seen, read in _MISREAD.items() if seen in word]
    return word.replace(*chance.choice(possible), 1) if possible else word
