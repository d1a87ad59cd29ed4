"""Stores for the protocol: servers, whose writes are guarded, and engines that one process writes to."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shinglefold.contracts import JSON, Engine, Guard, GuardedWrites, Held, Written
from shinglefold.groups.gate.forms import GROUP, LEADER, Forms
from shinglefold.groups.gate.intents import Intents
from shinglefold.groups.gate.member import Member
from shinglefold.groups.gate.requests import (
    CONFLICT,
    DONE,
    MISSING,
    Action,
    Drop,
    FindDocuments,
    FindGroup,
    FindIntents,
    Group,
    Intent,
    Merge,
    Now,
    Pause,
    Put,
    Read,
    Refresh,
    Request,
    Seen,
    Write,
)
from shinglefold.groups.lookup import Lookup

_NONE = Guard(0, 0)


def now() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def pause(milliseconds: int) -> None:
    """Wait about so long."""
    time.sleep(milliseconds * random.uniform(0.5, 1.5) / 1000)


@dataclass(slots=True)
class Documents:
    """The searches of the user's index."""

    lookup: Lookup
    forms: Forms
    groups: bool

    def seen(self, members: Sequence[Member]) -> list[Seen]:
        """Return what was found for each member."""
        found = self.lookup.find([member.print for member in members])
        ids: list[list[str]] = [[] for _ in members]
        for pair in found.pairs:
            ids[pair.one].append(found.hits[pair.other]["_id"])
        numbers = {number for member in members for number in member.numbers} if self.groups else set()
        taken = self.lookup.numbers(f"{self.forms.field}.{GROUP}", sorted(numbers))
        return [
            Seen(tuple(dict.fromkeys(several)), frozenset(taken.intersection(member.numbers)))
            for several, member in zip(ids, members, strict=True)
        ]

    def group(self, asked: FindGroup) -> tuple[str, ...]:
        """Return the ids of documents of a group."""
        clauses: list[JSON] = [{"term": {f"{self.forms.field}.{GROUP}": asked.group}}]
        if asked.leaders:
            clauses.append({"term": {f"{self.forms.field}.{LEADER}": True}})
        return tuple(hit["_id"] for hit in self.lookup.group(clauses, asked.most))


@dataclass(slots=True)
class ServerStore:
    """An index on a server, and that of its intents beside it."""

    engine: Engine
    guarded: GuardedWrites
    index: str
    documents: Documents
    intents: Intents

    def answer(self, request: Request) -> Any:  # noqa: ANN401 - what each request is answered
        """Answer one request of the protocol."""
        ways: dict[type, Callable[[Any], Any]] = {
            Write: self._write,
            Read: lambda asked: self.guarded.read(self.index, asked.ids, self.intents.read_back),
            FindIntents: lambda asked: self.intents.matching(asked.members),
            FindDocuments: lambda asked: self.documents.seen(asked.members),
            FindGroup: self._group,
            Refresh: lambda _: self.engine.refresh(self.index),
            Pause: lambda asked: pause(asked.milliseconds),
            Now: lambda _: now(),
        }
        return ways[type(request)](request)

    def _write(self, asked: Write) -> list[Written]:
        return self.guarded.write([self._action(one) for one in asked.actions], refresh=asked.refresh)

    def _group(self, asked: FindGroup) -> Group:
        claims = () if asked.leaders else tuple(self.intents.claims(asked.group))
        return Group(claims, self.documents.group(asked))

    def _action(self, action: Action) -> JSON:
        where = {"documents": self.index, "intents": self.intents.name}[action.where]
        sent: JSON = {"_index": where, "_id": action.id}
        if action.guard is not None:
            sent |= {"if_seq_no": action.guard.seq_no, "if_primary_term": action.guard.primary_term}
        match action:
            case Put():
                verb = "create" if action.create else "index"
                return {**sent, "_op_type": verb, "_source": action.source}
            case Merge():
                return {**sent, "_op_type": "update", "doc": dict(action.parts)}
            case Drop():
                return {**sent, "_op_type": "delete"}


@dataclass(slots=True)
class ExclusiveStore:
    """An index that nobody else writes to as long as this lasts: intents and places need not be stored."""

    engine: Engine
    index: str
    documents: Documents
    _places: dict[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    _intents: dict[str, JSON] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)
    _dirty: bool = False

    def answer(self, request: Request) -> Any:  # noqa: ANN401 - what each request is answered
        """Answer one request of the protocol."""
        ways: dict[type, Callable[[Any], Any]] = {
            Write: lambda asked: [self._write(action) for action in asked.actions],
            Read: lambda asked: [self._read(id_) for id_ in asked.ids],
            FindIntents: lambda asked: [[] for _ in asked.members],
            FindDocuments: lambda asked: self.documents.seen(asked.members),
            FindGroup: self._group,
            Refresh: lambda _: self._refresh(),
            # Nobody else is there to wait for.
            Pause: lambda _: None,
            Now: lambda _: now(),
        }
        return ways[type(request)](request)

    def _group(self, asked: FindGroup) -> Group:
        self._refresh()
        claims = () if asked.leaders else tuple(self._claims(asked.group))
        return Group(claims, self.documents.group(asked))

    def _refresh(self) -> None:
        if self._dirty:
            self.engine.refresh(self.index)
            self._dirty = False

    def _claims(self, group: int) -> list[Intent]:
        return [
            Intent(attempt, made["document"], Guard(*made["guard"]), tuple(made["order"]), made["until"])
            for attempt, made in self._intents.items()
            if made["claim"] == group
        ]

    def _read(self, id_: str) -> Held | None:
        if id_ in self._places:
            version, source = self._places[id_]
            return Held(id_, source, Guard(version, 0))
        found = self.engine.get(self.index, id_)
        return None if found is None else Held(id_, found["_source"], Guard(self._versions.get(id_, 0), 0))

    def _write(self, action: Action) -> Written:
        if action.where == "intents":
            return self._intend(action)
        held = self._read(action.id)
        if isinstance(action, Put) and action.create:
            return Written(CONFLICT) if held is not None else self._keep(action)
        if held is None or (action.guard is not None and action.guard != held.guard):
            return Written(CONFLICT if held is not None else MISSING)
        kept = self._places.pop(action.id, None)
        if isinstance(action, Drop) and kept is not None:
            return Written(DONE)
        return self._send(action)

    def _intend(self, action: Action) -> Written:
        if isinstance(action, Put):
            self._intents[action.id] = action.source
        else:
            self._intents.pop(action.id, None)
        return Written(DONE, _NONE)

    def _keep(self, action: Put) -> Written:
        version = self._next(action.id)
        self._places[action.id] = version, action.source
        return Written(DONE, Guard(version, 0))

    def _send(self, action: Action) -> Written:
        sent: JSON = {"_index": self.index, "_id": action.id}
        match action:
            case Put():
                sent |= {"_op_type": "index", "_source": action.source}
            case Merge():
                sent |= {"_op_type": "update", "doc": dict(action.parts)}
            case Drop():
                sent |= {"_op_type": "delete"}
        result = self.engine.bulk([sent])
        if result.failures:
            return Written(result.failures[0].status, None, result.failures[0].reason)
        self._dirty = True
        return Written(DONE, Guard(self._next(action.id), 0))

    def _next(self, id_: str) -> int:
        self._versions[id_] = self._versions.get(id_, 0) + 1
        return self._versions[id_]


__all__ = ["Documents", "ExclusiveStore", "ServerStore", "now"]
