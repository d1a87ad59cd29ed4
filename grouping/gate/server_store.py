"""The protocol's store on a server, whose writes are guarded, and the searches of both stores."""

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
    GROUP,
    LEADER,
    Action,
    CountGroups,
    Delete,
    FindDocuments,
    FindGroups,
    GateFields,
    Member,
    Pause,
    Put,
    ReadDocuments,
    Refresh,
    Request,
    SearchHits,
    Update,
    Write,
    document_key,
    id_and_routing,
)
from shinglefold.runtime.sans_io import run_async


def now() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class EngineCalls(NamedTuple):
    """How an event loop calls methods of an engine; ``concurrently`` lets other tasks run meanwhile."""

    call: Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]
    concurrently: Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]


async def _call_here(method: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the method returns
    return method()


async def _call_awaited(method: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the method returns
    return await method()


#: For a blocking engine, whose calls block the event loop; the loop belongs to the gate.
BLOCKING = EngineCalls(_call_here, asyncio.to_thread)
#: For an engine with awaited methods.
AWAITED = EngineCalls(_call_awaited, _call_awaited)


def _key_of(hit: Mapping[str, Any]) -> str:
    return document_key(hit["_id"], hit.get("_routing"))


def _role(hit: Mapping[str, Any], field: str) -> tuple[bool, bool]:
    """Return whether a hit leads a group, and whether it has a number."""
    values = hit.get("fields") or {}
    leads = any(value in (True, "true") for value in values.get(f"{field}.{LEADER}", ()))
    return leads, bool(values.get(f"{field}.{GROUP}"))


@dataclass(slots=True)
class StoredDocuments:
    """The searches of the user's index, as steps that yield calls of the engine.

    Attributes:
        groups: whether documents get numbers.
        limited: whether the size of groups is limited.
    """

    lookup: CandidateLookup
    gate_fields: GateFields
    groups: bool
    limited: bool = False

    def search(self, members: Sequence[Member], deep: bool) -> Steps[list[SearchHits]]:
        """Return what a search finds for each member."""
        documents = [member.print for member in members]
        if deep:
            found = yield from self.lookup.find_deep(documents)
            return self._hits(members, found, set())
        numbers = sorted({number for member in members for number in member.numbers}) if self.groups else ()
        found, taken = yield from self.lookup.find_candidates(
            documents, f"{self.gate_fields.field}.{GROUP}", numbers
        )
        return self._hits(members, found, taken)

    def _hits(self, members: Sequence[Member], found: Candidates, taken: set[int]) -> list[SearchHits]:
        ranked: list[list[tuple[bool, float, str]]] = [[] for _ in members]
        roles = [_role(hit, self.gate_fields.field) for hit in found.hits]
        for pair in found.pairs:
            leads, _ = roles[pair.other]
            ranked[pair.one].append((not leads, -pair.likeness, _key_of(found.hits[pair.other])))
        ids = [tuple(dict.fromkeys(id_ for *_, id_ in sorted(candidates))) for candidates in ranked]
        keys = [_key_of(hit) for hit in found.hits] if self.limited else []
        ungrouped = {id_ for id_, (_, grouped) in zip(keys, roles, strict=False) if not grouped}
        # The hits are sorted: leaders, documents without a number, followers. So once a follower was read,
        # all documents without a number were read, too.
        followers = {id_ for id_, (leads, grouped) in zip(keys, roles, strict=False) if grouped > leads}
        return [
            SearchHits(
                own,
                frozenset(taken.intersection(member.numbers)),
                frozenset(ungrouped.intersection(own)),
                place in found.truncated,
                self.limited and place in found.truncated and followers.isdisjoint(own),
            )
            for place, (own, member) in enumerate(zip(ids, members, strict=True))
        ]

    def in_groups(self, request: FindGroups) -> Steps[list[tuple[str, ...]]]:
        """Return the ids of documents of each group."""
        leading = [{"term": {f"{self.gate_fields.field}.{LEADER}": True}}] if request.leaders else []
        clauses = [[self._in_group(group), *leading] for group in request.groups]
        found = yield from self.lookup.groups(clauses, request.limit)
        return [tuple(_key_of(hit) for hit in hits) for hits in found]

    def counts(self, request: CountGroups) -> Steps[list[int]]:
        """Return how many documents of each group searches see."""
        return self.lookup.counts([[self._in_group(group)] for group in request.groups], request.limit)

    def _in_group(self, group: int) -> JSON:
        return {"term": {f"{self.gate_fields.field}.{GROUP}": group}}


@dataclass(slots=True)
class ServerStore:
    """An index on a server, and its index of intents.

    Attributes:
        read_back: the fields of documents that a decision reads again.
    """

    engine: Any
    calls: EngineCalls
    index: str
    intents: str
    documents: StoredDocuments
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
                return (yield from self.documents.search(request.members, request.deep))
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
            records: list[VersionedDocument | None] = yield lambda: self.engine.read(
                self.intents, request.ids
            )
            return records
        keys = [id_and_routing(key) for key in request.ids]
        ids, routings = [id_ for id_, _ in keys], [routing for _, routing in keys]
        fields = () if request.whole else self.read_back
        held: list[VersionedDocument | None] = yield lambda: self.engine.read(
            self.index, ids, fields, routings
        )
        return [
            None if document is None else replace(document, id=key)
            for document, key in zip(held, request.ids, strict=True)
        ]

    def _action(self, action: Action) -> JSON:
        bulk: JSON = {"_index": self.intents, "_id": action.id}
        if action.where == "documents":
            id_, routing = id_and_routing(action.id)
            bulk = {"_index": self.index, "_id": id_} | ({} if routing is None else {"routing": routing})
        if action.guard is not None:
            bulk |= {"if_seq_no": action.guard.seq_no, "if_primary_term": action.guard.primary_term}
        match action:
            case Put():
                placeholder = self.documents.gate_fields.pending(action.source) is not None
                if action.where == "intents" or placeholder or action.skip_pipeline:
                    # A pipeline of the index would fail on a placeholder, or add fields to it.
                    bulk["pipeline"] = "_none"
                return bulk | {"_op_type": "create" if action.create else "index", "_source": action.source}
            case Update():
                return bulk | {"_op_type": "update", "doc": dict(action.parts)}
            case Delete():
                return bulk | {"_op_type": "delete"}
