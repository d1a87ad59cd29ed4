"""A chunk of text, with its numbers and names: a chunk that has others than a better one is not its copy."""

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

from shinglefold.canon.facts import Numbers, adds_numbers, single_numbers
from shinglefold.canon.written_numbers import plain_text
from shinglefold.model.values import Uint64s

_WORD = re.compile(r"[^\W\d_]+")
#: What a number may be written with.
_NUMERAL = re.compile(r"[\d²³¹IVXІХ¼-¾⅐-⅞①-⑳❶-➓〇零一二三四五六七八九十百千万两]")
#: What stands between the end of a sentence and its first word, and ends of sentences and lines.
_AROUND, _ENDS = " \t\"'«“„(*#>-—–", ".!?:;…\n。！？"


class ChunkText:
    """A text, and what is computed of it where a pair needs it."""

    def __init__(self, text: str, tokens: Uint64s) -> None:
        self.text, self.tokens = text, tokens
        #: The words as written, once a pair needed them.
        self.written: bytes | None = None

    @cached_property
    def words(self) -> list[str]:
        """The parts between spaces."""
        return self.text.split()

    @cached_property
    def distinct_words(self) -> set[str]:
        """The different ones of ``words``."""
        return set(self.words)

    @cached_property
    def numerals(self) -> set[tuple[str, ...]]:
        """The words that may be numbers, each with those that may be its unit."""
        words = self.words
        found = enumerate(map(_is_numeral, words))
        return {tuple(words[max(at - 1, 0) : at + 4]) for at, matches in found if matches}

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers with their units."""
        return single_numbers(self.text)

    @cached_property
    def plain(self) -> str:
        """The text in compatibility form; an invisible character would cut a name in two."""
        return plain_text(self.text)

    def adds_numbers(self, other: "ChunkText") -> bool:
        """Return whether the text has a number that another one lacks."""
        # A text that has all of another one has its numbers, too; parsing them takes fifty times as long.
        return not self.numerals <= other.numerals and adds_numbers(self.numbers, other.numbers)

    def new_names(self, other: "ChunkText") -> set[str]:
        """Return the words with a capital letter that begin no sentence, and that another text lacks."""
        words = self.distinct_words - other.distinct_words
        if all(map(str.islower, words)):
            return set()
        new = set(filter(_has_capital, _WORD.findall(plain_text(" ".join(words)))))
        new = new.difference(_WORD.findall(other.plain)) if new else new
        return new.intersection(_names(self.plain)) if new else new


def _names(text: str) -> Iterator[str]:
    """Yield the words with a capital letter that begin no sentence."""
    for match in _WORD.finditer(text):
        if _has_capital(match[0]):
            before = text[max(0, match.start() - 8) : match.start()].rstrip(_AROUND)
            if before and before[-1] not in _ENDS:
                yield match[0]


@lru_cache(maxsize=1 << 14)
def _is_numeral(word: str) -> bool:
    return _NUMERAL.search(word) is not None


def _has_capital(word: str) -> bool:
    return not word.islower() and any(map(str.isupper, word))
