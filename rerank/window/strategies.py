"""How the window of a search is read: with ties broken or not, and under which point in time."""

from collections.abc import Mapping

from shinglefold.contracts.engine import Capabilities
from shinglefold.errors import EngineError, UnsupportedQuery, WindowTooLarge
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.request.bodies import can_go_on, place_key
from shinglefold.rerank.request.total_order import SEQ_NO
from shinglefold.rerank.window.window import WindowReader


class WindowStrategies:
    """Chooses the cheapest way to read a window, and learns from what an engine refuses.

    Args:
        tiebreaker: the sort key that makes an order total under a point in time; None where there is none.
        keep_alive: how long a point in time lives after each request.

    Attributes:
        numbers: whether hits can be read by sequence number instead of id.
        own_order: the sort key of the engine's own order of equal hits; None where it has none.
    """

    def __init__(self, can: Capabilities, tiebreaker: str | None, keep_alive: str) -> None:
        self.numbers = can.seq_no
        self.own_order = "_doc" if can.seq_no else tiebreaker
        self._seq_no = can.seq_no
        self._tiebreaker = tiebreaker
        self._keep_alive = keep_alive
        #: By index and routing searched: whether there are several shards.
        self._several: dict[tuple[str | None, str], bool] = {}

    def read(self, reading: WindowReader, index: str | None, routing: str) -> Steps[None]:
        """Read until the page is full or there is reason to stop.

        A point in time that is opened here stays open: the page is fetched under it, too. The caller closes
        it where ``reading.owns_pit``, whether this returns or raises.

        Raises:
            UnsupportedQuery: the request names a point in time, and an index beside it.
        """
        if "pit" in reading.body:
            if index is not None:
                # Its own index and filters hold; those of the name given would be passed over.
                raise UnsupportedQuery("search: a point in time has its index; give None as index")
            yield from self._read_given_pit(reading)
            return
        yield from self._read_first(index, reading, routing)
        if reading.stopped_by is None:
            # What is sorted by its place may have another one a moment later.
            moves = place_key(reading.body) is not None
            if reading.tie is not None and not moves:
                yield from reading.read_on(index)
            elif (tie := reading.tie or self.own_order) is not None and can_go_on(reading.body, tie):
                yield from self._read_under_pit(index, reading, tie)
        yield from reading.read_more(index)

    def _read_first(self, index: str | None, reading: WindowReader, routing: str) -> Steps[None]:
        """Read the first window: with its ties broken where there are several shards.

        One shard has one order of its own, and breaking ties costs a fifth of the window.
        """
        settles = self._seq_no and can_go_on(reading.body, SEQ_NO)
        tie = SEQ_NO if settles and self._several.get((index, routing)) else None
        try:
            yield from self._read_window(index, reading, tie)
        except WindowTooLarge:
            if not settles or tie is not None:
                raise
            # The index allows only smaller ones: in steps.
            yield from reading.read(index, SEQ_NO)
            return
        if reading.first is None:
            # The index allows only smaller windows, which are read next.
            return
        several = reading.shards > 1
        if settles and several != (tie is not None):
            self._several[index, routing] = several
            yield from reading.read(index, SEQ_NO if several else None)

    def _read_window(self, index: str | None, reading: WindowReader, tie: str | None) -> Steps[None]:
        try:
            yield from reading.read(index, tie)
        except WindowTooLarge:
            raise
        except UnsupportedQuery:
            if not reading.numbers:
                raise
            reading.require_ids()
            yield from reading.read(index, tie)
            # The same query with ids is fine: it was the numbers that this engine does not know.
            self.numbers = False

    def _read_given_pit(self, reading: WindowReader) -> Steps[None]:
        """Read under the point in time that the request names."""
        pit = reading.body["pit"]
        tie = self._tiebreaker or (SEQ_NO if self._seq_no else None)
        if not (isinstance(pit, Mapping) and isinstance(pit.get("id"), str)):
            # The engine says what is wrong with it.
            yield Call("search", (None, dict(reading.body)))
        if tie is not None and can_go_on(reading.body, tie):
            yield from reading.read_under(pit["id"], dict(pit), tie)
        else:
            yield from reading.read_more(None)
            reading.use_pit(pit["id"], dict(pit))

    def _read_under_pit(self, index: str | None, reading: WindowReader, tie: str) -> Steps[None]:
        """Read on under a point in time of our own; nothing where the engine opens none."""
        try:
            pit = yield Call("open_pit", (index, self._keep_alive))
        except EngineError:
            return
        yield from reading.read_under(pit, {"keep_alive": self._keep_alive}, tie, owned=True)
