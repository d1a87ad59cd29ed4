"""Scan all documents of an index, or a slice of them, under a point in time and at a limited rate."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from math import ceil
from time import monotonic, sleep
from typing import Any, TypeVar

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.documents import weight
from shinglefold.errors import (
    ConfigError,
    EngineError,
    EngineUnavailable,
    InputError,
    PitExpired,
    UnsupportedQuery,
    WindowTooLarge,
)
from shinglefold.options.validation import check_int, check_number
from shinglefold.rerank.hits import check_complete
from shinglefold.runtime.backoff import DEFAULT_BACKOFF, Backoff, retry_unavailable

_TICK = 0.2
#: The default of ``index.max_slices_per_pit``.
_MOST_SLICES = 1024
T = TypeVar("T")
EVERYTHING: Mapping[str, Any] = {"match_all": {}}
#: The characters of a page, and the number of documents in the first, the smallest and the largest page.
_BUDGET = 2_000_000
_FIRST, _LEAST, _MOST = 100, 10, 1_000
#: Minutes for which a point in time is kept between two pages: the default, and the servers' maximum.
_SHORTEST, _LONGEST = 10, 1440
_KEEP_ALIVE = f"{_SHORTEST}m"
#: How often a scan restarts after its point in time is lost.
RESTARTS = 5
#: Failures in a row after which the scan checks whether the point in time is lost.
_PROBE_EVERY = 4
#: The most indices of one scan: as many buckets as every server returns by default.
_INDICES = 10_000
#: Types of fields that Elasticsearch leaves out of a source since 9.2, unless a pattern includes them.
_VECTORS = frozenset(("dense_vector", "rank_vectors", "sparse_vector"))


@dataclass(slots=True)
class Throttle:
    """Limits a scan to ``rate`` documents per second, 0 for no limit; delays are not caught up."""

    rate: float = 0.0
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], None] = sleep
    _due: float = field(init=False)

    def __post_init__(self) -> None:
        check_number("requests_per_second (0 for no limit)", self.rate)
        self._due = self.clock()

    @property
    def keep_alive(self) -> str:
        """The ``keep_alive`` of a point in time that lasts until the page after the next, at this rate."""
        minutes = 2 * _MOST / self.rate / 60 if self.rate else 0.0
        return f"{min(_LONGEST, max(_SHORTEST, ceil(minutes)))}m"

    def wait(self, documents: int) -> None:
        """Wait until the rate allows this many more documents."""
        if not self.rate:
            return
        self._due = max(self._due + documents / self.rate, self.clock())
        while (left := self._due - self.clock()) > 0:
            # Sleep in small steps, so that Ctrl-C takes effect.
            self.sleep(min(_TICK, left))


@dataclass(frozen=True, slots=True)
class Slice:
    """Part ``number`` of ``of`` parts, counted from 1; the whole by default.

    The part of a document depends on its id only, so that several machines need no coordination.
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
        """Read ``2/4``."""
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        if found is None:
            raise ConfigError(f"part {text!r}: expected NUMBER/OF, such as 2/4 for the second of four")
        return cls(int(found[1]), int(found[2]))

    def slices(self, pieces: int) -> list[JSON]:
        """Return the part as this many ``slice`` clauses; an empty one means everything.

        If there are at least as many slices as shards, each slice reads one shard only.
        """
        first = (self.number - 1) * pieces
        if self.of * pieces == 1:
            return [{}]
        # Slice by _id: the servers' defaults differ, and Elasticsearch's changes with each point in time.
        whole = {"field": "_id", "max": self.of * pieces}
        return [{"slice": {**whole, "id": first + cut}} for cut in range(pieces)]


#: The part that is the whole index.
WHOLE = Slice()


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """The position of a scan: point in time, section, and sort values of the last hit."""

    pit: str
    section: int = 0
    after: Sequence[Any] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Hits, and the position after them."""

    hits: Sequence[JSON]
    place: ScanPosition


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a scan with a total order: a slice of one index, or of all indices if ``index`` is None."""

    index: str | None
    slice: JSON


@dataclass(frozen=True, slots=True)
class _Order:
    """How to scan an engine: the sort key, and the sections in which it is unique."""

    key: str
    sections: Sequence[Section]


_ALL = Section(None, {})


class Scan:
    """A scan of the documents that a query finds, each exactly once.

    Under a point in time, ``_shard_doc`` is unique in an index. OpenSearch restarts it in each index, so that
    several indices are scanned one after the other. OpenSearch before 3.3 lacks it, so that each shard is
    scanned separately, where ``_doc`` is unique. The sections of a point in time never change.

    Args:
        backoff: retries if the engine does not answer.
        fields: fields of the source to read; all if None.
        values: ``docvalue_fields`` to read.
    """

    def __init__(
        self,
        engine: Engine,
        index: str,
        query: Mapping[str, Any] = EVERYTHING,
        *,
        part: Slice = WHOLE,
        backoff: Backoff = DEFAULT_BACKOFF,
        keep_alive: str = _KEEP_ALIVE,
        fields: Sequence[str] | None = None,
        values: Sequence[JSON] = (),
    ) -> None:
        self.engine = engine
        self.index = index
        self.query = query
        self.part = part
        self.backoff = backoff
        self.keep_alive = keep_alive
        self.fields = fields
        self.values = values
        #: Whether hits have versions.
        self.guarded = engine.can.seq_no
        if part.of > 1 and engine.can.slices == "none":
            raise ConfigError("this engine has no slices: scan the index whole, in one process")

    def start(self) -> ScanPosition:
        """Open a point in time and return the position before its first document.

        It contains everything visible after a refresh, whichever shard copies it uses.
        """
        return ScanPosition(retry_unavailable(self._open_pit, self.backoff))

    def total(self, position: ScanPosition) -> int:
        """Return the number of documents of the whole scan."""
        order = self._order(position.pit)
        # A part may consist of several slices, which are counted one by one.
        counted = order.sections if self.part.of > 1 else [_ALL]
        return sum(self._count(position.pit, order.key, section) for section in counted)

    def pages(self, position: ScanPosition) -> Iterator[Page]:
        """Yield pages of documents after a position, with versions if the engine has them.

        Raises:
            PitExpired: the point in time was closed or ran out.
            EngineError: the engine fails.
            InputError: the index does not store its documents.
        """
        order = self._order(position.pit)
        size, most = _FIRST, _MOST
        while position.section < len(order.sections):
            try:
                hits, pit = self._page(position, order, size)
            except WindowTooLarge:
                # The index has a smaller index.max_result_window.
                if size == 1:
                    raise
                size = most = size // 2
                continue
            if len(hits) < size:
                position = ScanPosition(pit, position.section + 1)
            else:
                position = ScanPosition(pit, position.section, tuple(hits[-1]["sort"]))
            if hits:
                yield Page(hits, position)
                size = min(most, _next_size(hits))

    def close(self, position: ScanPosition) -> None:
        """Close the point in time."""
        self.engine.close_pit(position.pit)

    def _page(self, position: ScanPosition, order: _Order, size: int) -> tuple[list[JSON], str]:
        body = {
            **self._body(position.pit, order.key, order.sections[position.section]),
            "size": size,
            "track_total_hits": False,
        }
        if self.fields is not None:
            body["_source"] = list(self.fields)
        if self.values:
            body["docvalue_fields"] = list(self.values)
        if self.guarded:
            body["seq_no_primary_term"] = True
        if position.after is not None:
            body["search_after"] = list(position.after)
        answer = self._search(body)
        hits = answer["hits"]["hits"]
        if any("_source" not in hit for hit in hits):
            raise InputError(
                f"index {self.index!r} does not store its documents (_source is off): index them again from "
                "their original source"
            )
        return hits, answer.get("pit_id", position.pit)

    def _order(self, pit: str) -> _Order:
        body = {"size": 1, "_source": False, "track_total_hits": False}
        try:
            shards = self._search({**self._body(pit, "_shard_doc", _ALL), **body})["_shards"]["total"]
        except UnsupportedQuery:
            shards = self._search({**self._body(pit, "_doc", _ALL), **body})["_shards"]["total"]
            # With this many slices, each slice is in one shard.
            return _Order("_doc", self._sections(pit, shards))
        self._check_part(shards)
        return _Order("_shard_doc", self._sections(pit, 1))

    def _sections(self, pit: str, pieces: int) -> list[Section]:
        slices = self.part.slices(pieces)
        if self.engine.can.slices != "any":
            # On such an engine, the sort key is unique across all indices of a point in time.
            return [Section(None, one) for one in slices]
        return [Section(index, one) for index in self._indices(pit) for one in slices]

    def _indices(self, pit: str) -> list[str]:
        """Return the names of indices in which the query finds documents, sorted."""
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
        """Raise ``ConfigError`` for more parts than shards on an engine that slices by shards."""
        if self.engine.can.slices == "shards" and self.part.of > shards:
            raise ConfigError(
                f"{self.index!r} has {shards} shards, and this engine allows no more parts than that: "
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

    def _open_pit(self) -> str:
        return self.engine.open_pit(self.index, self.keep_alive, self.engine.can.newest)

    def _search(self, body: JSON) -> JSON:
        failures = 0

        def ask() -> JSON:
            nonlocal failures
            try:
                return self._answer(body)
            except EngineUnavailable as error:
                failures += 1
                if failures % _PROBE_EVERY == 0 and self._is_pit_lost(body["pit"]):
                    raise PitExpired("the index answers, but not under this point in time") from error
                raise

        return retry_unavailable(ask, self.backoff)

    def _answer(self, body: JSON) -> JSON:
        return check_complete(self.engine.search(None, {**body, **self.engine.can.unaltered}))

    def _is_pit_lost(self, pit: JSON) -> bool:
        """Return whether the index answers under a new point in time, but not under this one.

        Elasticsearch does not report the loss: it keeps asking for the shard copy of a node that is gone,
        even if another copy exists.
        """
        if self._responds(pit):
            return False
        try:
            fresh = self._open_pit()
        except EngineError:
            return False
        try:
            return self._responds({**pit, "id": fresh})
        finally:
            with suppress(EngineError):
                self.engine.close_pit(fresh)

    def _responds(self, pit: JSON) -> bool:
        try:
            self._answer({"pit": pit, "size": 0, "track_total_hits": False})
        except EngineError:
            return False
        return True


def whole_source(engine: Engine, index: str) -> list[str] | None:
    """Return the ``fields`` of a scan whose documents may be written back: with their vectors."""
    mappings = retry_unavailable(lambda: engine.all_mappings(index), DEFAULT_BACKOFF)
    return ["*"] if any(map(_has_vectors, mappings.values())) else None


def _has_vectors(node: Mapping[str, Any]) -> bool:
    below = ((node.get(name) or {}).values() for name in ("properties", "fields"))
    return node.get("type") in _VECTORS or any(map(_has_vectors, chain(*below)))


def restart_on_expiry(read: Callable[[], T]) -> T:
    """Return the result of a function that scans an index; repeat it if the point in time is lost."""
    for _ in range(RESTARTS):
        with suppress(PitExpired):
            return read()
    raise PitExpired(
        f"the point in time was lost {RESTARTS} times; check that the server is stable, then continue"
    )


def _next_size(hits: Sequence[JSON]) -> int:
    """Return the size of the next page; it grows in steps, because the next documents may be longer."""
    mean = max(1, sum(weight(hit["_source"]) for hit in hits) // len(hits))
    return max(_LEAST, min(_MOST, 2 * len(hits), _BUDGET // mean))
