"""The register of intents, by which gates know of each other: read and written by id, never searched.

Each gate has a writer record. Only that gate writes it, each time under the version it wrote before. The
record names the batches of intents that are open, or whose documents searches may not see yet. One more
document lists all records. So a published intent is visible to every gate that reads afterwards, without a
refresh:

* A record exists before it is listed, and is listed as long as it exists.
* A batch exists before a record names it, never changes, and is deleted only when nobody needs it.
* Other gates clear a record that was not written for long. They close it under the version they read, then
  revoke the guards of its intents, then delete it. A gate reads its own record whenever it reads those of
  others. If its own is closed or gone, it publishes its open intents again under a fresh name.
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
    NullRegister,
    WriterRecord,
    batch_from_json,
    batch_json,
)
from shinglefold.grouping.gate.protocol.pending_document import (
    CONFLICT,
    CREATED,
    DONE,
    MISSING,
    Action,
    Delete,
    GateFields,
    Now,
    Pause,
    Put,
    ReadDocuments,
    Refresh,
    Steps,
    Write,
    guard_revocation,
)


@dataclass(slots=True)
class SharedRegister:
    """The register of a gate on a server, which other gates read.

    Args:
        new_id: makes unique ids.
        lease: milliseconds after which others may clear the records of this gate.

    Attributes:
        known: the intents of all gates.
        name: the id of this gate's record, "" before its first intent.
    """

    new_id: Callable[[], str]
    lease: int = 30_000
    known: KnownIntents = field(default_factory=KnownIntents)
    name: str = ""
    _guard: Guard | None = None
    _until: int = 0
    #: This gate's published batches by id, and the ids of their open intents.
    _own: dict[str, tuple[Intent, ...]] = field(default_factory=dict)
    _open: set[str] = field(default_factory=set)
    #: This gate's batches that nobody needs any more and that are still stored.
    _obsolete: tuple[str, ...] = ()
    #: The records of other gates, the versions of these records, and the batches of other gates.
    _others: dict[str, WriterRecord] = field(default_factory=dict)
    _guards: dict[str, Guard] = field(default_factory=dict)
    _batches: dict[str, tuple[Intent, ...]] = field(default_factory=dict)

    def publish(self, actions: Sequence[Action], intents: Sequence[Intent]) -> Steps[list[WriteResult]]:
        """Run actions, and publish intents: they are visible to other gates on return."""
        if not self.name:
            yield from self._join()
        name = self.new_id()
        self._own[name] = tuple(intents)
        self._open |= {intent.intent_id for intent in intents}
        self._until = max(intent.until for intent in intents)
        self.known.add(intents)
        obsolete = self._obsolete
        written = yield from self._write_record(
            (*actions, Put("intents", name, batch_json(intents))),
            tuple(Delete("intents", batch) for batch in obsolete),
        )
        self._obsolete = self._obsolete[len(obsolete) :]
        _check_done(written[len(actions)])
        return written[: len(actions)]

    def look(self) -> Steps[None]:
        """Read the intents of other gates; documents must be searched after that."""
        while True:
            ids = (WRITERS, self.name, *sorted(self._others))
            writers, own, *others = yield ReadDocuments(ids, "intents")
            if own is not None and not WriterRecord.from_json(own.source).closed:
                break
            yield from self._join()
        names = set(_names(writers)) - {self.name}
        stored = dict(zip(ids[2:], others, strict=True))
        if new := tuple(sorted(names - set(stored))):
            stored |= dict(zip(new, (yield ReadDocuments(new, "intents")), strict=True))
        listed = {name: stored[name] for name in sorted(names)}
        self._others = {
            name: WriterRecord.from_json(record.source) if record else WriterRecord()
            for name, record in listed.items()
        }
        self._guards = {name: record.guard for name, record in listed.items() if record}
        yield from self._read_batches()

    def withdraw(self, actions: Sequence[Action], intent_ids: Sequence[str]) -> Steps[list[WriteResult]]:
        """Run actions, and publish that intents were given up.

        Args:
            intent_ids: the ids of settled intents whose documents do not show that they were given up.
        """
        if intent_ids:
            self.known.withdrawn |= set(intent_ids)
            return (yield from self._write_record(tuple(actions)))
        return (yield Write(tuple(actions))) if actions else []

    def claim(self, claims: Sequence[tuple[str, int]]) -> Steps[None]:
        """Publish in which groups intents claim a slot."""
        self.known.claims.update(claims)
        yield from self._write_record(())

    def settle(self, intent_ids: Iterable[str]) -> None:
        """Mark intents as decided; they stay published until searches see their documents."""
        self._open -= set(intent_ids)

    def settled_batches(self) -> tuple[str, ...]:
        """Return the batches without open intents: after a refresh searches see their documents."""
        return tuple(
            name
            for name, intents in self._own.items()
            if self._open.isdisjoint(intent.intent_id for intent in intents)
        )

    def forget(self, batches: Iterable[str]) -> None:
        """Forget batches that were settled before a refresh: searches see their documents."""
        for name in batches:
            if name in self._own:
                self.known.remove(self._own.pop(name))
                self._obsolete += (name,)

    def depart(self) -> Steps[None]:
        """Delete the published records and batches, unless some are still needed."""
        if not self.name or self._own:
            return
        written = yield Write(_deletions(self.name, self._guard, self._obsolete))
        self._obsolete = ()
        if written[0].status in (DONE, MISSING):
            yield from _unlist(self.name)
        self.name, self._guard = "", None

    def clean(self, gate_fields: GateFields) -> Steps[None]:
        """Clear the records of crashed gates: first the guards of their intents, then the records."""
        now = yield Now()
        for name, record in list(self._others.items()):
            if name not in self._guards:
                yield from _unlist(name)
                del self._others[name]
            elif record.until + self.lease < now:
                yield from self._clear(name, record, gate_fields)

    def _clear(self, name: str, record: WriterRecord, gate_fields: GateFields) -> Steps[None]:
        closed = replace(record, closed=True).to_json()
        (marked,) = yield Write((Put("intents", name, closed, self._guards[name]),))
        if marked.status != DONE:
            return
        # The gate of the record publishes nothing more under this name, so the code below misses no intent.
        intents = [intent for batch in record.batches for intent in self._batches.get(batch, ())]
        documents: list[VersionedDocument | None] = yield ReadDocuments(
            tuple(sorted({intent.document for intent in intents}))
        )
        held = {document.id: document for document in documents if document is not None}
        open_ = {
            intent.document for intent in intents if intent.is_open(held.get(intent.document), gate_fields)
        }
        if open_:
            written = yield Write(tuple(guard_revocation(held[id_], gate_fields) for id_ in sorted(open_)))
            if any(one.status not in (DONE, MISSING) for one in written):
                return
        # The intents may be deleted only when searches see the documents that their gate stored.
        yield Refresh()
        deleted = yield Write(_deletions(name, marked.guard, record.batches))
        if deleted[0].status == DONE:
            yield from _unlist(name)
            del self._others[name]

    def _write_record(
        self, first: tuple[Action, ...], last: tuple[Action, ...] = ()
    ) -> Steps[list[WriteResult]]:
        """Run actions and write the record between them: it is visible to other gates on return."""
        written: list[WriteResult] = yield Write(
            (*first, Put("intents", self.name, self._record(self._own), self._guard), *last)
        )
        own = written[len(first)]
        while own.status in (CONFLICT, MISSING):
            # The connection broke and the request was sent twice, or others have cleared the record.
            (held,) = yield ReadDocuments((self.name,), "intents")
            if held is None or WriterRecord.from_json(held.source).closed:
                yield from self._join()
                return written
            (own,) = yield Write((Put("intents", self.name, self._record(self._own), held.guard),))
        _check_done(own)
        self._guard = own.guard
        return written

    def _record(self, own: dict[str, tuple[Intent, ...]]) -> dict[str, Any]:
        withdrawn, claims = self.known.withdrawn, self.known.claims
        if withdrawn or claims:
            ids = {intent.intent_id for intents in own.values() for intent in intents}
            withdrawn, claims = withdrawn & ids, {id_: claims[id_] for id_ in ids & set(claims)}
        return WriterRecord(
            self._until, tuple(own), frozenset(withdrawn), tuple(sorted(claims.items()))
        ).to_json()

    def _join(self) -> Steps[None]:
        """Register open intents under a fresh name: in a batch, in a record, and in the list of records."""
        intents = tuple(intent for batch in self._own.values() for intent in batch)
        # A gate that clears the old record deletes its batches, too.
        own = {self.new_id(): intents} if intents else {}
        name = self.new_id()
        batches = (Put("intents", id_, batch_json(batch), create=True) for id_, batch in own.items())
        written: list[WriteResult] = yield Write(
            (*batches, Put("intents", name, self._record(own), create=True))
        )
        for result in written:
            _check_done(result)
        while True:
            (writers,) = yield ReadDocuments((WRITERS,), "intents")
            names = {"names": sorted({*_names(writers), name})}
            (listed,) = yield Write(
                (Put("intents", WRITERS, names, writers and writers.guard, create=writers is None),)
            )
            if listed.status not in (CONFLICT, MISSING):
                break
            yield Pause(3, alone=True)
        _check_done(listed)
        self.name, self._guard, self._own = name, written[-1].guard, own

    def _read_batches(self) -> Steps[None]:
        """Read the batches that other gates have published since, and forget those they have deleted."""
        named = {batch for record in self._others.values() for batch in record.batches}
        for batch in [one for one in self._batches if one not in named]:
            self.known.remove(self._batches.pop(batch))
        if new := tuple(sorted(named - set(self._batches))):
            stored: list[VersionedDocument | None] = yield ReadDocuments(new, "intents")
            # Nobody needed a batch that was deleted in between.
            self._batches |= {
                name: batch_from_json(batch.source) if batch else ()
                for name, batch in zip(new, stored, strict=True)
            }
            for name in new:
                self.known.add(self._batches[name])
        for record in self._others.values():
            self.known.withdrawn |= record.withdrawn
            self.known.claims.update(record.claims)


#: What a decision needs of the register.
IntentRegister = SharedRegister | NullRegister


def _names(writers: VersionedDocument | None) -> Iterable[str]:
    return writers.source["names"] if writers is not None else ()


def _unlist(name: str) -> Steps[None]:
    """Remove a deleted record from the list; if another write is faster, the next gate removes it."""
    (writers,) = yield ReadDocuments((WRITERS,), "intents")
    names = set(_names(writers))
    if writers is not None and name in names:
        yield Write((Put("intents", WRITERS, {"names": sorted(names - {name})}, writers.guard),))


def _deletions(name: str, guard: Guard | None, batches: Iterable[str]) -> tuple[Action, ...]:
    return Delete("intents", name, guard), *(Delete("intents", batch) for batch in batches)


def _check_done(written: WriteResult) -> None:
    if written.status not in (DONE, CREATED):
        raise EngineUnavailable(f"the server did not store the gate's intents ({written.reason}); try again")
