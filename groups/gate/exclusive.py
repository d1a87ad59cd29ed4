"""The store of the protocol on an engine to whose index one process at a time may write."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shinglefold.contracts import JSON, Guard, Held, Written
from shinglefold.groups.gate.forms import GROUP
from shinglefold.groups.gate.keys import id_and_routing
from shinglefold.groups.gate.member import Member
from shinglefold.groups.gate.requests import (
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
from shinglefold.groups.gate.stores import Documents, now
from shinglefold.steps import drive


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
        seen = drive(self.documents.seen(asked.members, asked.far), operator.call)
        return [self._with_unsearched(member, one) for member, one in zip(asked.members, seen, strict=True)]

    def _with_unsearched(self, member: Member, seen: Seen) -> Seen:
        """Return what a search found with what it can't see yet, which is read by id like the rest."""
        nominating = self.documents.lookup.nominating([member.print])
        ids = dict.fromkeys(seen.ids)
        for path, values in nominating.items():
            for several in self.engine.unsearched(self.index, path, values).values():
                ids |= dict.fromkeys(several)
        taken = self._in_group(member.numbers) if self.documents.groups else {}
        return replace(seen, ids=tuple(ids), taken=seen.taken | frozenset(taken))

    def _in_group(self, groups: Sequence[int]) -> dict[Any, list[str]]:
        """Return the documents of groups that searches need not see yet; some may be in others by now."""
        path = f"{self.documents.forms.field}.{GROUP}"
        found: dict[Any, list[str]] = self.engine.unsearched(self.index, path, groups)
        return found

    def _in_groups(self, asked: FindGroups) -> list[tuple[str, ...]]:
        found = drive(self.documents.in_groups(asked), operator.call)
        new = self._in_group(asked.groups)
        return [
            tuple(dict.fromkeys((*new.get(group, ()), *ids)))[: asked.most]
            for group, ids in zip(asked.groups, found, strict=True)
        ]

    def _counts(self, asked: CountGroups) -> list[int]:
        found = drive(self.documents.counts(asked), operator.call)
        new = self._in_group(asked.groups)
        return [count + len(new.get(group, ())) for group, count in zip(asked.groups, found, strict=True)]

    def _held(self, names: Sequence[str]) -> list[Held | None]:
        outside = [name for name in names if name not in self._places]
        sources = self.engine.get_all(self.index, [id_and_routing(name)[0] for name in outside])
        found = dict(zip(outside, sources, strict=True))
        return [self._as_held(name, found.get(name)) for name in names]

    def _as_held(self, name: str, source: Mapping[str, Any] | None) -> Held | None:
        version = self._versions.get(name, 0)
        if name in self._places:
            version, source = self._places[name]
        return None if source is None else Held(name, source, Guard(version, 0))

    def _written(self, actions: Sequence[Action]) -> list[Written]:
        """Run actions in order; what they change is read once for all of them, again where it comes twice."""
        names = dict.fromkeys(action.id for action in actions)
        known = dict(zip(names, self._held(list(names)), strict=True))
        written = []
        for action in actions:
            held = known.pop(action.id) if action.id in known else self._held([action.id])[0]
            written.append(self._write(action, held))
        return written

    def _write(self, action: Action, held: Held | None) -> Written:
        if isinstance(action, Put) and action.create:
            return Written(CONFLICT) if held is not None else self._keep(action)
        if held is None or (action.guard is not None and action.guard != held.guard):
            return Written(CONFLICT if held is not None else MISSING)
        kept = self._places.pop(action.id, None)
        if isinstance(action, Drop) and kept is not None:
            return Written(DONE)
        return self._send(action)

    def _keep(self, action: Put) -> Written:
        version = self._next(action.id)
        self._places[action.id] = version, action.source
        return Written(DONE, Guard(version, 0))

    def _send(self, action: Action) -> Written:
        sent: JSON = {"_index": self.index, "_id": id_and_routing(action.id)[0]}
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
        return Written(DONE, Guard(self._next(action.id), 0))

    def _next(self, id_: str) -> int:
        self._versions[id_] = self._versions.get(id_, 0) + 1
        return self._versions[id_]
