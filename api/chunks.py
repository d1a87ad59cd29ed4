"""Distinct chunks of text for a language model, out of any ranked list: no engine and no embeddings."""

import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from shinglefold.api.chunk_comparison import ComparedChunks
from shinglefold.errors import ConfigError
from shinglefold.ingest import Fingerprinter
from shinglefold.model.recipe import FIELD
from shinglefold.model.scheme import Scheme, thresholds
from shinglefold.options.validation import check_fraction, check_int, check_number, expected
from shinglefold.registry import codes_with_any, language_class, make_scheme
from shinglefold.runtime.sans_io import run, run_async
from shinglefold.sketch.b_bit_minhash import agreement_rows, estimate

_log = logging.getLogger("shinglefold.api.chunks")

#: A chunk: ``text``, and any of ``id``, ``score``, ``metadata``, and a stored fingerprint under ``_dedup``.
Chunk = Mapping[str, Any]
_MOST = 1_000
_CONTAINED = 0.8
#: Two texts that run every step, numbers and names included.
_IN_DOUBT = "one two three four five 6 km eight nine ten", "one two three four Kyiv 6 km eight tools ten"


@dataclass(frozen=True, slots=True)
class FoldedChunks:
    """The distinct chunks in rank order.

    ``chunks``: as they were given, each with ``sources``: the chunks folded under it, without their texts,
    each with its ``resemblance``, 0 to 1, and without an ``id`` with its ``rank`` among the chunks read, from
    1. All plain JSON if the chunks are.
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

    A chunk is folded under a better one that resembles it or contains it. It is kept if it has a number, date
    or name that the better one lacks, or numbers in another order, or if only one of the two negates a word
    (must, must not). Chunks that all bring a fingerprint of the default scheme under ``_dedup`` are compared
    by these alone.

    Args:
        chunks: each with ``text``, best first. Chunks that differ only in ``score`` are one.
        k: how many distinct chunks are wanted; by default all.
        fetch_more: called with a number n while there are fewer than k; returns the best n chunks, or those
            after the ones given so far. Reading ends if it returns nothing new or raises ``StopIteration``.
        similarity: the edit similarity of words that near-copies reach, 0 to 1; by default 0.8.
        contained: the share of a chunk's word pairs that a better one must have to contain it, 0 to 1.
        languages: codes of the languages the texts may be in; by default all that are installed.
        most: the most chunks to read; comparing them takes 24 bytes a pair.

    Raises:
        ConfigError: an argument is not valid.
        UnknownLanguage: no plugin has such a language.

    Cost: 5 to 10 ms for 100 chunks of 200 words, 9 to 14 ms if 40 of them fold; the first call loads
    dictionaries, see ``warm``.
    """
    options = _Options(k, similarity, contained, languages, most)
    return run(_steps(chunks, options, _is_function(fetch_more)), fetch_more or _none)


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
    options = _Options(k, similarity, contained, languages, most)

    async def fetch(wanted: int) -> Sequence[Chunk]:
        assert fetch_more is not None
        found = fetch_more(wanted)
        if not isinstance(found, Awaitable):
            raise expected("fetch_more", "an asynchronous function; fold_chunks takes the others", found)
        return await found

    return await run_async(_steps(chunks, options, _is_function(fetch_more)), fetch)


def warm(languages: Sequence[str] | None = None) -> None:
    """Load what ``fold_chunks`` needs, so that its first call takes no longer than the others.

    Cost: 0.5 s for four languages, imports included. Compiled code is not loaded, because that takes longer.
    """
    scheme = _fingerprinter(None, codes_with_any(languages)).scheme
    samples = [sample for ref in scheme.languages for sample in language_class(ref.code).samples[:1]]
    texts = [text for sample in samples for text in (sample.a, sample.b)]
    fold_chunks([{"text": text} for text in (*texts, *_IN_DOUBT)], languages=languages)
    _by_fingerprint(scheme, ())


def _is_function(fetch_more: object) -> bool:
    if fetch_more is not None and not callable(fetch_more):
        raise expected("fetch_more", "a function that takes a number", fetch_more)
    return fetch_more is not None


def _none(_wanted: int) -> Any:  # noqa: ANN401 - never called
    raise AssertionError


class _FoldedUnder(NamedTuple):
    """A chunk that is shown, and the chunks folded under it, by position and with their resemblance."""

    shown: int
    members: list[tuple[int, float]]


class _Options(NamedTuple):
    """How many chunks are wanted, and how they are folded."""

    k: int | None
    similarity: float | None
    contained: float
    languages: Sequence[str] | None
    most: int


def _steps(
    chunks: Sequence[Chunk], options: _Options, may_fetch: bool
) -> Generator[int, Sequence[Chunk], FoldedChunks]:
    k, similarity, contained, languages, most = options
    check_int("k", k, 1, optional=True)
    check_int("most", most, 1)
    check_fraction("similarity", similarity)
    check_number("contained", contained, 0, 1)
    if may_fetch and k is None:
        raise ConfigError("fetch_more needs k: say how many distinct chunks you want")
    found = _ChunkGroups(_fingerprinter(similarity, codes_with_any(languages)), contained)
    seen = _Seen(most)
    seen.add(chunks, "chunks")
    if len(chunks) > most:
        raise ConfigError(f"{len(chunks):,} chunks, and at most {most:,} are read: give fewer, or raise most")
    groups = found.of(seen.chunks)
    more = may_fetch
    while more and len(groups) < (k or 0) and len(seen.chunks) < most:
        wanted = min(max(2 * len(seen.chunks), 2 * (k or 0)), most)
        before = len(seen.chunks)
        # A caller may read from an iterator, whose end is the end of the list.
        with suppress(StopIteration, StopAsyncIteration):
            seen.add((yield wanted), "fetch_more")
        # Not the length of the list, because many sources give at most 100 at a time.
        more = len(seen.chunks) > before
        if more:
            groups = found.of(seen.chunks)
    shown = groups[:k]
    if more and len(shown) < (k or 0):
        _log.warning(
            "read %d chunks, as many as `most` allows, and found %d distinct ones of %d: raise most",
            len(seen.chunks),
            len(shown),
            k,
        )
    return FoldedChunks(
        [_representative(seen.chunks, group) for group in shown],
        len(seen.chunks),
        k is None or len(shown) == k,
    )


def _representative(chunks: Sequence[Chunk], group: _FoldedUnder) -> dict[str, Any]:
    sources = [
        ({"rank": place + 1} if chunks[place].get("id") is None else {})
        | {name: value for name, value in chunks[place].items() if name not in {"text", FIELD}}
        | {"resemblance": round(resemblance, 4)}
        for place, resemblance in group.members
    ]
    shown = dict(chunks[group.shown])
    # A chunk that was folded before keeps the sources it has.
    shown["sources"] = [*shown.get("sources", ()), *sources]
    return shown


def _what_else(given: object) -> str:
    """Return what is expected instead of this argument, for a message."""
    if isinstance(given, Coroutine):
        given.close()
        return "a list of chunks; fold_chunks_async takes an asynchronous function"
    return f"a list of chunks{'; list(…) makes one' if isinstance(given, Iterator) else ''}"


@dataclass(slots=True)
class _Seen:
    """The chunks read so far, each once, up to ``most``."""

    most: int
    chunks: list[Chunk] = field(default_factory=list)
    #: The first chunk of each text, and the keys of the chunks of texts that were given twice.
    _first: dict[str, Chunk] = field(default_factory=dict)
    _keys: set[object] = field(default_factory=set)

    def add(self, given: object, what: str) -> None:
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
            raise expected(what, _what_else(given), given)
        for number, chunk in enumerate(given):
            if not isinstance(chunk, Mapping) or not isinstance(chunk.get("text"), str):
                raise expected(f"{what}[{number}]", 'an object whose "text" is a string', chunk)
            if not isinstance(chunk.get("sources", []), list):
                raise expected(f"{what}[{number}].sources", "a list", chunk["sources"])
            if len(self.chunks) < self.most and self._is_new(chunk):
                self.chunks.append(chunk)

    def _is_new(self, chunk: Chunk) -> bool:
        text = chunk["text"]
        if text not in self._first:
            self._first[text] = chunk
            return True
        self._keys.add(_key(self._first[text]))
        known = len(self._keys)
        self._keys.add(_key(chunk))
        return len(self._keys) > known


def _key(chunk: Chunk) -> object:
    """Return what two chunks of equal texts have in common if they are one chunk."""
    own = {name: value for name, value in chunk.items() if name not in {"score", FIELD}}
    try:
        return json.dumps(own, sort_keys=True, default=str)
    except (TypeError, ValueError):  # keys that are not strings, or a cycle
        return repr(own)


@lru_cache(maxsize=8)
def _fingerprinter(similarity: float | None, languages: tuple[str, ...] | None) -> Fingerprinter:
    """Return the fingerprinter of the default scheme in these languages."""
    scheme = make_scheme("default", languages)
    return Fingerprinter(scheme if similarity is None else scheme.with_options(**thresholds(similarity)))


@dataclass(slots=True)
class _ChunkGroups:
    """The groups of a list of chunks that grows at its end; texts are read once."""

    fingerprinter: Fingerprinter
    contained: float
    _texts: ComparedChunks | None = None
    _groups: list[_FoldedUnder] = field(default_factory=list)
    #: The groups by the chunks that are shown.
    _shown: dict[int, _FoldedUnder] = field(default_factory=dict)
    #: The first position of each text without words.
    _wordless: dict[str, int] = field(default_factory=dict)

    def of(self, chunks: Sequence[Chunk]) -> list[_FoldedUnder]:
        """Return the groups in the order of the chunks that are shown.

        Args:
            chunks: those of the last call, and any number after them.
        """
        if chunks and all(self._is_signed(chunk) for chunk in chunks):
            return _by_fingerprint(self.fingerprinter.scheme, chunks)
        return self._by_text([chunk["text"] for chunk in chunks])

    def _is_signed(self, chunk: Chunk) -> bool:
        stored = chunk.get(FIELD)
        return isinstance(stored, Mapping) and stored.get("scheme") == self.fingerprinter.scheme.id

    def _by_text(self, texts: Sequence[str]) -> list[_FoldedUnder]:
        """Fold each chunk under the first one shown that resembles or contains it."""
        if self._texts is None:
            self._texts = ComparedChunks(self.fingerprinter, self.contained)
        compared = self._texts
        for place, others in compared.add(texts[len(compared) :], self._shown):
            # A chunk without any text may be a picture, by its metadata.
            if texts[place].strip() and not compared.has_words(place):
                others.append(self._wordless.setdefault(texts[place], place))
            for other in others:
                if other in self._shown and compared.folds(place, other):
                    self._shown[other].members.append((place, compared.resemblance(place, other)))
                    break
            else:
                group = self._shown[place] = _FoldedUnder(place, [])
                self._groups.append(group)
        return self._groups


def _by_fingerprint(scheme: Scheme, chunks: Sequence[Chunk]) -> list[_FoldedUnder]:
    # Texts are compared without these modules.
    from shinglefold.rerank.fold.clustering import folding_of
    from shinglefold.rerank.request.fold_options import FoldOptions

    folding = folding_of(scheme, FoldOptions(), FIELD)
    folding.add([{"_source": {FIELD: chunk[FIELD]}} for chunk in chunks])
    options, groups = scheme.sketch, []
    for shown, places in folding.collapsed().groups:
        others = [place for place in places if place != shown]
        found = folding.columns([shown, *others])
        ones = np.repeat(found.signatures[:1], len(others), axis=0)
        agreeing = agreement_rows(ones, found.signatures[1:], options.bits, options.values)
        near, _ = estimate(agreeing, options.values, options.bits)
        near = np.where(found.digests[1:] == found.digests[0], 1.0, near)
        groups.append(_FoldedUnder(shown, list(zip(others, near.tolist(), strict=True))))
    return groups
