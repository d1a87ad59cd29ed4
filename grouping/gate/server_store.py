"""The store of the protocol on servers, whose writes are guarded, and the searches of either store."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from shinglefold.contracts.engine import JSON, VersionedDocument
from shinglefold.grouping.candidate_search import CandidateLookup, Candidates, Steps
from shinglefold.grouping.gate.protocol.member import (
    Action,
    CountGroups,
    Delete,
    FindDocuments,
    FindGroups,
    Member,
    Pause,
    Put,
    ReadDocuments,
    Refresh,
    Request,
    SearchHits,
    Update,
    Write,
)
from shinglefold.grouping.gate.protocol.placeholders import (
    GROUP,
    LEADER,
    GateFields,
    document_key,
    id_and_routing,
)
from shinglefold.runtime.sans_io import run_async


def now() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class EngineCalls(NamedTuple):
    """How an event loop calls methods of an engine: ``call`` waits for one, ``beside`` lets others go on."""

    call: Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]
    beside: Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]


async def _call_here(method: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the method returns
    return method()


async def _call_awaited(method: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the method returns
    return await method()


#: Of an engine that blocks: its calls block the event loop, which is the gate's own.
BLOCKING = EngineCalls(_call_here, asyncio.to_thread)
#: Of an engine whose methods are awaited.
AWAITED = EngineCalls(_call_awaited, _call_awaited)


def key_of(hit: Mapping[str, Any]) -> str:
    """Return the key of a document that a search found."""
    return document_key(hit["_id"], hit.get("_routing"))


def _role(hit: Mapping[str, Any], field: str) -> tuple[bool, bool]:
    """Return whether a hit leads a group, and whether it has a number."""
    values = hit.get("fields") or {}
    leads = any(value in (True, "true") for value in values.get(f"{field}.{LEADER}", ()))
    return leads, bool(values.get(f"{field}.{GROUP}"))


@dataclass(slots=True)
class StoredDocuments:
    """The searches of the user's index.

    ``groups``: whether documents get numbers. ``counted``: whether groups have limited places.
    """

    lookup: CandidateLookup
    gate_fields: GateFields
    groups: bool
    counted: bool = False

    def seen(self, members: Sequence[Member], far: bool) -> Steps[list[SearchHits]]:
        """Return what a search found for each member, as steps that yield calls of the engine."""
        asked = [member.print for member in members]
        if far:
            found = yield from self.lookup.find_candidates(asked, far=True)
            return self._each(members, found, set())
        numbers = sorted({number for member in members for number in member.numbers}) if self.groups else ()
        found, taken = yield from self.lookup.find_candidates_and_numbers(
            asked, f"{self.gate_fields.field}.{GROUP}", numbers
        )
        return self._each(members, found, taken)

    def _each(self, members: Sequence[Member], found: Candidates, taken: set[int]) -> list[SearchHits]:
        ranked: list[list[tuple[bool, float, str]]] = [[] for _ in members]
        roles = [_role(hit, self.gate_fields.field) for hit in found.hits]
        for pair in found.pairs:
            leads, _ = roles[pair.other]
            ranked[pair.one].append((not leads, -pair.likeness, key_of(found.hits[pair.other])))
        ids = [tuple(dict.fromkeys(id_ for *_, id_ in sorted(several))) for several in ranked]
        names = [key_of(hit) for hit in found.hits] if self.counted else []
        numberless = {id_ for id_, (_, numbered) in zip(names, roles, strict=False) if not numbered}
        # Leaders come first, then documents without a number: after one with a number there is none without.
        beyond = {id_ for id_, (leads, numbered) in zip(names, roles, strict=False) if numbered > leads}
        return [
            SearchHits(
                several,
                frozenset(taken.intersection(member.numbers)),
                frozenset(numberless.intersection(several)),
                place in found.cut,
                self.counted and place in found.cut and beyond.isdisjoint(several),
            )
            for place, (several, member) in enumerate(zip(ids, members, strict=True))
        ]

    def in_groups(self, asked: FindGroups) -> Steps[list[tuple[str, ...]]]:
        """Return the ids of documents of each group, as steps."""
        leading: list[JSON] = (
            [{"term": {f"{self.gate_fields.field}.{LEADER}": True}}] if asked.leaders else []
        )
        clauses = [
            [{"term": {f"{self.gate_fields.field}.{GROUP}": group}}, *leading] for group in asked.groups
        ]
        found = yield from self.lookup.groups(clauses, asked.most)
        return [tuple(key_of(hit) for hit in hits) for hits in found]

    def counts(self, asked: CountGroups) -> Steps[list[int]]:
        """Return how many documents of each group searches see, as steps."""
        clauses = [[{"term": {f"{self.gate_fields.field}.{GROUP}": group}}] for group in asked.groups]
        return self.lookup.counts(clauses, asked.most)


@dataclass(slots=True)
class ServerStore:
    """An index on a server, and the index of intents beside it."""

    engine: Any
    calls: EngineCalls
    index: str
    intents: str
    documents: StoredDocuments
    #: The fields of documents that a decision reads again.
    read_back: tuple[str, ...]

    def turn(self, _given_up: Callable[[], bool]) -> AbstractAsyncContextManager[None]:
        """Return a context that does nothing: each write is durable once it is answered."""
        return nullcontext()

    async def answer(self, request: Request) -> Any:  # noqa: ANN401 - what each request is answered
        """Answer one request of the protocol."""
        if isinstance(request, Pause):
            return await asyncio.sleep(request.milliseconds * random.uniform(0.5, 1.5) / 1000)
        return await run_async(self._calls(request), self.calls.call)

    def close(self) -> None:
        """Do nothing."""

    def _calls(self, request: Request) -> Steps[Any]:  # noqa: PLR0911 - one for each request
        match request:
            case Write():
                return (yield lambda: self.engine.write([self._action(one) for one in request.actions]))
            case ReadDocuments():
                return (yield from self._read(request))
            case FindDocuments():
                return (yield from self.documents.seen(request.members, request.far))
            case FindGroups():
                return (yield from self.documents.in_groups(request))
            case CountGroups():
                return (yield from self.documents.counts(request))
            case Refresh():
                return (yield lambda: self.engine.refresh(self.index))
            case _:
                return now()

    def _read(self, request: ReadDocuments) -> Steps[list[VersionedDocument | None]]:
        if request.where == "intents":
            notes: list[VersionedDocument | None] = yield lambda: self.engine.read(self.intents, request.ids)
            return notes
        named = [id_and_routing(name) for name in request.ids]
        ids, routings = [id_ for id_, _ in named], [routing for _, routing in named]
        fields = () if request.whole else self.read_back
        held: list[VersionedDocument | None] = yield lambda: self.engine.read(
            self.index, ids, fields, routings
        )
        return [
            None if one is None else replace(one, id=name)
            for one, name in zip(held, request.ids, strict=True)
        ]

    def _action(self, action: Action) -> JSON:
        sent: JSON = {"_index": self.intents, "_id": action.id}
        if action.where == "documents":
            id_, routing = id_and_routing(action.id)
            sent = {"_index": self.index, "_id": id_} | ({} if routing is None else {"routing": routing})
        if action.guard is not None:
            sent |= {"if_seq_no": action.guard.seq_no, "if_primary_term": action.guard.primary_term}
        match action:
            case Put():
                placeholder = self.documents.gate_fields.pending(action.source) is not None
                if action.where == "intents" or placeholder or action.skip_pipeline:
                    # A pipeline of the index would fail on it, or fill it.
                    sent["pipeline"] = "_none"
                verb = "create" if action.create else "index"
                return {**sent, "_op_type": verb, "_source": action.source}
            case Update():
                return {**sent, "_op_type": "update", "doc": dict(action.parts)}
            case Delete():
                return {**sent, "_op_type": "delete"}
