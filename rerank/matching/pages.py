"""A page of documents with passages of a text: candidates are read and decided until it is full."""

from dataclasses import dataclass, field
from typing import Any, Literal

from shinglefold.contracts import JSON
from shinglefold.rerank.matching.asked import AskedText, TextMatch
from shinglefold.rerank.matching.looking import PassageLooking
from shinglefold.rerank.similar.blocks import Blocks
from shinglefold.rerank.similar.cursor import Place
from shinglefold.rerank.steps import Steps

StoppedBy = Literal["page_full", "end_of_results", "window_cap", "partial_answer", "nothing_to_compare"]


@dataclass(frozen=True, slots=True)
class MatchPage:
    """The documents that have passages of a text.

    ``matches``: the largest share first. ``total``: how many documents are known; all there are where
    ``exact``. ``candidates``: how many documents' texts were read, ``unreadable`` of them without one.
    ``next``: the place where the next page begins, None after the last. ``lacks``: what the answers say they
    lack; {} where they are whole.
    """

    matches: tuple[TextMatch, ...] = ()
    total: int = 0
    exact: bool = True
    candidates: int = 0
    unreadable: int = 0
    stopped_by: StoppedBy = "end_of_results"
    next: str | None = None
    lacks: JSON = field(default_factory=dict)

    def to_json(self) -> JSON:
        """Return the page as JSON, in the shape of a search's answer."""
        told: JSON = {
            "total": {"value": self.total, "relation": "eq" if self.exact else "gte"},
            "candidates": self.candidates,
            "stopped_by": self.stopped_by,
            "matches": [match.to_json() for match in self.matches],
            "next": self.next,
        }
        if self.unreadable:
            told["unreadable"] = self.unreadable
        if self.lacks:
            told["partial"] = self.lacks
        return told


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
    blocks = Blocks(by, queries, start.after)
    block, last = start.after, start.last
    shown: list[TextMatch] = []
    left: list[TextMatch] = []
    total = unreadable = 0
    while True:
        yield from blocks.next()
        matches, blind = by.matching(asked, blocks.hits)
        behind = [match for match in matches if last is None or match.place > last]
        room = by.options.size - len(shown)
        total, unreadable = total + len(behind), unreadable + blind
        shown, left = shown + behind[:room], behind[room:]
        if left or blocks.after is None or blocks.partial:
            break
        if len(shown) >= by.options.size or blocks.read >= by.options.max_window:
            break
        block, last = tuple(blocks.after), None
    following = _following(blocks, block, shown, left)
    return MatchPage(
        tuple(shown),
        total,
        exact=place is None and blocks.after is None and not blocks.partial,
        candidates=blocks.read,
        unreadable=unreadable,
        stopped_by=_stopped_by(blocks, by, shown, left),
        next=None if following is None else following.to_text(named),
        lacks=dict(blocks.partial.lacks),
    )


def _following(
    blocks: Blocks, block: tuple[Any, ...] | None, shown: list[TextMatch], left: list[TextMatch]
) -> Place | None:
    """Return where the next page begins, None where there is nothing more or nobody can tell."""
    if blocks.partial:
        return None
    if left:
        return Place(block, shown[-1].place)
    return None if blocks.after is None else Place(tuple(blocks.after))


def _stopped_by(
    blocks: Blocks, by: PassageLooking, shown: list[TextMatch], left: list[TextMatch]
) -> StoppedBy:
    if blocks.partial:
        return "partial_answer"
    if left or (len(shown) >= by.options.size and blocks.after is not None):
        return "page_full"
    return "end_of_results" if blocks.after is None else "window_cap"
