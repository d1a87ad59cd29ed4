"""Write fingerprints by guarded updates, read documents again after a conflict, and count each outcome."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

from shinglefold.contracts import JSON, BulkFailure, Engine
from shinglefold.errors import EngineError, EngineUnavailable, IndexMissing
from shinglefold.ingest.maintenance.counts import BackfillCounts
from shinglefold.ingest.maintenance.stored import (
    Key,
    document_of,
    foreign,
    found_by,
    is_empty,
    key_of,
    key_of_action,
    new_fingerprint,
    stored_fingerprint,
    update,
)
from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline
from shinglefold.ingest.writing.bulk import Backoff, patiently, send
from shinglefold.ingest.writing.workers import process
from shinglefold.placeholders import is_placeholder
from shinglefold.shards import complete

Hit = Mapping[str, Any]
#: How often a document is tried again whose other writers are always faster.
ROUNDS = 10
#: Documents read again in one request.
_BATCH = 200
_REFUSED, _MISSING, _CONFLICT = 400, 404, 409


def fate(failure: BulkFailure) -> Literal["conflict", "gone", "refused"]:
    """Return what became of an update that was not made.

    Raises:
        IndexMissing: the index is gone.
        EngineUnavailable: the engine is too busy.
        EngineError: it takes no updates at all.
    """
    if failure.status == _CONFLICT:
        return "conflict"
    if failure.status == _MISSING and "index_not_found" in failure.reason:
        raise IndexMissing(f"the index {failure.action['_index']!r} was deleted meanwhile")
    if failure.status == _MISSING:
        return "gone"
    if failure.status == _REFUSED:
        return "refused"
    if failure.status in (429, 503):
        raise EngineUnavailable(f"the engine is too busy: {failure.reason}; go on later")
    raise EngineError(f"the engine takes no updates ({failure.status}): {failure.reason}")


def read_again(engine: Engine, keys: Iterable[Key], backoff: Backoff) -> Iterator[Hit]:
    """Yield the newest versions of documents; those that are gone are missing.

    Raises:
        EngineError: the engine can't be asked.
    """
    ids = defaultdict(list)
    for key in keys:
        ids[key.index, key.routing].append(key.id)
    for index in {index for index, _ in ids}:
        patiently(partial(engine.refresh, index), backoff)
    for (index, routing), several in ids.items():
        for start in range(0, len(several), _BATCH):
            yield from _fetch(engine, index, routing, several[start : start + _BATCH], backoff)


def _fetch(
    engine: Engine, index: str, routing: str | None, ids: Sequence[str], backoff: Backoff
) -> list[Hit]:
    body = {"query": found_by(routing, ids), "size": len(ids), **engine.can.unaltered}
    if engine.can.seq_no:
        body["seq_no_primary_term"] = True
    answer = patiently(lambda: complete(engine.search(index, body)), backoff)
    found: list[Hit] = answer["hits"]["hits"]
    return found


class _Change(NamedTuple):
    """A fingerprint to store, and the version of the document it is of."""

    hit: Hit
    new: JSON


@dataclass(slots=True)
class Updater:
    """Stores the fingerprints of documents read and accounts for each of them.

    ``target`` is the field they are in, ``given_up`` the documents that can have none.
    """

    engine: Engine
    pipeline: Pipeline
    target: str
    backoff: Backoff
    stop: Callable[[], bool]
    given_up: set[Key] = field(default_factory=set)

    def write(self, hits: Sequence[Hit], outcomes: Sequence[Outcome]) -> BackfillCounts:
        """Account for documents, given what the pipeline made of each.

        Raises:
            EngineError: the engine can't go on; the documents must be written again.
        """
        counts = BackfillCounts(read=len(hits))
        conflicts = self._send(list(self._changes(hits, outcomes, counts)), counts)
        counts.conflicts = len(conflicts)
        self._redo({key_of(change.hit): change.new for change in conflicts}, counts)
        return counts

    def _changes(
        self, hits: Sequence[Hit], outcomes: Sequence[Outcome], counts: BackfillCounts
    ) -> Iterator[_Change]:
        """Yield the fingerprints to store; account for the documents that need none."""
        for hit, outcome in zip(hits, outcomes, strict=True):
            new = new_fingerprint(outcome, self.target)
            if outcome.status == "dropped":
                counts.dropped += 1
                self.given_up.add(key_of(hit))
            elif is_placeholder(hit["_source"], self.target):
                counts.unchanged += 1
            elif told := foreign(hit["_source"], self.target):
                self._fail(hit, f"{told}; the document was left as it is", counts)
            elif new is None:
                self._fail(hit, str(outcome.failure or f"the pipeline wrote no [{self.target}]"), counts)
            elif stored_fingerprint(hit["_source"], self.target) == new:
                counts.empty += is_empty(new)
                counts.unchanged += 1
            elif is_empty(new) and not is_empty(stored_fingerprint(hit["_source"], self.target)):
                counts.empty += 1
                counts.keep(hit["_id"])
                self.given_up.add(key_of(hit))
            else:
                counts.empty += is_empty(new)
                yield _Change(hit, new)

    def _send(self, changes: Sequence[_Change], counts: BackfillCounts) -> list[_Change]:
        """Update documents and return the changes that another writer was faster than."""
        if not changes:
            return []
        actions = [update(change.hit, self.target, change.new) for change in changes]
        refused = send(self.engine, actions, self.backoff, self.stop).refused
        by_key = {key_of(change.hit): change for change in changes}
        counts.updated += len(changes) - len(refused)
        conflicts = []
        for failure in refused:
            change = by_key[key_of_action(failure.action)]
            if fate(failure) == "conflict":
                conflicts.append(change)
            else:
                self._refuse(change, failure, counts)
        return conflicts

    def _refuse(self, change: _Change, failure: BulkFailure, counts: BackfillCounts) -> None:
        if fate(failure) == "gone":
            counts.gone += 1
        else:
            self._fail(change.hit, f"{failure.status}: {failure.reason}", counts)

    def _redo(self, conflicts: Mapping[Key, JSON], counts: BackfillCounts) -> None:
        """Make updates again from the newer versions: the other writer's edit stays and is fingerprinted.

        Args:
            conflicts: the fingerprints of the older versions.
        """
        for _ in range(ROUNDS):
            if not conflicts:
                return
            hits = list(read_again(self.engine, conflicts, self.backoff))
            counts.gone += len(conflicts) - len(hits)
            outcomes = process(self.pipeline, [document_of(hit, self.target) for hit in hits]).outcomes
            for hit, outcome in zip(hits, outcomes, strict=True):
                # After a crash the faster writer may have been this backfill: then nothing has changed.
                new = conflicts[key_of(hit)]
                if (
                    not new_fingerprint(outcome, self.target)
                    == new
                    == stored_fingerprint(hit["_source"], self.target)
                ):
                    counts.change(hit["_id"])
            again = self._send(list(self._changes(hits, outcomes, counts)), counts)
            conflicts = {key_of(change.hit): conflicts[key_of(change.hit)] for change in again}
        for key in conflicts:
            counts.fail(
                key.id, "other writers change it faster than it can be updated; run the backfill again"
            )
            self.given_up.add(key)

    def _fail(self, hit: Hit, reason: str, counts: BackfillCounts) -> None:
        counts.fail(hit["_id"], reason)
        self.given_up.add(key_of(hit))
