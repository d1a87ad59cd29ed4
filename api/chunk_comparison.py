"""Chunks of text beside each other: which resemble or contain each other, and which add facts."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise, repeat
from typing import NamedTuple

import numpy as np

from shinglefold.canon.canonicalizer import Canonicalizer
from shinglefold.canon.facts import Numbers, single_numbers
from shinglefold.canon.written_numbers import CODES, COMPARING, LETTER, SCALES, SQUARES, plain_text
from shinglefold.ingest import Fingerprinter
from shinglefold.model.values import Int64s, TokenBatch, Uint64s
from shinglefold.registry import language_class
from shinglefold.sketch.b_bit_minhash import least_estimate
from shinglefold.sketch.candidates import Buckets
from shinglefold.sketch.shingles import batch_shingles
from shinglefold.sketch.verification import LONGEST, least_shared, shared_tokens, similarity

_NO_SHINGLES = np.zeros(0, np.uint64)
#: Chinese characters beside a name are no part of it.
_WORD = re.compile(rf"{LETTER}+")
_ROMAN, _HAN = "IVXІХ", "第〇零一二三四五六七八九十百千万两"
#: The digits one by one, and all characters that take four bytes: with ``\d`` a search takes twice as long.
_CHARACTERS = np.arange(1 << 16, dtype="<u2").tobytes().decode("utf-16-le", "surrogatepass")
_DIGITS = "".join(re.findall(r"\d", _CHARACTERS)) + "²³¹¼-¾⅐-⅞①-⑳❶-➓\U00010000-\U0010ffff"
_NUMERALS = _DIGITS + _ROMAN + _HAN
#: Numbers so near to each other that they may be one. A Roman or Chinese digit alone is none.
_NUMERAL = re.compile(
    rf"[{_NUMERALS}](?:(?<=[{_ROMAN}])[{_ROMAN}]|(?<=[{_HAN}])[{_HAN}]|(?<![{_ROMAN}{_HAN}]))"
    rf"(?:[^{_NUMERALS}]{{0,3}}[{_NUMERALS}])*"
)
#: Words that may stand between those that compare and the number: "more than about 5" is more than 5.
_ABOUT = (
    r"about|around|approximately|approx\.|roughly|some|"
    "около|примерно|приблизительно|близько|приблизно|орієнтовно"
)
_HEDGE = re.compile(rf"(?:\b(?:{_ABOUT})\s*|大?约)(?=[^\w\s]?\d)", re.IGNORECASE)
#: What is said of a number before it: the words that compare, the one before these, a hedge, and a currency;
#: and its unit.
_SAID = re.compile(
    rf"\s\S++(?:\s+(?:{COMPARING}))*+(?:\s+(?:{_ABOUT}))?+\s*+(?:(?:{'|'.join(CODES)}):?\s)?[^\w\s]*+\s*+\w*+$",
    re.IGNORECASE,
)
_UNIT = re.compile(
    rf"(?:\W{{0,3}}(?:{'|'.join([*SCALES, *SQUARES])})\w*)*\W*\w*(?:\W*/\W*\w*|\W)?", re.IGNORECASE
)
#: Digits without zeros before them.
_RUN = re.compile(r"[1-9]\d*|0(?!\d)")
#: How many characters these take at most.
_BEFORE, _BEHIND = 24, 40
_DATE = re.compile(r"(?<!\d)(\d{1,4})([-./])(\d{1,4})\2(\d{1,4})(?!\d)")
_COMPARING, _UNEQUAL = ("<", ">", "≤", "≥", "!=", "≠"), {"!=", "≠"}
_LETTER = re.compile(r"\W{0,2}((?:[A-Z]|Rh)(?:[+#]+|[-−])?)\W{0,2}")
#: What stands between the end of a sentence and its first word, and ends of sentences and lines.
_AROUND, _ENDS = " \t\"'«“„(*#>-—–", ".!?;…\n。！？"


#: Where a number may be: where the text begins that may be said of it, the number, its end, that of its unit.
_Place = tuple[int, int, int, int]


class FactWords(NamedTuple):
    """The canonical tokens of words that are facts, and of those between a negation and what it negates."""

    values: frozenset[int]
    negations: frozenset[int]
    articles: frozenset[int]


@lru_cache(maxsize=8)
def fact_words(canonicalizer: Canonicalizer) -> FactWords:
    """Return those of the languages of a canonicalizer."""
    languages = [language_class(ref.code) for ref in canonicalizer.references]
    given = [[getattr(one, name) for one in languages] for name in FactWords._fields]
    return FactWords(*(frozenset(canonicalizer.hash_batch(texts).hashes.tolist()) for texts in given))


class ChunkText:
    """A text, and what is computed of it where a pair needs it."""

    def __init__(self, text: str, tokens: Uint64s, facts: FactWords) -> None:
        # As if it were a sentence: a number at an edge is no part of a larger one.
        self.text, self.tokens, self._facts = f" . {text} .", tokens, facts
        #: The words as written, once a pair needed them.
        self.written: list[int] | None = None

    @cached_property
    def capitalized(self) -> set[str]:
        """The different parts between spaces that are not in small letters."""
        return {word for word in self.text.split() if not word.islower()}

    @cached_property
    def numerals(self) -> list[_Place]:
        """Where numbers may be."""
        found, at = [], 0
        places = [match.span() for match in _NUMERAL.finditer(self.text)]
        for (begin, end), (following, _) in pairwise([*places, (len(self.text), 0)]):
            found.append((max(at, begin - _BEFORE), begin, end, min(end + _BEHIND, following)))
            at = end
        return found

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers with their units."""
        return single_numbers(self.parts(self.numerals))

    def numerals_beyond(self, other: "ChunkText") -> list[_Place]:
        """Return where numbers are that another text lacks."""
        known = other.text
        new = [one for one in self.numerals if self.text[one[0] : one[3]] not in known]
        # The words around it may be others.
        return [one for one in new if self.text[slice(*self._measured(*one))] not in known]

    def _measured(self, start: int, begin: int, end: int, stop: int) -> tuple[int, int]:
        """Return where what counts of the text around a number begins and ends."""
        said, unit = _SAID.search(self.text, start, begin), _UNIT.match(self.text, end, stop)
        return said.start() if said else start, unit.end() if unit else stop

    def sides(self, one: _Place) -> tuple[str, str]:
        """Return a number with what is said before it, and with its unit."""
        said, unit = self._measured(*one)
        return self.text[said : one[2]], self.text[one[1] : unit]

    def unattached(self, numerals: Iterable[_Place], other: "ChunkText") -> list[_Place]:
        """Return where numbers are that another text has with neither what is before nor what is behind."""
        known = {side for one in other.numerals for side in other.sides(one)}
        return [one for one in numerals if known.isdisjoint(self.sides(one))]

    def runs(self, numerals: Iterable[_Place]) -> list[str]:
        """Return the digits of numbers in their order, but for dates, which are written in several orders."""
        return _RUN.findall(_DATE.sub("", "; ".join([self.text[begin:end] for _, begin, end, _ in numerals])))

    def parts(self, numerals: Iterable[_Place]) -> str:
        """Return parts of the text, joined where they overlap."""
        found, at = [], 0
        for begin, _, _, end in numerals:
            found += [self.text[at:end]] if begin < at else ["; ", self.text[begin:end]]
            at = end
        return _HEDGE.sub("", " ".join("".join(found).split()))

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
        if not (places := self.numerals_beyond(other)):
            return False
        new = self.parts(places)
        if (dates := _dates(new)) and _exchanges(dates, _dates(other.text)):
            return True
        # Copies have most of their numbers in common, and parsing all takes longer.
        if not any(found := single_numbers(new)):
            return False
        others = other.numerals_beyond(self)
        missing = single_numbers(other.parts(others))
        if _adds_numbers(found, missing) and _adds_numbers(found, other.numbers):
            return True
        # Rows that were moved keep what is beside their numbers.
        return _in_another_order(self.runs(places), other.runs(others)) and _in_another_order(
            self.runs(self.unattached(places, other)), other.runs(other.unattached(others, self))
        )

    @cached_property
    def negated(self) -> set[int]:
        """The tokens that stand behind a negation, and its articles."""
        tokens, found = self.tokens, set()
        for one in self._facts.negations & self.distinct_tokens:
            for place in np.flatnonzero(tokens == one).tolist():
                following = map(tokens.item, range(place + 1, len(tokens)))
                found.add(next((token for token in following if token not in self._facts.articles), 0))
        return found

    def negates(self, other: "ChunkText") -> bool:
        """Return whether the text only negates what another one never does."""
        new = (self.negated - other.negated) & other.distinct_tokens
        if not new:
            return False
        places = pairwise(
            [0, *(token for token in self.tokens.tolist() if token not in self._facts.articles)]
        )
        return not new.issubset(token for before, token in places if before not in self._facts.negations)

    @cached_property
    def comparisons(self) -> set[str]:
        """The signs that compare."""
        return {one for one in _COMPARING if one in self.text}

    def compares_otherwise(self, other: "ChunkText") -> bool:
        """Return whether two texts have opposite signs; one alone may be markup."""
        new, missing = self.comparisons - other.comparisons, other.comparisons - self.comparisons
        return bool((new and missing) or (new | missing) & _UNEQUAL)

    def adds_letters(self, other: "ChunkText") -> bool:
        """Return whether the text has a single capital, with its signs (C++, Rh-), that another one lacks."""
        new = _letters(self.capitalized - other.capitalized)
        return bool(new) and not new <= _letters(other.capitalized)

    def new_names(self, other: "ChunkText") -> set[str]:
        """Return the names in the text, by their words with a capital letter, that another text lacks."""
        if not (words := self.capitalized - other.capitalized):
            return words
        new = set(filter(_has_capital, _WORD.findall(plain_text(" ".join(words)))))
        new = {word for word in new if not _has_word(other.plain, word)}
        return set(_names(self.plain, new)) if new else new


def _adds_numbers(text: Numbers, other: Numbers) -> bool:
    """Return whether a text has a number, with its unit, or a model that the other one lacks.

    A number without a unit is in a text that has it with one. Dates and telephone numbers, which are written
    in many ways, are in a text that has all their parts.
    """
    known = other.single
    if text.single <= known and text.models <= other.models:
        return False
    bare = [value.split() for unit, value in known if not unit]
    parts = {part for value in bare for part in value}
    listed = {part for value in bare if _is_list(value) for part in value}

    def is_known(unit: str, value: str) -> bool:
        if (unit, value) in known or (not unit and any(value == one for _, one in known)):
            return True
        return not unit and set(value.split()) <= (parts if _is_list(value.split()) else listed)

    return not (text.models <= other.models and all(is_known(unit, value) for unit, value in text.single))


def _is_list(parts: Sequence[str]) -> bool:
    """Return whether groups of digits are a date or a telephone number, and not one large number."""
    return len(parts) > 2 and "000" not in parts


def _letters(words: Iterable[str]) -> set[str]:
    """Return the single capitals among words, but for English words, with the signs behind them."""
    return {match[1] for match in filter(None, map(_LETTER.fullmatch, words))} - {"A", "I"}


def _has_word(text: str, word: str) -> bool:
    """Return whether a text has a word, and not only as a part of another one."""
    at = text.find(word)
    while at >= 0:
        # The text begins and ends with a space.
        if not (_WORD.match(text, at - 1, at) or _WORD.match(text, at + len(word))):
            return True
        at = text.find(word, at + 1)
    return False


def _names(text: str, words: Container[str]) -> Iterator[str]:
    """Yield those of some words with a capital letter that begin no sentence, or stand before another."""
    for match in _WORD.finditer(text):
        if match[0] in words:
            before = text[max(0, match.start() - 8) : match.start()].rstrip(_AROUND)
            if (before and before[-1] not in _ENDS) or _has_capital(text[match.end() + 1 : match.end() + 2]):
                yield match[0]


def _dates(text: str) -> set[tuple[int, int, int]]:
    """Return the dates in digits, as their parts; releases such as 1.2.3 look like them."""
    return {(int(first), int(second), int(third)) for first, _, second, third in _DATE.findall(text)}


def _in_another_order(numbers: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether the others have all the numbers, but in another order."""
    rest = iter(others)
    return not all(one in rest for one in numbers) and not Counter(numbers) - Counter(others)


def _exchanges(dates: set[tuple[int, int, int]], others: set[tuple[int, int, int]]) -> bool:
    """Return whether a date has the parts of another one, but day and month exchanged."""
    new = [date for date in dates if others.isdisjoint((date, date[::-1]))]
    known = {tuple(sorted(date)) for date in others} if new else set()
    return any(tuple(sorted(date)) in known for date in new)


@lru_cache(maxsize=1024)
def _tokens_of(names: str, canonicalizer: Canonicalizer) -> frozenset[int]:
    """Return the canonical tokens of names. They are kept, as one call takes 0.2 ms."""
    return frozenset(canonicalizer.hash_batch([names]).hashes.tolist())


def _has_capital(word: str) -> bool:
    return any(map(str.isupper, word))


class ComparedChunks:
    """Texts as sets of shingles, and how many shingles every two have in common."""

    def __init__(self, fingerprinter: Fingerprinter, contained: float) -> None:
        self._fingerprinter, self._contained = fingerprinter, contained
        scheme, self._canonicalizer = fingerprinter.scheme, fingerprinter.canonicalizer
        self._facts = fact_words(self._canonicalizer)
        self._decision, self._least = scheme.decision, scheme.decision.min_similarity
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
        self._texts += map(ChunkText, texts, tokens, repeat(self._facts))
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
        common = self._common.item(row, other)
        return common / (self._sizes.item(row) + self._sizes.item(other) - common)

    def folds(self, place: int, shown: int) -> bool:
        """Return whether a text is to be folded under an earlier one."""
        text, other = self._texts[place], self._texts[shown]
        if text.text == other.text:
            return True
        row = self._rows[place]
        is_contained = self._common.item(row, self._rows[shown]) >= self._contained * self._sizes.item(row)
        if not is_contained and not self._alike(place, shown):
            return False
        return not self._adds_facts(text, other)

    def _alike(self, place: int, shown: int) -> bool:
        """Return whether two texts are near-duplicates, as ``alike_by_text`` and ``PairVerifier`` do."""
        text, other = self._texts[place], self._texts[shown]
        if max(len(text.tokens), len(other.tokens)) <= LONGEST:
            # The common tokens come first, as they need no words as written.
            if shared_tokens(text.tokens, other.tokens) >= least_shared(self._least):
                return True
            words = self._written(text), self._written(other)
            if max(map(len, words)) <= LONGEST:
                return similarity(*words, self._least) >= self._least
        return self.resemblance(place, shown) >= self._decision.min_resemblance

    def _written(self, text: ChunkText) -> list[int]:
        """Return the words of a doubtful text as written."""
        if text.written is None:
            # One call for all doubtful texts.
            new = [one for one in map(self._texts.__getitem__, self._doubtful) if one.written is None]
            made = self._fingerprinter.written([one.text for one in new])
            for one, (begin, end) in zip(new, pairwise(made.offsets.tolist()), strict=True):
                one.written = made.numbers[begin:end].tolist()
        assert text.written is not None
        return text.written

    def _adds_facts(self, text: ChunkText, other: ChunkText) -> bool:
        """Return whether a text has a number or a name that the one shown lacks."""
        if text.adds_numbers(other) or text.compares_otherwise(other):
            return True
        if text.negates(other) or other.negates(text):
            return True
        # A name with another ending has the same canonical token.
        new = text.distinct_tokens - other.distinct_tokens
        if not new.isdisjoint(self._facts.values) or (new and text.adds_letters(other)):
            return True
        if not new or not (names := text.new_names(other)):
            return False
        # Written otherwise, a name may still have the same canonical tokens.
        return not other.distinct_tokens.issuperset(_tokens_of(" ".join(sorted(names)), self._canonicalizer))


def _shingles(batch: TokenBatch, widths: Sequence[int]) -> Uint64s:
    """Return a shingle for each token, repeats included.

    The tokens of a text that has too few for a shingle are one.
    """
    counts = np.diff(batch.offsets)
    found = batch.hashes
    for width in set(widths):
        own = np.repeat(np.array(widths) == width, counts)
        found = np.where(own, batch_shingles(batch.hashes, batch.offsets, width), found)
    for place in np.flatnonzero(counts < np.array(widths, np.int64)).tolist():
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
    # A radix sort by 48 bits, as NumPy sorts 16 bits in a tenth of the time of 64.
    for shift in (16, 32, 48):
        digits = (keys >> np.uint64(shift)).astype(np.uint16)
        keys = keys[np.argsort(digits, kind="stable")]
    keys = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
    sizes = np.bincount((keys & np.uint64((1 << bits) - 1)).view(np.int64), minlength=count)
    common = np.zeros(count * count, np.int64)
    for earlier, later in Buckets.of_sorted(keys, bits).pairs():
        common += np.bincount(later * count + earlier, minlength=count * count)
    return sizes, common.reshape(count, count)
