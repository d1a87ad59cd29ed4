"""A page of copies: candidates are read and decided until it is full or there are no more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shinglefold.contracts import JSON
from shinglefold.rerank.hits import Hit, identity
from shinglefold.rerank.request.bodies import these
from shinglefold.rerank.similar.asked import Asked, Match
from shinglefold.rerank.similar.blocks import Blocks
from shinglefold.rerank.similar.cursor import Place
from shinglefold.rerank.similar.looking import Looking
from shinglefold.rerank.similar.reading import FoundPage, Reading
from shinglefold.rerank.similar.texts import Source, settled
from shinglefold.rerank.steps import Call, Steps
from shinglefold.scheme import Verify


@dataclass(frozen=True, slots=True)
class SimilarPage(FoundPage[Match]):
    """The copies of a document, the most alike first.

    ``unreadable`` candidates have a damaged fingerprint, or lack the seal of the index. ``among``: of a
    batch, its own members that match this one: their places and resemblances. ``verify``: what decided;
    ``unasked``: why signatures did where texts would have been asked.
    """

    among: tuple[tuple[int, float], ...] = ()
    verify: Verify = "signature"
    unasked: str = ""

    def to_json(self) -> JSON:
        """Return the page as JSON."""
        # Not by super(): a class with slots is made anew, and is then another than the one written here.
        told = FoundPage.to_json(self) | {"verify": self.verify}
        if self.unasked:
            told["unasked"] = self.unasked
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
    options = by.options

    blocks = Blocks(by, queries, start.after)

    def decide(hits: Sequence[Hit]) -> Steps[tuple[list[Match], int]]:
        nominees, counts = by.decision.nominate([asked], [hits])
        source = Source(by.decision.stage, by.index, blocks.shards, blocks.partial)
        (matches,) = yield from settled([asked], nominees, source)
        return matches, counts.unreadable

    reading = Reading(blocks, decide, start, options.size, options.max_window)
    yield from reading.fill()
    shown = yield from _with_sources(reading.shown, by, reading.blocks)
    return SimilarPage(
        tuple(shown),
        reading.count,
        exact=place is None and reading.whole,
        candidates=reading.blocks.read,
        unreadable=reading.unreadable,
        stopped_by=reading.stopped_by,
        next=None if (rest := reading.rest()) is None else rest.to_text(queries.ordered),
        lacks=dict(reading.blocks.partial.lacks),
        verify=_verified(asked, by),
        unasked="" if by.decision.stage is None else by.decision.stage.missing,
    )


def _verified(asked: Asked, by: Looking) -> Verify:
    """Return what decided: signatures, too, where the text of the document was not at hand."""
    stage = by.decision.stage
    if by.verify == "text" and (not asked.text or stage is None or stage.missing):
        return "signature"
    return by.verify


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
