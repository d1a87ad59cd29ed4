"""Pages of copies, or of texts with a passage, read block by block."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

from shinglefold.contracts.engine import JSON, AsyncEngine, Engine
from shinglefold.model.scheme import Verify
from shinglefold.rerank.engine_calls import Call, Steps, run, run_async
from shinglefold.rerank.hits import identity
from shinglefold.rerank.request.bodies import hits_query
from shinglefold.rerank.similar.candidates import CandidateBlocks, CandidateSearch, PagePosition, SimilarQuery
from shinglefold.rerank.similar.decision import TextSource, decide_by_texts
from shinglefold.rerank.similar.query_document import CandidateQueries, FoundDocument, Match, QueryDocument

StoppedBy = Literal["page_full", "end_of_results", "window_cap", "partial_answer", "nothing_to_compare"]
M = TypeVar("M", bound=FoundDocument)
P = TypeVar("P", bound="FoundPage[Any]")
#: Returns the documents found among the candidates read last, best first, and how many are unreadable.
Decide = Callable[[CandidateBlocks], Steps[tuple[Sequence[M], int]]]


@dataclass(frozen=True, slots=True)
class FoundPage(Generic[M]):
    """A page of documents found among candidates.

    ``matches``: the best first. ``total``: how many are known; these are all if ``exact``. ``candidates``:
    how many documents were compared; ``unreadable`` of them could not be. ``next``: the position of the
    next page, None after the last. ``lacks``: what the answers lack; {} if they are complete.
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
        result: JSON = {
            "total": {"value": self.total, "relation": "eq" if self.exact else "gte"},
            "candidates": self.candidates,
            "stopped_by": self.stopped_by,
            "matches": [match.to_json() for match in self.matches],
            "next": self.next,
        }
        if self.unreadable:
            result["unreadable"] = self.unreadable
        if self.lacks:
            result["partial"] = self.lacks
        return result


class PageReader(Generic[M]):
    """Reads candidates block by block until a page of documents is found.

    Args:
        place: the position at which the page begins, as text; None for the first page.
        query: identifies the search to which a position belongs.

    Attributes:
        shown: the documents of the page.
        count: documents found in the blocks read, without those before the page.
        ended: whether there are no more candidates.

    Raises:
        ConfigError: the position is not valid, or belongs to another query.
    """

    def __init__(
        self,
        search: CandidateSearch,
        queries: CandidateQueries,
        decide: Decide[M],
        place: str | None,
        query: Mapping[str, Any],
    ) -> None:
        start = PagePosition() if place is None else PagePosition.parse(place, query)
        self.blocks = CandidateBlocks(search, queries, start.after)
        self.shown: list[M] = []
        self.count = self.unreadable = 0
        self.ended = False
        self._decide = decide
        self._size, self._most = search.size, search.max_window
        self._is_first = place is None
        self._query = query
        self._block = start.after
        self._last = start.last
        self._left: Sequence[M] = ()

    @property
    def stopped_by(self) -> StoppedBy:
        """Why the page ends."""
        if self.blocks.partial:
            return "partial_answer"
        if self._left or len(self.shown) >= self._size:
            return "end_of_results" if self.rest() is None else "page_full"
        return "end_of_results" if self.ended else "window_cap"

    def page(self, kind: Callable[..., P]) -> P:
        """Return what was read as a page of this class."""
        rest = self.rest()
        return kind(
            tuple(self.shown),
            self.count,
            exact=self._is_first and self.ended and not self.blocks.partial,
            candidates=self.blocks.read,
            unreadable=self.unreadable,
            stopped_by=self.stopped_by,
            next=None if rest is None else rest.to_text(self._query),
            lacks=dict(self.blocks.partial.lacks),
        )

    def rest(self) -> PagePosition | None:
        """Return the position of the next page; None if there is none, or after a partial answer."""
        if self.blocks.partial:
            return None
        if self._left:
            return PagePosition(self._block, self.shown[-1].place if self.shown else self._last)
        return None if self.ended else PagePosition(self._next())

    def fill(self) -> Steps[None]:
        """Read blocks until the page is full, the candidates end, or ``max_window`` of them were read."""
        while True:
            yield from self.blocks.next()
            yield from self._take()
            self.ended = self.blocks.after is None
            full = self._left or len(self.shown) >= self._size
            if full or self.ended or self.blocks.read >= self._most or self.blocks.partial:
                return
            self._block, self._last = self._next(), None

    def _take(self) -> Steps[None]:
        matches, unreadable = yield from self._decide(self.blocks)
        self.unreadable += unreadable
        later = [match for match in matches if self._last is None or match.place > self._last]
        room = self._size - len(self.shown)
        self.count += len(later)
        self.shown += later[:room]
        self._left = later[room:]

    def _next(self) -> tuple[object, ...] | None:
        return None if self.blocks.after is None else tuple(self.blocks.after)


@dataclass(frozen=True, slots=True)
class SimilarPage(FoundPage[Match]):
    """The copies of a document, the most alike first.

    ``unreadable`` candidates have a damaged fingerprint, or one of another text, or lack the seal of the
    index. ``verify``: what decided; ``unasked``: why signatures decided instead of texts.
    """

    verify: Verify = "signature"
    unasked: str = ""

    def to_json(self) -> JSON:
        """Return the page as JSON."""
        # Not super(): ``slots=True`` replaces the class, and super() would name the old one.
        result = FoundPage.to_json(self) | {"verify": self.verify}
        if self.unasked:
            result["unasked"] = self.unasked
        return result


def read_page(document: QueryDocument, query: SimilarQuery, place: str | None) -> Steps[SimilarPage]:
    """Return a page of the copies of a document.

    Blocks of candidates are in the order of the supershingles they share; within a block copies are in the
    order of resemblance. Usually there is one block.

    Raises:
        ConfigError: the page position ``place`` belongs to another search.
    """
    queries = query.queries(document)
    if queries is None:
        return SimilarPage(stopped_by="nothing_to_compare")

    def decide(blocks: CandidateBlocks) -> Steps[tuple[list[Match], int]]:
        nominees, counts = query.decision.nominate([document], [blocks.hits])
        source = TextSource(
            query.decision.stage,
            query.candidates.index,
            blocks.shards,
            blocks.partial,
            query.recipe.field,
        )
        (matches,) = yield from decide_by_texts([document], nominees, source)
        return matches, counts.unreadable + len(source.stale)

    reader = PageReader(query.candidates, queries, decide, place, queries.ordered)
    yield from reader.fill()
    shown = yield from _with_sources(reader.shown, query, reader.blocks)
    return replace(
        reader.page(SimilarPage),
        matches=tuple(shown),
        verify=_verified_by(document, query),
        unasked="" if query.decision.stage is None else query.decision.stage.missing,
    )


def _verified_by(document: QueryDocument, query: SimilarQuery) -> Verify:
    """Return what decided: signatures if the text of the document was not known."""
    stage = query.decision.stage
    if query.verify == "text" and (not document.text or stage is None or stage.missing):
        return "signature"
    return query.verify


def _with_sources(
    matches: Sequence[Match], query: SimilarQuery, blocks: CandidateBlocks
) -> Steps[list[Match]]:
    """Return copies with the requested sources; documents deleted meanwhile are left out."""
    if query.options.source is False or not matches:
        return list(matches)
    hits: dict[object, Mapping[str, object]] = {}
    at_once = min(query.candidates.window, blocks.size)
    for begin in range(0, len(matches), at_once):
        part = [match.hit for match in matches[begin : begin + at_once]]
        body = {"query": hits_query(part, blocks.shards), "size": len(part), "track_total_hits": False}
        source = True if query.options.source is None else query.options.source
        answer = yield Call("search", (query.candidates.index, {**body, "_source": source}))
        blocks.partial.note(answer)
        hits |= {identity(hit): hit for hit in answer["hits"]["hits"]}
    return [replace(match, hit=hits[match.identity]) for match in matches if match.identity in hits]


Wanted = TypeVar("Wanted")
Options = TypeVar("Options")
Page = TypeVar("Page", bound=FoundPage[Any])


class SyncPagedSearch(Generic[Wanted, Options, Page]):
    """A search on an engine that blocks, whose results come page by page."""

    _engine: Engine
    _page: Callable[..., Steps[Page]]

    def find(
        self, index: str, wanted: Wanted, options: Options | None = None, *, place: str | None = None
    ) -> Page:
        """Return a page of the results of one query.

        Args:
            index: one name or several with commas.
            wanted: see the class.
            place: ``next`` of the page before.

        Raises:
            ConfigError: the index was not made for this; an option is not valid.
            EngineError: as the engine raises; and the errors of the class.

        Cost: one request if the candidates fit into one window, plus the cost of the class.
        """
        return run(self._engine, self._page(index, wanted, options, place))

    def pages(self, index: str, wanted: Wanted, options: Options | None = None) -> Iterator[Page]:
        """Yield page after page until the results end."""
        page = self.find(index, wanted, options)
        yield page
        while page.next is not None:
            page = self.find(index, wanted, options, place=page.next)
            yield page


class AsyncPagedSearch(Generic[Wanted, Options, Page]):
    """``SyncPagedSearch`` on an engine whose methods are awaited."""

    _engine: AsyncEngine
    _page: Callable[..., Steps[Page]]

    async def find(
        self, index: str, wanted: Wanted, options: Options | None = None, *, place: str | None = None
    ) -> Page:
        """Return a page of the results of one query; see ``SyncPagedSearch.find``."""
        return await run_async(self._engine, self._page(index, wanted, options, place))

    async def pages(self, index: str, wanted: Wanted, options: Options | None = None) -> AsyncIterator[Page]:
        """Yield page after page until the results end."""
        page = await self.find(index, wanted, options)
        yield page
        while page.next is not None:
            page = await self.find(index, wanted, options, place=page.next)
            yield page
