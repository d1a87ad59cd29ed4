"""Reads hits until the page is full, the results end or the cap is reached."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from sys import maxsize
from typing import TYPE_CHECKING, Any, Literal

from shinglefold.contracts.engine import JSON
from shinglefold.contracts.shard_failures import refuse_small_windows
from shinglefold.errors import WindowTooLarge
from shinglefold.model.scheme import Scheme
from shinglefold.model.seal import Seal
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.explanation import PassageTexts
from shinglefold.rerank.fold.clustering import Collapsed, ConnectedFolding, LeaderFolding, folding_of
from shinglefold.rerank.fold.leader_groups import GroupByLeader, leader_groups
from shinglefold.rerank.fold.matcher import Matcher
from shinglefold.rerank.hits import FingerprintColumns, Hit
from shinglefold.rerank.page.cursor import Cursor
from shinglefold.rerank.page.fetch import without_ids
from shinglefold.rerank.page.partial_answer import CUT, PartialAnswer, missing
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
from shinglefold.rerank.request.fold_options import FoldOptions
from shinglefold.rerank.request.sort_order import with_constant_key, without_constant_key

if TYPE_CHECKING:
    from shinglefold.rerank.fold.text_verification import TextStage


StoppedBy = Literal[
    "page_full", "end_of_results", "window_cap", "partial_answer", "k_reached", "rank_window_reached"
]
#: The most hits requested at once; with one more a window is as large as servers allow by default.
_MOST = 9_999


class WindowReader:
    """Reads the hits of one search and folds them, until the page is full.

    Hits are folded block by block. A block ends after ``window`` hits, or earlier if the last ones have
    the same sort values as the next. So groups depend neither on the size of requests nor on the hit at which
    reading began.

    Args:
        texts: finds the matching passages that the page shows.
        stage: decides the uncertain pairs of the page.
        numbers: whether to read sequence numbers instead of ids if possible.
        own_order: the sort key of the engine's own order of equal hits, if it has one.
        tie: the last sort key; None leaves the order, and its ties, to the engine.
        pit: the point in time to read under; ``keep``: the other keys of ``pit`` in a body.
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

    def __init__(
        self,
        body: Mapping[str, Any],
        options: FoldOptions,
        scheme: Scheme,
        field: str,
        *,
        seal: Seal | None = None,
        lead: GroupByLeader = leader_groups,
        texts: PassageTexts | None = None,
        stage: "TextStage | None" = None,
        cursor: Cursor | None = None,
        numbers: bool = False,
        own_order: str | None = None,
        tie: str | None = None,
        pit: str | None = None,
        keep: JSON | None = None,
        most: int = _MOST,
        constant: bool = False,
    ) -> None:
        self.body, self.options = body, options
        self.scheme, self.field, self.seal = scheme, field, seal
        self.texts, self.stage = texts, stage
        self.cursor = cursor
        #: Whether hits come with everything that the request returns of them.
        self.completely = read_completely(body)
        self.numbers = numbers and not self.completely
        self.tie, self.pit, self.keep = tie, pit, keep or {}
        self.owns_pit = False
        self.most = most
        self.constant = constant
        self.start, self.size = page_bounds(body)
        self.first: JSON | None = None
        self.partial = PartialAnswer()
        self.ended = self.broken = False
        self.k_raised = False
        #: The number of hits, if it had to be counted.
        self._total: JSON | None = None
        #: Whether hits that were counted but not read were read again.
        self._verified = False
        self._lead = lead
        self._own_order = own_order
        self._rank_window = rank_window(body)
        self._shared = Matcher.of(scheme, options).min_shared > 0
        self.fields = window_fields(options, field, self._shared)
        self._earlier: Sequence[Hit] = ()
        self._pending: list[JSON] = []
        self._after: JSON = {}
        self._cap = options.max_window
        if cursor is not None:
            self._earlier = cursor.shown
            # The cap must not cut a block: the next page would begin with it and fold it differently.
            self._cap = max(1, options.max_window // options.window) * options.window
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
        return "engine" if self.tie in (None, self._own_order) else str(self.tie)

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
        return self._folding.hits

    @property
    def stopped_by(self) -> StoppedBy | None:
        """Why reading stops; None if there is more to read."""
        if self._full():
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
        return self._folding.collapsed()

    def columns(self, places: Sequence[int]) -> FingerprintColumns:
        """Return the fingerprints of the given hits."""
        return self._folding.columns(places)

    def block_start(self, place: int) -> int:
        """Return where the block of a hit begins."""
        return max((begin for begin in self._borders if begin <= place), default=0)

    def first_size(self) -> int:
        """Return how many hits to request first: up to the cap if later ones may join groups."""
        if self.options.linkage == "connected":
            return self.options.max_window
        blocks = -(-self.needed // self.options.window)
        return min(blocks * self.options.window, self._cap)

    def read(self, index: str | None, tie: str | None) -> Steps[None]:
        """Read the first hits, in the engine's own order or with ties broken."""
        self.tie = tie
        if tie is None:
            yield from self._read_from_start(index, self.first_size())
        else:
            self._restart()
            yield from self._read_runs(index)

    def require_ids(self) -> None:
        """Read ids instead of sequence numbers from now on."""
        self.numbers = False

    def read_again(self, index: str | None) -> Steps[None]:
        """Read the same number of hits again, with ids, which do not change when documents are updated."""
        self.require_ids()
        size = max(len(self.hits), self.first_size())
        self._restart()
        if self.tie is None:
            yield from self._read_from_start(index, min(size, self._cap))
        else:
            yield from self.read_on(index)

    def read_more(self, index: str | None) -> Steps[None]:
        """Read longer windows from the first hit on, for queries without ``search_after``."""
        while self.stopped_by is None:
            size = max(2 * len(self.hits), self.first_size())
            self.k_raised = raisable_k(self.body) is not None
            yield from self._read_from_start(index, min(size, self._cap))

    def read_on(self, index: str | None) -> Steps[None]:
        """Read until ``stopped_by`` is set; each request continues where the last one ended."""
        while self.stopped_by is None:
            yield from self._read_runs(index)

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
        yield from self.read_on(None)

    def under_pit(self, index: str | None, body: JSON) -> tuple[str | None, JSON]:
        """Return index and body of a request: those given, or under the point in time if there is one."""
        if self.pit is None:
            return index, body
        return None, {**body, "pit": {**self.keep, "id": self.pit}}

    def read_shown(self, index: str | None, count: int) -> Steps[None]:
        """Read the first ``count`` hits and remember their representatives as shown on earlier pages."""
        # Read complete blocks, as with a cursor: an incomplete one would have other representatives.
        before = WindowReader(
            self.body,
            self.options,
            self.scheme,
            self.field,
            seal=self.seal,
            lead=self._lead,
            cursor=Cursor(""),
            tie=self.tie,
            pit=self.pit,
            keep=self.keep,
            constant=self.constant,
        )
        # Totals are not needed, and only the count ends the reading.
        before.first, before._cap, before.size = {}, maxsize, count
        before._restart()
        while before.stopped_by is None and len(before.hits) < count:
            yield from before._read_runs(index)
        self.pit = before.pit
        found = [group for group in before.collapsed().groups if group.members[0] < count]
        self._earlier = [*(before.hits[group.representative] for group in found), *self._earlier]
        self._restart()

    def _read_from_start(self, index: str | None, size: int) -> Steps[None]:
        """Read a window in the engine's own order."""
        if not self._is_fresh:
            self._restart()
        size = size if self._rank_window is None else min(size, self._rank_window)
        answer = yield from self._send(index, self._window(size))
        if self._begins_again(answer, size):
            answer = yield from self._send(index, self._window(size))
        self._pending = self._record_hits(answer, size)
        self._fold((), last=True)

    def _read_runs(self, index: str | None) -> Steps[None]:
        """Read on from the last hit; leave out trailing hits that may have equals in the next answer."""
        left = max(self._cap - self._taken, 0)
        size = max(1, min(self._size, left, self.most)) if self._taken else min(self._size, self.most)
        answer = yield from self._search_run(index, size)
        if answer is None:
            return
        if len(answer["hits"]["hits"]) <= size:
            yield from self._count(index, answer)
        if self._begins_again(answer, size + 1):
            self._size = max(self._size, size)
            return
        hits = self._record_hits(answer, size + 1)
        count = complete_tie_groups(hits, size)
        if hits and not count:
            # All requested hits have equal sort values: request more.
            self._capped = bool(self._taken) or size >= self.most
            self._size = 2 * size
        self._pending += hits[:count]
        self._taken += count
        self._after = {"search_after": hits[count - 1]["sort"]} if count else self._after
        self._capped = self._capped or self._taken >= self._cap
        self._fold(hits[count:], last=self.ended or self.broken or (self._capped and self.cursor is None))
        self._size = max(self._size, 2 * size)

    def record_response(self, answer: JSON) -> None:
        """Record what an answer lacks, and the new id of its point in time."""
        self.partial.note(answer)
        self.pit = answer.get("pit_id", self.pit)

    def _search_run(self, index: str | None, size: int) -> Steps[JSON | None]:
        """Return the answer to a request; None if the index allows only smaller windows."""
        window = self._window(size + 1) | {"sort": total_order(self.body, str(self.tie))}
        window |= self._after or after_hit(self.body, str(self.tie))
        try:
            answer: JSON = yield from self._send(index, window)
        except WindowTooLarge:
            if size == 1:
                raise
            self.most = size // 2
            return None
        self.pit = answer.get("pit_id", self.pit)
        return answer

    def _send(self, index: str | None, window: JSON) -> Steps[JSON]:
        """Return the answer to the request of a window."""
        constant = self.constant and "sort" in window
        sent = with_constant_key(window) if constant else window
        answer: JSON = yield Call("search", self.under_pit(index, sent))
        refuse_small_windows(answer)
        if constant:
            without_constant_key(answer["hits"]["hits"])
        return answer

    def _begins_again(self, answer: JSON, size: int) -> bool:
        """Return whether to read from the start again, because an answer lacks hits for the first time."""
        if self._verified or not self._cut(answer, size):
            return False
        self._verified = self.constant = True
        self.first = self._total = None
        size = self._size
        self._restart()
        self._size = max(size, self._size)
        return True

    def _window(self, size: int) -> JSON:
        body = with_greater_k(self.body, size) if self.k_raised else with_rank_window(self.body, size)
        window = window_body(body, size, self.fields, first=self.first is None)
        return without_ids(window) if self.numbers else window

    def _record_hits(self, answer: JSON, size: int) -> list[JSON]:
        """Return the hits of an answer and record whether there are no more."""
        self._is_fresh = False
        if self.first is None:
            self.first = answer
        hits: list[JSON] = answer["hits"]["hits"]
        # A pipeline that removes hits does so in later answers, too, which have no totals.
        broken = self.partial.note(answer, self._cut(answer, size)) or CUT in self.partial.lacks
        k = None if self.k_raised else raisable_k(self.body)
        self.ended = len(hits) < size and not broken and (k is None or k >= size)
        self.broken = len(hits) < size and broken
        return hits

    def _cut(self, answer: JSON, size: int) -> int:
        """Return the least number of counted hits that are missing.

        A search pipeline removed them, or the server lost them. 0 if totals do not bound the hits: if not
        only a query finds them, after a request's own ``search_after``, and in partial answers
        (Elasticsearch counts on after ``terminate_after``).
        """
        if not self._is_counted or missing(answer):
            return 0
        total = self._total or (self.first or answer)["hits"].get("total")
        counted = total["value"] if isinstance(total, Mapping) else 0
        return max(0, min(size, counted - self._behind) - len(answer["hits"]["hits"]))

    @property
    def _is_counted(self) -> bool:
        """Whether totals count the hits that are read."""
        return "search_after" not in self.body and narrowable(self.body)

    @property
    def _behind(self) -> int:
        """How many hits were read before the next request, those of earlier pages included."""
        return self._taken + (self.cursor.behind if self.cursor is not None else 0)

    def _count(self, index: str | None, answer: JSON) -> Steps[None]:
        """Count the hits at the end of a walk, if the answers so far don't tell their number."""
        total = (self.first or answer)["hits"].get("total")
        exact = isinstance(total, Mapping) and total["relation"] == "eq"
        if exact or not self._behind or not self._is_counted or self.first == {}:
            return
        body = {**window_body(self.body, 0, (), first=False), "track_total_hits": True}
        counted = yield Call("search", self.under_pit(index, body))
        self._total = counted["hits"]["total"]

    def _full(self) -> bool:
        return isinstance(self._folding, LeaderFolding) and len(self._folding) >= self.needed

    def _restart(self) -> None:
        #: Whether no hits were read since the last ``_restart``.
        self._is_fresh = True
        self._folding: LeaderFolding | ConnectedFolding = folding_of(
            self.scheme, self.options, self.field, self._earlier, self.seal, lead=self._lead
        )
        self._pending = []
        self._borders: list[int] = []
        self._taken = 0
        self._size = self.first_size()
        self._capped = self.broken = self.ended = False
        self._after = {}
        if self.cursor is not None and self.cursor.after is not None:
            self._after = {"search_after": self.cursor.after}

    def _fold(self, tail: Sequence[JSON], last: bool) -> None:
        """Fold the complete blocks, and with ``last`` the rest; ``tail`` are the hits that follow."""
        while self._pending and (last or len(self._pending) + len(tail) > self.options.window):
            count = self._block([*self._pending, *tail])
            if not last and count > len(self._pending):
                return
            self._borders.append(len(self.hits))
            self._folding.add(self._pending[:count])
            del self._pending[:count]

    def _block(self, hits: Sequence[JSON]) -> int:
        """Return how many of the next hits are a block."""
        window = self.options.window
        if self.tie is None:
            return window
        count = complete_tie_groups(hits[: window + 1], window)
        while not count and window < len(hits):
            window += 1
            count = complete_tie_groups(hits[: window + 1], window)
        return count or len(hits)
