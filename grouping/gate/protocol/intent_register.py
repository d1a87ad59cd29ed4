"""The register of intents, by which gates know of each other: read and written by id, never searched.

Each gate has a head of its own. Only that gate writes it, each time under the version it wrote before. A head
names the rounds of intents that are open, or whose documents searches need not see yet. One more document
lists all heads. So a published intent is visible to every gate that reads afterwards, without a refresh:

* A head exists before it is listed, and is listed as long as it exists.
* A round exists before a head names it, never changes, and is deleted only when nobody needs it.
* Other gates clear away a head that was not written for long: they close it under the version they read, then
  take away the guards of its intents, then delete the head. A gate reads its own head, too, whenever it
  looks. Where that is closed or gone, it publishes its open intents again under a fresh name.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shinglefold.contracts.engine import Guard, VersionedDocument, WriteResult
from shinglefold.errors import EngineUnavailable
from shinglefold.grouping.gate.protocol.intents import (
    WRITERS,
    Intent,
    KnownIntents,
    WriterRecord,
    intents_from_json,
    intents_json,
)
from shinglefold.grouping.gate.protocol.member import (
    CONFLICT,
    CREATED,
    DONE,
    MISSING,
    Action,
    Delete,
    Now,
    Pause,
    Put,
    ReadDocuments,
    Refresh,
    Steps,
    Write,
)
from shinglefold.grouping.gate.protocol.placeholders import GateFields, guard_revocation, is_open


@dataclass(slots=True)
class SharedRegister:
    """The register of a gate among others.

    Args:
        names: makes unique ids.
        lease: milliseconds after which others may clear away what this gate has published.
    """

    names: Callable[[], str]
    lease: int = 30_000
    known: KnownIntents = field(default_factory=KnownIntents)
    name: str = ""
    _guard: Guard | None = None
    _until: int = 0
    _own: dict[str, tuple[Intent, ...]] = field(default_factory=dict)
    _open: set[str] = field(default_factory=set)
    _gone: tuple[str, ...] = ()
    _others: dict[str, WriterRecord] = field(default_factory=dict)
    _guards: dict[str, Guard] = field(default_factory=dict)
    _rounds: dict[str, tuple[Intent, ...]] = field(default_factory=dict)

    def publish(self, actions: Sequence[Action], intents: Sequence[Intent]) -> Steps[list[WriteResult]]:
        """Run actions, and publish intents: they are visible to other gates on return."""
        if not self.name:
            yield from self._join()
        name = self.names()
        self._own[name] = tuple(intents)
        self._open |= {one.intent_id for one in intents}
        self._until = max((one.until for one in intents), default=self._until)
        self.known.learn(intents)
        gone = self._gone
        written = yield from self._write_head(
            (*actions, Put("intents", name, intents_json(intents))),
            tuple(Delete("intents", one) for one in gone),
        )
        self._gone = self._gone[len(gone) :]
        _check_done(written[len(actions)])
        return written[: len(actions)]

    def look(self) -> Steps[None]:
        """Read the intents of other gates; documents must be searched after that."""
        while True:
            asked = (WRITERS, self.name, *sorted(self._others))
            there: list[VersionedDocument | None] = yield ReadDocuments(asked, "intents")
            if there[1] is not None and not WriterRecord.from_json(there[1].source).closed:
                break
            yield from self._join()
        names = set(_names(there[0])) - {self.name}
        heads = dict(zip(asked[2:], there[2:], strict=True))
        if new := tuple(sorted(names - set(heads))):
            heads |= dict(zip(new, (yield ReadDocuments(new, "intents")), strict=True))
        held = {name: heads[name] for name in sorted(names)}
        self._others = {
            name: WriterRecord.from_json(one.source) if one else WriterRecord() for name, one in held.items()
        }
        self._guards = {name: one.guard for name, one in held.items() if one}
        yield from self._read_rounds()

    def withdraw(self, actions: Sequence[Action], intent_ids: Sequence[str]) -> Steps[list[WriteResult]]:
        """Run actions, and publish that intents were given up where their documents don't show it."""
        self.settle(intent_ids)
        if intent_ids:
            self.known.withdrawn |= set(intent_ids)
            return (yield from self._write_head(tuple(actions)))
        return (yield Write(tuple(actions))) if actions else []

    def claim(self, claims: Sequence[tuple[str, int]]) -> Steps[None]:
        """Publish in which groups intents want a place."""
        self.known.claims.update(claims)
        yield from self._write_head(())

    def settle(self, intent_ids: Iterable[str]) -> None:
        """Note that intents are decided; they stay published until searches see their documents."""
        self._open -= set(intent_ids)

    def settled(self) -> tuple[str, ...]:
        """Return the rounds without open intents: after a refresh searches see their documents."""
        return tuple(
            name
            for name, intents in self._own.items()
            if self._open.isdisjoint(one.intent_id for one in intents)
        )

    def seen(self, rounds: Iterable[str]) -> None:
        """Note that searches see the documents of rounds that were settled before a refresh began."""
        for name in rounds:
            if name in self._own:
                self.known.forget(self._own.pop(name))
                self._gone += (name,)

    def depart(self) -> Steps[None]:
        """Delete what was published, unless some of it is still needed."""
        if not self.name or self._own:
            return
        drops = (
            Delete("intents", self.name, self._guard),
            *(Delete("intents", one) for one in self._gone),
        )
        written = yield Write(drops)
        self._gone = ()
        if written[0].status in (DONE, MISSING):
            yield from _unlist(self.name)
        self.name, self._guard = "", None

    def clean(self, gate_fields: GateFields) -> Steps[None]:
        """Clear away the intents of crashed gates: first their guards, then their records."""
        now = yield Now()
        for name, head in list(self._others.items()):
            if name not in self._guards:
                yield from _unlist(name)
                del self._others[name]
            elif head.until + self.lease < now:
                yield from self._clear(name, head, gate_fields)

    def _clear(self, name: str, head: WriterRecord, gate_fields: GateFields) -> Steps[None]:
        closed = replace(head, closed=True).to_json()
        (marked,) = yield Write((Put("intents", name, closed, self._guards[name]),))
        if marked.status != DONE:
            return
        # From here on its gate publishes nothing under this name: no intent is missed below.
        intents = [one for round_ in head.rounds for one in self._rounds.get(round_, ())]
        there: list[VersionedDocument | None] = yield ReadDocuments(
            tuple(sorted({one.document for one in intents}))
        )
        held = {one.id: one for one in there if one is not None}
        open_ = {one.document for one in intents if is_open(one, held.get(one.document), gate_fields)}
        if open_:
            written = yield Write(tuple(guard_revocation(held[id_], gate_fields) for id_ in sorted(open_)))
            if any(one.status not in (DONE, MISSING) for one in written):
                return
        # Searches see what it stored before its intents go.
        yield Refresh()
        gone = (
            Delete("intents", name, marked.guard),
            *(Delete("intents", one) for one in head.rounds),
        )
        dropped = yield Write(gone)
        if dropped[0].status == DONE:
            yield from _unlist(name)
            del self._others[name]

    def _write_head(
        self, first: tuple[Action, ...], last: tuple[Action, ...] = ()
    ) -> Steps[list[WriteResult]]:
        """Run actions and write the head between them: it is visible to other gates on return."""
        written: list[WriteResult] = yield Write(
            (*first, Put("intents", self.name, self._head(self._own), self._guard), *last)
        )
        own = written[len(first)]
        while own.status in (CONFLICT, MISSING):
            # Either a request was sent twice, because its connection broke, or others have cleared the head.
            (held,) = yield ReadDocuments((self.name,), "intents")
            if held is None or WriterRecord.from_json(held.source).closed:
                yield from self._join()
                return written
            (own,) = yield Write((Put("intents", self.name, self._head(self._own), held.guard),))
        _check_done(own)
        self._guard = own.guard
        return written

    def _head(self, own: dict[str, tuple[Intent, ...]]) -> dict[str, Any]:
        left, claimed = self.known.withdrawn, self.known.claims
        if left or claimed:
            mine = {one.intent_id for intents in own.values() for one in intents}
            left, claimed = left & mine, {name: claimed[name] for name in mine & set(claimed)}
        return WriterRecord(
            self._until, tuple(own), frozenset(left), tuple(sorted(claimed.items()))
        ).to_json()

    def _join(self) -> Steps[None]:
        """Register open intents under a fresh name: in a round, in a head, and in the list of heads."""
        intents = tuple(one for several in self._own.values() for one in several)
        # Another gate that clears the old head deletes its rounds, too.
        own = {self.names(): intents} if intents else {}
        name = self.names()
        rounds = (Put("intents", one, intents_json(several), create=True) for one, several in own.items())
        written: list[WriteResult] = yield Write(
            (*rounds, Put("intents", name, self._head(own), create=True))
        )
        for one in written:
            _check_done(one)
        while True:
            (there,) = yield ReadDocuments((WRITERS,), "intents")
            names = {"names": sorted({*_names(there), name})}
            (listed,) = yield Write(
                (Put("intents", WRITERS, names, there and there.guard, create=there is None),)
            )
            if listed.status not in (CONFLICT, MISSING):
                break
            yield Pause(3, alone=True)
        _check_done(listed)
        self.name, self._guard, self._own = name, written[-1].guard, own

    def _read_rounds(self) -> Steps[None]:
        """Read rounds that others have named since, and forget those that they don't name any more."""
        named = {one for head in self._others.values() for one in head.rounds}
        for gone in [one for one in self._rounds if one not in named]:
            self.known.forget(self._rounds.pop(gone))
        if fresh := tuple(sorted(named - set(self._rounds))):
            there: list[VersionedDocument | None] = yield ReadDocuments(fresh, "intents")
            # A round that is gone since was not needed any more.
            self._rounds |= {
                name: intents_from_json(held.source) if held else ()
                for name, held in zip(fresh, there, strict=True)
            }
            for name in fresh:
                self.known.learn(self._rounds[name])
        for head in self._others.values():
            self.known.withdrawn |= head.withdrawn
            self.known.claims.update(head.claims)


@dataclass(slots=True)
class NullRegister:
    """The register of a gate without others beside it."""

    known: KnownIntents = field(default_factory=KnownIntents)

    def publish(self, actions: Sequence[Action], intents: Sequence[Intent]) -> Steps[list[WriteResult]]:
        """Run actions."""
        return (yield Write(tuple(actions))) if actions else []

    def look(self) -> Steps[None]:
        """Do nothing."""
        yield from ()

    def withdraw(self, actions: Sequence[Action], intent_ids: Sequence[str]) -> Steps[list[WriteResult]]:
        """Run actions."""
        return (yield Write(tuple(actions))) if actions else []

    def claim(self, claims: Sequence[tuple[str, int]]) -> Steps[None]:
        """Do nothing."""
        yield from ()

    def settle(self, intent_ids: Iterable[str]) -> None:
        """Do nothing."""


#: What a decision needs of the register.
IntentRegister = SharedRegister | NullRegister


def _names(held: VersionedDocument | None) -> Iterable[str]:
    return held.source["names"] if held is not None else ()


def _unlist(name: str) -> Steps[None]:
    """Remove a head that is gone from the list; where another write is faster, the next gate does it."""
    (there,) = yield ReadDocuments((WRITERS,), "intents")
    names = set(_names(there))
    if there is not None and name in names:
        yield Write((Put("intents", WRITERS, {"names": sorted(names - {name})}, there.guard),))


def _check_done(written: WriteResult) -> None:
    if written.status not in (DONE, CREATED):
        raise EngineUnavailable(f"the server did not store the gate's intents ({written.reason}); try again")
