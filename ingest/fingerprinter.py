"""Texts to fingerprints, block by block: no Python object a token on the way."""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np

from shinglefold.canon import Canonicalizer, check_canonicalizer
from shinglefold.canon.chunking import LONG, Cuttable
from shinglefold.canon.numeric_facts import facts_of
from shinglefold.errors import ConfigError
from shinglefold.ingest.batching import TEXT_BUDGET, blocks
from shinglefold.model.scheme import Scheme, checked_scheme
from shinglefold.model.values import Bytes, Fingerprint, Int64s, TokenBatch, Uint64s
from shinglefold.options.validation import check_texts
from shinglefold.sketch import Pairs, Sketcher, Sketches, Texts, Words, find_pairs, letters


class SketchJson(Protocol):
    """What ``sketch_json`` does, in whichever way."""

    def __call__(self, sketcher: Sketcher, made: Sketches) -> Iterator[bytes]:
        """Yield what of each signature and its keywords stands behind the digest."""
        ...


def sketch_json(sketcher: Sketcher, made: Sketches) -> Iterator[bytes]:
    """Yield keywords and signature of each document that has one, as the end of its JSON."""
    keywords = _lists(letters(sketcher.supershingles(made)[made.valid]))
    signatures = _base64(sketcher.signatures(made)[made.valid])
    for words, signature in zip(keywords, signatures, strict=True):
        yield b',"supershingles":[%b],"signature":"%b"}' % (words, signature)


def fields_json(
    scheme: str, sketcher: Sketcher, batch: TokenBatch, made: Sketches, tails: SketchJson = sketch_json
) -> list[bytes]:
    """Return the JSON of ``Fingerprint.to_field`` of each document of a block.

    Args:
        scheme: its id.
        tails: makes the rest of those that have a signature.
    """
    digests = sketcher.digests(batch.hashes, batch.offsets)
    rest = tails(sketcher, made)
    # Letters, digits and signs that need no escape stand in all the others.
    codes = {code: json.dumps(code, ensure_ascii=False)[1:-1] for code in set(batch.languages)}
    rows = zip(batch.languages, made.shingles.tolist(), digests, made.valid.tolist(), strict=True)
    return [
        (
            f'{{"scheme":"{scheme}","lang":"{(lang := codes[code])}","shingles":{count},'
            f'"digest":"{scheme}.{lang}.{count}.{digest}"'
        ).encode()
        + (next(rest) if good else b"}")
        for code, count, digest, good in rows
    ]


def _lists(found: Bytes) -> Iterator[bytes]:
    """Yield the keywords of each document as the inside of a JSON list."""
    documents, groups, length = found.shape
    quoted = np.full((documents, groups, length + 3), ord('"'), np.uint8)
    quoted[:, :, 1:-2] = found
    quoted[:, :, -1] = ord(",")
    joined, size = quoted.tobytes(), groups * (length + 3)
    for start in range(0, len(joined), size):
        yield joined[start : start + size - 1]


def _base64(signatures: Bytes) -> Iterator[bytes]:
    documents, size = signatures.shape
    if size % 3:
        yield from (b64encode(one.tobytes()) for one in signatures)
        return
    # Three bytes are exactly four characters, so all are encoded in one call.
    joined, length = b64encode(signatures.tobytes()), size // 3 * 4
    for start in range(0, documents * length, length):
        yield joined[start : start + length]


#: Characters after which compiled code will save more than it takes to load: 10,000 texts of 500 words.
_WORTH_COMPILING = 1 << 25


@dataclass(slots=True)
class Meter:
    """What a run did: seconds by stage, counts by name, documents by language."""

    seconds: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent inside to a stage."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += perf_counter() - start  # type: ignore[assignment] # Counter says int

    def add(self, other: "Meter") -> None:
        """Add what another meter gathered."""
        self.seconds.update(other.seconds)
        self.counts.update(other.counts)
        self.languages.update(other.languages)

    def take(self) -> "Meter":
        """Return what was gathered since the last call and start afresh."""
        taken = Meter(self.seconds, self.counts, self.languages)
        self.seconds, self.counts, self.languages = Counter(), Counter(), Counter()
        return taken


@dataclass(frozen=True, slots=True)
class FingerprintArrays:
    """The fingerprints of D documents as arrays, for comparing them without an index.

    ``supershingles``: uint64 (D, K // N), the first M of which an index stores; ``signatures``: uint8 (D, B);
    ``shingles``: int64 (D,); ``valid``: bool (D,), False where a text has too few shingles for a signature;
    ``digests``, ``languages``: D strings; ``repairs``: int64 (D,). ``texts``: what they say, where texts
    decide; else None.
    """

    supershingles: Uint64s
    signatures: Bytes
    shingles: Int64s
    valid: np.ndarray[tuple[int], np.dtype[np.bool_]]
    digests: tuple[str, ...]
    languages: tuple[str, ...]
    repairs: Int64s
    texts: Texts | None = None

    def __len__(self) -> int:
        return len(self.digests)

    def pairs(self, scheme: Scheme) -> Pairs:
        """Return every pair that the scheme folds, which must be the one the prints were made with."""
        return find_pairs(
            self.supershingles,
            self.signatures,
            self.shingles,
            self.digests,
            scheme.sketch,
            scheme.decision,
            self.valid,
            self.texts,
        )


class UnstoredFingerprint(NamedTuple):
    """A fingerprint, and beside it what finds and decides pairs without an index.

    ``made`` is without keywords. ``supershingles``: of all values, as bytes; ``written``, ``canonical``: what
    it says, as ``Words.bytes_of`` yields it; empty where texts do not decide. ``facts``: as ``facts_of`` has
    them, where they count.
    """

    made: Fingerprint
    supershingles: bytes
    written: bytes = b""
    canonical: bytes = b""
    facts: int = 0


class Fingerprinter:
    """Make the fingerprints of texts under one scheme."""

    def __init__(
        self, scheme: Scheme, canonicalizer: Canonicalizer | None = None, meter: Meter | None = None
    ) -> None:
        self.scheme = checked_scheme(scheme)
        check_canonicalizer(canonicalizer)
        self.canonicalizer = Canonicalizer.of(scheme) if canonicalizer is None else canonicalizer
        self.meter = Meter() if meter is None else meter
        self.sketcher = Sketcher(scheme.sketch)
        self._tails: SketchJson = sketch_json
        #: The codes a document may declare.
        self.languages = frozenset(ref.code for ref in scheme.languages)
        self._id = scheme.id
        self._written: Canonicalizer | None = None
        #: Characters until compiled code is worth its start; None where it was tried.
        self._until: int | None = _WORTH_COMPILING

    @property
    def is_compiled(self) -> bool:
        """Whether it works by compiled code."""
        return self._tails is not sketch_json

    def compile(self) -> bool:
        """Work by compiled code from now on, to the same bytes, where the extra ``fast`` is installed.

        Returns:
            Whether it is.

        Cost: half a second, and some ten where the code was never compiled on this machine.
        """
        self._until = None
        try:
            self.canonicalizer.compile()
            from shinglefold.ingest.fingerprint_json import compiled_sketch_json

            self.sketcher, self._tails = self.sketcher.compiled(), compiled_sketch_json
            if self._written is not None:
                self._written.compile()
        except ImportError:
            return False
        return True

    def expect(self, characters: int) -> bool:
        """Work by compiled code from now on where so many characters, which are to come, are worth its start.

        Returns:
            Whether it turned to it now.
        """
        return self._until is not None and characters > self._until and self.compile()

    def _count_characters(self, texts: Sequence[Cuttable]) -> None:
        """Count the characters of a block; from some number on, compiled code is worth its start.

        It weighs as much as a text of 50 MB, so that one long text is not enough.
        """
        if self._until is not None:
            self._until -= sum(min(len(text), LONG) for text in texts)
            if self._until < 0:
                self.compile()

    def fingerprint(
        self, texts: Sequence[Cuttable], languages: Sequence[str | None] | None = None
    ) -> list[Fingerprint]:
        """Return the fingerprint of each text, in order.

        Args:
            languages: of each text its declared language, or None to choose it word by word.

        Raises:
            ConfigError: one string is given instead of a list, or not a language for each text.
        """
        return [one for batch, made in self._sketched(texts, languages) for one in self._finish(batch, made)]

    def fingerprint_with_tokens(
        self, texts: Sequence[Cuttable], languages: Sequence[str | None] | None = None
    ) -> Iterator[tuple[Fingerprint, Uint64s]]:
        """Yield the fingerprint of each text with the hashes of its canonical tokens, in order."""
        for batch, made in self._sketched(texts, languages):
            tokens = np.split(batch.hashes, batch.offsets[1:-1])
            yield from zip(self._finish(batch, made), tokens[: len(batch)], strict=True)

    def fingerprint_json(
        self, texts: Sequence[Cuttable], languages: Sequence[str | None] | None = None
    ) -> list[bytes]:
        """Return the fingerprint of each text as the JSON of ``Fingerprint.to_field``, in order."""
        return [one for batch, made in self._sketched(texts, languages) for one in self._json(batch, made)]

    def batch_json(self, batch: TokenBatch) -> list[bytes]:
        """Return the same of texts whose tokens are at hand."""
        return self._json(batch, self._sketches(batch))

    def fingerprint_arrays(
        self, texts: Sequence[str], languages: Sequence[str | None] | None = None
    ) -> FingerprintArrays:
        """Return the fingerprints as arrays over all texts, in order."""
        parts = [
            (self._arrays(batch, made), Words.of(batch.hashes, batch.offsets))
            for batch, made in self._sketched(texts, languages)
        ]
        made = _joined([arrays for arrays, _ in parts] or [self._arrays(*self._sketch([], None))])
        if self.scheme.decision.verify != "text":
            return made
        canonical = Words.joined([words for _, words in parts])
        return replace(made, texts=Texts(self.written(texts, languages), canonical, self._facts(texts)))

    def written(self, texts: Sequence[str], languages: Sequence[str | None] | None = None) -> Words:
        """Return the words of each text as they are written."""
        if self._written is None:
            self._written = Canonicalizer.as_written(self.scheme)
            if self.canonicalizer.is_compiled:
                self._written.compile()
        with self.meter.stage("words"):
            batch = self._written.hash_batch(texts, languages)
        return Words.of(batch.hashes, batch.offsets)

    def fingerprint_unstored(
        self, texts: Sequence[str], languages: Sequence[str | None] | None = None
    ) -> list[UnstoredFingerprint]:
        """Return the fingerprint of each text with what an index does not store, in order."""
        found = []
        for batch, made in self._sketched(texts, languages):
            keys = self.sketcher.supershingles(made, every=True)
            said = Words.of(batch.hashes, batch.offsets).bytes_of()
            rows = zip(self._finish(batch, made, keywords=False), keys, said, strict=True)
            found += [(one, key.tobytes(), own) for one, key, own in rows]
        if self.scheme.decision.verify != "text":
            return [UnstoredFingerprint(one, keys) for one, keys, _ in found]
        written = self.written(texts, languages).bytes_of()
        facts = self._facts(texts)
        told: list[int] = [0] * len(found) if facts is None else facts.tolist()
        return [
            UnstoredFingerprint(one, keys, own, said, fact)
            for (one, keys, said), own, fact in zip(found, written, told, strict=True)
        ]

    def _facts(self, texts: Sequence[str]) -> Uint64s | None:
        return facts_of(texts) if self.scheme.decision.facts == "numbers" else None

    def _sketched(
        self, texts: Sequence[Cuttable], languages: Sequence[str | None] | None
    ) -> Iterator[tuple[TokenBatch, Sketches]]:
        check_texts(texts)
        if languages is not None and len(languages) != len(texts):
            raise ConfigError(f"{len(languages)} languages for {len(texts)} texts; give one or None for each")
        start = 0
        for block in blocks(texts, len, TEXT_BUDGET):
            end = start + len(block)
            yield self._sketch(block, None if languages is None else languages[start:end])
            start = end

    def _sketch(
        self, texts: Sequence[Cuttable], languages: Sequence[str | None] | None
    ) -> tuple[TokenBatch, Sketches]:
        self._count_characters(texts)
        with self.meter.stage("canon"):
            batch = self.canonicalizer.hash_batch(texts, languages)
        return batch, self._sketches(batch)

    def _sketches(self, batch: TokenBatch) -> Sketches:
        with self.meter.stage("sketch"):
            return self.sketcher.sketch(batch.hashes, batch.offsets, self._widths(batch.languages))

    def _widths(self, languages: Sequence[str]) -> Int64s:
        """Return the shingle width of each document: by the unit of the language most of it is in."""
        options = self.scheme.sketch
        chars = {code for code in self.languages if self.canonicalizer.unit(code) == "char"}
        widths = (options.char_width if code in chars else options.word_width for code in languages)
        return np.fromiter(widths, np.int64, len(languages))

    def _finish(self, batch: TokenBatch, made: Sketches, keywords: bool = True) -> list[Fingerprint]:
        with self.meter.stage("sketch"):
            words = self.sketcher.keywords(made) if keywords else [()] * len(batch)
            signatures = self.sketcher.signatures(made)
            digests = self.sketcher.digests(batch.hashes, batch.offsets)
        counts = made.shingles.tolist()
        self._count(batch, made)
        return [
            Fingerprint(
                self._id,
                batch.languages[d],
                counts[d],
                digests[d],
                words[d],
                signatures[d].tobytes() if made.valid[d] else b"",
            )
            for d in range(len(batch))
        ]

    def _json(self, batch: TokenBatch, made: Sketches) -> list[bytes]:
        self._count(batch, made)
        with self.meter.stage("sketch"):
            return fields_json(self._id, self.sketcher, batch, made, self._tails)

    def _count(self, batch: TokenBatch, made: Sketches) -> None:
        self.meter.languages.update(batch.languages)
        self.meter.counts["repairs"] += int(batch.repairs.sum())
        self.meter.counts["without_signature"] += len(batch) - int(made.valid.sum())

    def _arrays(self, batch: TokenBatch, made: Sketches) -> FingerprintArrays:
        return FingerprintArrays(
            self.sketcher.supershingles(made, every=True),
            self.sketcher.signatures(made),
            made.shingles,
            made.valid,
            tuple(self.sketcher.digests(batch.hashes, batch.offsets)),
            batch.languages,
            batch.repairs.astype(np.int64),
        )


def _joined(parts: Sequence[FingerprintArrays]) -> FingerprintArrays:
    return FingerprintArrays(
        np.concatenate([part.supershingles for part in parts]),
        np.concatenate([part.signatures for part in parts]),
        np.concatenate([part.shingles for part in parts]),
        np.concatenate([part.valid for part in parts]),
        tuple(digest for part in parts for digest in part.digests),
        tuple(language for part in parts for language in part.languages),
        np.concatenate([part.repairs for part in parts]),
    )
