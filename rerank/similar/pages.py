"""A page of copies: candidates are read and decided until it is full or there are no more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from shinglefold.contracts import JSON
from shinglefold.rerank.hits import identity
from shinglefold.rerank.request_bodies import these
from shinglefold.rerank.similar.asked import Asked, Match
from shinglefold.rerank.similar.blocks import Blocks
from shinglefold.rerank.similar.cursor import Place
from shinglefold.rerank.similar.looking import Looking
from shinglefold.rerank.steps import Call, Steps

StoppedBy = Literal["page_full", "end_of_results", "window_cap", "partial_answer", "nothing_to_compare"]


@dataclass(frozen=True, slots=True)
class SimilarPage:
    """The copies of a document.

    ``matches``: the most alike first. ``total``: how many copies are known; all there are where ``exact``.
    ``candidates``: how many documents were looked at, ``unreadable`` of them with a damaged fingerprint or
    without the seal of the index. ``next``: the place where the next page begins, None after the last.
    ``lacks``: what the answers say they lack; {} where they are whole. ``among``: of a batch, its own members
    that match this one: their places and resemblances.
    """

    matches: tuple[Match, ...] = ()
    total: int = 0
    exact: bool = True
    candidates: int = 0
    unreadable: int = 0
    stopped_by: StoppedBy = "end_of_results"
    next: str | None = None
    lacks: JSON = field(default_factory=dict)
    among: tuple[tuple[int, float], ...] = ()

    def to_json(self) -> JSON:
        """Return the page as JSON, in the shape of a search's answer."""
        relation = "eq" if self.exact else "gte"
        told: JSON = {
            "total": {"value": self.total, "relation": relation},
            "candidates": self.candidates,
            "stopped_by": self.stopped_by,
            "matches": [match.to_json() for match in self.matches],
            "next": self.next,
        }
        if self.unreadable:
            told["unreadable"] = self.unreadable
        if self.lacks:
            told["partial"] = self.lacks
        if self.among:
            told["among"] = [{"place": at, "resemblance": round(alike, 4)} for at, alike in self.among]
        return told


def read_page(asked: Asked, by: Looking, place: str | None) -> Steps[SimilarPage]:
    """Return a page of the copies of a document.

    Blocks of candidates stand in the order of the supershingles they share; within a block copies stand by
    resemblance. Mostly there is one block.

    Raises:
        ConfigError: the place is one of another search.
    """
    queries = by.queries(asked)
    if queries is None:
        return SimilarPage(stopped_by="nothing_to_compare")
    start = Place() if place is None else Place.parse(place, queries.ordered)
    reading = _Reading(asked, by, Blocks(by, queries, start.after), start)
    yield from reading.fill()
    shown = yield from _with_sources(reading.shown, by, reading.blocks)
    return SimilarPage(
        tuple(shown),
        reading.count,
        exact=place is None and reading.ended and not reading.blocks.partial,
        candidates=reading.blocks.read,
        unreadable=reading.unreadable,
        stopped_by=reading.stopped_by,
        next=None if (rest := reading.rest()) is None else rest.to_text(queries.ordered),
        lacks=dict(reading.blocks.partial.lacks),
    )


class _Reading:
    """Copies read block by block, up to a page of them.

    Attributes:
        shown: the copies of the page.
        count: copies in the blocks read, those before the page left out.
        ended: whether there are no more candidates.
    """

    def __init__(self, asked: Asked, by: Looking, blocks: Blocks, start: Place) -> None:
        self.blocks = blocks
        self.shown: list[Match] = []
        self.count = self.unreadable = 0
        self.ended = False
        self._asked = asked
        self._by = by
        self._block = start.after
        self._last = start.last
        self._left: list[Match] = []

    @property
    def stopped_by(self) -> StoppedBy:
        """Why there is no more on the page."""
        if self.blocks.partial:
            return "partial_answer"
        if self._left or len(self.shown) >= self._by.options.size:
            return "end_of_results" if self.rest() is None else "page_full"
        return "end_of_results" if self.ended else "window_cap"

    def rest(self) -> Place | None:
        """Return where the next page begins, None where there is nothing more or nobody can tell."""
        if self.blocks.partial:
            return None
        if self._left:
            return Place(self._block, self.shown[-1].place if self.shown else self._last)
        return None if self.ended else Place(self._next())

    def fill(self) -> Steps[None]:
        """Read blocks until the page is full, they end, or as many candidates were read as a page may."""
        options = self._by.options
        while True:
            yield from self.blocks.next()
            self._take()
            self.ended = self.blocks.after is None
            full = self._left or len(self.shown) >= options.size
            if full or self.ended or self.blocks.read >= options.max_window or self.blocks.partial:
                return
            self._block, self._last = self._next(), None

    def _take(self) -> None:
        (matches,), counts = self._by.decision.of_candidates([self._asked], [self.blocks.hits])
        self.unreadable += counts.unreadable
        behind = [match for match in matches if self._last is None or match.place > self._last]
        room = self._by.options.size - len(self.shown)
        self.count += len(behind)
        self.shown += behind[:room]
        self._left = behind[room:]

    def _next(self) -> tuple[object, ...] | None:
        return None if self.blocks.after is None else tuple(self.blocks.after)


def _with_sources(matches: Sequence[Match], by: Looking, blocks: Blocks) -> Steps[list[Match]]:
    """Return copies with the sources asked for; those deleted meanwhile are left out."""
    if by.options.source is False or not matches:
        return list(matches)
    hits: dict[object, Mapping[str, object]] = {}
    at_once = min(by.options.window, blocks.size)
    for begin in range(0, len(matches), at_once):
        part = [match.hit for match in matches[begin : begin + at_once]]
        body = {"query": these(part, blocks.shards), "size": len(part), "track_total_hits": False}
        source = True if by.options.source is None else by.options.source
        answer = yield Call("search", (by.index, {**body, "_source": source}))
        blocks.partial.note(answer)
        hits |= {identity(hit): hit for hit in answer["hits"]["hits"]}
    return [match.with_hit(found) for match in matches if (found := hits.get(match.identity)) is not None]
