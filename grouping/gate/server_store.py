"""The store of a gate on a server: a user's index with guards, and the index of intents.

About once a second it also refreshes the index, clears the intents of crashed writers, and checks that the
index was not replaced. Outages of up to a minute are tolerated: other gates know accepted documents by their
intents until searches see them. ``sweep`` removes the placeholders that crashed writers left in the index.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON, Engine, Guard, GuardedWrites, VersionedDocument
from shinglefold.errors import EngineError, EngineUnavailable, ShinglefoldError
from shinglefold.grouping.candidate_search import Steps, StoredDocuments
from shinglefold.grouping.gate.opening import EngineCalls, GateSetup, concrete_index
from shinglefold.grouping.gate.protocol.intent_register import SharedRegister
from shinglefold.grouping.gate.protocol.pending_document import (
    DONE,
    Action,
    CountGroups,
    FindDocuments,
    FindGroups,
    GateFields,
    Pause,
    Put,
    ReadDocuments,
    Refresh,
    Request,
    Write,
    id_and_routing,
    now,
)
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


@dataclass(slots=True)
class ServerStore:
    """An index on a server, and its index of intents.

    Attributes:
        engine: blocking or awaited; ``calls`` says how it is called.
        register: the intents of all gates of the index.
        read_back: receives the server's own pipelines of the index.
    """

    engine: Any
    calls: EngineCalls
    setup: GateSetup
    register: SharedRegister
    documents: StoredDocuments
    read_back: ReadBack
    _refreshed: float = field(default_factory=time.monotonic)
    _checked: float = field(default_factory=time.monotonic)
    #: Whether an error reported that the index was replaced.
    _changed: bool = False
    _refreshing: tuple[asyncio.Task[None], tuple[str, ...]] | None = None
    #: When the first failure in a row happened.
    _failing: float | None = None

    def turn(self, _given_up: Callable[[], bool]) -> AbstractAsyncContextManager[None]:
        """Return a context that does nothing: each write is durable once it is answered."""
        return nullcontext()

    async def answer(self, request: Request) -> Any:  # noqa: ANN401 - what each request is answered
        """Answer one request of the protocol."""
        if isinstance(request, Pause):
            return await asyncio.sleep(request.milliseconds * random.uniform(0.5, 1.5) / 1000)
        return await run_async(self._calls(request), self.calls.call)

    async def run_due(self) -> None:
        """Do the background work that is due.

        Raises:
            EngineError: the name means another index now, or the engine failed for over a minute.
        """
        try:
            if self._refreshing is not None and self._refreshing[0].done():
                await self._finish_refresh()
                self._failing = None
                await run_async(self.register.clean(self.setup.context.gate_fields), self.answer)
            if self._changed or time.monotonic() - self._checked > _INTERVAL:
                await self._check_index()
        except EngineUnavailable:
            self._failing = self._failing or time.monotonic()
            if time.monotonic() - self._failing > _GRACE:
                raise
        due = self._refreshing is None and time.monotonic() - self._refreshed > _INTERVAL
        if due and (batches := self.register.settled_batches()):
            refresh = self.calls.concurrently(self._refresh)
            self._refreshing = asyncio.create_task(refresh), batches

    async def publish(self) -> None:
        """Make accepted documents visible to searches."""
        # If the refresh fails, the intents stay published.
        with suppress(EngineUnavailable):
            await self._finish_refresh()
        await run_async(publish_settled(self.register), self.answer)

    async def depart(self) -> None:
        """Delete the gate's intents."""
        await run_async(self.register.depart(), self.answer)

    async def close(self) -> None:
        """Check the index after the last document.

        Raises:
            EngineError: the index was deleted, replaced or set up otherwise, and no call reported it.
        """
        if not self._changed:
            with suppress(EngineUnavailable):
                await self._check_index()

    async def cause_of(self, failure: BaseException) -> BaseException:
        """Return why a request failed: an index that was replaced, or else the failure itself."""
        if self._changed or not isinstance(failure, EngineError):
            return failure
        try:
            await self._check_index()
        except ShinglefoldError as error:
            return failure if isinstance(error, EngineUnavailable) else error
        return failure

    async def _check_index(self) -> None:
        self._checked = time.monotonic()
        setup = self.setup
        identities = await self.calls.call(lambda: self.engine.identities(setup.names))
        try:
            setup.check_same(identities)
            setup.check_recipe(await self.calls.call(lambda: self.engine.mappings(setup.index)))
            self.read_back.add_pipelines(
                await self.calls.call(lambda: self.engine.ingest_pipelines(setup.index))
            )
        except EngineUnavailable:
            raise
        except ShinglefoldError:
            self._changed = True
            raise

    async def _finish_refresh(self) -> None:
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
            await self.calls.call(self._refresh)
        self._refreshed = time.monotonic()
        self.register.forget(batches)

    def _refresh(self) -> Any:  # noqa: ANN401 - to be awaited, where the engine is
        return self.engine.refresh(self.setup.index)

    def _calls(self, request: Request) -> Steps[Any]:  # noqa: PLR0911 - one for each request
        match request:
            case Write():
                return (yield lambda: self.engine.write([self._action(one) for one in request.actions]))
            case ReadDocuments():
                return (yield from self._read(request))
            case FindDocuments():
                return (yield from self.documents.search(request.documents, request.deep))
            case FindGroups():
                return (yield from self.documents.in_groups(request))
            case CountGroups():
                return (yield from self.documents.counts(request))
            case Refresh():
                return (yield lambda: self.engine.refresh(self.setup.index))
            case _:
                return now()

    def _read(self, request: ReadDocuments) -> Steps[list[VersionedDocument | None]]:
        if request.where == "intents":
            records: list[VersionedDocument | None] = yield lambda: self.engine.read(
                self.setup.intents, request.ids
            )
            return records
        keys = [id_and_routing(key) for key in request.ids]
        ids, routings = [id_ for id_, _ in keys], [routing for _, routing in keys]
        fields = () if request.whole else self.setup.read_back
        held: list[VersionedDocument | None] = yield lambda: self.engine.read(
            self.setup.index, ids, fields, routings
        )
        return [
            None if document is None else replace(document, id=key)
            for document, key in zip(held, request.ids, strict=True)
        ]

    def _action(self, action: Action) -> JSON:
        bulk: JSON = {"_index": self.setup.intents, "_id": action.id}
        if action.where == "documents":
            id_, routing = id_and_routing(action.id)
            bulk = {"_index": self.setup.index, "_id": id_} | (
                {} if routing is None else {"routing": routing}
            )
        if action.guard is not None:
            bulk |= {"if_seq_no": action.guard.seq_no, "if_primary_term": action.guard.primary_term}
        if isinstance(action, Put):
            placeholder = self.documents.gate_fields.expiry_of(action.source) is not None
            if action.where == "intents" or placeholder or action.skip_pipeline:
                # A pipeline of the index would fail on a placeholder, or add fields to it.
                bulk["pipeline"] = "_none"
        return bulk | action.operation()


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
    """Return the placeholders in an index, at most 1,000; none on an embedded engine."""
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
        if document is not None and (until := gate_fields.expiry_of(document.source)) is not None
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
