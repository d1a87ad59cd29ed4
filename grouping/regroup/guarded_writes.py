"""Numbers and roles into documents: guarded by the version that was read, and never for another text."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.contracts.exclusive_writes import ExclusiveWrites
from shinglefold.grouping.gate.protocol.placeholders import GROUP, LEADER, GateFields
from shinglefold.grouping.regroup.census import UNKNOWN, digest_of
from shinglefold.grouping.regroup.options import RegroupCounts
from shinglefold.grouping.regroup.plan import GroupChange
from shinglefold.ingest.field_paths import put
from shinglefold.ingest.writing.bulk_retry import send
from shinglefold.maintenance.guarded_updates import ROUNDS, fate, read_again
from shinglefold.maintenance.reconcile import key_of, key_of_action
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.runtime.backoff import Backoff

#: A change, and the newest version of its document where it was read again.
_Due = tuple[GroupChange, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class GroupWriter:
    """Writes changes, a batch at a time.

    On servers a write is guarded by the version of the document; one that lost to another writer is made
    again, unless the text is another one now. Documents that no update of a part can change as is wanted are
    read again and written whole. An embedded engine has no versions: there each batch is read
    again and written whole while nobody else may write, as it reads a single document almost as long as a
    hundred.
    """

    engine: Engine
    index: str
    path: str
    scheme: str
    backoff: Backoff
    stop: Callable[[], bool]

    def write(self, changes: Sequence[GroupChange], counts: RegroupCounts) -> None:
        """Account for all of some changes.

        Raises:
            EngineError: the engine can't go on; the changes must be written again.
        """
        if self.engine.can.seq_no:
            known = [change for change in changes if change.version != UNKNOWN]
            pending = self._send([(change, {}) for change in known], counts)
            counts.conflicts += len(pending)
            whole = [change for change in changes if change.version == UNKNOWN]
            self._again([*pending, *whole], counts)
        else:
            for index in dict.fromkeys(change.key.index for change in changes):
                with self._alone(index):
                    self._again([change for change in changes if change.key.index == index], counts)

    def _alone(self, index: str) -> AbstractContextManager[None]:
        """Return what keeps other writers out, where the engine has it."""
        return self.engine.exclusive(index) if isinstance(self.engine, ExclusiveWrites) else nullcontext()

    def _again(self, pending: Sequence[GroupChange], counts: RegroupCounts) -> None:
        """Write changes to the newest versions of their documents."""
        for _ in range(ROUNDS):
            if not pending:
                return
            pending = self._send(list(self._still_due(pending, counts)), counts)
        for _ in pending:
            counts.fail("other writers change it faster than it can be updated; run it again")

    def _send(self, due: Sequence[_Due], counts: RegroupCounts) -> list[GroupChange]:
        """Update documents and return the changes that another writer was faster than."""
        if not due:
            return []
        actions = [self._action(*one) for one in due]
        refused = send(self.engine, actions, self.backoff, self.stop).refused
        counts.written += len(due) - len(refused)
        by_key = {one.key: one for one, _ in due}
        conflicts = []
        for failure in refused:
            became = fate(failure)
            if became == "conflict":
                conflicts.append(by_key[key_of_action(failure.action)])
            elif became == "gone":
                counts.gone += 1
            else:
                counts.fail(f"{failure.status}: {failure.reason}")
        return conflicts

    def _still_due(self, changes: Iterable[GroupChange], counts: RegroupCounts) -> Iterable[_Due]:
        """Yield the changes that are due to the newest versions of documents, too."""
        due = {one.key: one for one in changes}
        for hit in read_again(self.engine, list(due), self.backoff):
            change = due.pop(key_of(hit))
            parts = stored_parts(hit["_source"], self.path)
            if parts.get("scheme") != self.scheme or digest_of(parts) != change.digest:
                counts.changed += 1
            elif parts.get(GROUP) == change.group and (parts.get(LEADER) is True) == change.leads:
                # After a crash the faster writer may have been this very job.
                counts.already += 1
            else:
                version = hit.get("_seq_no", -1), hit.get("_primary_term", -1)
                yield replace(change, version=version), hit["_source"]
        counts.gone += len(due)

    def _action(self, change: GroupChange, source: Mapping[str, Any]) -> JSON:
        action: JSON = {"_index": change.key.index, "_id": change.key.id}
        gate_fields = GateFields(self.path)
        if not self.engine.can.seq_no:
            return action | {"_source": gate_fields.stamped(source, change.group, change.leads)}
        action |= {"if_seq_no": change.version[0], "if_primary_term": change.version[1]}
        if gate_fields.has_other_form(source):
            # It went through the index's own pipeline when it came.
            whole = gate_fields.stamped(source, change.group, change.leads)
            action |= {"_op_type": "index", "_source": whole, "pipeline": "_none"}
        else:
            notes = {GROUP: change.group, LEADER: change.leads}
            action |= {"_op_type": "update", "doc": put({}, self.path, notes)}
        if change.key.routing is not None:
            action["routing"] = change.key.routing
        return action
