"""The store of the protocol on an engine to whose index one process at a time may write."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shinglefold.contracts.engine import JSON, Guard, VersionedDocument, WriteResult
from shinglefold.groups.gate.protocol.keys import id_and_routing
from shinglefold.groups.gate.protocol.member import Member
from shinglefold.groups.gate.protocol.placeholders import GROUP
from shinglefold.groups.gate.protocol.requests import (
    CONFLICT,
    DONE,
    MISSING,
    Action,
    CountGroups,
    Drop,
    FindDocuments,
    FindGroups,
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
from shinglefold.groups.gate.stores.server import Documents, now
from shinglefold.runtime.sans_io import run


def watched(field: str) -> tuple[str, ...]:
    """Return the fields by which documents are found that searches can't see yet.

    Args:
        field: where fingerprints are.
    """
    return tuple(f"{field}.{part}" for part in ("supershingles", "digest", GROUP))


@dataclass(slots=True)
class ExclusiveStore:
    """An index that nobody else writes to as long as this lasts: places need not be stored."""

    engine: Any
    index: str
    documents: Documents
    _places: dict[str, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)

    def answer(self, request: Request) -> Any:  # noqa: ANN401 - what each request is answered
        """Answer one request of the protocol."""
        ways: dict[type, Callable[[Any], Any]] = {
            Write: lambda asked: self._written(asked.actions),
            Read: lambda asked: self._held(asked.ids),
            FindDocuments: self._seen,
            FindGroups: self._in_groups,
            CountGroups: self._counts,
            # What was written is told of whether searches see it or not.
            Refresh: lambda _: None,
            # Nobody else is there to wait for.
            Pause: lambda _: None,
            Now: lambda _: now(),
        }
        return ways[type(request)](request)

    def _seen(self, asked: FindDocuments) -> list[Seen]:
        """Return what a search found with what it can't see yet, which is read by id like the rest."""
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
        """Return of each member the documents that may be like it and that searches can't see yet."""
        wanted = [self.documents.lookup.nominating([member.print]) for member in members]
        found: dict[str, dict[Any, list[str]]] = {}
        for path in {path for one in wanted for path in one}:
            values = {value for one in wanted for value in one[path]}
            found[path] = self.engine.unsearched(self.index, path, values)
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
        """Return the documents of groups that searches need not see yet; some may be in others by now."""
        path = f"{self.documents.forms.field}.{GROUP}"
        found: dict[Any, list[str]] = self.engine.unsearched(self.index, path, groups)
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
        """Run actions, no two of which are on one document: it is read, and written, once for all of them."""
        held = self._held([action.id for action in actions])
        told = [self._told(action, one) for action, one in zip(actions, held, strict=True)]
        answers = iter(self._sent([one for one, done in zip(actions, told, strict=True) if done is None]))
        return [next(answers) if done is None else done for done in told]

    def _told(self, action: Action, held: VersionedDocument | None) -> WriteResult | None:
        """Return what becomes of an action by itself; None of one that the engine is to be sent."""
        if isinstance(action, Put) and action.create:
            return WriteResult(CONFLICT) if held is not None else self._keep(action)
        if held is None or (action.guard is not None and action.guard != held.guard):
            return WriteResult(CONFLICT if held is not None else MISSING)
        kept = self._places.pop(action.id, None)
        return WriteResult(DONE) if isinstance(action, Drop) and kept is not None else None

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
            case Drop():
                return sent | {"_op_type": "delete"}

    def _next(self, id_: str) -> int:
        self._versions[id_] = self._versions.get(id_, 0) + 1
        return self._versions[id_]
