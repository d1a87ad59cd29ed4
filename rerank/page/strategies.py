"""How the hits of a page are read: as a window, under a point in time, or from a cursor."""

from collections.abc import Mapping
from dataclasses import replace

from shinglefold.contracts.engine import JSON, Capabilities
from shinglefold.errors import (
    ConfigError,
    EngineError,
    EngineUnavailable,
    PitExpired,
    UnsupportedQuery,
    WindowTooLarge,
)
from shinglefold.rerank.engine_calls import Call, Steps
from shinglefold.rerank.fold.clustering import Group
from shinglefold.rerank.hits import mark, stored_fingerprint
from shinglefold.rerank.page.cursor import Cursor, decrypt_cursor, encrypt_cursor, request_digest
from shinglefold.rerank.page.response import KEY, answer_page
from shinglefold.rerank.page.window import WindowReader
from shinglefold.rerank.request.arguments import sort_keys
from shinglefold.rerank.request.bodies import (
    SEQ_NO,
    can_continue,
    page_bounds,
    place_key,
    resumable,
    shown_keys,
)
from shinglefold.rerank.request.fold_options import SearchRequest
from shinglefold.runtime.recent import RecentlyUsed


class WindowStrategies:
    """Chooses the cheapest way to read a window, and remembers what an engine refused.

    ``numbers``: whether hits can be identified by sequence number instead of id. ``own_order``: the sort key
    of the engine's own order of equal hits; None if it has none.
    """

    def __init__(self, can: Capabilities, tiebreaker: str | None, keep_alive: str) -> None:
        self.numbers = can.seq_no
        self.own_order = "_doc" if can.seq_no else tiebreaker
        self._seq_no = can.seq_no
        self._tiebreaker = tiebreaker
        self._keep_alive = keep_alive
        #: Whether there are several shards, by index and routing.
        self._several: RecentlyUsed[tuple[str | None, str], bool] = RecentlyUsed()

    def read(self, reading: WindowReader, routing: str) -> Steps[None]:
        """Read hits until ``reading.stopped_by`` says why no more are needed.

        The page is fetched under a point in time that is opened here. If ``reading.owns_pit``, the caller
        closes it, also after an exception.
        """
        if "pit" in reading.body:
            if reading.index is not None:
                # The engine would ignore the index, and the filters of an alias.
                raise UnsupportedQuery("search: a point in time has its index; give None as index")
            yield from self._read_given_pit(reading)
            return
        yield from self._read_first(reading, routing)
        if reading.stopped_by is None:
            # The position in a segment changes when segments merge.
            order_changes = place_key(reading.body) is not None
            if reading.tie is not None and not order_changes:
                yield from reading.read_on()
            elif (tie := reading.tie or self.own_order) is not None and can_continue(reading.body, tie):
                yield from self._read_under_pit(reading, tie)
        yield from reading.read_more()

    def _read_first(self, reading: WindowReader, routing: str) -> Steps[None]:
        """Read the first window; break its ties if there are several shards.

        One shard has one order of its own, and breaking ties costs a fifth of the window.
        """
        place = reading.index, routing
        breaks_ties = self._seq_no and can_continue(reading.body, SEQ_NO)
        tie = SEQ_NO if breaks_ties and self._several.get(place) else None
        try:
            yield from self._read_window(reading, tie)
        except WindowTooLarge:
            if not breaks_ties or tie is not None:
                raise
            # The index allows only smaller windows: read in steps.
            yield from reading.read(SEQ_NO)
            return
        if reading.first is None:
            # The index allows only smaller windows, which are read next.
            return
        several = reading.shards > 1
        if breaks_ties and several != (tie is not None):
            self._several.put(place, several)
            yield from reading.read(SEQ_NO if several else None)

    def _read_window(self, reading: WindowReader, tie: str | None) -> Steps[None]:
        try:
            yield from reading.read(tie)
        except WindowTooLarge:
            raise
        except UnsupportedQuery:
            if not reading.numbers:
                raise
            reading.require_ids()
            yield from reading.read(tie)
            # The query works with ids, so this engine lacks sequence numbers.
            self.numbers = False

    def _read_given_pit(self, reading: WindowReader) -> Steps[None]:
        """Read under the point in time that the request names."""
        pit = reading.body["pit"]
        tie = self._tiebreaker or (SEQ_NO if self._seq_no else None)
        if not (isinstance(pit, Mapping) and isinstance(pit.get("id"), str)):
            # The engine reports what is wrong with the point in time.
            yield Call("search", (None, dict(reading.body)))
        # Elasticsearch adds the tiebreaker to a sort by score alone, OpenSearch ignores such a sort.
        own = len(shown_keys(reading.body)) == len(sort_keys(reading.body))
        if tie is not None and own and can_continue(reading.body, tie):
            yield from reading.read_under(pit["id"], dict(pit), tie)
        else:
            yield from reading.read_more()
            reading.use_pit(pit["id"], dict(pit))

    def _read_under_pit(self, reading: WindowReader, tie: str) -> Steps[None]:
        """Read on under a new point in time; do nothing if the engine opens none."""
        try:
            pit = yield Call("open_pit", (reading.index, self._keep_alive))
        except EngineError:
            return
        yield from reading.read_under(pit, {"keep_alive": self._keep_alive}, tie, owned=True)


_ENDED = (
    "the cursor can't be continued; its point in time has probably ended ({}). Send the same cursor with "
    '"renew": true to continue after what was shown, or begin again with a cursor of true'
)


def begin_cursor(request: SearchRequest, scheme: str, *, keep_alive: str | None, key: bytes) -> Steps[Cursor]:
    """Return the cursor to read from: a new one, or that of the request, renewed if requested.

    Args:
        keep_alive: how long the point in time is kept; None reads without a point in time.
    """
    _check_can_page(request, order_changes=keep_alive is None)
    digest, options = request_digest(request, scheme), request.options
    cursor = decrypt_cursor(options.cursor, key) if isinstance(options.cursor, str) else Cursor(digest)
    if cursor.request != digest:
        raise ConfigError(
            "the cursor belongs to another search: query, order, index, routing and folding must stay "
            "the same; begin again with a cursor of true"
        )
    if isinstance(options.cursor, str) and not options.renew:
        return cursor
    pit = (yield Call("open_pit", (request.index, keep_alive))) if keep_alive is not None else None
    return cursor.restart(pit)


def read_page(reading: WindowReader, cursor: Cursor, key: bytes) -> Steps[JSON]:
    """Return the page a cursor points to, with the next cursor, or None after the last page."""
    begun = not isinstance(reading.options.cursor, str) or reading.options.renew
    pit = reading.pit
    try:
        if cursor.old:
            yield from reading.read_shown(cursor.old)
        yield from reading.read_on()
        answer = yield from answer_page(reading)
    except BaseException as error:
        if reading.pit is not None and (begun or reading.owns_pit):
            yield Call("close_pit", (reading.pit,))
        elif reading.pit is not None and _pit_has_ended(error):
            kind = PitExpired if isinstance(error, PitExpired) else EngineError
            raise kind(_ENDED.format(error)) from error
        raise
    # A point in time that was opened for this page alone is not for the next one.
    following = next_cursor(replace(cursor, pit=pit if reading.owns_pit else reading.pit), reading)
    if following is not None:
        texts = answer[KEY].get("by_text", {"joined": 0, "parted": 0})
        count = following.count + texts["parted"] - texts["joined"]
        following = replace(following, count=count, total=answer[KEY]["groups_total"])
    if reading.pit is not None and (following is None or reading.owns_pit):
        yield Call("close_pit", (reading.pit,))
    answer[KEY]["cursor"] = following and encrypt_cursor(following, key)
    return answer


def next_cursor(cursor: Cursor, reading: WindowReader) -> Cursor | None:
    """Return the cursor of the page after the one just read; None if there is none.

    It points to the beginning of the block in which the next group begins. So the following pages have the
    same blocks and groups as one long page.
    """
    groups = reading.collapsed().groups
    done = groups[: reading.needed]
    block_start = len(reading.hits)
    if len(done) < len(groups):
        block_start = reading.block_start(groups[len(done)].members[0])
    elif reading.ended or reading.broken:
        return None
    shown = [_shown_group(reading, group, cursor.behind) for group in done]
    return replace(
        cursor,
        after=reading.hits[block_start - 1]["sort"] if block_start else cursor.after,
        behind=cursor.behind + block_start,
        count=cursor.count + len(done),
        shown=(*cursor.shown, *shown),
    )


def _shown_group(reading: WindowReader, group: Group, hits_before: int) -> JSON:
    """Return what later pages need of a group that was shown."""
    hit = reading.hits[group.representative]
    own = stored_fingerprint(hit, reading.field)
    stored = {f"{reading.field}.{part}": value for part, value in own.items()} | (hit.get("fields") or {})
    kept = {name: stored[name] for name in reading.kept if name in stored}
    return {"mark": mark(hit), "rank": hits_before + group.members[0], "fields": kept}


def _pit_has_ended(error: BaseException) -> bool:
    return isinstance(error, EngineError) and not isinstance(error, UnsupportedQuery | EngineUnavailable)


def _check_can_page(request: SearchRequest, *, order_changes: bool) -> None:
    """Refuse a search that can't be paged by a cursor; ``order_changes``: ``_doc`` may, between pages."""
    body = request.body
    if request.options.linkage != "leader":
        raise ConfigError("a cursor needs leader linkage: later hits may join connected groups already shown")
    if request.index is None or {"pit", "search_after"} & body.keys() or page_bounds(body)[0]:
        raise ConfigError("a cursor has its own position: leave out from, search_after and pit")
    if not page_bounds(body)[1]:
        raise ConfigError("a cursor needs a page to fill: give a size of at least 1")
    if not resumable(body):
        raise ConfigError(
            "kNN, hybrid, rank fusion, rescore and random_score without a seed can't be continued from a "
            "hit: page with from and size"
        )
    if order_changes and (key := place_key(body)):
        raise ConfigError(
            f"sort: the order of {key} changes when the engine merges segments, so a cursor would lose or "
            'repeat hits. Sort by a field, or, where any order will do, by "_seq_no", the order of changes'
        )
