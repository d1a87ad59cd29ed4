"""What gates tell each other: pure steps over the index of intents, read and written by id, never searched.

Each gate has a head of its own, which only it writes, each time under the version it wrote before. A head
names the rounds of intents that are open, or whose documents searches need not see yet. All heads are
named in one more document. So what a gate has told is known to whoever asks afterwards, without a refresh:

* A head is there before it is named, and named as long as it is there.
* A round is there before a head names it, never changes, and goes only when it is of no use to anybody.
* Others clear a head away that has not been written for long: they close it, under the version they read,
  then take away the guards of its intents, and then the head. Its gate reads its own head, too, whenever it
  looks, and where that is closed or gone makes all known again, under another name.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from shinglefold.contracts.engine import Guard, VersionedDocument, WriteResult
from shinglefold.errors import EngineUnavailable
from shinglefold.groups.gate.protocol.intent_records import WRITERS, Head, round_intents, round_json
from shinglefold.groups.gate.protocol.known import Known
from shinglefold.groups.gate.protocol.leases import closing, is_open
from shinglefold.groups.gate.protocol.placeholders import Forms
from shinglefold.groups.gate.protocol.requests import (
    CONFLICT,
    CREATED,
    DONE,
    MISSING,
    Action,
    Drop,
    Intent,
    Now,
    Pause,
    Put,
    Read,
    Refresh,
    Steps,
    Write,
)


class Register(Protocol):
    """What a decision needs of what gates tell each other."""

    @property
    def known(self) -> Known:
        """The intents that concern a decision."""
        ...

    def enter(self, actions: Sequence[Action], intents: Sequence[Intent]) -> Steps[list[WriteResult]]:
        """Run actions, and make intents known to all."""
        ...

    def look(self) -> Steps[None]:
        """Learn what others have made known."""
        ...

    def leave(self, actions: Sequence[Action], attempts: Sequence[str]) -> Steps[list[WriteResult]]:
        """Run actions, and let all know of attempts that are given up though nothing else shows it."""
        ...

    def claim(self, claims: Sequence[tuple[str, int]]) -> Steps[None]:
        """Let all know in which groups attempts want a place."""
        ...

    def settle(self, attempts: Iterable[str]) -> None:
        """Note that attempts are decided, one way or the other."""
        ...


@dataclass(slots=True)
class Shared:
    """The register of a gate among others.

    Args:
        names: makes ids that nobody else has.
        lease: milliseconds after which others may clear away what a gate has told.
    """

    names: Callable[[], str]
    lease: int = 30_000
    known: Known = field(default_factory=Known)
    name: str = ""
    _guard: Guard | None = None
    _until: int = 0
    _own: dict[str, tuple[Intent, ...]] = field(default_factory=dict)
    _open: set[str] = field(default_factory=set)
    _gone: tuple[str, ...] = ()
    _others: dict[str, Head] = field(default_factory=dict)
    _guards: dict[str, Guard] = field(default_factory=dict)
    _rounds: dict[str, tuple[Intent, ...]] = field(default_factory=dict)

    def enter(self, actions: Sequence[Action], intents: Sequence[Intent]) -> Steps[list[WriteResult]]:
        """Run actions, and make intents known to all before this ends."""
        if not self.name:
            yield from self._join()
        name = self.names()
        self._own[name] = tuple(intents)
        self._open |= {one.attempt for one in intents}
        self._until = max((one.until for one in intents), default=self._until)
        self.known.learn(intents)
        gone = self._gone
        written = yield from self._told(
            (*actions, Put("intents", name, round_json(intents))), tuple(Drop("intents", one) for one in gone)
        )
        self._gone = self._gone[len(gone) :]
        _check(written[len(actions)])
        return written[: len(actions)]

    def look(self) -> Steps[None]:
        """Read what others have made known, before what the documents are searched for."""
        while True:
            asked = (WRITERS, self.name, *sorted(self._others))
            there: list[VersionedDocument | None] = yield Read(asked, "intents")
            if there[1] is not None and not Head.from_json(there[1].source).closed:
                break
            yield from self._join()
        names = set(_names(there[0])) - {self.name}
        heads = dict(zip(asked[2:], there[2:], strict=True))
        if new := tuple(sorted(names - set(heads))):
            heads |= dict(zip(new, (yield Read(new, "intents")), strict=True))
        held = {name: heads[name] for name in sorted(names)}
        self._others = {name: Head.from_json(one.source) if one else Head() for name, one in held.items()}
        self._guards = {name: one.guard for name, one in held.items() if one}
        yield from self._learn()

    def leave(self, actions: Sequence[Action], attempts: Sequence[str]) -> Steps[list[WriteResult]]:
        """Run actions, and let all know of attempts that are given up though nothing else shows it."""
        self.settle(attempts)
        if attempts:
            self.known.left |= set(attempts)
            return (yield from self._told(tuple(actions)))
        return (yield Write(tuple(actions))) if actions else []

    def claim(self, claims: Sequence[tuple[str, int]]) -> Steps[None]:
        """Let all know in which groups attempts want a place."""
        self.known.claims.update(claims)
        yield from self._told(())

    def settle(self, attempts: Iterable[str]) -> None:
        """Note that attempts are decided; all know of them until searches see what became of them."""
        self._open -= set(attempts)

    def settled(self) -> tuple[str, ...]:
        """Return the rounds of which nothing is open: after a refresh all see what became of them."""
        return tuple(
            name
            for name, intents in self._own.items()
            if self._open.isdisjoint(one.attempt for one in intents)
        )

    def seen(self, rounds: Iterable[str]) -> None:
        """Note that searches see what became of rounds that were settled before a refresh began."""
        for name in rounds:
            if name in self._own:
                self.known.forget(self._own.pop(name))
                self._gone += (name,)

    def depart(self) -> Steps[None]:
        """Take away what was made known, where nothing of it is of use any more."""
        if not self.name or self._own:
            return
        drops = (Drop("intents", self.name, self._guard), *(Drop("intents", one) for one in self._gone))
        written = yield Write(drops)
        self._gone = ()
        if written[0].status in (DONE, MISSING):
            yield from _unlist(self.name)
        self.name, self._guard = "", None

    def clean(self, forms: Forms) -> Steps[None]:
        """Clear away what gates have left that died: first the guards, then what they made known."""
        now = yield Now()
        for name, head in list(self._others.items()):
            if name not in self._guards:
                yield from _unlist(name)
                del self._others[name]
            elif head.until + self.lease < now:
                yield from self._cleared(name, head, forms)

    def _cleared(self, name: str, head: Head, forms: Forms) -> Steps[None]:
        closed = replace(head, closed=True).to_json()
        (marked,) = yield Write((Put("intents", name, closed, self._guards[name]),))
        if marked.status != DONE:
            return
        # From here on its gate makes nothing more known under this name: nothing of this comes too early.
        intents = [one for round_ in head.rounds for one in self._rounds.get(round_, ())]
        there: list[VersionedDocument | None] = yield Read(tuple(sorted({one.document for one in intents})))
        held = {one.id: one for one in there if one is not None}
        open_ = {one.document for one in intents if is_open(one, held.get(one.document), forms)}
        if open_:
            written = yield Write(tuple(closing(held[id_], forms) for id_ in sorted(open_)))
            if any(one.status not in (DONE, MISSING) for one in written):
                return
        # What it let in is seen by searches before nobody knows of it any more.
        yield Refresh()
        gone = (Drop("intents", name, marked.guard), *(Drop("intents", one) for one in head.rounds))
        dropped = yield Write(gone)
        if dropped[0].status == DONE:
            yield from _unlist(name)
            del self._others[name]

    def _told(self, first: tuple[Action, ...], last: tuple[Action, ...] = ()) -> Steps[list[WriteResult]]:
        """Run actions and write the head between them; all know what it says before this ends."""
        written: list[WriteResult] = yield Write(
            (*first, Put("intents", self.name, self._head(self._own), self._guard), *last)
        )
        own = written[len(first)]
        while own.status in (CONFLICT, MISSING):
            # Either a request was sent twice, as its connection broke, or others have taken the head away.
            (held,) = yield Read((self.name,), "intents")
            if held is None or Head.from_json(held.source).closed:
                yield from self._join()
                return written
            (own,) = yield Write((Put("intents", self.name, self._head(self._own), held.guard),))
        _check(own)
        self._guard = own.guard
        return written

    def _head(self, own: dict[str, tuple[Intent, ...]]) -> dict[str, Any]:
        left, claimed = self.known.left, self.known.claims
        if left or claimed:
            mine = {one.attempt for intents in own.values() for one in intents}
            left, claimed = left & mine, {name: claimed[name] for name in mine & set(claimed)}
        return Head(self._until, tuple(own), frozenset(left), tuple(sorted(claimed.items()))).to_json()

    def _join(self) -> Steps[None]:
        """Make all known under a name that nobody has had: in a round, in a head, and that named by all."""
        intents = tuple(one for several in self._own.values() for one in several)
        # Who clears the old head away takes its rounds, too.
        own = {self.names(): intents} if intents else {}
        name = self.names()
        rounds = (Put("intents", one, round_json(several), create=True) for one, several in own.items())
        written: list[WriteResult] = yield Write(
            (*rounds, Put("intents", name, self._head(own), create=True))
        )
        for one in written:
            _check(one)
        while True:
            (there,) = yield Read((WRITERS,), "intents")
            names = {"names": sorted({*_names(there), name})}
            (listed,) = yield Write(
                (Put("intents", WRITERS, names, there and there.guard, create=there is None),)
            )
            if listed.status not in (CONFLICT, MISSING):
                break
            yield Pause(3, alone=True)
        _check(listed)
        self.name, self._guard, self._own = name, written[-1].guard, own

    def _learn(self) -> Steps[None]:
        """Read the rounds that others have named since, and forget those that they name no more."""
        named = {one for head in self._others.values() for one in head.rounds}
        for gone in [one for one in self._rounds if one not in named]:
            self.known.forget(self._rounds.pop(gone))
        if fresh := tuple(sorted(named - set(self._rounds))):
            there: list[VersionedDocument | None] = yield Read(fresh, "intents")
            # One that is gone since was of no use any more.
            self._rounds |= {
                name: round_intents(held.source) if held else ()
                for name, held in zip(fresh, there, strict=True)
            }
            for name in fresh:
                self.known.learn(self._rounds[name])
        for head in self._others.values():
            self.known.left |= head.left
            self.known.claims.update(head.claims)


@dataclass(slots=True)
class Alone:
    """The register of a gate that no other decides beside."""

    known: Known = field(default_factory=Known)

    def enter(self, actions: Sequence[Action], intents: Sequence[Intent]) -> Steps[list[WriteResult]]:
        """Run actions."""
        return (yield Write(tuple(actions))) if actions else []

    def look(self) -> Steps[None]:
        """Do nothing."""
        yield from ()

    def leave(self, actions: Sequence[Action], attempts: Sequence[str]) -> Steps[list[WriteResult]]:
        """Run actions."""
        return (yield Write(tuple(actions))) if actions else []

    def claim(self, claims: Sequence[tuple[str, int]]) -> Steps[None]:
        """Do nothing."""
        yield from ()

    def settle(self, attempts: Iterable[str]) -> None:
        """Do nothing."""


def _names(held: VersionedDocument | None) -> Iterable[str]:
    return held.source["names"] if held is not None else ()


def _unlist(name: str) -> Steps[None]:
    """Name a head no more that is gone; whoever comes next does it where others are faster."""
    (there,) = yield Read((WRITERS,), "intents")
    names = set(_names(there))
    if there is not None and name in names:
        yield Write((Put("intents", WRITERS, {"names": sorted(names - {name})}, there.guard),))


def _check(written: WriteResult) -> None:
    if written.status not in (DONE, CREATED):
        raise EngineUnavailable(f"the gate's own notes were not taken ({written.reason}); try again")
