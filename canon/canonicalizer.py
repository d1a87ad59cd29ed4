"""The faces of canonicalization, which agree on every input.

``tokens`` gives strings with offsets, for people; ``hash_batch`` gives hashes by the block, for fingerprints:
there a lexicon maps the hash of a word form to the hash of its canonical token, and only forms never seen
before become Python strings and go through a language plugin; ``placed`` gives them with offsets.
``text_batch`` gives strings likewise, for an engine that searches canonical words.
"""

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
import xxhash
from numpy.typing import NDArray

from shinglefold.canon.chunking import Block, Cuttable, HashedBlock, blocks
from shinglefold.canon.language_detection import WordForm, canonical_form, choose, hashed, make_router
from shinglefold.canon.lexicon import Lexicon, LexiconEntries, Strings, spaced
from shinglefold.canon.segmentation import Lately, Segments, segment
from shinglefold.contracts.language import Unit
from shinglefold.errors import ConfigError, UnknownLanguage
from shinglefold.model.scheme import CanonOptions, LanguageRef, Scheme, checked_scheme
from shinglefold.model.values import UNDETERMINED, Int64s, PlacedTokens, Token, TokenBatch, Uint64s
from shinglefold.options.validation import check_texts, check_type, expected
from shinglefold.registry import load_languages

if TYPE_CHECKING:
    from shinglefold.canon.compiled_runner import CanonRun, Kernel

#: Counts up whenever canon itself would yield other tokens.
RULES = 2


class Canonicalizer:
    """Text → canonical tokens, in the languages given; usable by several threads and after a fork.

    Args:
        languages: of a scheme; one of them must take the words of all other scripts (``any``).
        capacity: word forms the lexicon keeps at most.

    Raises:
        MissingExtra: a language's dictionary is not installed.
        ConfigError: the languages can't be used together.
    """

    def __init__(self, languages: Iterable[LanguageRef], capacity: int = 1 << 20) -> None:
        if not isinstance(languages, Iterable):
            raise expected("languages", "those of a scheme; Canonicalizer.of(scheme) takes one", languages)
        self.references = tuple(languages)
        for one in self.references:
            check_type("languages", one, LanguageRef, "those of a scheme; Canonicalizer.of(scheme) takes one")
        self._router = make_router(load_languages(self.references))
        self._salts = np.array(
            [xxhash.xxh3_64_intdigest(language.code.encode()) for language in self._router.languages],
            np.uint64,
        )
        self._codes = tuple(language.code for language in self._router.languages)
        identity = json.dumps([RULES, *map(asdict, self.references)], sort_keys=True)
        self.lexicon = Lexicon(capacity, identity)
        self._kernel: Kernel | None = None
        self._runs = threading.local()
        # The word face has a cache of its own, smaller because it holds strings.
        self._form = lru_cache(maxsize=min(capacity, 1 << 17))(self._uncached_form)
        self.strings = Strings(min(capacity, 1 << 18))
        #: Whether strings are wanted of the texts that are hashed, so that no form is looked at twice.
        self._wants_strings = False
        self._lately = Lately()

    @classmethod
    def of(cls, scheme: Scheme, capacity: int = 1 << 20) -> "Canonicalizer":
        """Return the canonicalizer of a scheme.

        Raises:
            ConfigError: it is no scheme.
        """
        return cls(checked_scheme(scheme).languages, capacity)

    @classmethod
    def as_written(cls, scheme: Scheme, capacity: int = 1 << 20) -> "Canonicalizer":
        """Return one in a scheme's languages that leaves every word as it is written.

        Case, look-alikes and variants of letters and scripts still count as one. What a text says is compared
        by it: two forms of a word are two words.
        """
        written = CanonOptions("surface")
        return cls((replace(reference, options=written) for reference in scheme.languages), capacity)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the languages, in the scheme's order."""
        return self._codes

    def unit(self, code: str) -> Unit:
        """Return the unit of a language: ``word`` or ``char``; ``word`` for ``und``.

        Raises:
            UnknownLanguage: it is none of this canonicalizer's.
        """
        if code == UNDETERMINED:
            return "word"
        for language in self._router.languages:
            if language.code == code:
                return language.unit
        raise UnknownLanguage.unknown("language", code, self.codes)

    def detect(self, text: str) -> str:
        """Return the code of the language most words of a text are of; ``und`` when it has none."""
        return self.hash_batch([text]).languages[0]

    def tokens(self, text: str, language: str | None = None) -> list[Token]:
        """Return the canonical tokens of a text with offsets into it.

        Args:
            language: the declared language, which wins over the letters for the scripts it is written in.

        Cost: about 0.2 ms, and 1.5 µs a token once its form is known; see ``tokens_batch``.
        """
        return self.tokens_batch([text], [language])[0]

    def tokens_batch(
        self, texts: Sequence[str], languages: Sequence[str | None] | None = None
    ) -> list[list[Token]]:
        """Return the canonical tokens of many texts, as ``tokens`` does of one.

        Cost: about 1.5 µs a token; of a short text alone, most of the time is numpy's cost a call.
        """
        declared = self._declared(texts, languages)
        found: list[list[Token]] = [[] for _ in texts]
        for block in blocks(texts):
            segments = segment(block.pieces, self._router.tables)
            text_of = segments.text_of
            chosen = choose(self._router, segments, declared[block.numbers]).tolist()
            mixed = self._router.mixed(segments.traits).tolist()
            shifts = np.array(block.offsets)[text_of]
            starts = (segments.clean.source(segments.starts, text_of) + shifts).tolist()
            ends = (segments.clean.source(segments.ends, text_of) + shifts).tolist()
            numbers = np.array(block.numbers)[text_of].tolist()
            rows = zip(segments.words(), chosen, mixed, starts, ends, numbers, strict=True)
            for word, language, is_mixed, start, end, number in rows:
                form = self._form(word, language, is_mixed)
                if form.canonical is not None:
                    code = self._codes[form.language]
                    found[number].append(Token(form.canonical, start, end, code))
        return found

    def placed(self, text: str, language: str | None = None) -> PlacedTokens:
        """Return the tokens of a text as ``tokens`` does, hashed and in columns.

        Cost: about 0.2 ms, and 0.2 µs a token once its form is known. Memory: 24 bytes a token, and 30 bytes
        a character of a piece.
        """
        declared = self._declared([text], [language])
        found = [np.zeros((0, 3), np.int64)]
        for block in blocks([text]):
            segments = segment(block.pieces, self._router.tables)
            chosen = choose(self._router, segments, declared[block.numbers]).astype(np.int64)
            values = self._looked_up(segments, chosen).values
            kept = np.flatnonzero(values)
            text_of = segments.text_of[kept]
            shifts = np.array(block.offsets)[text_of]
            places = [segments.clean.source(at[kept], text_of) for at in (segments.starts, segments.ends)]
            found.append(np.stack((values[kept].view(np.int64), *(at + shifts for at in places)), axis=1))
        hashes, starts, ends = np.concatenate(found).T.copy()
        return PlacedTokens(hashes.view(np.uint64), starts, ends)

    def hash_batch(
        self, texts: Sequence[Cuttable], languages: Sequence[str | None] | None = None
    ) -> TokenBatch:
        """Return the hashes of the canonical tokens of many texts.

        Args:
            texts: any number, of any length; short ones are worked on in blocks together.
            languages: the declared language of each text or None.

        Raises:
            ConfigError: as many languages as texts are needed.

        Cost: 40 to 75 µs for 500 words once their forms are known. Memory: 30 bytes a character of
        a block, whatever the texts.
        """
        declared = self._declared(texts, languages)
        made = ((block.numbers, self._hashed(block, declared, texts)) for block in blocks(texts))
        return self._batch(made, len(texts))

    def _hashed(self, block: Block, declared: Int64s, texts: Sequence[Cuttable]) -> HashedBlock:
        own = declared[block.numbers]
        if self._kernel is not None:
            return self.run().hash_block(block.pieces, own)
        segments = segment(block.pieces, self._router.tables)
        if self._wants_strings:
            self._lately.note(block, texts, segments)
        return self._hash(segments, own)

    def batch(self, made: Sequence[HashedBlock]) -> TokenBatch:
        """Return the tokens of blocks of whole texts, one after the other."""
        ends = list(accumulate((len(block.counts) for block in made), initial=0))
        numbered = (
            (np.arange(first, last), block) for (first, last), block in zip(pairwise(ends), made, strict=True)
        )
        return self._batch(numbered, ends[-1])

    def _batch(self, made: Iterable[tuple[list[int] | Int64s, HashedBlock]], texts: int) -> TokenBatch:
        """Put blocks together, of each the numbers of its texts; a long text has several pieces."""
        hashes: list[Uint64s] = [np.zeros(0, np.uint64)]
        counts, repairs = np.zeros(texts, np.int64), np.zeros(texts, np.int64)
        votes = np.zeros((texts, len(self.codes)), np.int64)
        for numbers, block in made:
            hashes.append(block.hashes)
            np.add.at(counts, numbers, block.counts)
            np.add.at(votes, numbers, block.votes)
            np.add.at(repairs, numbers, block.repairs)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return TokenBatch(np.concatenate(hashes), offsets, self._languages(votes), repairs.astype(np.int32))

    def run(self) -> "CanonRun":
        """Return what takes blocks of texts through compiled code, in one thread.

        Raises:
            RuntimeError: ``compile`` was not called.
        """
        if self._kernel is None:
            raise RuntimeError("compile() comes before run()")
        # Each thread has its own, whose memory is used again: fresh memory costs more than the work in it.
        run: CanonRun | None = getattr(self._runs, "run", None)
        if run is None:
            run = self._runs.run = self._kernel.run(self)
        return run

    @property
    def is_compiled(self) -> bool:
        """Whether it hashes by compiled code."""
        return self._kernel is not None

    def compile(self) -> None:
        """Hash by compiled code from now on, to the same answers; what numpy alone can do stays with it.

        Raises:
            ImportError: numba is not installed.

        Cost: about 0.6 s; some 5 more where the code was never compiled on this machine.
        """
        if self._kernel is None:
            from shinglefold.canon.compiled_runner import Kernel

            self._kernel = Kernel.of(self._router, self._salts)

    def hash_block(self, texts: Sequence[str], declared: Int64s) -> HashedBlock:
        """Return the tokens of a block of texts, all of it in numpy.

        Args:
            declared: int64 (P,), the number of each text's declared language, or -1.
        """
        return self._hash(segment(texts, self._router.tables), declared)

    def _hash(self, segments: Segments, declared: Int64s) -> HashedBlock:
        texts = len(declared)
        chosen = choose(self._router, segments, declared).astype(np.int64)
        found = self._looked_up(segments, chosen)
        kept = found.values != 0
        text_of = segments.text_of
        repairs = segments.clean.removed.astype(np.int64)
        if found.repairs.any():
            repairs += np.bincount(text_of, found.repairs, texts).astype(np.int64)
        counts = np.bincount(text_of[kept], minlength=texts)
        votes = self._votes(segments, text_of, chosen, texts)
        return HashedBlock(found.values[kept], counts, votes, repairs)

    def learn(
        self, keys: Uint64s, words: Sequence[str], languages: Sequence[int], mixed: Sequence[bool]
    ) -> None:
        """Learn words.

        Args:
            keys: what stands for each word in its language.
            languages: their numbers.
            mixed: whether each has letters of several scripts.
        """
        self._learn(keys, words, languages, mixed)

    def text_batch(self, texts: Sequence[str]) -> list[str]:
        """Return the canonical tokens of each text with a space between them, as ``tokens`` does of one.

        Cost: about 0.25 µs a token once its form is known. Memory: as ``hash_batch``, and the answer.
        """
        check_texts(texts)
        known: dict[str, str] = {}
        for lately in self._lately.take(texts):
            known.update(zip(lately.texts, self._said(lately.segments), strict=True))
        rest = [text for text in texts if text not in known] if known else texts
        found: list[list[str]] = [[] for _ in rest]
        for number, words in self._written(rest):
            found[number].append(words)
        made = map(" ".join, found)
        return [known[text] if text in known else next(made) for text in texts]

    def _written(self, texts: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Yield the canonical tokens of each piece of some texts that has any, by the text's number."""
        # Forms learned from now on are learned with their strings.
        self._wants_strings = True
        for block in blocks(texts):
            work = self.said_block if self._kernel is None else self.run().said_block
            said = work(block.pieces)
            yield from ((number, words) for number, words in zip(block.numbers, said, strict=True) if words)

    def said_block(self, texts: Sequence[str]) -> list[str]:
        """Return the canonical tokens of each text of a block with a space between them, all in numpy."""
        return self._said(segment(texts, self._router.tables))

    def _said(self, segments: Segments) -> list[str]:
        chosen = choose(self._router, segments, np.full(len(segments.bounds) - 1, -1)).astype(np.int64)
        words = partial(self._words, segments, chosen)
        numbers, known = self.strings.all_of(self._keys(segments, chosen), words)
        kept, bounds = numbers != 0, segments.bounds
        if not kept.all():
            numbers, bounds = numbers[kept], np.append(0, np.cumsum(kept))[bounds]
        return spaced(known[numbers].tolist(), bounds[1:].tolist())

    def _declared(self, texts: Sequence[Cuttable], languages: Sequence[str | None] | None) -> Int64s:
        check_texts(texts)
        if languages is None:
            return np.full(len(texts), -1, np.int64)
        if len(languages) != len(texts):
            raise ConfigError(f"{len(languages)} languages for {len(texts)} texts; give one or None for each")
        return self._router.indices(languages)

    def _looked_up(self, segments: Segments, chosen: Int64s) -> LexiconEntries:
        """Return what the lexicon knows of the tokens, after it learned those it did not know."""
        keys = self._keys(segments, chosen)
        found = self.lexicon.find(keys)
        missing = np.flatnonzero(~found.known)
        if not len(missing):
            return found
        new, first, inverse = np.unique(keys[missing], return_index=True, return_inverse=True)
        tokens = missing[first]
        mixed = self._router.mixed(segments.traits[tokens]).tolist()
        learned = self._learn(new, segments.words_at(tokens), chosen[tokens].tolist(), mixed)
        found.values[missing], found.repairs[missing] = learned[0][inverse], learned[1][inverse]
        return found

    def _learn(
        self, keys: Uint64s, words: Iterable[str], languages: Sequence[int], mixed: Sequence[bool]
    ) -> tuple[Uint64s, NDArray[np.uint8]]:
        """Learn words, and return their values and repairs."""
        form = self._form if self._wants_strings else self._uncached_form
        rows = zip(words, languages, mixed, strict=True)
        forms = [form(word, language, mix) for word, language, mix in rows]
        values, repairs = hashed(forms)
        learned = np.array(values, np.uint64), np.array(repairs, np.uint8)
        self.lexicon.learn(keys, *learned)
        if self._wants_strings:
            self.strings.learn(keys, [form.canonical or "" for form in forms])
        return learned

    def _keys(self, segments: Segments, chosen: Int64s) -> Uint64s:
        """Return what stands for each token's folded characters in its language; never 0."""
        keys = segments.keys ^ self._salts[chosen]
        keys[keys == 0] = 1
        return keys

    def _words(self, segments: Segments, chosen: Int64s, tokens: Int64s) -> list[str]:
        """Return the canonical forms of some tokens, empty where one is dropped."""
        mixed = self._router.mixed(segments.traits[tokens]).tolist()
        rows = zip(segments.words_at(tokens), chosen[tokens].tolist(), mixed, strict=True)
        return [self._form(word, language, mix).canonical or "" for word, language, mix in rows]

    def _uncached_form(self, word: str, language: int, mixed: bool) -> WordForm:
        return canonical_form(self._router, word, language, mixed=mixed)

    def _votes(self, segments: Segments, text_of: Int64s, chosen: Int64s, texts: int) -> Int64s:
        """Return how many words of each text are of each language; a number has no vote."""
        lettered = self._router.lettered(segments.traits)
        ballots = text_of[lettered] * len(self.codes) + chosen[lettered]
        return np.bincount(ballots, minlength=texts * len(self.codes)).reshape(texts, -1)

    def _languages(self, votes: Int64s) -> tuple[str, ...]:
        codes = np.array([*self.codes, UNDETERMINED])
        winners = np.where(votes.any(axis=1), votes.argmax(axis=1), len(self.codes))
        return tuple(codes[winners].tolist())


def check_canonicalizer(given: object) -> None:
    """Raise ``ConfigError`` unless it is a canonicalizer, or None."""
    check_type("canonicalizer", given, Canonicalizer, "Canonicalizer.of(scheme), or None", optional=True)
