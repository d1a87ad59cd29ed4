"""The store of a gate on an embedded engine; one process at a time writes to its index."""

import asyncio
import operator
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from shinglefold.contracts.engine import Guard, VersionedDocument, WriteResult
from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.grouping.candidate_search import StoredDocuments
from shinglefold.grouping.gate.protocol.pending_document import (
    CONFLICT,
    DONE,
    GROUP,
    MISSING,
    Action,
    CountGroups,
    Delete,
    FindDocuments,
    FindGroups,
    Now,
    PendingDocument,
    Put,
    ReadDocuments,
    Request,
    SearchHits,
    Write,
    id_and_routing,
    now,
)
from shinglefold.runtime.sans_io import run

#: Seconds to wait for another process that writes to an embedded index.
_MAX_WAIT = 60.0
#: Seconds between two attempts, and before the next attempt after another gate requested the lease.
_RETRY, _YIELD = 0.005, 0.03
#: Seconds without a turn after which the lease is released.
_IDLE = 0.1


@dataclass(slots=True)
class ExclusiveStore:
    """An index that nobody else writes to during a turn, so that placeholders stay in memory.

    It holds the exclusive write lease of the index across turns. Releasing the lease waits for segments to be
    merged, which otherwise runs during decisions. So it is released only when another gate requests it, or
    after 0.1 s without a turn.
    """

    engine: Any
    index: str
    documents: StoredDocuments
    #: The lease while it is held, and the timer that releases it.
    _held: ExitStack | None = None
    _idle: asyncio.TimerHandle | None = None
    #: The placeholders by document key: version and source.
    _placeholders: dict[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)

    @asynccontextmanager
    async def turn(self, given_up: Callable[[], bool]) -> AsyncIterator[None]:
        """Keep the lease for a turn; all writes are durable at its end.

        Raises:
            EngineUnavailable: another process kept the lease for too long, or no caller waits any more.
        """
        # Documents that searches can't see yet are looked up by these fields.
        parts = ("supershingles", "digest", GROUP)
        fields = [f"{self.documents.gate_fields.field}.{part}" for part in parts]
        self._stop_timer()
        try:
            if self._held is None:
                self._held = await self._acquire(given_up)
            with self.engine.deciding(self.index, fields):
                self._placeholders, self._versions = {}, {}
                yield
        finally:
            if self._held is not None:
                if self.engine.lease_requested(self.index):
                    self._release()
                    await asyncio.sleep(_YIELD)
                else:
                    self._idle = asyncio.get_running_loop().call_later(_IDLE, self._release_idle)

    def _release(self) -> None:
        """Let other processes write."""
        self._stop_timer()
        if self._held is not None:
            held, self._held = self._held, None
            held.close()

    def _release_idle(self) -> None:
        with suppress(EngineError):
            self._release()

    def _stop_timer(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    async def _acquire(self, given_up: Callable[[], bool]) -> ExitStack:
        end = time.monotonic() + _MAX_WAIT
        held = ExitStack()
        while True:
            try:
                held.enter_context(self.engine.lease(self.index))
            except EngineUnavailable:
                if time.monotonic() > end or given_up():
                    raise
                self.engine.request_lease(self.index)
                await asyncio.sleep(_RETRY)
            else:
                return held

    async def answer(self, request: Request) -> Any:  # noqa: ANN401, PLR0911 - one for each request
        """Answer one request of the protocol."""
        match request:
            case Write():
                return self._write(request.actions)
            case ReadDocuments():
                return self._read(request.ids)
            case FindDocuments():
                return self._search(request)
            case FindGroups():
                return self._in_groups(request)
            case CountGroups():
                return self._counts(request)
            case Now():
                return now()
            case _:
                # Uncommitted documents are found without a refresh, and there is no other writer to wait for.
                return None

    async def run_due(self) -> None:
        """Do nothing: there is no other gate at work."""

    async def publish(self) -> None:
        """Make accepted documents visible to searches."""
        self.engine.refresh(self.index)

    async def depart(self) -> None:
        """Do nothing: nothing was published."""

    async def close(self) -> None:
        """Let other processes write."""
        self._release()

    async def cause_of(self, failure: BaseException) -> BaseException:
        """Return the failure itself."""
        return failure

    def _search(self, request: FindDocuments) -> list[SearchHits]:
        """Return what a search finds, and documents that searches can't see yet."""
        items = request.documents
        found = run(self.documents.search(items, request.deep), operator.call)
        numbers = {number for item in items for number in item.numbers} if self.documents.groups else ()
        taken = frozenset(self._pending_by_group(tuple(numbers)))
        return [
            replace(
                hits,
                ids=tuple(dict.fromkeys((*hits.ids, *uncommitted))),
                taken=hits.taken | taken.intersection(item.numbers),
            )
            for item, hits, uncommitted in zip(items, found, self._candidates(items), strict=True)
        ]

    def _candidates(self, items: Sequence[PendingDocument]) -> list[list[str]]:
        """Return the ids of stored documents that may match each item and that searches can't see yet."""
        wanted = [self.documents.lookup.nominating_values([item.print]) for item in items]
        found: dict[str, dict[Any, list[str]]] = {}
        for path in {path for by_path in wanted for path in by_path}:
            values = {value for by_path in wanted for value in by_path[path]}
            found[path] = self.engine.pending_by_value(self.index, path, values)
        return [
            [
                id_
                for path, values in by_path.items()
                if (ids := found[path])
                for value in values
                for id_ in ids.get(value, ())
            ]
            for by_path in wanted
        ]

    def _pending_by_group(self, groups: Sequence[int]) -> dict[Any, list[str]]:
        """Return ids that searches may not see yet, by group; some may be in another group by now."""
        path = f"{self.documents.gate_fields.field}.{GROUP}"
        found: dict[Any, list[str]] = self.engine.pending_by_value(self.index, path, groups)
        return found

    def _in_groups(self, request: FindGroups) -> list[tuple[str, ...]]:
        found = run(self.documents.in_groups(request), operator.call)
        new = self._pending_by_group(request.groups)
        return [
            tuple(dict.fromkeys((*new.get(group, ()), *ids)))[: request.limit]
            for group, ids in zip(request.groups, found, strict=True)
        ]

    def _counts(self, request: CountGroups) -> list[int]:
        found = run(self.documents.counts(request), operator.call)
        new = self._pending_by_group(request.groups)
        return [count + len(new.get(group, ())) for group, count in zip(request.groups, found, strict=True)]

    def _read(self, keys: Sequence[str]) -> list[VersionedDocument | None]:
        stored = [key for key in keys if key not in self._placeholders]
        sources = self.engine.get_all(self.index, [id_and_routing(key)[0] for key in stored])
        found = dict(zip(stored, sources, strict=True))
        return [self._version_of(key, found.get(key)) for key in keys]

    def _version_of(self, key: str, source: Mapping[str, Any] | None) -> VersionedDocument | None:
        version = self._versions.get(key, 0)
        if key in self._placeholders:
            version, source = self._placeholders[key]
        return None if source is None else VersionedDocument(key, source, Guard(version, 0))

    def _write(self, actions: Sequence[Action]) -> list[WriteResult]:
        """Run actions on different documents by one read and one bulk request."""
        held = self._read([action.id for action in actions])
        results = [self._answer_here(action, one) for action, one in zip(actions, held, strict=True)]
        answers = iter(
            self._bulk([action for action, done in zip(actions, results, strict=True) if done is None])
        )
        return [next(answers) if done is None else done for done in results]

    def _answer_here(self, action: Action, held: VersionedDocument | None) -> WriteResult | None:
        """Answer an action on a placeholder or with a wrong guard; None if the engine must run it."""
        if isinstance(action, Put) and action.create:
            if held is not None:
                return WriteResult(CONFLICT)
            version = self._next_version(action.id)
            self._placeholders[action.id] = version, action.source
            return WriteResult(DONE, Guard(version, 0))
        if held is None or (action.guard is not None and action.guard != held.guard):
            return WriteResult(CONFLICT if held is not None else MISSING)
        placeholder = self._placeholders.pop(action.id, None)
        return WriteResult(DONE) if isinstance(action, Delete) and placeholder is not None else None

    def _bulk(self, actions: Sequence[Action]) -> list[WriteResult]:
        bulk = [
            {"_index": self.index, "_id": id_and_routing(action.id)[0], **action.operation()}
            for action in actions
        ]
        refused = {id(failure.action): failure for failure in self.engine.bulk(bulk).failures}
        return [
            WriteResult(failure.status, None, failure.reason)
            if (failure := refused.get(id(sent)))
            else WriteResult(DONE, Guard(self._next_version(action.id), 0))
            for action, sent in zip(actions, bulk, strict=True)
        ]

    def _next_version(self, key: str) -> int:
        self._versions[key] = self._versions.get(key, 0) + 1
        return self._versions[key]
