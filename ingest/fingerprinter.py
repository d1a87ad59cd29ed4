"""Compute fingerprints of texts in blocks: arrays of token hashes, no Python object per token."""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from shinglefold.canon import Canonicalizer
from shinglefold.canon.segmentation import LONG, Cuttable
from shinglefold.documents import TEXT_BUDGET, blocks
from shinglefold.errors import ConfigError
from shinglefold.model.scheme import Scheme, checked_scheme
from shinglefold.model.values import FACTS_MARK, Bytes, Fingerprint, Int64s, TokenBatch, Uint64s
from shinglefold.options.validation import check_texts, check_type
from shinglefold.sketch.all_pairs import Pairs, find_leaders, find_pairs
from shinglefold.sketch.minhash import letters
from shinglefold.sketch.sketcher import Sketcher, Sketches, token_digests
from shinglefold.sketch.verification import Texts, Words

#: With more characters, compiled code saves more time than it takes to load: 10,000 texts of 500 words.
_WORTH_COMPILING = 1 << 25


@dataclass(slots=True)
class Meter:
    """Counters of a run: seconds by stage, counts by name, documents by language."""

    seconds: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent in the block to a stage."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += perf_counter() - start  # type: ignore[assignment] # Counter says int

    def add(self, other: "Meter") -> None:
        """Add the values of another meter."""
        self.seconds.update(other.seconds)
        self.counts.update(other.counts)
        self.languages.update(other.languages)

    def take(self) -> "Meter":
        """Return the values since the last call and reset them."""
        taken = Meter(self.seconds, self.counts, self.languages)
        self.seconds, self.counts, self.languages = Counter(), Counter(), Counter()
        return taken


@dataclass(frozen=True, slots=True)
class FingerprintArrays:
    """The fingerprints of D documents as arrays, to compare them without an index.

    ``supershingles``: uint64 (D, K // N), of which an index stores the first M. ``signatures``: uint8 (D, B).
    ``shingles``: int64 (D,). ``valid``: bool (D,), False if a text has too few shingles for a signature.
    ``digests``, ``languages``: D strings. ``repairs``: int64 (D,). ``texts``: the words of the texts if the
    scheme verifies by text, else None.
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
        """Return every near-duplicate pair under the scheme that made these fingerprints."""
        return find_pairs(*self._columns(scheme))

    def leaders(self, scheme: Scheme) -> Int64s:
        """Return the leader of the group of each document under that scheme: int64 (D,)."""
        return find_leaders(*self._columns(scheme))

    def _columns(self, scheme: Scheme) -> tuple[Any, ...]:
        return (
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
    """A fingerprint with the data that finds and verifies pairs without an index.

    ``sketches``: the fingerprint without keywords. ``supershingles``: all of them, as bytes. ``written``,
    ``canonical``: the words as ``Words.bytes_of`` yields them, empty unless the scheme verifies by text.
    """

    fingerprint: Fingerprint
    supershingles: bytes
    written: bytes = b""
    canonical: bytes = b""


class Fingerprinter:
    """Computes the fingerprints of texts under one scheme."""

    def __init__(
        self, scheme: Scheme, canonicalizer: Canonicalizer | None = None, meter: Meter | None = None
    ) -> None:
        self.scheme = checked_scheme(scheme)
        check_type(
            "canonicalizer", canonicalizer, Canonicalizer, "Canonicalizer.of(scheme), or None", optional=True
        )
        self.canonicalizer = Canonicalizer.of(scheme) if canonicalizer is None else canonicalizer
        self.meter = Meter() if meter is None else meter
        self.sketcher = Sketcher(scheme.sketch)
        self._signed_json: Callable[[Sketcher, Sketches], Iterator[bytes]] = sketch_json
        #: The language codes a document may declare.
        self.languages = frozenset(ref.code for ref in scheme.languages)
        self._id = scheme.id
        self._written: Canonicalizer | None = None
        #: How many more characters are read before compiled code is loaded; None after that was tried.
        self._until_compiled: int | None = _WORTH_COMPILING

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code is in use."""
        return self._signed_json is not sketch_json

    def compile(self) -> bool:
        """Switch to compiled code if the extra ``fast`` is installed; results stay the same to the byte.

        Returns:
            Whether compiled code is in use now.

        Cost: half a second; about ten seconds the first time on a machine.
        """
        self._until_compiled = None
        try:
            self.canonicalizer.compile()
            from shinglefold.ingest.fingerprint_json import compiled_sketch_json

            self.sketcher, self._signed_json = self.sketcher.compiled(), compiled_sketch_json
            if self._written is not None:
                self._written.compile()
        except ImportError:
            return False
        return True

    def expect(self, characters: int) -> bool:
        """Switch to compiled code if this many more characters are worth loading it.

        Returns:
            Whether this call switched.
        """
        return self._until_compiled is not None and characters > self._until_compiled and self.compile()

    def _count_characters(self, texts: Sequence[Cuttable]) -> None:
        """Count the characters of a block, and switch to compiled code once there were enough.

        A text counts as ``LONG`` characters at most: loading takes as much memory as a text of 50 MB.
        """
        if self._until_compiled is not None:
            self._until_compiled -= sum(min(len(text), LONG) for text in texts)
            if self._until_compiled < 0:
                self.compile()

    def fingerprint(
        self,
        texts: Sequence[Cuttable],
        languages: Sequence[str | None] | None = None,
        facts: Sequence[str] | None = None,
    ) -> list[Fingerprint]:
        """Return the fingerprint of each text, in order.

        Args:
            languages: the declared language of each text, or None to choose it word by word.
            facts: what ``facts_of`` returns for each document, stored with its digest; None stores none.

        Raises:
            ConfigError: ``texts`` is one string, or the lists have different lengths.
        """
        own = _facts(texts, facts)
        return [
            one
            for batch, sketches in self._sketch_blocks(texts, languages)
            for one in self._finish(batch, sketches, own)
        ]

    def fingerprint_with_tokens(
        self,
        texts: Sequence[Cuttable],
        languages: Sequence[str | None] | None = None,
        facts: Sequence[str] | None = None,
    ) -> Iterator[tuple[Fingerprint, Uint64s]]:
        """Yield the fingerprint and the token hashes of each text, in order."""
        own = _facts(texts, facts)
        for batch, sketches in self._sketch_blocks(texts, languages):
            tokens = np.split(batch.hashes, batch.offsets[1:-1])
            yield from zip(self._finish(batch, sketches, own), tokens[: len(batch)], strict=True)

    def fingerprint_json(
        self,
        texts: Sequence[Cuttable],
        languages: Sequence[str | None] | None = None,
        facts: Sequence[str] | None = None,
    ) -> list[bytes]:
        """Return ``Fingerprint.to_field`` of each text as JSON, in order."""
        own = _facts(texts, facts)
        return [
            one
            for batch, sketches in self._sketch_blocks(texts, languages)
            for one in self._json(batch, sketches, own)
        ]

    def batch_json(self, batch: TokenBatch, languages: Sequence[str | None]) -> list[bytes]:
        """Return ``Fingerprint.to_field`` of each document of a batch of tokens as JSON.

        Args:
            languages: the declared language of each document, or None.
        """
        return self._json(batch.with_languages(languages, self.languages), self._sketches(batch))

    def fingerprint_arrays(
        self,
        texts: Sequence[str],
        languages: Sequence[str | None] | None = None,
        facts: Sequence[str] | None = None,
    ) -> FingerprintArrays:
        """Return the fingerprints of all texts as arrays, in order."""
        own = _facts(texts, facts)
        parts = [
            (self._arrays(batch, sketches, own), Words.of(batch.hashes, batch.offsets))
            for batch, sketches in self._sketch_blocks(texts, languages)
        ]
        arrays = _concatenate([one for one, _ in parts] or [self._arrays(*self._sketch([], None))])
        if self.scheme.decision.verify != "text":
            return arrays
        canonical = Words.joined([words for _, words in parts])
        return replace(arrays, texts=Texts(self.written(texts, languages), canonical))

    def written(self, texts: Sequence[str], languages: Sequence[str | None] | None = None) -> Words:
        """Return the words of each text as written, not canonical."""
        if self._written is None:
            self._written = Canonicalizer.as_written(self.scheme)
            if self.canonicalizer.is_compiled:
                self._written.compile()
        with self.meter.stage("words"):
            batch = self._written.hash_batch(texts, languages)
        return Words.of(batch.hashes, batch.offsets)

    def fingerprint_unstored(
        self,
        texts: Sequence[str],
        languages: Sequence[str | None] | None = None,
        facts: Sequence[str] | None = None,
    ) -> list[UnstoredFingerprint]:
        """Return the fingerprint of each text with the data that an index does not store, in order."""
        found, known = [], _facts(texts, facts)
        for batch, sketches in self._sketch_blocks(texts, languages):
            keys = self.sketcher.supershingles(sketches, every=True)
            words = Words.of(batch.hashes, batch.offsets).bytes_of()
            rows = zip(self._finish(batch, sketches, known, keywords=False), keys, words, strict=True)
            found += [(one, key.tobytes(), own) for one, key, own in rows]
        if self.scheme.decision.verify != "text":
            return [UnstoredFingerprint(one, keys) for one, keys, _ in found]
        written = self.written(texts, languages).bytes_of()
        return [
            UnstoredFingerprint(one, keys, own, canonical)
            for (one, keys, canonical), own in zip(found, written, strict=True)
        ]

    def _sketch_blocks(
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
        declared = batch if languages is None else batch.with_languages(languages, self.languages)
        return declared, self._sketches(batch)

    def _sketches(self, batch: TokenBatch) -> Sketches:
        with self.meter.stage("sketch"):
            return self.sketcher.sketch(batch.hashes, batch.offsets, self._widths(batch.languages))

    def _widths(self, languages: Sequence[str]) -> Int64s:
        """Return the shingle width of each document, which depends on the unit of its main language."""
        options = self.scheme.sketch
        chars = {code for code in self.languages if self.canonicalizer.unit(code) == "char"}
        widths = (options.char_width if code in chars else options.word_width for code in languages)
        return np.fromiter(widths, np.int64, len(languages))

    def _finish(
        self, batch: TokenBatch, sketches: Sketches, facts: Iterator[str] | None = None, keywords: bool = True
    ) -> list[Fingerprint]:
        with self.meter.stage("sketch"):
            words = self.sketcher.keywords(sketches) if keywords else [()] * len(batch)
            signatures = self.sketcher.signatures(sketches)
            digests = _with_facts(token_digests(batch.hashes, batch.offsets), facts)
        counts = sketches.shingles.tolist()
        self._count(batch, sketches)
        return [
            Fingerprint(
                self._id,
                batch.languages[d],
                counts[d],
                digests[d],
                words[d],
                signatures[d].tobytes() if sketches.valid[d] else b"",
            )
            for d in range(len(batch))
        ]

    def _json(self, batch: TokenBatch, sketches: Sketches, facts: Iterator[str] | None = None) -> list[bytes]:
        self._count(batch, sketches)
        with self.meter.stage("sketch"):
            digests = _with_facts(token_digests(batch.hashes, batch.offsets), facts)
            rest = self._signed_json(self.sketcher, sketches)
            # A language code may need escapes; digests and ids never do.
            codes = {code: json.dumps(code, ensure_ascii=False)[1:-1] for code in set(batch.languages)}
            counts, signed, scheme = sketches.shingles.tolist(), sketches.valid.tolist(), self._id
            return [
                (
                    f'{{"scheme":"{scheme}","lang":"{(lang := codes[code])}","shingles":{count},'
                    f'"digest":"{scheme}.{lang}.{count}.{digest}"'
                ).encode()
                + (next(rest) if good else b"}")
                for code, count, digest, good in zip(batch.languages, counts, digests, signed, strict=True)
            ]

    def _count(self, batch: TokenBatch, sketches: Sketches) -> None:
        self.meter.languages.update(batch.languages)
        self.meter.counts["repairs"] += int(batch.repairs.sum())
        self.meter.counts["without_signature"] += int(np.count_nonzero(~sketches.valid))

    def _arrays(
        self, batch: TokenBatch, sketches: Sketches, facts: Iterator[str] | None = None
    ) -> FingerprintArrays:
        return FingerprintArrays(
            self.sketcher.supershingles(sketches, every=True),
            self.sketcher.signatures(sketches),
            sketches.shingles,
            sketches.valid,
            tuple(_with_facts(token_digests(batch.hashes, batch.offsets), facts)),
            batch.languages,
            batch.repairs.astype(np.int64),
        )


def _facts(texts: Sequence[Cuttable], facts: Sequence[str] | None) -> Iterator[str] | None:
    """Return an iterator over the facts of all texts, from which blocks take theirs."""
    if facts is not None and len(facts) != len(texts):
        raise ConfigError(f"facts of {len(facts)} documents for {len(texts)} texts; give those of each")
    return None if facts is None else iter(facts)


def _with_facts(digests: list[str], facts: Iterator[str] | None) -> list[str]:
    """Return digests followed by the next facts; a text without a digest has no facts."""
    if facts is None:
        return digests
    own = list(islice(facts, len(digests)))
    return [f"{one}{FACTS_MARK}{stated}" if one else "" for one, stated in zip(digests, own, strict=True)]


def _concatenate(parts: Sequence[FingerprintArrays]) -> FingerprintArrays:
    return FingerprintArrays(
        np.concatenate([part.supershingles for part in parts]),
        np.concatenate([part.signatures for part in parts]),
        np.concatenate([part.shingles for part in parts]),
        np.concatenate([part.valid for part in parts]),
        tuple(digest for part in parts for digest in part.digests),
        tuple(language for part in parts for language in part.languages),
        np.concatenate([part.repairs for part in parts]),
    )


def sketch_json(sketcher: Sketcher, sketches: Sketches) -> Iterator[bytes]:
    """Yield the keywords and the signature of each document that has one, as the last part of its JSON."""
    keywords = _lists(letters(sketcher.supershingles(sketches)[sketches.valid]))
    signatures = _base64(sketcher.signatures(sketches)[sketches.valid])
    for words, signature in zip(keywords, signatures, strict=True):
        yield b',"supershingles":[%b],"signature":"%b"}' % (words, signature)


def _lists(found: Bytes) -> Iterator[bytes]:
    """Yield the keywords of each document as the items of a JSON list, without brackets."""
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
    # Three bytes make exactly four characters, so one call encodes all signatures.
    joined, length = b64encode(signatures.tobytes()), size // 3 * 4
    for start in range(0, documents * length, length):
        yield joined[start : start + length]
