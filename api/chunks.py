"""Distinct chunks of text for a language model, out of any ranked list: no engine and no embeddings."""

import json
import re
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from shinglefold.api.index_options import thresholds
from shinglefold.api.index_recipe import codes_with_any
from shinglefold.canon.facts import adds_numbers
from shinglefold.canon.written_numbers import plain_text
from shinglefold.errors import ConfigError
from shinglefold.ingest import Fingerprinter
from shinglefold.model.recipe import FIELD
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import Int64s, TokenBatch, Uint64s
from shinglefold.options.validation import check_fraction, check_int, check_number, expected
from shinglefold.registry import make_scheme
from shinglefold.rerank import FoldOptions
from shinglefold.rerank.fold.clustering import folding_of
from shinglefold.runtime.sans_io import run, run_async
from shinglefold.sketch import (
    Texts,
    Words,
    agreement_rows,
    alike_by_text,
    estimate,
    least_estimate,
)
from shinglefold.sketch.candidates import ragged
from shinglefold.sketch.shingles import batch_shingles

#: A chunk: ``text``, and any of ``id``, ``score``, ``metadata``, and a stored fingerprint under ``_dedup``.
Chunk = Mapping[str, Any]
_WORD = re.compile(r"[^\W\d_]+")
#: What a number may be written with.
_NUMERAL = re.compile(r"[\d²³¹IVXІХ¼-¾⅐-⅞①-⑳❶-➓〇零一二三四五六七八九十百千万两]")
#: What stands between the end of a sentence and its first word, and ends of sentences and lines.
_AROUND, _ENDS = " \t\"'«“„(*#>-—–", ".!?:;…\n。！？"
_MOST = 1_000
_CONTAINED = 0.8


@dataclass(frozen=True, slots=True)
class FoldedChunks:
    """The distinct chunks in rank order.

    ``chunks``: as they were given, each with ``sources``: the chunks folded under it, without their texts,
    each with its ``resemblance``, 0 to 1. All plain JSON if the chunks are.
    ``read``: how many chunks were compared. ``complete``: whether there are as many chunks as were asked for;
    if not, there are no more, or ``most`` of them were read.
    """

    chunks: list[dict[str, Any]]
    read: int
    complete: bool


def fold_chunks(
    chunks: Sequence[Chunk],
    k: int | None = None,
    fetch_more: Callable[[int], Sequence[Chunk]] | None = None,
    *,
    similarity: float | None = None,
    contained: float = _CONTAINED,
    languages: Sequence[str] | None = None,
    most: int = _MOST,
) -> FoldedChunks:
    """Return the first ``k`` distinct chunks of a ranked list; near-copies become sources of the first one.

    A chunk is folded under a better one that resembles it or contains it, and only if it has no number and
    no name that the better one lacks. Chunks that all bring a fingerprint of the default scheme under
    ``_dedup`` are compared by these alone.

    Args:
        chunks: each with ``text``, best first. Equal texts under one id are one chunk; without ids, equal
            chunks are.
        k: how many distinct chunks are wanted; by default all.
        fetch_more: called with a number n while there are fewer than k; returns the best n chunks, or those
            behind the ones given so far.
        similarity: the edit similarity of words that near-copies reach, 0 to 1; by default 0.8.
        contained: the share of a chunk's word pairs that is enough of it in a better one, 0 to 1.
        languages: codes of the languages the texts may be in; by default all that are installed.
        most: how many chunks are read at most; comparing them takes 24 bytes for every two.

    Raises:
        ConfigError: an argument is not valid.
        UnknownLanguage: no plugin has such a language.

    Cost: 10 to 15 ms for 100 chunks of 200 words, 0.2 ms more for each that is folded, 2 ms where numbers
    have to be parsed; the first call loads dictionaries, see ``warm``.
    """
    steps = _steps(
        chunks,
        k,
        fetch_more is not None,
        similarity=similarity,
        contained=contained,
        languages=languages,
        most=most,
    )
    return run(steps, fetch_more or _none)


async def fold_chunks_async(
    chunks: Sequence[Chunk],
    k: int | None = None,
    fetch_more: Callable[[int], Awaitable[Sequence[Chunk]]] | None = None,
    *,
    similarity: float | None = None,
    contained: float = _CONTAINED,
    languages: Sequence[str] | None = None,
    most: int = _MOST,
) -> FoldedChunks:
    """Do as ``fold_chunks`` does, and await ``fetch_more``. Comparing blocks the event loop for its cost."""
    steps = _steps(
        chunks,
        k,
        fetch_more is not None,
        similarity=similarity,
        contained=contained,
        languages=languages,
        most=most,
    )
    return await run_async(steps, fetch_more or _none)


def warm(languages: Sequence[str] | None = None) -> None:
    """Load what ``fold_chunks`` needs, so that its first call takes no longer than the others.

    Cost: .3 s for the dictionaries of the languages, .6 s more for compiled code.
    """
    folder = _folder(None, codes_with_any(languages))
    folder.compile()
    fold_chunks([{"text": "one"}, {"text": "two 2"}], languages=languages)


def _none(_wanted: int) -> Any:  # noqa: ANN401 - never called
    raise AssertionError


def _steps(
    chunks: Sequence[Chunk],
    k: int | None,
    may_fetch: bool,
    *,
    similarity: float | None,
    contained: float,
    languages: Sequence[str] | None,
    most: int,
) -> Generator[int, Sequence[Chunk], FoldedChunks]:
    check_int("k", k, 1, optional=True)
    check_int("most", most, 1)
    check_fraction("similarity", similarity)
    check_number("contained", contained, 0, 1)
    if may_fetch and k is None:
        raise ConfigError("fetch_more needs k: say how many distinct chunks you want")
    folder = _folder(similarity, codes_with_any(languages))
    seen = _Seen(most)
    seen.add(chunks, "chunks")
    if len(chunks) > most:
        raise ConfigError(f"{len(chunks):,} chunks, and at most {most:,} are read: give fewer, or raise most")
    groups = folder.groups(seen.chunks, contained)
    more = may_fetch
    while more and len(groups) < (k or 0) and len(seen.chunks) < most:
        wanted = min(max(2 * len(seen.chunks), 2 * (k or 0)), most)
        before = len(seen.chunks)
        seen.add((yield wanted), "fetch_more")
        # Not the length of the list, as many sources give no more than 100 at a time.
        more = len(seen.chunks) > before
        if more:
            groups = folder.groups(seen.chunks, contained)
    shown = groups[:k]
    return FoldedChunks(
        [_shown(seen.chunks, group) for group in shown],
        len(seen.chunks),
        k is None or len(shown) == k,
    )


class _FoldedUnder(NamedTuple):
    """A chunk that is shown, and the chunks folded under it, by position and with their resemblance."""

    shown: int
    members: list[tuple[int, float]]


def _shown(chunks: Sequence[Chunk], group: _FoldedUnder) -> dict[str, Any]:
    sources = [
        {name: value for name, value in chunks[place].items() if name not in {"text", FIELD}}
        | {"resemblance": round(resemblance, 4)}
        for place, resemblance in group.members
    ]
    shown = dict(chunks[group.shown])
    # A chunk that was folded before keeps the sources it has.
    shown["sources"] = [*shown.get("sources", ()), *sources]
    return shown


@dataclass(slots=True)
class _Seen:
    """The chunks read so far, each once, up to ``most``."""

    most: int
    chunks: list[Chunk] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def add(self, given: object, what: str) -> None:
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
            raise expected(what, "a list of chunks", given)
        for number, chunk in enumerate(given):
            if not isinstance(chunk, Mapping) or not isinstance(chunk.get("text"), str):
                raise expected(f"{what}[{number}]", 'an object with "text"', chunk)
            own = chunk.get("id")
            # Windows of one document often have its id: only equal texts under it are one chunk.
            whole = dict(chunk) if own is None else [own, chunk["text"]]
            key = json.dumps(whole, sort_keys=True, default=str)
            if key not in self._names and len(self.chunks) < self.most:
                self._names.add(key)
                self.chunks.append(chunk)


@lru_cache(maxsize=8)
def _folder(similarity: float | None, languages: tuple[str, ...] | None) -> "_Folder":
    scheme = make_scheme("default", languages)
    return _Folder(scheme if similarity is None else scheme.with_options(**thresholds(similarity)))


class _Folder:
    """Groups chunks by their texts, or by stored fingerprints."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._fingerprinter = Fingerprinter(scheme)

    def compile(self) -> None:
        """Switch to compiled code if the extra ``fast`` is installed."""
        self._fingerprinter.compile()

    def groups(self, chunks: Sequence[Chunk], contained: float) -> list[_FoldedUnder]:
        """Return the groups in the order of the chunks that are shown."""
        if chunks and all(self._is_signed(chunk) for chunk in chunks):
            return self._by_fingerprint(chunks)
        return self._by_text(chunks, contained)

    def _is_signed(self, chunk: Chunk) -> bool:
        stored = chunk.get(FIELD)
        return isinstance(stored, Mapping) and stored.get("scheme") == self._scheme.id

    def _by_fingerprint(self, chunks: Sequence[Chunk]) -> list[_FoldedUnder]:
        folding = folding_of(self._scheme, FoldOptions(), FIELD)
        folding.add([{"_source": {FIELD: chunk[FIELD]}} for chunk in chunks])
        options, groups = self._scheme.sketch, []
        for shown, places in folding.collapsed().groups:
            others = [place for place in places if place != shown]
            found = folding.columns([shown, *others])
            ones = np.repeat(found.signatures[:1], len(others), axis=0)
            agreeing = agreement_rows(ones, found.signatures[1:], options.bits, options.values)
            near, _ = estimate(agreeing, options.values, options.bits)
            near = np.where(found.digests[1:] == found.digests[0], 1.0, near)
            groups.append(_FoldedUnder(shown, list(zip(others, near.tolist(), strict=True))))
        return groups

    def _by_text(self, chunks: Sequence[Chunk], contained: float) -> list[_FoldedUnder]:
        """Fold each chunk under the first one shown that resembles or contains it."""
        compared = _Compared(self._fingerprinter, [chunk["text"] for chunk in chunks])
        groups: list[_FoldedUnder] = []
        #: The groups by the chunks that are shown.
        shown: dict[int, _FoldedUnder] = {}
        for place, others in enumerate(compared.candidates(contained)):
            for other in others:
                if other in shown and compared.folds(place, other, contained):
                    shown[other].members.append((place, compared.resemblance(place, other)))
                    break
            else:
                groups.append(shown.setdefault(place, _FoldedUnder(place, [])))
        return groups


class _Compared:
    """Texts as sets of shingles, and how many shingles every two have in common."""

    def __init__(self, fingerprinter: Fingerprinter, texts: Sequence[str]) -> None:
        scheme, self._canonicalizer = fingerprinter.scheme, fingerprinter.canonicalizer
        self._texts = texts
        self._least = scheme.decision.min_similarity
        options = scheme.sketch
        self._possible = least_estimate(self._least, max(options.word_width, options.char_width), options)
        batch = self._canonicalizer.hash_batch(texts)
        self._words = Texts(fingerprinter.written(texts), Words.of(batch.hashes, batch.offsets))
        by_char = [self._canonicalizer.unit(code) == "char" for code in batch.languages]
        widths = [options.char_width if each else options.word_width for each in by_char]
        self._batch = batch
        self._sizes, self._common = _common(_shingles(batch, widths), len(texts))

    def candidates(self, contained: float) -> Iterator[list[int]]:
        """Yield for each text the earlier ones that may resemble it or contain enough of it, in order."""
        common = self._common
        whole = self._sizes[:, None] + self._sizes[None, :] - common
        near = (common >= self._possible * whole) | (common >= contained * self._sizes[:, None])
        near &= common > 0
        for place in range(len(self._texts)):
            yield np.flatnonzero(near[place, :place]).tolist()

    def resemblance(self, place: int, shown: int) -> float:
        """Return the share of common shingles of two texts."""
        common = int(self._common[place, shown])
        return common / int(self._sizes[place] + self._sizes[shown] - common)

    def folds(self, place: int, shown: int, contained: float) -> bool:
        """Return whether a text is to be folded under another one."""
        if self._texts[place] == self._texts[shown]:
            return True
        if self._common[place, shown] < contained * self._sizes[place]:
            kept, _ = alike_by_text(self._words, np.array([shown]), np.array([place]), self._least)
            if not kept[0]:
                return False
        return not self._adds_facts(self._texts[place], shown)

    def _adds_facts(self, text: str, shown: int) -> bool:
        """Return whether a text has a number or a name that the one shown lacks."""
        other = self._texts[shown]
        new = set(text.split()).difference(other.split())
        if not _with_neighbours(text) <= _with_neighbours(other) and adds_numbers(text, other):
            return True
        if all(map(str.islower, new)):
            return False
        # An invisible character would cut a name in two.
        names = set(_names(plain_text(text))).difference(_WORD.findall(plain_text(other)))
        # Written otherwise, a name may still have the same canonical tokens.
        tokens = self._canonicalizer.hash_batch([" ".join(names)]).hashes if names else ()
        begin, end = self._batch.offsets[shown : shown + 2]
        return not np.isin(tokens, self._batch.hashes[begin:end]).all()


def _shingles(batch: TokenBatch, widths: Sequence[int]) -> tuple[Uint64s, Int64s]:
    """Return the distinct shingles of texts in ascending order, and the numbers of their texts.

    The tokens of a text that has too few for a shingle are one.
    """
    counts = np.diff(batch.offsets)
    found = batch.hashes.copy()
    for width in set(widths):
        own = np.repeat(np.array(widths) == width, counts)
        found[own] = batch_shingles(batch.hashes, batch.offsets, width)[own]
    for place in np.flatnonzero((counts > 0) & (counts < np.array(widths, np.int64))).tolist():
        begin, end = batch.offsets[place : place + 2]
        found[begin:end] = batch.hashes[begin:end].sum()
    # The sort is stable, so that repeats in a text stay together.
    order = np.argsort(found, kind="stable")
    shingles, texts = found[order], np.repeat(np.arange(len(counts)), counts)[order]
    fresh = np.diff(shingles, prepend=~shingles[:1]).astype(np.bool_) | (np.diff(texts, prepend=-1) != 0)
    return shingles[fresh], texts[fresh].astype(np.int64)


def _common(distinct: tuple[Uint64s, Int64s], count: int) -> tuple[Int64s, Int64s]:
    """Return the numbers of shingles of texts, int64 (D,), and of common ones of every two, int64 (D, D)."""
    shingles, owners = distinct
    starts = np.flatnonzero(np.diff(shingles, prepend=~shingles[:1]))
    sizes = np.diff(starts, append=len(shingles))
    # Each owner of a shingle meets all of its owners.
    first, all_of = np.repeat(starts, sizes), np.repeat(sizes, sizes)
    common = np.zeros(count * count, np.int64)
    for entry, number in ragged(all_of):
        met = owners[entry] * count + owners[first[entry] + number]
        common += np.bincount(met, minlength=count * count)
    return np.bincount(owners, minlength=count), common.reshape(count, count)


def _with_neighbours(text: str) -> set[tuple[str, ...]]:
    """Return the words that may be numbers, each with those that may be its unit.

    A text that has all of another one has its numbers, too; parsing them takes fifty times as long.
    """
    words = text.split()
    return {tuple(words[max(at - 1, 0) : at + 4]) for at, word in enumerate(words) if _NUMERAL.search(word)}


def _names(text: str) -> Iterator[str]:
    """Yield the words with a capital letter that begin no sentence."""
    for match in _WORD.finditer(text):
        if not match[0].islower() and any(map(str.isupper, match[0])):
            before = text[max(0, match.start() - 8) : match.start()].rstrip(_AROUND)
            if before and before[-1] not in _ENDS:
                yield match[0]
