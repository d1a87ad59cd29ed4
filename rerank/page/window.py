"""Reads hits until the page is full, the results end or the cap is reached."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from sys import maxsize
from typing import TYPE_CHECKING, Any, Literal

from shinglefold.contracts.engine import JSON
from shinglefold.errors import WindowTooLarge
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.explanation import PassageTexts
from shinglefold.rerank.fold.clustering import BlockwiseFolding, Collapsed, folding_of
from shinglefold.rerank.fold.leader_groups import GroupByLeader, leader_groups
from shinglefold.rerank.fold.matcher import Matcher
from shinglefold.rerank.hits import (
    CUT,
    FingerprintColumns,
    Hit,
    PartialAnswer,
    lost_hits,
    refuse_small_windows,
)
from shinglefold.rerank.index_knowledge import IndexFacts
from shinglefold.rerank.page.cursor import Cursor
from shinglefold.rerank.page.fetch import without_ids
from shinglefold.rerank.request.arguments import with_constant_key, without_constant_key
from shinglefold.rerank.request.bodies import (
    after_hit,
    complete_tie_groups,
    limit_of,
    narrowable,
    page_bounds,
    raisable_k,
    rank_window,
    read_completely,
    total_order,
    window_body,
    window_fields,
    with_greater_k,
    with_rank_window,
)
from shinglefold.rerank.request.fold_options import SearchRequest
from shinglefold.rerank.request.url_parameters import KEY as PIPELINE
from shinglefold.rerank.request.url_parameters import SearchPipeline

if TYPE_CHECKING:
    from shinglefold.rerank.fold.text_verification import TextStage


#: How often hits are read again because some have vanished, where no point in time can be opened.
_MOST_AGAIN = 2
StoppedBy = Literal[
    "page_full", "end_of_results", "window_cap", "partial_answer", "k_reached", "rank_window_reached"
]
#: The most hits requested at once; with one more a window is as large as servers allow by default.
_MOST = 9_999


@dataclass(eq=False)
class WindowReader:
    """Reads the hits of one search and folds them, until the page is full.

    Args:
        texts: finds the matching passages that the page shows.
        stage: decides the uncertain pairs of the page.
        numbers: whether to read sequence numbers instead of ids if possible.
        own_order: the sort key of the engine's own order of equal hits, if it has one.
        tie: the last sort key; None leaves the order, and its ties, to the engine.
        pit: the point in time to read under; ``keep``: the other keys of ``pit`` in a body.
        keep_alive: how long to keep a point in time that is opened because hits vanished.
        facts: the knowledge of the index; None reads no fingerprints, so that nothing folds.
        pipeline: what the search pipeline means for each request; None leaves it to the engine.
        most: hits that the index is known to allow in one request.
        constant: whether windows are read by a constant first sort key, because servers lose hits by that of
            the request.

    Attributes:
        first: the answer to the first request; it has totals and aggregations.
        partial: what answers lack.
        owns_pit: whether the point in time was opened for this page, and is to be closed after it.
        ended: whether the results end here; ``broken``: whether a partial answer ends here.
        k_raised: whether ``k`` was raised above that of the request.
    """

    request: SearchRequest
    scheme: Scheme
    field: str
    seal: Seal | None = None
    lead: GroupByLeader = leader_groups
    texts: PassageTexts | None = None
    stage: "TextStage | None" = None
    cursor: Cursor | None = None
    numbers: bool = False
    own_order: str | None = None
    tie: str | None = None
    pit: str | None = None
    keep: JSON | None = None
    keep_alive: str = ""
    facts: IndexFacts | None = None
    pipeline: SearchPipeline | None = None
    most: int = _MOST
    constant: bool = False

    def __post_init__(self) -> None:
        self.index, self.body, self.options = self.request.index, self.request.body, self.request.options
        #: Whether hits come with everything that the request returns of them.
        self.completely = read_completely(self.body)
        self.numbers = self.numbers and not self.completely
        self.owns_pit = self.k_raised = False
        self._again = 0
        self.start, self.size = page_bounds(self.body)
        self.first: JSON | None = None
        self.partial = PartialAnswer()
        #: Whether totals count the hits that are read.
        self._is_counted = "search_after" not in self.body and narrowable(self.body)
        #: The number of hits, if it had to be counted.
        self._total: JSON | None = None
        #: Whether hits that were counted but not read were read again.
        self._verified = False
        self._rank_window = rank_window(self.body)
        self._shared = Matcher.of(self.scheme, self.options).min_shared > 0
        self.fields = [] if self.facts is None else window_fields(self.options, self.field, self._shared)
        known = frozenset[str]() if self.facts is None else self.facts.dates
        self.dates = known & self.options.date_fields
        self._earlier: Sequence[Hit] = ()
        self._cap, self._after = self.options.max_window, dict[str, Any]()
        if self.cursor is not None:
            self._earlier = self.cursor.shown
            # The cap must not cut a block: the next page would begin with it and fold it differently.
            window = self.options.window
            self._cap = max(1, self.options.max_window // window) * window
        self._restart()

    @property
    def kept(self) -> list[str]:
        """The fields by which hits shown are recognized on later pages."""
        return window_fields(
            replace(self.options, representative=(), explain=False), self.field, self._shared
        )

    @property
    def order(self) -> str:
        """The sort key that breaks ties, or ``engine`` if the engine breaks them."""
        return "engine" if self.tie in (None, self.own_order) else str(self.tie)

    @property
    def complete(self) -> bool:
        """Whether all hits were read, and no answer lacked anything."""
        return self.ended and not self.partial

    @property
    def needed(self) -> int:
        """How many groups fill the page."""
        return self.start + self.size

    @property
    def shards(self) -> int:
        """How many shards were searched; sequence numbers are unique within a shard."""
        count: int = (self.first or {}).get("_shards", {}).get("total", 0)
        return count

    @property
    def hits(self) -> Sequence[Hit]:
        """The hits read, in rank order."""
        return self._blocks.folding.hits

    @property
    def stopped_by(self) -> StoppedBy | None:
        """Why reading stops; None if there is more to read."""
        groups = self._blocks.groups
        if groups is not None and groups >= self.needed:
            return "page_full"
        if self.ended:
            return "k_reached" if limit_of(self.body) == "k" and not self.k_raised else "end_of_results"
        if self.broken:
            return "partial_answer"
        if self._rank_window is not None and len(self.hits) >= self._rank_window:
            return "rank_window_reached"
        return "window_cap" if self._capped or len(self.hits) >= self._cap else None

    def collapsed(self) -> Collapsed:
        """Return the groups of the hits read."""
        return self._blocks.folding.collapsed()

    def columns(self, places: Sequence[int]) -> FingerprintColumns:
        """Return the fingerprints of the given hits."""
        return self._blocks.folding.columns(places)

    def block_start(self, place: int) -> int:
        """Return where the block of a hit begins."""
        return self._blocks.begin_of(place)

    def first_size(self) -> int:
        """Return how many hits to request first: up to the cap if later ones may join groups."""
        if self.options.linkage == "connected":
            return self.options.max_window
        blocks = -(-self.needed // self.options.window)
        return min(blocks * self.options.window, self._cap)

    def read(self, tie: str | None) -> Steps[None]:
        """Read the first hits, in the engine's own order or with ties broken."""
        self.tie = tie
        if tie is None:
            yield from self._read_from_start(self.first_size())
        else:
            self._restart()
            yield from self._read_runs()

    def require_ids(self) -> None:
        """Read ids instead of sequence numbers from now on."""
        self.numbers = False

    @property
    def stays(self) -> bool:
        """Whether hits that are missing now are really gone, so that reading again does not help."""
        return self.pit is not None or "pit" in self.body or self._again >= _MOST_AGAIN

    def check_facts(self) -> None:
        """Raise ``Outdated`` if the hits contradict what is cached about their index."""
        if self.facts is not None:
            self.facts.check(self.hits, self.collapsed().counts)

    def read_again(self) -> Steps[None]:
        """Read the same number of hits again, with ids, which do not change when documents are updated."""
        self._again += 1
        self.require_ids()
        size = max(len(self.hits), self.first_size())
        # Totals and aggregations are those of the hits, too.
        self.first, self.partial = None, PartialAnswer()
        self._restart()
        if self.tie is None:
            yield from self._read_from_start(min(size, self._cap))
            yield from self.read_more()
        else:
            yield from self.read_on()

    def read_more(self) -> Steps[None]:
        """Read longer windows from the first hit on, for queries without ``search_after``."""
        while self.stopped_by is None:
            size = max(2 * len(self.hits), self.first_size())
            self.k_raised = raisable_k(self.body) is not None
            yield from self._read_from_start(min(size, self._cap))

    def read_on(self) -> Steps[None]:
        """Read until ``stopped_by`` is set; each request continues where the last one ended."""
        while self.stopped_by is None:
            yield from self._read_runs()

    def use_pit(self, pit: str, keep: JSON) -> None:
        """Send all requests from now on under a point in time."""
        self.pit, self.keep = pit, keep

    def read_under(self, pit: str, keep: JSON, tie: str, *, owned: bool = False) -> Steps[None]:
        """Read from the first hit on under a point in time."""
        self.use_pit(pit, keep)
        self.tie, self.owns_pit = tie, owned
        size = max(2 * len(self.hits), self.first_size())
        self._restart()
        self._size = min(size, self._cap)
        yield from self.read_on()

    def under_pit(self, body: JSON) -> tuple[str | None, JSON]:
        """Return index and body of a request: those given, or under the point in time if there is one."""
        if self.pit is None:
            return self.index, body
        return None, {**body, "pit": {**(self.keep or {}), "id": self.pit}}

    def read_shown(self, count: int) -> Steps[None]:
        """Read the first ``count`` hits and remember their representatives as shown on earlier pages."""
        # Read complete blocks, as with a cursor: an incomplete one would have other representatives.
        before: WindowReader = copy(self)
        before.cursor, before.partial, before._earlier = Cursor(""), PartialAnswer(), ()
        # Totals are not needed, and only the count ends the reading.
        before.first, before._cap, before.size = {}, maxsize, count
        before._restart()
        while before.stopped_by is None and len(before.hits) < count:
            yield from before._read_runs()
        self.pit = before.pit
        found = [group for group in before.collapsed().groups if group.members[0] < count]
        self._earlier = [*(before.hits[group.representative] for group in found), *self._earlier]
        self._restart()

    def _read_from_start(self, size: int) -> Steps[None]:
        """Read a window in the engine's own order."""
        if not self._is_fresh:
            self._restart()
        size = size if self._rank_window is None else min(size, self._rank_window)
        answer = yield from self._send(self._window(size))
        if self._begins_again(answer, size):
            answer = yield from self._send(self._window(size))
        self._blocks.pending = self._record_hits(answer, size)
        self._blocks.fold((), last=True, ties=self.tie is not None)

    def _read_runs(self) -> Steps[None]:
        """Read on from the last hit; leave out trailing hits that may have equals in the next answer."""
        left = max(self._cap - self._taken, 0)
        size = max(1, min(self._size, left, self.most)) if self._taken else min(self._size, self.most)
        answer = yield from self._search_run(size)
        if answer is None:
            return
        if len(answer["hits"]["hits"]) <= size:
            yield from self._count(answer)
        if self._begins_again(answer, size + 1):
            self._size = max(self._size, size)
            return
        hits = self._record_hits(answer, size + 1)
        count = complete_tie_groups(hits, size)
        if hits and not count:
            # All requested hits have equal sort values: request more.
            self._capped = bool(self._taken) or size >= self.most
            self._size = 2 * size
        self._blocks.pending += hits[:count]
        self._taken += count
        self._after = {"search_after": hits[count - 1]["sort"]} if count else self._after
        self._capped = self._capped or self._taken >= self._cap
        last = self.ended or self.broken or (self._capped and self.cursor is None)
        self._blocks.fold(hits[count:], last=last, ties=True)
        self._size = max(self._size, 2 * size)

    def record_response(self, answer: JSON) -> None:
        """Record what an answer lacks, and the new id of its point in time."""
        self.partial.note(answer)
        self.pit = answer.get("pit_id", self.pit)

    def _search_run(self, size: int) -> Steps[JSON | None]:
        """Return the answer to a request; None if the index allows only smaller windows."""
        window = self._window(size + 1) | {"sort": total_order(self.body, str(self.tie))}
        window |= self._after or after_hit(self.body, str(self.tie))
        try:
            answer: JSON = yield from self._send(window)
        except WindowTooLarge:
            if size == 1:
                raise
            self.most = size // 2
            return None
        self.pit = answer.get("pit_id", self.pit)
        return answer

    def _send(self, window: JSON) -> Steps[JSON]:
        """Return the answer to the request of a window."""
        constant = self.constant and "sort" in window
        sent = with_constant_key(window) if constant else window
        answer: JSON = yield Call("search", self.under_pit(sent))
        refuse_small_windows(answer)
        if self.pit is not None:
            self.pit = answer.get("pit_id", self.pit)
        if constant:
            without_constant_key(answer["hits"]["hits"])
        return answer

    def _begins_again(self, answer: JSON, size: int) -> bool:
        """Return whether to read from the start again, because an answer lacks hits for the first time."""
        if self._verified or not self._lost_count(answer, size):
            return False
        self._verified = self.constant = True
        self.first = self._total = None
        size = self._size
        self._restart()
        self._size = max(size, self._size)
        return True

    def _window(self, size: int) -> JSON:
        body = with_greater_k(self.body, size) if self.k_raised else with_rank_window(self.body, size)
        window = window_body(body, size, self.fields, self.first is None, self.dates)
        if self.pipeline is not None:
            window[PIPELINE] = self.pipeline.complete if self.completely else self.pipeline.window
        return without_ids(window) if self.numbers else window

    def _record_hits(self, answer: JSON, size: int) -> list[JSON]:
        """Return the hits of an answer and record whether there are no more."""
        self._is_fresh = False
        if self.first is None:
            self.first = answer
        hits: list[JSON] = answer["hits"]["hits"]
        if self.owns_pit and self.tie is not None:
            # Elasticsearch adds a sort key under a point in time, which no other request has.
            keys = len(total_order(self.body, self.tie))
            hits = [{**hit, "sort": hit["sort"][:keys]} for hit in hits]
        # A pipeline that removes hits does so in later answers, too, which have no totals.
        broken = self.partial.note(answer, self._lost_count(answer, size)) or CUT in self.partial.lacks
        k = None if self.k_raised else raisable_k(self.body)
        self.ended = len(hits) < size and not broken and (k is None or k >= size)
        self.broken = len(hits) < size and broken
        return hits

    def _lost_count(self, answer: JSON, size: int) -> int:
        """Return the least number of counted hits that are missing.

        0 if totals do not bound the hits: if not only a query finds them, or after a request's own
        ``search_after``.
        """
        total = self._total or (self.first or answer)["hits"].get("total")
        return lost_hits(answer, size, total, self._hits_before) if self._is_counted else 0

    @property
    def _hits_before(self) -> int:
        """How many hits were read before, also for earlier pages."""
        return self._taken + (self.cursor.behind if self.cursor is not None else 0)

    def _count(self, answer: JSON) -> Steps[None]:
        """Count the hits at the end of a walk, if the answers so far lack their number."""
        total = (self.first or answer)["hits"].get("total")
        exact = isinstance(total, Mapping) and total["relation"] == "eq"
        if exact or not self._hits_before or not self._is_counted or self.first == {}:
            return
        body = {**window_body(self.body, 0, (), first=False), "track_total_hits": True}
        counted = yield Call("search", self.under_pit(body))
        self._total = counted["hits"]["total"]

    def _restart(self) -> None:
        self._is_fresh = True  # No hits were read since.
        # Complete hits have more than folding reads, and must fold as others do.
        only = self.fields if self.completely else None
        folding = folding_of(
            self.scheme, self.options, self.field, self._earlier, self.seal, lead=self.lead, fields=only
        )
        self._blocks = BlockwiseFolding(folding, self.options.window)
        self._taken = 0
        self._size = self.first_size()
        self._capped = self.broken = self.ended = False
        self._after = {}
        if self.cursor is not None and self.cursor.after is not None:
            self._after = {"search_after": self.cursor.after}
