"""The changes of a regrouping: planned from the leaders, kept in a file, and written.

A group keeps its number if possible, and only documents whose number or role differs are changed.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from shinglefold.contracts.engine import JSON, Engine
from shinglefold.contracts.exclusive_writes import ExclusiveWrites
from shinglefold.documents import put
from shinglefold.errors import InputError
from shinglefold.grouping.gate.protocol.pending_document import GROUP, LEADER, GateFields, numbers_of
from shinglefold.grouping.regroup.census import NO_GROUP, UNKNOWN, Census, digest_of
from shinglefold.grouping.regroup.options import RegroupCounts
from shinglefold.ingest.writing.batch import send
from shinglefold.maintenance.checkpoint import Checkpoint, replace_lines
from shinglefold.maintenance.guarded_updates import ROUNDS, conflict_outcome, reread
from shinglefold.maintenance.reconcile import DocumentKey, key_of, key_of_action
from shinglefold.model.scheme import Scheme
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.model.values import Fingerprint, Int64s
from shinglefold.runtime.backoff import Backoff


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A document that gets another number or role; version and text digest are those that were read."""

    key: DocumentKey
    version: tuple[int, int]
    digest: str
    group: int
    leads: bool


def plan(
    census: Census, leaders: Int64s, scheme: Scheme, reserved: set[int], counts: RegroupCounts
) -> Iterator[GroupChange]:
    """Count the changes, and return an iterator of them.

    A group keeps the number that most of its documents have, and each number goes to one group. A group
    without a number gets a new one from the text of its leader.

    Args:
        leaders: for each document, the position of its leader in the census.
        reserved: numbers of documents that are not changed.
    """
    numbers = _numbers(census, leaders, scheme, reserved)
    wanted = numbers[leaders]
    leads = leaders == np.arange(len(census))
    moved = wanted != census.groups
    role = leads != census.leads
    _count(census, leaders, counts)
    counts.numbered += int(np.count_nonzero(moved & (census.groups == NO_GROUP)))
    counts.moved += int(np.count_nonzero(moved & (census.groups != NO_GROUP)))
    counts.relabelled += int(np.count_nonzero(role & ~moved))
    changes = np.flatnonzero(moved | role)
    counts.planned += len(changes)
    return (
        GroupChange(
            census.keys[place],
            (int(census.seq_nos[place]), int(census.terms[place])),
            census.digest(place),
            int(wanted[place]),
            bool(leads[place]),
        )
        for place in changes.tolist()
    )


def _numbers(census: Census, leaders: Int64s, scheme: Scheme, reserved: set[int]) -> Int64s:
    """Return the number of each group, at the position of its leader: int64 (D,)."""
    numbers = np.full(len(census), NO_GROUP, np.int64)
    numbered = np.flatnonzero(census.groups != NO_GROUP)
    kept: set[int] = set()
    for place, number in _claims(census, leaders, numbered):
        if numbers[place] == NO_GROUP and number not in kept:
            numbers[place] = number
            kept.add(number)
    taken = reserved | set(census.groups[numbered].tolist())
    for place in np.flatnonzero((leaders == np.arange(len(census))) & (numbers == NO_GROUP)).tolist():
        number = next(one for one in _choices(census, place, scheme) if one not in taken)
        numbers[place] = number
        taken.add(number)
    return numbers


def _claims(census: Census, leaders: Int64s, numbered: Int64s) -> Iterator[tuple[int, int]]:
    """Yield groups and the numbers that their documents have, the best claim first.

    The number that most documents of a group have comes first, then the number of its leader, then the least.
    """
    pairs = np.stack((leaders[numbered], census.groups[numbered]), axis=1)
    if not len(pairs):
        return
    found, sizes = np.unique(pairs, axis=0, return_counts=True)
    own = census.groups[found[:, 0]] == found[:, 1]
    for row in np.lexsort((found[:, 0], found[:, 1], ~own, -sizes)).tolist():
        yield int(found[row, 0]), int(found[row, 1])


def _choices(census: Census, place: int, scheme: Scheme) -> Iterator[int]:
    """Yield the numbers with which a document may found a group, the same as when it is indexed."""
    code = int(census.scopes[place])
    scope: Sequence[Sequence[Any]] = census.values[code] if code >= 0 else [()]
    key = census.keys[place]
    own = Fingerprint(scheme.id, "", 0, census.digest(place))
    yield from numbers_of(own, scope, key.index, key.id, key.routing)
    for attempt in count():
        id_ = key.id if not attempt else f"{key.id}\0{attempt}"
        yield from numbers_of(Fingerprint(scheme.id, "", 0), scope, key.index, id_, key.routing)


def _count(census: Census, leaders: Int64s, counts: RegroupCounts) -> None:
    numbered = census.groups != NO_GROUP
    counts.groups = int(np.count_nonzero(leaders == np.arange(len(census))))
    counts.shared = int(np.count_nonzero(np.bincount(leaders, minlength=1) > 1))
    if counts.groups_before < 0:
        counts.groups_before = len(np.unique(census.groups[numbered]))
    pairs = np.unique(np.stack((leaders[numbered], census.groups[numbered]), axis=1), axis=0)
    for column, one, other in ((0, "merged", "merged_from"), (1, "split", "split_into")):
        _, several = np.unique(pairs[:, column], return_counts=True)
        setattr(counts, one, getattr(counts, one) + int(np.count_nonzero(several > 1)))
        setattr(counts, other, getattr(counts, other) + int(several[several > 1].sum()))


#: How a plan begins.
_BEGINNING = b'{"passes": '


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where an earlier run ended: the changes still to write, how many are done, and the passes so far."""

    changes: Sequence[GroupChange]
    done: int
    passes: int
    counts: RegroupCounts


@dataclass(frozen=True, slots=True)
class PlanJournal:
    """The files of one job: the checkpoint, and next to it its plan (``….plan``) and text verdicts.

    The plan is on disk before the first write, so that an interrupted run resumes with the same decisions,
    whatever others write in between. Without a path nothing is kept.
    """

    path: Path | None
    job: Mapping[str, Any]

    def load(self) -> ResumePoint | None:
        """Return the point at which an earlier run of this job ended, None if there was none."""
        found = self._checkpoint.load(self._resume_point)
        if found is None:
            self._check_plan_file()
        return found

    def begin(self, changes: Iterable[GroupChange], passes: int, counts: RegroupCounts) -> None:
        """Write a new plan; none of its changes is done."""
        if self.path is not None:
            replace_lines(self._plan_file(self.path), [json.dumps({"passes": passes}), *map(_line, changes)])
        self.save(0, passes, counts)

    def save(self, done: int, passes: int, counts: RegroupCounts) -> None:
        """Write how many changes of the plan are done."""
        self._checkpoint.save({"passes": passes, "done": done, "counts": asdict(counts)})

    def remove(self) -> None:
        """Remove both files when the job is done."""
        self._checkpoint.remove()
        if self.path is not None:
            self._plan_file(self.path).unlink(missing_ok=True)

    @property
    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(self.path, "regrouping", self.job)

    def _resume_point(self, saved: Mapping[str, Any]) -> ResumePoint:
        assert self.path is not None
        passes, done = saved["passes"], saved["done"]
        plan = self._plan_file(self.path)
        try:
            changes = _changes(plan, passes)
        except (OSError, KeyError, TypeError, ValueError, StopIteration) as error:
            raise InputError(
                f"{plan}, the plan of the checkpoint {self.path}, is missing or damaged: delete the "
                "checkpoint to start from the beginning"
            ) from error
        return ResumePoint(changes[done:], done, passes, RegroupCounts(**saved["counts"]))

    def _check_plan_file(self) -> None:
        """Raise ``InputError`` if another file has the name of the plan, because it would be replaced."""
        if self.path is None or not (path := self._plan_file(self.path)).exists():
            return
        try:
            with path.open("rb") as file:
                ours = file.read(len(_BEGINNING)) == _BEGINNING
        except OSError:
            ours = False
        if not ours:
            raise InputError(
                f"{path}, where the plan is kept beside the checkpoint, holds something else: give another "
                "checkpoint"
            )

    @property
    def verdicts(self) -> Path | None:
        """The file of text verdicts next to the checkpoint (``….texts``)."""
        return None if self.path is None else Path(f"{self.path}.texts")

    @staticmethod
    def _plan_file(path: Path) -> Path:
        return Path(f"{path}.plan")


def _line(change: GroupChange) -> str:
    key = change.key
    return json.dumps(
        [key.index, key.id, key.routing, *change.version, change.digest, change.group, change.leads]
    )


def _changes(path: Path, passes: int) -> list[GroupChange]:
    """Return a plan; [] if the process died between writing a new plan and its checkpoint."""
    with path.open(encoding="utf-8") as lines:
        if json.loads(next(lines))["passes"] != passes:
            return []
        rows = map(json.loads, lines)
        return [
            GroupChange(DocumentKey(index, id_, routing), (seq_no, term), digest, group, leads)
            for index, id_, routing, seq_no, term, digest, group, leads in rows
        ]


#: A change, and the newest version of its document if that was read again.
_Due = tuple[GroupChange, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class GroupWriter:
    """Writes changes, a batch at a time.

    On servers a write is guarded by the version of the document. A write that lost to another writer is
    repeated, unless the text has changed. Documents that no partial update can change are read again and
    written whole. An embedded engine has no versions: there each batch is read again and written whole while
    nobody else may write.
    """

    engine: Engine
    index: str
    path: str
    scheme: str
    backoff: Backoff
    stop: Callable[[], bool]

    def write(self, changes: Sequence[GroupChange], counts: RegroupCounts) -> None:
        """Write changes and count the result of each.

        Raises:
            EngineError: the engine failed; the changes must be written again.
        """
        if self.engine.can.seq_no:
            partial = [change for change in changes if change.version != UNKNOWN]
            pending = self._send([(change, {}) for change in partial], counts)
            counts.conflicts += len(pending)
            whole = [change for change in changes if change.version == UNKNOWN]
            self._write_newest([*pending, *whole], counts)
        else:
            for index in dict.fromkeys(change.key.index for change in changes):
                with self._exclusive(index):
                    self._write_newest([change for change in changes if change.key.index == index], counts)

    def _exclusive(self, index: str) -> AbstractContextManager[None]:
        """Return a context that excludes other writers; without effect if the engine has none."""
        return self.engine.exclusive(index) if isinstance(self.engine, ExclusiveWrites) else nullcontext()

    def _write_newest(self, pending: Sequence[GroupChange], counts: RegroupCounts) -> None:
        """Write changes to the newest versions of their documents."""
        for _ in range(ROUNDS):
            if not pending:
                return
            pending = self._send(list(self._still_due(pending, counts)), counts)
        for _ in pending:
            counts.fail("other writers change it faster than it can be updated; run it again")

    def _send(self, due: Sequence[_Due], counts: RegroupCounts) -> list[GroupChange]:
        """Update documents and return the changes that conflict with another writer."""
        if not due:
            return []
        actions = [self._action(*one) for one in due]
        refused = send(self.engine, actions, self.backoff, self.stop).refused
        counts.written += len(due) - len(refused)
        by_key = {one.key: one for one, _ in due}
        conflicts = []
        for failure in refused:
            outcome = conflict_outcome(failure)
            if outcome == "conflict":
                conflicts.append(by_key[key_of_action(failure.action)])
            elif outcome == "gone":
                counts.gone += 1
            else:
                counts.fail(f"{failure.status}: {failure.reason}")
        return conflicts

    def _still_due(self, changes: Iterable[GroupChange], counts: RegroupCounts) -> Iterable[_Due]:
        """Yield the changes that the newest versions of documents still need, with their sources."""
        due = {one.key: one for one in changes}
        for hit in reread(self.engine, list(due), self.backoff):
            change = due.pop(key_of(hit))
            parts = stored_parts(hit["_source"], self.path)
            if parts.get("scheme") != self.scheme or digest_of(parts) != change.digest:
                counts.changed += 1
            elif parts.get(GROUP) == change.group and (parts.get(LEADER) is True) == change.leads:
                # The faster writer may have been this job before a crash.
                counts.already += 1
            else:
                version = hit.get("_seq_no", -1), hit.get("_primary_term", -1)
                yield replace(change, version=version), hit["_source"]
        counts.gone += len(due)

    def _action(self, change: GroupChange, source: Mapping[str, Any]) -> JSON:
        action: JSON = {"_index": change.key.index, "_id": change.key.id}
        gate_fields = GateFields(self.path)
        if not self.engine.can.seq_no:
            return action | {"_source": gate_fields.add_group(source, change.group, change.leads)}
        action |= {"if_seq_no": change.version[0], "if_primary_term": change.version[1]}
        if gate_fields.has_other_form(source):
            # The document went through the index's own pipeline before.
            whole = gate_fields.add_group(source, change.group, change.leads)
            action |= {"_op_type": "index", "_source": whole, "pipeline": "_none"}
        else:
            parts = {GROUP: change.group, LEADER: change.leads}
            action |= {"_op_type": "update", "doc": put({}, self.path, parts)}
        if change.key.routing is not None:
            action["routing"] = change.key.routing
        return action
