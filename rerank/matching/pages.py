"""A page of documents with passages of a text: candidates are read and decided until it is full."""

from collections.abc import Sequence
from dataclasses import dataclass

from shinglefold.rerank.hits import Hit
from shinglefold.rerank.matching.asked import AskedText, TextMatch
from shinglefold.rerank.matching.looking import PassageLooking
from shinglefold.rerank.similar.blocks import Blocks
from shinglefold.rerank.similar.cursor import Place
from shinglefold.rerank.similar.reading import FoundPage, Reading
from shinglefold.rerank.steps import Steps


@dataclass(frozen=True, slots=True)
class MatchPage(FoundPage[TextMatch]):
    """The documents that have passages of a text, the largest share first.

    Candidates' texts are read; ``unreadable`` of them show none, or none of what they were nominated by: it
    was changed without its elements, or is hidden from who asks.
    """


def read_matches(asked: AskedText, by: PassageLooking, place: str | None) -> Steps[MatchPage]:
    """Return a page of the documents that have passages of a text.

    Blocks of candidates stand in the order of the stored elements they share; within a block documents stand
    by their share. Mostly there is one block.

    Raises:
        ConfigError: the place is one of another search.
    """
    queries = asked.queries(by.elements, by.options)
    if queries is None:
        return MatchPage(stopped_by="nothing_to_compare")
    named = {"query": queries.ordered, "min_share": by.options.min_share}
    start = Place() if place is None else Place.parse(place, named)
    options = by.options
    blocks = Blocks(by, queries, start.after)

    def decide(hits: Sequence[Hit]) -> Steps[tuple[list[TextMatch], int]]:
        # The texts came with the candidates: there is nothing to ask for.
        yield from ()
        return by.matching(asked, hits)

    reading = Reading(blocks, decide, start, options.size, options.max_window)
    yield from reading.fill()
    return MatchPage(
        tuple(reading.shown),
        reading.count,
        exact=place is None and reading.whole,
        candidates=blocks.read,
        unreadable=reading.unreadable,
        stopped_by=reading.stopped_by,
        next=None if (rest := reading.rest()) is None else rest.to_text(named),
        lacks=dict(blocks.partial.lacks),
    )
