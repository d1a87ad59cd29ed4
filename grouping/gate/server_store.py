"""The store of the protocol on a server, whose writes are guarded."""

import asyncio
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from shinglefold.contracts.engine import JSON, VersionedDocument
from shinglefold.grouping.candidate_search import Steps, StoredDocuments
from shinglefold.grouping.gate.opening import EngineCalls
from shinglefold.grouping.gate.protocol.member import (
    Action,
    CountGroups,
    Delete,
    FindDocuments,
    FindGroups,
    Pause,
    Put,
    ReadDocuments,
    Refresh,
    Request,
    Update,
    Write,
    id_and_routing,
    now,
)
from shinglefold.runtime.sans_io import run_async


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
