"""Distinct chunks of text for a language model, out of any ranked list: no engine and no embeddings."""

import json
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shinglefold.api.chunk_groups import Chunk, ChunkGroups, FoldedUnder, fingerprinter_of
from shinglefold.api.index_recipe import codes_with_any
from shinglefold.errors import ConfigError
from shinglefold.model.recipe import FIELD
from shinglefold.options.validation import check_fraction, check_int, check_number, expected
from shinglefold.runtime.sans_io import run, run_async

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

    Cost: 7 to 10 ms for 100 chunks of 200 words, 0.2 ms more for each that is folded, 1 ms where numbers
    have to be parsed; the first call loads dictionaries, see ``warm``.
    """
    options = _Options(k, similarity, contained, languages, most)
    return run(_steps(chunks, options, fetch_more is not None), fetch_more or _none)


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
    return await run_async(_steps(chunks, options, fetch_more is not None), fetch_more or _none)


def warm(languages: Sequence[str] | None = None) -> None:
    """Load what ``fold_chunks`` needs, so that its first call takes no longer than the others.

    Cost: .3 s for the dictionaries of the languages. Compiled code is not loaded: it would take .6 s more.
    """
    fold_chunks([{"text": "one"}, {"text": "two 2"}], languages=languages)


def _none(_wanted: int) -> Any:  # noqa: ANN401 - never called
    raise AssertionError


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
    found = ChunkGroups(fingerprinter_of(similarity, codes_with_any(languages)), contained)
    seen = _Seen(most)
    seen.add(chunks, "chunks")
    if len(chunks) > most:
        raise ConfigError(f"{len(chunks):,} chunks, and at most {most:,} are read: give fewer, or raise most")
    groups = found.of(seen.chunks)
    more = may_fetch
    while more and len(groups) < (k or 0) and len(seen.chunks) < most:
        wanted = min(max(2 * len(seen.chunks), 2 * (k or 0)), most)
        before = len(seen.chunks)
        seen.add((yield wanted), "fetch_more")
        # Not the length of the list, as many sources give no more than 100 at a time.
        more = len(seen.chunks) > before
        if more:
            groups = found.of(seen.chunks)
    shown = groups[:k]
    return FoldedChunks(
        [_shown(seen.chunks, group) for group in shown],
        len(seen.chunks),
        k is None or len(shown) == k,
    )


def _shown(chunks: Sequence[Chunk], group: FoldedUnder) -> dict[str, Any]:
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
    _names: set[object] = field(default_factory=set)

    def add(self, given: object, what: str) -> None:
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
            raise expected(what, "a list of chunks", given)
        for number, chunk in enumerate(given):
            if not isinstance(chunk, Mapping) or not isinstance(chunk.get("text"), str):
                raise expected(f"{what}[{number}]", 'an object with "text"', chunk)
            own = chunk.get("id")
            # Windows of one document often have its id: only equal texts under it are one chunk.
            whole = dict(chunk) if own is None else [own, chunk["text"]]
            known = isinstance(own, str) or type(own) is int
            key = (own, chunk["text"]) if known else json.dumps(whole, sort_keys=True, default=str)
            if key not in self._names and len(self.chunks) < self.most:
                self._names.add(key)
                self.chunks.append(chunk)
