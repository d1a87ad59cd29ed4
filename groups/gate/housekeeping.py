"""What a gate does beside decisions, about once a second: refreshing, clearing away, looking at its index.

Where the engine is not there for a moment all this is done a second later: decisions meet the same, and what
was let in is known to all until searches see it.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from shinglefold.contracts import JSON, Engine, Guard, GuardedWrites
from shinglefold.errors import EngineUnavailable
from shinglefold.groups.gate.intent_register import Shared
from shinglefold.groups.gate.opening import Opened, concrete_index
from shinglefold.groups.gate.placeholders import Forms
from shinglefold.groups.gate.requests import DONE
from shinglefold.groups.gate.server_store import now
from shinglefold.placeholders import PENDING, placeholder_query
from shinglefold.steps import drive

#: Seconds after which searches are made to see what was let in.
SECONDS = 1.0
#: Seconds for which it may fail.
_PATIENCE = 60.0


class Borne:
    """What may fail for a while."""

    def __init__(self) -> None:
        self._since: float | None = None

    def bear(self, error: EngineUnavailable) -> None:
        """Note a failure.

        Raises:
            EngineUnavailable: it has failed for too long.
        """
        self._since = self._since or time.monotonic()
        if time.monotonic() - self._since > _PATIENCE:
            raise error

    def done(self) -> None:
        """Note that it went well."""
        self._since = None


class Aside:
    """Has searches see what was let in while decisions go on, and clears away what the dead have left."""

    def __init__(self, engine: Engine, opened: Opened) -> None:
        self._engine, self._opened, self._shared = engine, opened, opened.shared
        self._refreshed = self._looked = time.monotonic()
        self._refreshing: Future[None] | None = None
        self._rounds: tuple[str, ...] = ()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="shinglefold-gate")
        self._borne = Borne()

    def look(self, answer: Callable[[Any], Any]) -> None:
        """Do what is due.

        Raises:
            EngineError: the index is another than the gate was opened before, or the engine can't go on.
        """
        if self._shared is None:
            return
        try:
            self._settle_what_is_due(self._shared, answer)
        except EngineUnavailable as error:
            self._borne.bear(error)
        if self._refreshing is None and time.monotonic() - self._refreshed > SECONDS:
            self._rounds = self._shared.settled()
            if self._rounds:
                self._refreshing = self._thread.submit(self._engine.refresh, self._opened.index)

    def wait(self) -> None:
        """Wait for a refresh that goes on; where it fails, what it was for stays known to all."""
        if self._refreshing is not None:
            self._refreshing.exception()
            with suppress(EngineUnavailable):
                self._settle()

    def close(self) -> None:
        """End the thread that refreshes."""
        self._thread.shutdown()

    def _settle_what_is_due(self, shared: Shared, answer: Callable[[Any], Any]) -> None:
        if self._refreshing is not None and self._refreshing.done():
            self._settle()
            self._borne.done()
            drive(shared.clean(self._opened.forms), answer)
        if time.monotonic() - self._looked > SECONDS:
            self._looked = time.monotonic()
            self._same()

    def _settle(self) -> None:
        refreshing, self._refreshing = self._refreshing, None
        self._refreshed = time.monotonic()
        if refreshing is not None and self._shared is not None:
            refreshing.result()
            self._shared.seen(self._rounds)

    def _same(self) -> None:
        if isinstance(self._engine, GuardedWrites):
            self._opened.check_same(self._engine.identities(self._opened.names))


#: Places looked at together.
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Place:
    """A place that a gate keeps: for a document of this id and routing, until a time in milliseconds."""

    id: str
    routing: str | None
    until: int
    guard: Guard

    @property
    def left(self) -> bool:
        """Whether the lease is over, so that who kept it died, or has stood still for longer."""
        return self.until < now()

    def to_json(self) -> JSON:
        """Return it as JSON."""
        told: JSON = {"_id": self.id, "until": self.until, "left": self.left}
        return told if self.routing is None else {**told, "_routing": self.routing}


def places(engine: Engine, index: str, field: str) -> list[Place]:
    """Return the places that gates keep in an index, at most 1,000; none where one process writes.

    Raises:
        EngineError: the engine can't tell.
        ConfigError: the name means several indices.
    """
    if not isinstance(engine, GuardedWrites):
        return []
    concrete, pending = concrete_index(engine, index), f"{field}.{PENDING}"
    engine.refresh(concrete)
    order = {pending: {"order": "asc", "unmapped_type": "long"}}
    body = {"query": placeholder_query(field), "size": _PAGE, "sort": [order], "_source": False}
    body |= engine.can.unaltered
    hits = engine.search(concrete, body, engine.newest)["hits"]["hits"]
    named = [(hit["_id"], hit.get("_routing")) for hit in hits]
    held = engine.read(concrete, [id_ for id_, _ in named], [pending], [routing for _, routing in named])
    forms = Forms(field)
    return [
        Place(one.id, routing, until, one.guard)
        for (_, routing), one in zip(named, held, strict=True)
        if one is not None and (until := forms.pending(one.source)) is not None
    ]


class Swept(NamedTuple):
    """The places that were removed, and why others were not."""

    removed: tuple[Place, ...] = ()
    reasons: tuple[str, ...] = ()


def sweep(engine: Engine, index: str, field: str) -> Swept:
    """Remove the places that the dead have left, each under its guard.

    A writer that only stood still begins again with that document.
    """
    if not isinstance(engine, GuardedWrites):
        return Swept()
    removed: list[Place] = []
    concrete = concrete_index(engine, index)
    while found := [place for place in places(engine, concrete, field) if place.left]:
        written = engine.write([_drop(concrete, place) for place in found])
        gone = [place for place, one in zip(found, written, strict=True) if one.status == DONE]
        removed += gone
        if not gone:
            return Swept(tuple(removed), tuple(dict.fromkeys(one.reason for one in written)))
    return Swept(tuple(removed))


def _drop(index: str, place: Place) -> JSON:
    guard = {"if_seq_no": place.guard.seq_no, "if_primary_term": place.guard.primary_term}
    sent = {"_op_type": "delete", "_index": index, "_id": place.id, **guard}
    return sent if place.routing is None else {**sent, "routing": place.routing}
