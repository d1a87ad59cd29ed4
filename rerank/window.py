"""Reading the window: hits until the page is full, the results end or the cap is reached."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from shinglefold.contracts import JSON
from shinglefold.rerank.cursor import Cursor
from shinglefold.rerank.folding import Collapsed, ConnectedFolding, LeaderFolding, folding_of
from shinglefold.rerank.hits import Hit
from shinglefold.rerank.matcher import Matcher
from shinglefold.rerank.options import FoldOptions
from shinglefold.rerank.request_bodies import page_bounds, total_order, window_body, window_fields
from shinglefold.rerank.seq_no import without_ids
from shinglefold.rerank.steps import Call, Steps
from shinglefold.rerank.stored_passages import Texts
from shinglefold.scheme import Scheme

StoppedBy = Literal["page_full", "end_of_results", "window_cap"]


class Reading:
    """The hits of one search, read and folded as far as its page needs them."""

    def __init__(
        self,
        body: Mapping[str, Any],
        options: FoldOptions,
        scheme: Scheme,
        field: str,
        *,
        cursor: Cursor | None = None,
        texts: Texts | None = None,
        numbers: bool = False,
    ) -> None:
        self.body = body
        #: Whether to read numbers of changes instead of ids where both will do.
        self.numbers = numbers
        self.options = options
        self.scheme = scheme
        self.field = field
        self.cursor = cursor
        #: Of what matching passages are to be shown.
        self.texts = texts
        self.start, self.size = page_bounds(body)
        #: The answer to the first request: totals and aggregations are taken from it.
        self.first: JSON | None = None
        self.ended = False
        self._asked = 0
        self._shared = Matcher.of(scheme, options).min_shared > 0
        self._fields = window_fields(options, field, self._shared)
        self._earlier: Sequence[Hit] = ()
        self._after: JSON = {}
        self._cap = options.max_window
        if cursor is not None:
            self._earlier = cursor.earlier
            self._after = {} if cursor.after is None else {"search_after": cursor.after}
            self.start = len(cursor.shown) - cursor.before
            # Blocks must begin where they would have begun without the cap.
            self._cap = max(1, options.max_window // options.window) * options.window
        self._folding = self._new_folding()

    @property
    def kept(self) -> list[str]:
        """The fields by which hits shown are recognized on later pages."""
        return window_fields(
            replace(self.options, representative=(), explain=False), self.field, self._shared
        )

    @property
    def needed(self) -> int:
        """How many groups fill the page."""
        return self.start + self.size

    @property
    def shards(self) -> int:
        """How many shards were read: in each, documents have numbers of their own."""
        count: int = (self.first or {}).get("_shards", {}).get("total", 0)
        return count

    @property
    def hits(self) -> Sequence[Hit]:
        """The hits read, in rank order."""
        return self._folding.hits

    @property
    def stopped_by(self) -> StoppedBy | None:
        """Why there is nothing more to read, or None where there is."""
        if self._full():
            return "page_full"
        if self.ended:
            return "end_of_results"
        return "window_cap" if len(self.hits) >= self._cap else None

    def collapsed(self) -> Collapsed:
        """Return the groups of the hits read."""
        return self._folding.collapsed()

    def first_size(self) -> int:
        """Return how many hits to ask for first: all there may be where later ones may join groups."""
        if self.options.linkage == "connected":
            return self.options.max_window
        blocks = -(-self.needed // self.options.window)
        return min(blocks * self.options.window, self._cap)

    def read(self, index: str | None, size: int) -> Steps[None]:
        """Read the first hits in the engine's own order."""
        self._restart()
        window = self._window(size)
        answer = yield Call("search", (index, without_ids(window) if self.numbers else window))
        self._take(answer, size)

    def read_with_ids(self, index: str | None) -> Steps[None]:
        """Read the hits again, with what identifies them whatever happens to them meanwhile."""
        self.numbers = False
        yield from self.read(index, self._asked)

    def read_more(self, index: str | None) -> Steps[None]:
        """Read ever more hits from the first one on, for queries that can't go on from a hit."""
        while self.stopped_by is None:
            size = max(2 * len(self.hits), self.first_size())
            yield from self.read(index, min(size, self._cap))

    def read_on(self, pit: str, tiebreaker: str, keep_alive: str) -> Steps[str]:
        """Read from the first hit on under a point in time, each request going on where the last ended.

        Returns:
            the point in time's latest id.
        """
        size = max(2 * len(self.hits), self.first_size())
        keep = self.body.get("pit", {"keep_alive": keep_alive})
        after = self._after
        self._restart()
        while self.stopped_by is None:
            size = min(size, self._cap - len(self.hits))
            window = self._window(size) | {
                "pit": {**keep, "id": pit},
                "sort": total_order(self.body, tiebreaker),
            }
            answer = yield Call("search", (None, window | after))
            pit = answer.get("pit_id", pit)
            self._take(answer, size)
            if self.hits:
                after = {"search_after": self.hits[-1]["sort"]}
            size *= 2
        return pit

    def _window(self, size: int) -> JSON:
        return window_body(self.body, size, self._fields, first=self.first is None)

    def _full(self) -> bool:
        return isinstance(self._folding, LeaderFolding) and len(self._folding) >= self.needed

    def _restart(self) -> None:
        if self.hits:
            self._folding = self._new_folding()

    def _new_folding(self) -> LeaderFolding | ConnectedFolding:
        return folding_of(self.scheme, self.options, self.field, self._earlier)

    def _take(self, answer: JSON, asked: int) -> None:
        """Fold an answer block by block: whom a block shows must not depend on how many were asked for."""
        if self.first is None:
            self.first = answer
        hits = answer["hits"]["hits"]
        for begin in range(0, len(hits), self.options.window):
            self._folding.add(hits[begin : begin + self.options.window])
        self._asked = asked
        self.ended = len(hits) < asked
