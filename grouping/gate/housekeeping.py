"""Background work of a gate, about once a second, and the removal of stale placeholders.

A gate refreshes its index, clears the intents of crashed writers, and checks that the index was not replaced.
Outages of up to a minute are tolerated: other gates know accepted documents by their intents until searches
see them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON, Engine, Guard, GuardedWrites
from shinglefold.errors import EngineError, EngineUnavailable, ShinglefoldError
from shinglefold.grouping.gate.opening import EngineCalls, GateSetup, concrete_index
from shinglefold.grouping.gate.protocol.intent_register import SharedRegister
from shinglefold.grouping.gate.protocol.member import DONE, GateFields, Request, now
from shinglefold.grouping.gate.protocol.protocol import publish_settled
from shinglefold.ingest.writing.batch import ReadBack
from shinglefold.model.stored_fingerprint import PENDING, placeholder_query
from shinglefold.rerank.hits import check_complete
from shinglefold.runtime.sans_io import run_async

#: Seconds between two refreshes, and between two checks of which index the name means.
_INTERVAL = 1.0
#: How many seconds this work may fail before the gate reports an error.
_GRACE = 60.0
#: The most placeholders read at once.
_PAGE = 1000


class Housekeeping:
    """Refreshes the index while the gate decides, and clears the intents of crashed writers.

    Args:
        engine: blocking or awaited; ``calls`` says how it is called.
        answer: answers the requests of the protocol.
        read_back: is told the server's own pipelines of the index.
    """

    def __init__(
        self,
        engine: Any,  # noqa: ANN401 - blocking or awaited
        setup: GateSetup,
        calls: EngineCalls,
        answer: Callable[[Request], Awaitable[Any]],
        read_back: ReadBack,
    ) -> None:
        self._read_back = read_back
        self._engine, self._setup, self._calls, self._answer = engine, setup, calls, answer
        self._shared = setup.shared
        self._refreshed = self._checked = time.monotonic()
        #: Whether an error reported that the index was replaced.
        self._changed = False
        self._refreshing: tuple[asyncio.Task[None], tuple[str, ...]] | None = None
        #: When the first failure in a row happened.
        self._failing: float | None = None

    async def run_due(self) -> None:
        """Do the work that is due.

        Raises:
            EngineError: the name means another index now, or the engine failed for over a minute.
        """
        if self._shared is None:
            return
        try:
            await self._finish_due(self._shared)
        except EngineUnavailable:
            self._failing = self._failing or time.monotonic()
            if time.monotonic() - self._failing > _GRACE:
                raise
        due = self._refreshing is None and time.monotonic() - self._refreshed > _INTERVAL
        if due and (batches := self._shared.settled()):
            refresh = self._calls.concurrently(self._refresh)
            self._refreshing = asyncio.create_task(refresh), batches

    async def publish(self) -> None:
        """Make accepted documents visible to searches."""
        if self._shared is None:
            await self._calls.call(self._refresh)
            return
        # If the refresh fails, the intents stay published.
        with suppress(EngineUnavailable):
            await self._finish_refresh(self._shared)
        await run_async(publish_settled(self._shared), self._answer)

    async def depart(self) -> None:
        """Delete the gate's intents."""
        if self._shared is not None:
            await run_async(self._shared.depart(), self._answer)

    async def check_last(self) -> None:
        """Check the index after the last document.

        Raises:
            EngineError: the index was deleted, replaced or set up otherwise, and no call said so.
        """
        if self._shared is not None and not self._changed:
            with suppress(EngineUnavailable):
                await self._check_index()

    async def cause_of(self, failure: BaseException) -> BaseException:
        """Return why a request failed: an index that was replaced, or else the failure itself."""
        if self._shared is None or self._changed or not isinstance(failure, EngineError):
            return failure
        try:
            await self._check_index()
        except ShinglefoldError as error:
            return failure if isinstance(error, EngineUnavailable) else error
        return failure

    async def _finish_due(self, shared: SharedRegister) -> None:
        if self._refreshing is not None and self._refreshing[0].done():
            await self._finish_refresh(shared)
            self._failing = None
            await run_async(shared.clean(self._setup.context.gate_fields), self._answer)
        if self._changed or time.monotonic() - self._checked > _INTERVAL:
            await self._check_index()

    async def _check_index(self) -> None:
        self._checked = time.monotonic()
        setup = self._setup
        identities = await self._calls.call(lambda: self._engine.identities(setup.names))
        try:
            setup.check_same(identities)
            setup.check_recipe(await self._calls.call(lambda: self._engine.mappings(setup.index)))
            self._read_back.found(await self._calls.call(lambda: self._engine.ingest_pipelines(setup.index)))
        except EngineUnavailable:
            raise
        except ShinglefoldError:
            self._changed = True
            raise

    async def _finish_refresh(self, shared: SharedRegister) -> None:
        if self._refreshing is None:
            return
        (task, batches), self._refreshing = self._refreshing, None
        self._refreshed = time.monotonic()
        try:
            await task
        except EngineUnavailable:
            raise
        except EngineError:
            # The index may have been closed then, and be open again.
            await self._calls.call(self._refresh)
        self._refreshed = time.monotonic()
        shared.forget(batches)

    def _refresh(self) -> Any:  # noqa: ANN401 - to be awaited, where the engine is
        return self._engine.refresh(self._setup.index)


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder that reserves an id and routing; its lease expires at ``until``, in milliseconds."""

    id: str
    routing: str | None
    until: int
    guard: Guard

    @property
    def expired(self) -> bool:
        """Whether the lease has expired: the writer died or stalled."""
        return self.until < now()

    def to_json(self) -> JSON:
        """Return the placeholder as JSON."""
        data: JSON = {"_id": self.id, "until": self.until, "left": self.expired}
        return data if self.routing is None else {**data, "_routing": self.routing}


def placeholders(engine: Engine, index: str, field: str) -> list[Placeholder]:
    """Return the placeholders in an index, at most 1,000; none on an embedded engine.

    Raises:
        EngineError: the search failed.
        ConfigError: the name means several indices.
    """
    if not isinstance(engine, GuardedWrites):
        return []
    concrete, pending = concrete_index(engine, index), f"{field}.{PENDING}"
    engine.refresh(concrete)
    order = {pending: {"order": "asc", "unmapped_type": "long"}}
    body = {"query": placeholder_query(field), "size": _PAGE, "sort": [order], "_source": False}
    body |= engine.can.unaltered
    hits = check_complete(engine.search(concrete, body, engine.can.newest))["hits"]["hits"]
    routings = [hit.get("_routing") for hit in hits]
    stored = engine.read(concrete, [hit["_id"] for hit in hits], [pending], routings)
    gate_fields = GateFields(field)
    return [
        Placeholder(document.id, routing, until, document.guard)
        for routing, document in zip(routings, stored, strict=True)
        if document is not None and (until := gate_fields.pending(document.source)) is not None
    ]


class SweepResult(NamedTuple):
    """The placeholders that were removed, and the reasons why others were not."""

    removed: tuple[Placeholder, ...] = ()
    reasons: tuple[str, ...] = ()


def sweep(engine: Engine, index: str, field: str) -> SweepResult:
    """Remove placeholders left by crashed writers, each under its guard.

    If the writer only stalled, it finds its placeholder missing and decides about the document again.
    """
    if not isinstance(engine, GuardedWrites):
        return SweepResult()
    removed: list[Placeholder] = []
    concrete = concrete_index(engine, index)
    while expired := [one for one in placeholders(engine, concrete, field) if one.expired]:
        results = engine.write([_deletion(concrete, one) for one in expired])
        gone = [one for one, result in zip(expired, results, strict=True) if result.status == DONE]
        removed += gone
        if not gone:
            return SweepResult(tuple(removed), tuple(dict.fromkeys(result.reason for result in results)))
    return SweepResult(tuple(removed))


def _deletion(index: str, placeholder: Placeholder) -> JSON:
    guard = {"if_seq_no": placeholder.guard.seq_no, "if_primary_term": placeholder.guard.primary_term}
    action = {"_op_type": "delete", "_index": index, "_id": placeholder.id, **guard}
    return action if placeholder.routing is None else {**action, "routing": placeholder.routing}
