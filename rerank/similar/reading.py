"""A page filled block by block: what is found is taken in order until there is enough, or no more."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

from shinglefold.contracts import JSON
from shinglefold.rerank.hits import Hit
from shinglefold.rerank.similar.blocks import Blocks
from shinglefold.rerank.similar.cursor import Place
from shinglefold.rerank.steps import Steps

StoppedBy = Literal["page_full", "end_of_results", "window_cap", "partial_answer", "nothing_to_compare"]


class Placed(Protocol):
    """What is found: it stands in an order within its block, and can be told."""

    @property
    def place(self) -> tuple[float, str, str, str]:
        """Where it stands, as ``Place.last`` has it."""
        ...

    def to_json(self) -> JSON:
        """Return it as JSON."""
        ...


M = TypeVar("M", bound=Placed)
#: Steps that return which of the hits of a block are found, in order, and how many of them can't be read.
Decide = Callable[[Sequence[Hit]], Steps[tuple[Sequence[M], int]]]


@dataclass(frozen=True, slots=True)
class FoundPage(Generic[M]):
    """A page of documents found among candidates.

    ``matches``: the best first. ``total``: how many are known; all there are where ``exact``.
    ``candidates``: how many documents were looked at, ``unreadable`` of them without what decides. ``next``:
    the place where the next page begins, None after the last. ``lacks``: what the answers say they lack; {}
    where they are whole.
    """

    matches: tuple[M, ...] = ()
    total: int = 0
    exact: bool = True
    candidates: int = 0
    unreadable: int = 0
    stopped_by: StoppedBy = "end_of_results"
    next: str | None = None
    lacks: JSON = field(default_factory=dict)

    def to_json(self) -> JSON:
        """Return the page as JSON."""
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


class Reading(Generic[M]):
    """What is found, read block by block, up to a page of it.

    Args:
        size: of the page; 0 counts only.
        most: candidates read at most.

    Attributes:
        shown: what is on the page.
        count: what was found in the blocks read, that before the page left out.
        ended: whether there are no more candidates.
    """

    def __init__(self, blocks: Blocks, decide: Decide[M], start: Place, size: int, most: int) -> None:
        self.blocks = blocks
        self.shown: list[M] = []
        self.count = self.unreadable = 0
        self.ended = False
        self._decide = decide
        self._size, self._most = size, most
        self._block = start.after
        self._last = start.last
        self._left: Sequence[M] = ()

    @property
    def stopped_by(self) -> StoppedBy:
        """Why there is no more on the page."""
        if self.blocks.partial:
            return "partial_answer"
        if self._left or len(self.shown) >= self._size:
            return "end_of_results" if self.rest() is None else "page_full"
        return "end_of_results" if self.ended else "window_cap"

    @property
    def whole(self) -> bool:
        """Whether all candidates were read, and no answer lacks any."""
        return self.ended and not self.blocks.partial

    def rest(self) -> Place | None:
        """Return where the next page begins, None where there is nothing more or nobody can tell."""
        if self.blocks.partial:
            return None
        if self._left:
            return Place(self._block, self.shown[-1].place if self.shown else self._last)
        return None if self.ended else Place(self._next())

    def fill(self) -> Steps[None]:
        """Read blocks until the page is full, they end, or as many candidates were read as a page may."""
        while True:
            yield from self.blocks.next()
            yield from self._take()
            self.ended = self.blocks.after is None
            full = self._left or len(self.shown) >= self._size
            if full or self.ended or self.blocks.read >= self._most or self.blocks.partial:
                return
            self._block, self._last = self._next(), None

    def _take(self) -> Steps[None]:
        matches, unreadable = yield from self._decide(self.blocks.hits)
        self.unreadable += unreadable
        behind = [match for match in matches if self._last is None or match.place > self._last]
        room = self._size - len(self.shown)
        self.count += len(behind)
        self.shown += behind[:room]
        self._left = behind[room:]

    def _next(self) -> tuple[object, ...] | None:
        return None if self.blocks.after is None else tuple(self.blocks.after)
