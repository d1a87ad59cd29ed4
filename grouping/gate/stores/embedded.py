"""The store of the protocol on an embedded engine, to whose index one process at a time may write."""

import asyncio
import operator
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from shinglefold.contracts.engine import JSON, Guard, VersionedDocument, WriteResult
from shinglefold.contracts.exclusive_writes import ExclusiveWrites
from shinglefold.errors import EngineError, EngineUnavailable
from shinglefold.grouping.gate.protocol.member import Member, SearchHits
from shinglefold.grouping.gate.protocol.placeholders import GROUP, id_and_routing
from shinglefold.grouping.gate.protocol.requests import (
    CONFLICT,
    DONE,
    MISSING,
    Action,
    CountGroups,
    DropPlaceholder,
    FindDocuments,
    FindGroups,
    Merge,
    Now,
    Pause,
    Put,
    ReadDocuments,
    Refresh,
    Request,
    Write,
)
from shinglefold.grouping.gate.stores.server import StoredDocuments, now
from shinglefold.runtime.sans_io import run


@dataclass(slots=True)
class ExclusiveStore:
    """An index that nobody else writes to for a turn, so that placeholders stay in memory."""

    engine: Any
    index: str
    documents: StoredDocuments
    _lease: "ExclusiveLease" = field(init=False)
    _places: dict[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # By these, documents are found that searches can't see yet.
        parts = ("supershingles", "digest", GROUP)
        fields = [f"{self.documents.gate_fields.field}.{part}" for part in parts]
        self._lease = ExclusiveLease(self.engine, self.index, fields)

    @asynccontextmanager
    async def turn(self, given_up: Callable[[], bool]) -> AsyncIterator[None]:
        """Hold the index for a turn; what was written is durable at the end."""
        async with self._lease.turn(given_up):
            self._places, self._versions = {}, {}
            yield

    async def answer(self, request: Request) -> Any:  # noqa: ANN401 - what each request is answered
        """Answer one request of the protocol."""
        return self._answers(request)

    def close(self) -> None:
        """Let other processes write."""
        self._lease.release()

    def _answers(self, request: Request) -> Any:  # noqa: ANN401 - what each request is answered
        ways: dict[type, Callable[[Any], Any]] = {
            Write: lambda asked: self._written(asked.actions),
            ReadDocuments: lambda asked: self._held(asked.ids),
            FindDocuments: self._seen,
            FindGroups: self._in_groups,
            CountGroups: self._counts,
            # Uncommitted documents are found, too.
            Refresh: lambda _: None,
            # There is no other writer to wait for.
            Pause: lambda _: None,
            Now: lambda _: now(),
        }
        return ways[type(request)](request)

    def _seen(self, asked: FindDocuments) -> list[SearchHits]:
        """Return what a search found, and documents that searches can't see yet."""
        members = asked.members
        seen = run(self.documents.seen(members, asked.far), operator.call)
        numbers = {number for member in members for number in member.numbers} if self.documents.groups else ()
        taken = frozenset(self._in_group(tuple(numbers)))
        return [
            replace(
                one,
                ids=tuple(dict.fromkeys((*one.ids, *new))),
                taken=one.taken | taken.intersection(member.numbers),
            )
            for member, one, new in zip(members, seen, self._unsearched(members), strict=True)
        ]

    def _unsearched(self, members: Sequence[Member]) -> list[list[str]]:
        """Return the ids of documents that may match each member and that searches can't see yet."""
        wanted = [self.documents.lookup.nominating([member.print]) for member in members]
        found: dict[str, dict[Any, list[str]]] = {}
        for path in {path for one in wanted for path in one}:
            values = {value for one in wanted for value in one[path]}
            found[path] = self.engine.pending_by_value(self.index, path, values)
        return [
            [
                id_
                for path, values in one.items()
                if (new := found[path])
                for value in values
                for id_ in new.get(value, ())
            ]
            for one in wanted
        ]

    def _in_group(self, groups: Sequence[int]) -> dict[Any, list[str]]:
        """Return by group the ids that searches need not see yet; some may have left the group since."""
        path = f"{self.documents.gate_fields.field}.{GROUP}"
        found: dict[Any, list[str]] = self.engine.pending_by_value(self.index, path, groups)
        return found

    def _in_groups(self, asked: FindGroups) -> list[tuple[str, ...]]:
        found = run(self.documents.in_groups(asked), operator.call)
        new = self._in_group(asked.groups)
        return [
            tuple(dict.fromkeys((*new.get(group, ()), *ids)))[: asked.most]
            for group, ids in zip(asked.groups, found, strict=True)
        ]

    def _counts(self, asked: CountGroups) -> list[int]:
        found = run(self.documents.counts(asked), operator.call)
        new = self._in_group(asked.groups)
        return [count + len(new.get(group, ())) for group, count in zip(asked.groups, found, strict=True)]

    def _held(self, names: Sequence[str]) -> list[VersionedDocument | None]:
        outside = [name for name in names if name not in self._places]
        sources = self.engine.get_all(self.index, [id_and_routing(name)[0] for name in outside])
        found = dict(zip(outside, sources, strict=True))
        return [self._as_held(name, found.get(name)) for name in names]

    def _as_held(self, name: str, source: Mapping[str, Any] | None) -> VersionedDocument | None:
        version = self._versions.get(name, 0)
        if name in self._places:
            version, source = self._places[name]
        return None if source is None else VersionedDocument(name, source, Guard(version, 0))

    def _written(self, actions: Sequence[Action]) -> list[WriteResult]:
        """Run actions on different documents by one read and one bulk request."""
        held = self._held([action.id for action in actions])
        told = [self._told(action, one) for action, one in zip(actions, held, strict=True)]
        answers = iter(self._sent([one for one, done in zip(actions, told, strict=True) if done is None]))
        return [next(answers) if done is None else done for done in told]

    def _told(self, action: Action, held: VersionedDocument | None) -> WriteResult | None:
        """Answer an action on a placeholder or with a wrong guard; return None where it is to be sent."""
        if isinstance(action, Put) and action.create:
            return WriteResult(CONFLICT) if held is not None else self._keep(action)
        if held is None or (action.guard is not None and action.guard != held.guard):
            return WriteResult(CONFLICT if held is not None else MISSING)
        kept = self._places.pop(action.id, None)
        return WriteResult(DONE) if isinstance(action, DropPlaceholder) and kept is not None else None

    def _keep(self, action: Put) -> WriteResult:
        version = self._next(action.id)
        self._places[action.id] = version, action.source
        return WriteResult(DONE, Guard(version, 0))

    def _sent(self, actions: Sequence[Action]) -> list[WriteResult]:
        bulk = [self._bulk(action) for action in actions]
        refused = {id(failure.action): failure for failure in self.engine.bulk(bulk).failures}
        return [
            WriteResult(failure.status, None, failure.reason)
            if (failure := refused.get(id(sent)))
            else WriteResult(DONE, Guard(self._next(action.id), 0))
            for action, sent in zip(actions, bulk, strict=True)
        ]

    def _bulk(self, action: Action) -> JSON:
        sent: JSON = {"_index": self.index, "_id": id_and_routing(action.id)[0]}
        match action:
            case Put():
                return sent | {"_op_type": "index", "_source": action.source}
            case Merge():
                return sent | {"_op_type": "update", "doc": dict(action.parts)}
            case DropPlaceholder():
                return sent | {"_op_type": "delete"}

    def _next(self, id_: str) -> int:
        self._versions[id_] = self._versions.get(id_, 0) + 1
        return self._versions[id_]


#: Seconds to wait for another process that writes to an embedded index.
_MAX_WAIT = 60.0
#: Seconds between two tries, and for which the lease is left to others after one of them asked for it.
_RETRY, _LEFT_TO_OTHERS = 0.005, 0.03
#: Seconds without a turn after which the lease is released.
_IDLE = 0.1


class ExclusiveLease:
    """Holds the exclusive write lease of an embedded index across turns.

    Releasing it waits for segments to be merged, which otherwise goes on beside decisions. So it is released
    only when another gate asks for it, or after 0.1 s without a turn.

    Args:
        fields: by which documents are found that searches can't see yet.
    """

    def __init__(self, engine: ExclusiveWrites, index: str, fields: Sequence[str]) -> None:
        self._engine, self._index, self._fields = engine, index, fields
        self._held = ExitStack()
        self._holds = False
        self._idle: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, given_up: Callable[[], bool]) -> AsyncIterator[None]:
        """Hold the lease for a turn; what was written is durable at the end.

        Raises:
            EngineUnavailable: another process holds the index, for too long or until nobody waits any more.
        """
        self._stop_timer()
        try:
            if not self._holds:
                await self._acquire(given_up)
            with self._engine.deciding(self._index, self._fields):
                yield
        finally:
            if self._holds:
                if self._engine.lease_requested(self._index):
                    self.release()
                    await asyncio.sleep(_LEFT_TO_OTHERS)
                else:
                    self._idle = asyncio.get_running_loop().call_later(_IDLE, self._release_idle)

    def release(self) -> None:
        """Let other processes write."""
        self._stop_timer()
        if self._holds:
            self._holds = False
            self._held.close()

    def _release_idle(self) -> None:
        with suppress(EngineError):
            self.release()

    def _stop_timer(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    async def _acquire(self, given_up: Callable[[], bool]) -> None:
        end = time.monotonic() + _MAX_WAIT
        while True:
            try:
                self._held.enter_context(self._engine.lease(self._index))
            except EngineUnavailable:
                if time.monotonic() > end or given_up():
                    raise
                self._engine.request_lease(self._index)
                await asyncio.sleep(_RETRY)
            else:
                break
        self._holds = True
