"""A chunk of text, with its facts: a chunk that has others than a better one is not its copy."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shinglefold.canon.canonicalizer import Canonicalizer
from shinglefold.canon.facts import Numbers, adds_numbers, single_numbers
from shinglefold.canon.written_numbers import plain_text
from shinglefold.model.values import TokenBatch, Uint64s
from shinglefold.registry import language_class
from shinglefold.sketch.shingles import batch_shingles

_WORD = re.compile(r"[^\W\d_]+")
#: What a number may be written with.
_NUMERAL = re.compile(r"[\d²³¹IVXІХ¼-¾⅐-⅞①-⑳❶-➓〇零一二三四五六七八九十百千万两]")
_DATE = re.compile(r"(?<!\d)(\d{1,4})([-./])(\d{1,4})\2(\d{1,4})(?!\d)")
#: What stands between the end of a sentence and its first word, and ends of sentences and lines.
_AROUND, _ENDS = " \t\"'«“„(*#>-—–", ".!?;…\n。！？"


class FactWords(NamedTuple):
    """The canonical tokens of words that are facts: of numbers and truth values, and of negations."""

    values: frozenset[int]
    negations: frozenset[int]


@lru_cache(maxsize=8)
def fact_words(canonicalizer: Canonicalizer) -> FactWords:
    """Return those of the languages of a canonicalizer."""
    languages = [language_class(ref.code) for ref in canonicalizer.references]
    given = [[one.values for one in languages], [one.negations for one in languages]]
    return FactWords(*(frozenset(canonicalizer.hash_batch(texts).hashes.tolist()) for texts in given))


class _Said(NamedTuple):
    """The tokens that stand only behind a negation, and those that never do."""

    only_negated: set[int]
    only_plain: set[int]


class ChunkText:
    """A text, and what is computed of it where a pair needs it."""

    def __init__(self, text: str, tokens: Uint64s, facts: FactWords) -> None:
        self.text, self.tokens, self._facts = text, tokens, facts
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
    def dates(self) -> set[tuple[int, int, int]]:
        """The dates in digits, as their parts; releases such as 1.2.3 look like them."""
        return {(int(first), int(second), int(third)) for first, _, second, third in _DATE.findall(self.text)}

    @cached_property
    def distinct_tokens(self) -> set[int]:
        """The different canonical tokens."""
        return set(self.tokens.tolist())

    @cached_property
    def plain(self) -> str:
        """The text in compatibility form; an invisible character would cut a name in two."""
        return plain_text(self.text)

    def adds_numbers(self, other: "ChunkText") -> bool:
        """Return whether the text has a number that another one lacks."""
        # A text that has all of another one has its numbers, too; parsing them takes fifty times as long.
        if self.numerals <= other.numerals:
            return False
        return self.exchanges_dates(other) or adds_numbers(self.numbers, other.numbers)

    def exchanges_dates(self, other: "ChunkText") -> bool:
        """Return whether a date has the parts of one in another text, but day and month exchanged."""
        new = [date for date in self.dates if other.dates.isdisjoint((date, date[::-1]))]
        known = {tuple(sorted(date)) for date in other.dates} if new else set()
        return any(tuple(sorted(date)) in known for date in new)

    def adds_words(self, other: "ChunkText") -> bool:
        """Return whether the text has a number in words that another one lacks, or says its opposite."""
        if (self.distinct_tokens & self._facts.values) - other.distinct_tokens:
            return True
        ours, theirs = self.said, other.said
        return bool(ours.only_negated & theirs.only_plain or theirs.only_negated & ours.only_plain)

    @cached_property
    def said(self) -> _Said:
        """Which tokens are negated."""
        negations = self._facts.negations
        if negations.isdisjoint(self.distinct_tokens):
            return _Said(set(), self.distinct_tokens)
        places = list(pairwise([0, *self.tokens.tolist()]))
        negated = {token for before, token in places if before in negations}
        plain = {token for before, token in places if before not in negations}
        return _Said(negated - plain, plain - negated)

    def new_names(self, other: "ChunkText") -> set[str]:
        """Return the names in the text, by their words with a capital letter, that another text lacks."""
        words = self.distinct_words - other.distinct_words
        if all(map(str.islower, words)):
            return set()
        new = set(filter(_has_capital, _WORD.findall(plain_text(" ".join(words)))))
        new = new.difference(_WORD.findall(other.plain)) if new else new
        return new.intersection(_names(self.plain)) if new else new


def chunk_shingles(batch: TokenBatch, widths: Sequence[int]) -> Uint64s:
    """Return a shingle for each token, repeats included.

    The tokens of a text that has too few for a shingle are one.
    """
    counts = np.diff(batch.offsets)
    found = batch.hashes
    for width in set(widths):
        own = np.repeat(np.array(widths) == width, counts)
        found = np.where(own, batch_shingles(batch.hashes, batch.offsets, width), found)
    for place in np.flatnonzero((counts > 0) & (counts < np.array(widths, np.int64))).tolist():
        begin, end = batch.offsets[place : place + 2]
        found[begin:end] = batch.hashes[begin:end].sum()
    return found


def _names(text: str) -> Iterator[str]:
    """Yield the words with a capital letter that begin no sentence, or stand before another such word."""
    for match in _WORD.finditer(text):
        if _has_capital(match[0]):
            before = text[max(0, match.start() - 8) : match.start()].rstrip(_AROUND)
            if (before and before[-1] not in _ENDS) or _has_capital(text[match.end() + 1 : match.end() + 2]):
                yield match[0]


@lru_cache(maxsize=1 << 14)
def _is_numeral(word: str) -> bool:
    return _NUMERAL.search(word) is not None


def _has_capital(word: str) -> bool:
    return not word.islower() and any(map(str.isupper, word))
