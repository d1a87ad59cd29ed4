"""The canonicalizer: text to canonical tokens, as strings or as hashes; all methods agree on every input.

``tokens`` returns strings with offsets, for people. ``hash_batch`` returns hashes, for fingerprints. A
lexicon maps the hash of a word form to the hash of its canonical token. Only new forms become Python strings
and go through a language plugin. ``placed`` returns hashes with offsets. ``text_batch`` returns
strings, for an engine that searches canonical words.
"""

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import lru_cache, partial
from itertools import accumulate, pairwise

import numpy as np
import xxhash
from numpy.typing import NDArray

from shinglefold.canon.compiled_runner import CanonRun, Kernel
from shinglefold.canon.language_detection import (
    WordForm,
    canonical_form,
    hash_forms,
    language_of_tokens,
    make_language_router,
)
from shinglefold.canon.lexicon import Lexicon, LexiconEntries, StringLexicon, join_words
from shinglefold.canon.segmentation import (
    Block,
    Cuttable,
    HashedBlock,
    SegmentCache,
    Segments,
    blocks,
    segment,
)
from shinglefold.contracts.language import Language, Unit
from shinglefold.errors import ConfigError, UnknownLanguage
from shinglefold.model.scheme import CanonOptions, LanguageRef, Scheme, checked_scheme
from shinglefold.model.values import UNDETERMINED, Int64s, PlacedTokens, Token, TokenBatch, Uint64s
from shinglefold.options.validation import check_texts, check_type, expected
from shinglefold.registry import load_languages

#: Increase it with any change after which canon itself yields other tokens.
RULES = 3


class Canonicalizer:
    """Turns texts into canonical tokens; usable by several threads and after a fork.

    Args:
        languages: those of a scheme; one of them must take the words of all other scripts (``any``).
        capacity: the most word forms that the lexicon keeps.
        loaded: the instances of these languages, if another canonicalizer has them.

    Raises:
        MissingExtra: a language's dictionary is not installed.
        ConfigError: the languages can't be used together.
    """

    def __init__(
        self,
        languages: Iterable[LanguageRef],
        capacity: int = 1 << 20,
        loaded: Sequence[Language] = (),
    ) -> None:
        if not isinstance(languages, Iterable):
            raise expected("languages", "those of a scheme; Canonicalizer.of(scheme) takes one", languages)
        self.references = tuple(languages)
        for one in self.references:
            check_type("languages", one, LanguageRef, "those of a scheme; Canonicalizer.of(scheme) takes one")
        self._router = make_language_router(loaded or load_languages(self.references))
        self._salts = np.array(
            [xxhash.xxh3_64_intdigest(language.code.encode()) for language in self._router.languages],
            np.uint64,
        )
        self._codes = tuple(language.code for language in self._router.languages)
        identity = json.dumps([RULES, *map(asdict, self.references)], sort_keys=True)
        self.lexicon = Lexicon(capacity, identity)
        self._kernel: Kernel | None = None
        self._runs = threading.local()
        # A separate cache for ``tokens``. It is smaller, because it holds strings.
        self._form = lru_cache(maxsize=min(capacity, 1 << 17))(self._uncached_form)
        self.strings = StringLexicon(min(capacity, 1 << 18))
        #: Whether ``text_batch`` was called: from then on the strings of new forms are kept, too.
        self._wants_strings = False
        self._segments = SegmentCache()
        self._joins = lru_cache(maxsize=1 << 14)(self._router.joins)

    @classmethod
    def of(cls, scheme: Scheme) -> "Canonicalizer":
        """Return the canonicalizer of a scheme, which the whole process shares with all words it has learned.

        Raises:
            ConfigError: it is not a scheme.
        """
        return _shared_canonicalizer(checked_scheme(scheme).languages)

    @classmethod
    def as_written(cls, scheme: Scheme) -> "Canonicalizer":
        """Return the shared canonicalizer in a scheme's languages whose tokens are the words as written.

        It still folds case, homoglyphs and variants of letters. Texts are compared by these tokens: two forms
        of a word are two words.
        """
        written = CanonOptions("surface")
        return _shared_canonicalizer(
            tuple(replace(reference, options=written) for reference in scheme.languages)
        )

    def in_each_language(self, capacity: int = 1 << 14) -> "list[Canonicalizer]":
        """Return a canonicalizer for each language that shares a script, without the others of the script."""
        languages, rivals = self._router.languages, self._router.rivals
        own = [
            [place for place in range(len(languages)) if place not in others] for others in rivals if others
        ]
        return [
            Canonicalizer(
                [self.references[place] for place in places], capacity, [languages[place] for place in places]
            )
            for places in own
        ]

    @property
    def codes(self) -> tuple[str, ...]:
        """The language codes, in the order of the scheme."""
        return self._codes

    def unit(self, code: str) -> Unit:
        """Return the unit of a language: ``word`` or ``char``; ``word`` for ``und``.

        Raises:
            UnknownLanguage: this canonicalizer lacks it.
        """
        if code == UNDETERMINED:
            return "word"
        for language in self._router.languages:
            if language.code == code:
                return language.unit
        raise UnknownLanguage.unknown("language", code, self.codes)

    def detect(self, text: str) -> str:
        """Return the language of most words of a text; ``und`` if it has no words."""
        return self.hash_batch([text]).languages[0]

    def tokens(self, text: str, language: str | None = None) -> list[Token]:
        """Return the canonical tokens of a text with their offsets.

        Args:
            language: the declared language. It takes the words in its scripts if neither letters nor
                dictionaries can tell it from the others.

        Cost: about 0.2 ms, and 1.5 µs per known form; see ``tokens_batch``.
        """
        return self.tokens_batch([text], [language])[0]

    def tokens_batch(
        self, texts: Sequence[str], languages: Sequence[str | None] | None = None
    ) -> list[list[Token]]:
        """Return the canonical tokens of many texts; see ``tokens``.

        Cost: about 1.5 µs a token. A single short text costs mostly the overhead of numpy calls.
        """
        declared = self._declared_indices(texts, languages)
        found: list[list[Token]] = [[] for _ in texts]
        for block in blocks(texts):
            segments = segment(block.pieces, self._router.tables, self._joins)
            text_of = segments.text_of
            chosen = language_of_tokens(self._router, segments, declared[block.numbers]).tolist()
            mixed = self._router.mixed_mask(segments.traits).tolist()
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
        """Return the tokens of a text with their offsets, as columns of hashes and numbers.

        Cost: about 0.2 ms, and 0.2 µs per known form. Memory: 24 bytes a token, and 30 bytes a character of a
        piece.
        """
        declared = self._declared_indices([text], [language])
        found = [np.zeros((0, 3), np.int64)]
        for block in blocks([text]):
            segments = segment(block.pieces, self._router.tables, self._joins)
            chosen = language_of_tokens(self._router, segments, declared[block.numbers]).astype(np.int64)
            values = self._look_up(segments, chosen).values
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
            texts: any number, of any length; short ones are processed together in blocks.
            languages: the declared language of each text, or None.

        Raises:
            ConfigError: there are not as many languages as texts.

        Cost: 40 to 75 µs for 500 words with known forms. Memory: 30 bytes a character of a block.
        """
        declared = self._declared_indices(texts, languages)
        made = ((block.numbers, self._hash_block(block, declared, texts)) for block in blocks(texts))
        return self._join_blocks(made, len(texts))

    def _hash_block(self, block: Block, declared: Int64s, texts: Sequence[Cuttable]) -> HashedBlock:
        own = declared[block.numbers]
        if self._kernel is not None:
            return self.run().hash_block(block.pieces, own)
        segments = segment(block.pieces, self._router.tables, self._joins)
        if self._wants_strings:
            self._segments.record(block, texts, segments)
        return self._hash(segments, own)

    def batch(self, made: Sequence[HashedBlock]) -> TokenBatch:
        """Return the tokens of consecutive blocks of whole texts."""
        ends = list(accumulate((len(block.counts) for block in made), initial=0))
        numbered = (
            (np.arange(first, last), block) for (first, last), block in zip(pairwise(ends), made, strict=True)
        )
        return self._join_blocks(numbered, ends[-1])

    def _join_blocks(self, made: Iterable[tuple[list[int] | Int64s, HashedBlock]], texts: int) -> TokenBatch:
        """Join blocks, each with the numbers of its texts; a long text has pieces in several blocks."""
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
        """Return the compiled path of this thread.

        Raises:
            RuntimeError: ``compile`` was not called.
        """
        if self._kernel is None:
            raise RuntimeError("compile() comes before run()")
        # Each thread has its own ``CanonRun`` and reuses its memory: fresh memory costs more than the work.
        run: CanonRun | None = getattr(self._runs, "run", None)
        if run is None:
            # Pyright finds this module under two names, and takes their classes for different ones.
            run = self._runs.run = CanonRun(self._kernel, self)  # pyright: ignore[reportArgumentType]
        return run

    @property
    def is_compiled(self) -> bool:
        """Whether texts are hashed by compiled code."""
        return self._kernel is not None

    def compile(self) -> None:
        """Hash by compiled code from now on; results stay the same.

        Raises:
            ImportError: numba is not installed.

        Cost: about 0.6 s; some 5 s more for the first time on a machine.
        """
        if self._kernel is None:
            self._kernel = Kernel.of(self._router, self._salts)

    def hash_block(self, texts: Sequence[str], declared: Int64s) -> HashedBlock:
        """Return the tokens of a block of texts, computed by numpy.

        Args:
            declared: int64 (P,), the index of each text's declared language, or -1.
        """
        return self._hash(segment(texts, self._router.tables, self._joins), declared)

    def _hash(self, segments: Segments, declared: Int64s) -> HashedBlock:
        texts = len(declared)
        chosen = language_of_tokens(self._router, segments, declared).astype(np.int64)
        found = self._look_up(segments, chosen)
        kept = found.values != 0
        text_of = segments.text_of
        repairs = segments.clean.removed.astype(np.int64)
        if found.repairs.any():
            repairs += np.bincount(text_of, found.repairs, texts).astype(np.int64)
        counts = np.bincount(text_of[kept], minlength=texts)
        votes = self._votes(segments, text_of, chosen, texts)
        return HashedBlock(found.values[kept], counts, votes, repairs)

    def text_batch(self, texts: Sequence[str]) -> list[str]:
        """Return the canonical tokens of each text, joined by spaces.

        Cost: about 0.25 µs per known form. Memory: as ``hash_batch``, and the result.
        """
        check_texts(texts)
        known: dict[str, str] = {}
        for cached in self._segments.pop_matching(texts):
            known.update(zip(cached.texts, self._joined_tokens(cached.segments), strict=True))
        rest = [text for text in texts if text not in known] if known else texts
        found: list[list[str]] = [[] for _ in rest]
        for number, words in self._canonical_pieces(rest):
            found[number].append(words)
        made = map(" ".join, found)
        return [known[text] if text in known else next(made) for text in texts]

    def _canonical_pieces(self, texts: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Yield the number of a text and the canonical tokens of one of its pieces, unless there are none."""
        # From now on the strings of new forms are kept.
        self._wants_strings = True
        for block in blocks(texts):
            work = self.canonical_texts if self._kernel is None else self.run().canonical_texts
            pieces = work(block.pieces)
            yield from ((number, words) for number, words in zip(block.numbers, pieces, strict=True) if words)

    def canonical_texts(self, texts: Sequence[str]) -> list[str]:
        """Return the canonical tokens of each text of a block, joined by spaces, computed by numpy."""
        return self._joined_tokens(segment(texts, self._router.tables, self._joins))

    def _joined_tokens(self, segments: Segments) -> list[str]:
        undeclared = np.full(len(segments.bounds) - 1, -1)
        chosen = language_of_tokens(self._router, segments, undeclared).astype(np.int64)
        words = partial(self._words, segments, chosen)
        numbers, known = self.strings.find_or_learn(self._keys(segments, chosen), words)
        kept, bounds = numbers != 0, segments.bounds
        if not kept.all():
            numbers, bounds = numbers[kept], np.append(0, np.cumsum(kept))[bounds]
        return join_words(known[numbers].tolist(), bounds[1:].tolist())

    def _declared_indices(self, texts: Sequence[Cuttable], languages: Sequence[str | None] | None) -> Int64s:
        check_texts(texts)
        if languages is None:
            return np.full(len(texts), -1, np.int64)
        if len(languages) != len(texts):
            raise ConfigError(f"{len(languages)} languages for {len(texts)} texts; give one or None for each")
        return self.declared(languages)

    def declared(self, languages: Sequence[str | None]) -> Int64s:
        """Return for each declared language its index, int64; −1 for none, or where letters decide."""
        return self._router.indices(languages)

    def _look_up(self, segments: Segments, chosen: Int64s) -> LexiconEntries:
        """Return the lexicon entries of the tokens; learn the missing ones first."""
        keys = self._keys(segments, chosen)
        found = self.lexicon.find(keys)
        missing = np.flatnonzero(~found.known)
        if not len(missing):
            return found
        new, first, inverse = np.unique(keys[missing], return_index=True, return_inverse=True)
        tokens = missing[first]
        mixed = self._router.mixed_mask(segments.traits[tokens]).tolist()
        learned = self.learn(new, segments.words_at(tokens), chosen[tokens].tolist(), mixed)
        found.values[missing], found.repairs[missing] = learned[0][inverse], learned[1][inverse]
        return found

    def learn(
        self, keys: Uint64s, words: Iterable[str], languages: Sequence[int], mixed: Sequence[bool]
    ) -> tuple[Uint64s, NDArray[np.uint8]]:
        """Add words to the lexicon, and return their values and repairs.

        Args:
            keys: the key of each word in its language.
            languages: the index of each word's language.
            mixed: whether each word has letters of several scripts.
        """
        form = self._form if self._wants_strings else self._uncached_form
        rows = zip(words, languages, mixed, strict=True)
        forms = [form(word, language, mix) for word, language, mix in rows]
        values, repairs = hash_forms(forms)
        learned = np.array(values, np.uint64), np.array(repairs, np.uint8)
        self.lexicon.learn(keys, *learned)
        if self._wants_strings:
            self.strings.learn(keys, [form.canonical or "" for form in forms])
        return learned

    def _keys(self, segments: Segments, chosen: Int64s) -> Uint64s:
        """Return the lexicon key of each token, from its folded characters and language; never 0."""
        keys = segments.keys ^ self._salts[chosen]
        keys[keys == 0] = 1
        return keys

    def _words(self, segments: Segments, chosen: Int64s, tokens: Int64s) -> list[str]:
        """Return the canonical forms of the given tokens; empty for dropped ones."""
        mixed = self._router.mixed_mask(segments.traits[tokens]).tolist()
        rows = zip(segments.words_at(tokens), chosen[tokens].tolist(), mixed, strict=True)
        return [self._form(word, language, mix).canonical or "" for word, language, mix in rows]

    def _uncached_form(self, word: str, language: int, mixed: bool) -> WordForm:
        return canonical_form(self._router, word, language, mixed=mixed)

    def _votes(self, segments: Segments, text_of: Int64s, chosen: Int64s, texts: int) -> Int64s:
        """Return how many words of each text each language has; words without letters do not count."""
        ballots = (text_of * len(self.codes) + chosen)[self._router.has_letters(segments.traits)]
        return np.bincount(ballots, minlength=texts * len(self.codes)).reshape(texts, -1)

    def _languages(self, votes: Int64s) -> tuple[str, ...]:
        codes = np.array([*self.codes, UNDETERMINED])
        winners = np.where(votes.any(axis=1), votes.argmax(axis=1), len(self.codes))
        return tuple(codes[winners].tolist())


@lru_cache(maxsize=8)
def _shared_canonicalizer(languages: tuple[LanguageRef, ...]) -> Canonicalizer:
    return Canonicalizer(languages)
