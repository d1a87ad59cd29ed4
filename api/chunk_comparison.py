"""Chunks of text beside each other: which resemble or contain each other, and which add facts."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise, repeat
from typing import NamedTuple

import numpy as np

from shinglefold.canon.canonicalizer import Canonicalizer
from shinglefold.canon.facts import Numbers, adds_numbers, single_numbers
from shinglefold.canon.written_numbers import LETTER, plain_text
from shinglefold.ingest import Fingerprinter
from shinglefold.model.values import Int64s, TokenBatch, Uint64s
from shinglefold.registry import language_class
from shinglefold.sketch import Texts, Words, alike_by_text, least_estimate
from shinglefold.sketch.candidates import Buckets
from shinglefold.sketch.shingles import batch_shingles

_NO_SHINGLES = np.zeros(0, np.uint64)
#: Chinese characters beside a name are no part of it.
_WORD = re.compile(rf"{LETTER}+")
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
        """The words that may be numbers, each with what may be said of it before, and its unit behind."""
        words, found = self.words, set(filter(_NUMERAL.search, self.distinct_words))
        return {tuple(words[max(at - 3, 0) : at + 4]) for at, word in enumerate(words) if word in found}

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
        new, missing = self.numerals - other.numerals, other.numerals - self.numerals
        if not new:
            return False
        if self.exchanges_dates(other):
            return True
        # Copies have most of their numbers in common, and parsing a whole text takes ten times as long.
        return adds_numbers(_numbers(new), _numbers(missing)) and adds_numbers(self.numbers, other.numbers)

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


def _names(text: str) -> Iterator[str]:
    """Yield the words with a capital letter that begin no sentence, or stand before another such word."""
    for match in _WORD.finditer(text):
        if _has_capital(match[0]):
            before = text[max(0, match.start() - 8) : match.start()].rstrip(_AROUND)
            if (before and before[-1] not in _ENDS) or _has_capital(text[match.end() + 1 : match.end() + 2]):
                yield match[0]


def _numbers(numerals: Iterable[Sequence[str]]) -> Numbers:
    """Return the numbers among runs of words."""
    return single_numbers("; ".join(map(" ".join, numerals)))


def _has_capital(word: str) -> bool:
    return not word.islower() and any(map(str.isupper, word))


class ComparedChunks:
    """Texts as sets of shingles, and how many shingles every two have in common."""

    def __init__(self, fingerprinter: Fingerprinter, contained: float) -> None:
        self._fingerprinter, self._contained = fingerprinter, contained
        scheme, self._canonicalizer = fingerprinter.scheme, fingerprinter.canonicalizer
        self._least = scheme.decision.min_similarity
        options = scheme.sketch
        self._widths = {"char": options.char_width, "word": options.word_width}
        self._possible = least_estimate(self._least, max(self._widths.values()), options)
        self._texts: list[ChunkText] = []
        #: The shingles of texts that others may be folded under, by their places, repeats included.
        self._shingles: dict[int, Uint64s] = {}
        #: The rows of these in the tables: how many shingles texts have, int64 (R,), and have in common with
        #: each earlier one, int64 (R, R).
        self._rows: dict[int, int] = {}
        self._sizes, self._common = np.zeros(0, np.int64), np.zeros((0, 0), np.int64)
        #: The texts that signatures of shingles can't decide about.
        self._doubtful: list[int] = []

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, texts: Sequence[str], shown: Iterable[int]) -> Iterator[tuple[int, list[int]]]:
        """Add texts, and yield each with the earlier ones that may resemble it or contain enough of it.

        Args:
            shown: the places of the texts to compare them with, in their order, besides each other.
        """
        first = len(self)
        batch = self._canonicalizer.hash_batch(texts)
        spans = list(pairwise(batch.offsets.tolist()))
        tokens = (batch.hashes[begin:end] for begin, end in spans)
        self._texts += map(ChunkText, texts, tokens, repeat(fact_words(self._canonicalizer)))
        width_of = {code: self._widths[self._canonicalizer.unit(code)] for code in set(batch.languages)}
        widths = [width_of[code] for code in batch.languages]
        made = _shingles(batch, widths)
        self._shingles = {place: self._shingles[place] for place in shown}
        known = len(self._shingles)
        self._shingles |= {at: made[begin:end] for at, (begin, end) in enumerate(spans, first)}
        places = list(self._shingles)
        self._rows = {place: row for row, place in enumerate(places)}
        sizes, common = self._sizes, self._common = _common(list(self._shingles.values()))
        contained = common >= self._contained * sizes[:, None]
        near = common >= self._possible * (sizes[:, None] + sizes[None, :] - common)
        near = (near | contained) & (common > 0)
        doubtful = near & ~contained
        rows = np.flatnonzero(doubtful.any(axis=0) | doubtful.any(axis=1)).tolist()
        self._doubtful = [places[row] for row in rows]
        earlier: list[list[int]] = [[] for _ in texts]
        for row, other in np.argwhere(near[known:]).tolist():
            earlier[row].append(places[other])
        return enumerate(earlier, first)

    def has_words(self, place: int) -> bool:
        """Return whether a text has anything to compare."""
        return bool(self._sizes[self._rows[place]])

    def resemblance(self, place: int, shown: int) -> float:
        """Return the share of common shingles of two texts; 1 if neither has one."""
        if not self.has_words(place):
            return 1.0
        row, other = self._rows[place], self._rows[shown]
        common = int(self._common[row, other])
        return common / int(self._sizes[row] + self._sizes[other] - common)

    def folds(self, place: int, shown: int) -> bool:
        """Return whether a text is to be folded under an earlier one."""
        text, other = self._texts[place], self._texts[shown]
        if text.text == other.text:
            return True
        row = self._rows[place]
        is_contained = self._common[row, self._rows[shown]] >= self._contained * self._sizes[row]
        if not is_contained and not self._alike(text, other):
            return False
        return not self._adds_facts(text, other)

    def _alike(self, text: ChunkText, other: ChunkText) -> bool:
        """Return whether two texts are near-duplicates by their words."""
        pair = [other, text]
        if any(one.written is None for one in pair):
            # One call for all texts of doubtful pairs.
            new = [one for one in map(self._texts.__getitem__, self._doubtful) if one.written is None]
            made = self._fingerprinter.written([one.text for one in new])
            for one, written in zip(new, made.bytes_of(), strict=True):
                one.written = written
        words = Words.packed([one.written or b"" for one in pair])
        offsets = np.cumsum([0, len(other.tokens), len(text.tokens)])
        texts = Texts(words, Words.of(np.concatenate((other.tokens, text.tokens)), offsets))
        kept, _ = alike_by_text(texts, np.array([0]), np.array([1]), self._least)
        return bool(kept[0])

    def _adds_facts(self, text: ChunkText, other: ChunkText) -> bool:
        """Return whether a text has a number or a name that the one shown lacks."""
        if text.adds_numbers(other) or text.adds_words(other):
            return True
        if not (names := text.new_names(other)):
            return False
        # Written otherwise, a name may still have the same canonical tokens.
        tokens = self._canonicalizer.hash_batch([" ".join(sorted(names))]).hashes
        return not other.distinct_tokens.issuperset(tokens.tolist())


def _shingles(batch: TokenBatch, widths: Sequence[int]) -> Uint64s:
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


def _common(shingles: Sequence[Uint64s]) -> tuple[Int64s, Int64s]:
    """Return the numbers of distinct shingles of texts, int64 (D,), and of common ones, int64 (D, D).

    Those in common with a later text are 0.
    """
    count = len(shingles)
    owners = np.repeat(np.arange(count, dtype=np.uint64), list(map(len, shingles)))
    # The number of the text takes the place of the lowest bits, so that one sort finds the owners of each.
    bits = max(1, (count - 1).bit_length())
    keys = (np.concatenate([*shingles, _NO_SHINGLES]) >> np.uint64(bits) << np.uint64(bits)) | owners
    # By sorting, as ``np.unique`` hashes, which takes ten times as long.
    keys.sort()
    keys = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
    sizes = np.bincount((keys & np.uint64((1 << bits) - 1)).view(np.int64), minlength=count)
    common = np.zeros(count * count, np.int64)
    for earlier, later in Buckets.of_sorted(keys, bits).pairs():
        common += np.bincount(later * count + earlier, minlength=count * count)
    return sizes, common.reshape(count, count)
