"""Read every document of an index once, under a point in time: all of them or a slice, at a limited rate."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from time import monotonic, sleep
from typing import Any, TypeVar

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.contracts.shard_failures import check_complete
from shinglefold.errors import (
    ConfigError,
    EngineError,
    EngineUnavailable,
    InputError,
    PitExpired,
    UnsupportedQuery,
    WindowTooLarge,
)
from shinglefold.ingest.batching import weight
from shinglefold.options.validation import check_int, check_number
from shinglefold.runtime.backoff import Backoff, retry_unavailable

_TICK = 0.2
#: As many slices as a server takes for one index (``index.max_slices_per_pit``).
_MOST_SLICES = 1024
T = TypeVar("T")
#: How often to ask again unless told.
DEFAULT_BACKOFF = Backoff()
EVERYTHING: Mapping[str, Any] = {"match_all": {}}
#: Characters a page should hold, and documents it may: big pages are few, and memory stays flat.
_BUDGET = 2_000_000
_FIRST, _LEAST, _MOST = 100, 10, 1_000
#: Minutes for which a point in time is kept between two pages: usually, and the most that servers take.
_SHORTEST, _LONGEST = 10, 1440
_KEEP_ALIVE = f"{_SHORTEST}m"
#: How often a scan is begun anew whose point in time is lost.
RESTARTS = 5
#: Of failures in a row, the one at which a look is taken whether the point in time is lost.
_DOUBTED = 4
#: Indices one scan takes: as many as servers give buckets without being asked twice.
_INDICES = 10_000


@dataclass(slots=True)
class Throttle:
    """At most ``rate`` documents a second on average, 0 for no limit; a slow stretch is not made up for."""

    rate: float = 0.0
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], None] = sleep
    _due: float = field(init=False)

    def __post_init__(self) -> None:
        check_number("requests_per_second (0 for no limit)", self.rate)
        self._due = self.clock()

    def wait(self, documents: int) -> None:
        """Wait until so many more documents were due."""
        if not self.rate:
            return
        self._due = max(self._due + documents / self.rate, self.clock())
        while (left := self._due - self.clock()) > 0:
            # In small steps, so that Ctrl-C is heard.
            self.sleep(min(_TICK, left))


@dataclass(frozen=True, slots=True)
class Slice:
    """Part ``number`` of ``of``, counted from 1; whole by default.

    Which part a document is in depends on its id alone, so machines agree without talking to each other.
    """

    number: int = 1
    of: int = 1

    def __post_init__(self) -> None:
        for name in ("number", "of"):
            check_int(name, getattr(self, name))
        if not 1 <= self.number <= self.of <= _MOST_SLICES:
            raise ConfigError(
                f"part {self}: expected NUMBER/OF from 1/1 to {_MOST_SLICES}/{_MOST_SLICES}, such as 2/4"
            )

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> "Slice":
        """Read ``2/4``.

        Raises:
            ConfigError: it is something else.
        """
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        if found is None:
            raise ConfigError(f"part {text!r}: expected NUMBER/OF, such as 2/4 for the second of four")
        return cls(int(found[1]), int(found[2]))

    def slices(self, cuts: int) -> list[JSON]:
        """Return the part as so many slices; one that is empty stands for everything.

        With as many slices as an index has shards, or more, servers give each shard slices of its own: each
        of them then reads one shard only.
        """
        first = (self.number - 1) * cuts
        if self.of * cuts == 1:
            return [{}]
        # By _id: what servers take by themselves differs, and Elasticsearch's own choice changes with every
        # point in time.
        whole = {"field": "_id", "max": self.of * cuts}
        return [{"slice": {**whole, "id": first + cut}} for cut in range(cuts)]


#: The only part there is where an index is not parted.
WHOLE = Slice()


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """How far a scan is: the point in time, the section of it, and the sort values of the last hit there."""

    pit: str
    section: int = 0
    after: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some hits, and the place behind them."""

    hits: Sequence[JSON]
    place: ScanPosition


@dataclass(frozen=True, slots=True)
class Section:
    """A share of a point in time in which the order is total: an index (None for all), and a slice of it."""

    index: str | None
    slice: JSON


@dataclass(frozen=True, slots=True)
class _Order:
    """How an engine is scanned: the sort key, and the sections in which it tells all documents apart."""

    key: str
    sections: Sequence[Section]


_ALL = Section(None, {})


class Scan:
    """What a query finds, each document once.

    Under a point in time ``_shard_doc`` tells the documents of an index apart. OpenSearch counts it anew in
    each index, so several are scanned one after the other; before 3.3 it has none, and each shard is scanned
    by itself, where ``_doc`` does the same. A point in time never changes, so neither do its sections.

    Args:
        patience: how often to ask again an engine that does not answer.
        fields: those of each document to read; all where None.
        values: what is to be told of its doc values, as ``docvalue_fields`` of a search.
    """

    def __init__(
        self,
        engine: Engine,
        index: str,
        query: Mapping[str, Any] = EVERYTHING,
        *,
        part: Slice = WHOLE,
        patience: Backoff = DEFAULT_BACKOFF,
        keep_alive: str = _KEEP_ALIVE,
        fields: Sequence[str] | None = None,
        values: Sequence[JSON] = (),
    ) -> None:
        self.engine = engine
        self.index = index
        self.query = query
        self.part = part
        self.patience = patience
        self.keep_alive = keep_alive
        self.fields = fields
        self.values = values
        #: Whether documents come with their versions.
        self.guarded = engine.can.seq_no
        if part.of > 1 and engine.can.slices == "none":
            raise ConfigError("this engine has no slices: scan the index whole, in one process")

    def start(self) -> ScanPosition:
        """Open a point in time and return the place before its first document.

        What a refresh has made visible is in it, whichever copies of the index have it by now.
        """
        return ScanPosition(retry_unavailable(self._opened, self.patience))

    def total(self, place: ScanPosition) -> int:
        """Return how many documents the whole scan meets."""
        order = self._order(place.pit)
        # A part may be of several slices, which are no slice themselves.
        counted = order.sections if self.part.of > 1 else [_ALL]
        return sum(self._count(place.pit, order.key, section) for section in counted)

    def pages(self, place: ScanPosition) -> Iterator[Page]:
        """Yield the documents behind a place, page by page, with their versions where the engine has them.

        Raises:
            PitExpired: the point in time was closed or ran out.
            EngineError: the engine can't go on.
            InputError: the index does not store its documents.
        """
        order = self._order(place.pit)
        size, most = _FIRST, _MOST
        while place.section < len(order.sections):
            try:
                hits, pit = self._page(place, order, size)
            except WindowTooLarge:
                # The index has a smaller index.max_result_window.
                if size == 1:
                    raise
                size = most = size // 2
                continue
            if len(hits) < size:
                place = ScanPosition(pit, place.section + 1)
            else:
                place = ScanPosition(pit, place.section, tuple(hits[-1]["sort"]))
            if hits:
                yield Page(hits, place)
                size = min(most, _next_size(hits))

    def close(self, place: ScanPosition) -> None:
        """Give the point in time back."""
        self.engine.close_pit(place.pit)

    def _page(self, place: ScanPosition, order: _Order, size: int) -> tuple[list[JSON], str]:
        body = {
            **self._body(place.pit, order.key, order.sections[place.section]),
            "size": size,
            "track_total_hits": False,
        }
        if self.fields is not None:
            body["_source"] = list(self.fields)
        if self.values:
            body["docvalue_fields"] = list(self.values)
        if self.guarded:
            body["seq_no_primary_term"] = True
        if place.after is not None:
            body["search_after"] = list(place.after)
        answer = self._search(body)
        hits = answer["hits"]["hits"]
        if any("_source" not in hit for hit in hits):
            raise InputError(
                f"index {self.index!r} does not store its documents (_source is off): index them again from "
                "where they came from"
            )
        return hits, answer.get("pit_id", place.pit)

    def _order(self, pit: str) -> _Order:
        body = {"size": 1, "_source": False, "track_total_hits": False}
        try:
            shards = self._search({**self._body(pit, "_shard_doc", _ALL), **body})["_shards"]["total"]
        except UnsupportedQuery:
            shards = self._search({**self._body(pit, "_doc", _ALL), **body})["_shards"]["total"]
            # So many slices or more of an index are each of one shard.
            return _Order("_doc", self._sections(pit, shards))
        self._check_part(shards)
        return _Order("_shard_doc", self._sections(pit, 1))

    def _sections(self, pit: str, cuts: int) -> list[Section]:
        slices = self.part.slices(cuts)
        if self.engine.can.slices != "any":
            # Such an engine numbers shards and documents through all indices of a point in time.
            return [Section(None, one) for one in slices]
        return [Section(index, one) for index in self._indices(pit) for one in slices]

    def _indices(self, pit: str) -> list[str]:
        """Return the indices of a point in time that the query finds something in, in order."""
        body = {
            "pit": {"id": pit, "keep_alive": self.keep_alive},
            "query": dict(self.query),
            "size": 0,
            "aggs": {"indices": {"terms": {"field": "_index", "size": _INDICES, "order": {"_key": "asc"}}}},
        }
        found = self._search(body)["aggregations"]["indices"]
        if found["sum_other_doc_count"]:
            raise ConfigError(
                f"{self.index!r} has documents in more than {_INDICES:,} indices; give a narrower pattern"
            )
        return [bucket["key"] for bucket in found["buckets"]]

    def _check_part(self, shards: int) -> None:
        """Check that all machines agree on what is in a part.

        Raises:
            ConfigError: there are more than the engine cuts alike for every machine.
        """
        if self.engine.can.slices == "shards" and self.part.of > shards:
            raise ConfigError(
                f"{self.index!r} has {shards} shards, and this engine cuts it into no more parts: "
                f"{self.part.of} are too many"
            )

    def _count(self, pit: str, key: str, section: Section) -> int:
        body = {**self._body(pit, key, section), "size": 1, "_source": False, "track_total_hits": True}
        return int(self._search(body)["hits"]["total"]["value"])

    def _body(self, pit: str, key: str, section: Section) -> JSON:
        query = dict(self.query)
        if section.index is not None:
            query = {"bool": {"filter": [query, {"term": {"_index": section.index}}]}}
        return {
            "pit": {"id": pit, "keep_alive": self.keep_alive},
            "query": query,
            "sort": [{key: "asc"}],
            **section.slice,
        }

    def _opened(self) -> str:
        return self.engine.open_pit(self.index, self.keep_alive, self.engine.can.newest)

    def _search(self, body: JSON) -> JSON:
        failures = 0

        def ask() -> JSON:
            nonlocal failures
            try:
                return self._answer(body)
            except EngineUnavailable as error:
                failures += 1
                if failures % _DOUBTED == 0 and self._is_lost(body["pit"]):
                    raise PitExpired("the index answers, but not under this point in time") from error
                raise

        return retry_unavailable(ask, self.patience)

    def _answer(self, body: JSON) -> JSON:
        return check_complete(self.engine.search(None, {**body, **self.engine.can.unaltered}))

    def _is_lost(self, pit: JSON) -> bool:
        """Tell whether the index answers under a new point in time, and not under the one that is read.

        Elasticsearch does not say so: it goes on to ask for the copy of a shard that a node took with it,
        though there is another.
        """
        if self._answers(pit):
            return False
        try:
            fresh = self._opened()
        except EngineError:
            return False
        try:
            return self._answers({**pit, "id": fresh})
        finally:
            with suppress(EngineError):
                self.engine.close_pit(fresh)

    def _answers(self, pit: JSON) -> bool:
        try:
            self._answer({"pit": pit, "size": 0, "track_total_hits": False})
        except EngineError:
            return False
        return True


def keep_alive_for(rate: float) -> str:
    """Return how long a point in time is kept between two pages, where so many documents a second are read.

    Args:
        rate: 0 for no limit.
    """
    minutes = 2 * _MOST / rate / 60 if rate else 0.0
    return f"{min(_LONGEST, max(_SHORTEST, ceil(minutes)))}m"


def restart_on_expiry(read: Callable[[], T]) -> T:
    """Return what is read of a whole index, begun anew where the point in time is lost, as with a node.

    Raises:
        PitExpired: it is lost again and again.
    """
    for _ in range(RESTARTS):
        with suppress(PitExpired):
            return read()
    raise PitExpired(
        f"the point in time was lost {RESTARTS} times; see that the server runs steadily, then go on"
    )


def _next_size(hits: Sequence[JSON]) -> int:
    """Return how many documents like these make a page; the next ones may be longer, so grow by steps."""
    mean = max(1, sum(weight(hit["_source"]) for hit in hits) // len(hits))
    return max(_LEAST, min(_MOST, 2 * len(hits), _BUDGET // mean))
