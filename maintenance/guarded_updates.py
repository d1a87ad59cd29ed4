"""Write fingerprints by guarded updates, retry after conflicts, and count the outcome of each document."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

from shinglefold.contracts.engine import BUSY, JSON, BulkFailure, Engine
from shinglefold.errors import EngineError, EngineUnavailable, IndexMissing
from shinglefold.ingest.pipeline.pipeline import Outcome, Pipeline
from shinglefold.ingest.writing.batch import send
from shinglefold.ingest.writing.worker_pool import process_block
from shinglefold.maintenance.reconcile import (
    DocumentKey,
    as_stored,
    document_of,
    ids_query,
    is_empty,
    key_of,
    key_of_action,
    new_fingerprint,
    stored_fingerprint,
    unrecognized_content,
    update_action,
)
from shinglefold.maintenance.scan import whole_source
from shinglefold.model.stored_fingerprint import is_placeholder
from shinglefold.rerank.hits import check_complete
from shinglefold.runtime.backoff import Backoff, retry_unavailable

#: The most ids and reasons listed; further ones are only counted.
_LISTED = 1_000
_LONGEST_REASON = 500
_OUTCOMES = ("read", "updated", "unchanged", "dropped", "failed", "gone", "textless")
_COUNTS = (*_OUTCOMES, "conflicts", "earlier", "empty")
Hit = Mapping[str, Any]
#: Attempts for a document that other writers keep changing.
ROUNDS = 10
#: The number of documents reread in one request.
_BATCH = 200
_REFUSED, _MISSING, _CONFLICT = 400, 404, 409


@dataclass(slots=True)
class BackfillCounts:
    """The documents of a backfill: ``read == updated + unchanged + dropped + failed + gone + textless``.

    ``unchanged``: the stored fingerprint was right. ``dropped``: the pipeline drops the document, which is
    not changed. ``gone``: deleted during the backfill. ``textless``: has a fingerprint but no text, so the
    fingerprint stays. ``empty``: without any text, including textless ones. ``conflicts``: updates refused
    because another writer was faster, and retried with the newer version. ``changed``: ids of documents that
    changed between read and update. ``earlier``: updated before the point in time was lost and the scan
    restarted, which counts them as unchanged.
    """

    read: int = 0
    updated: int = 0
    unchanged: int = 0
    dropped: int = 0
    failed: int = 0
    gone: int = 0
    textless: int = 0
    empty: int = 0
    conflicts: int = 0
    earlier: int = 0
    changed: list[str] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    without_text: list[str] = field(default_factory=list)

    def fail(self, id: str, reason: str) -> None:  # noqa: A002 - the engines' own word
        """Count a document that can't be fingerprinted, with the reason."""
        self.failed += 1
        self._count_reason(reason[:_LONGEST_REASON], 1)
        self.failures.append(id)

    def add(self, other: "BackfillCounts") -> None:
        """Add the counts of further documents."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for reason, count in other.reasons.items():
            self._count_reason(reason, count)
        self.without_text = [*self.without_text, *other.without_text][:_LISTED]
        self.failures = [*self.failures, *other.failures][:_LISTED]
        self.changed = list(dict.fromkeys([*self.changed, *other.changed]))[:_LISTED]

    @property
    def skipped(self) -> int:
        """How many documents got no fingerprint of their text."""
        return self.dropped + self.failed + self.textless

    def forget_skipped(self) -> None:
        """Forget documents that got no fingerprint of their text, because they were counted before."""
        self.read -= self.skipped
        self.empty -= self.textless
        self.dropped = self.failed = self.textless = 0
        self._clear_lists()

    def restart(self) -> None:
        """Reset the counts because the scan restarts; move updated documents to ``earlier``."""
        self.earlier += self.updated
        for name in _OUTCOMES:
            setattr(self, name, 0)
        self.empty = 0
        self._clear_lists()

    def _clear_lists(self) -> None:
        for listed in (self.without_text, self.reasons, self.failures):
            listed.clear()

    def _count_reason(self, reason: str, count: int) -> None:
        known = reason if reason in self.reasons or len(self.reasons) < _LISTED else "(other reasons)"
        self.reasons[known] = self.reasons.get(known, 0) + count


def conflict_outcome(failure: BulkFailure) -> Literal["conflict", "gone", "refused"]:
    """Classify the failure of an update.

    Raises:
        IndexMissing: the index is gone.
        EngineUnavailable: the engine is too busy.
        EngineError: the engine accepts no updates at all.
    """
    if failure.status == _CONFLICT:
        return "conflict"
    if failure.status == _MISSING and "index_not_found" in failure.reason:
        raise IndexMissing(f"the index {failure.action['_index']!r} was deleted meanwhile")
    if failure.status == _MISSING:
        return "gone"
    if failure.status == _REFUSED:
        return "refused"
    if failure.status in BUSY:
        raise EngineUnavailable(f"the engine is too busy: {failure.reason}; continue later")
    raise EngineError(f"the engine accepts no updates ({failure.status}): {failure.reason}")


def reread(engine: Engine, keys: Iterable[DocumentKey], backoff: Backoff) -> Iterator[Hit]:
    """Yield the newest versions of documents, without deleted ones."""
    wanted = list(keys)
    more: JSON = {"seq_no_primary_term": True} if engine.can.seq_no else {}
    for index in {key.index for key in wanted}:
        retry_unavailable(partial(engine.refresh, index), backoff)
        if fields := whole_source(engine, index):
            more["_source"] = fields
    for hits in read_documents(engine, wanted, backoff, _BATCH, more):
        yield from hits


def read_documents(
    engine: Engine, keys: Iterable[DocumentKey], backoff: Backoff, at_once: int, more: JSON
) -> Iterator[list[Hit]]:
    """Yield the hits of documents, some at a time; deleted ones are missing.

    Args:
        more: further parts of each request.
    """
    ids = defaultdict(list)
    for key in keys:
        ids[key.index, key.routing].append(key.id)
    for (index, routing), all_ids in ids.items():
        for begin in range(0, len(all_ids), at_once):
            several = all_ids[begin : begin + at_once]
            body = {"query": ids_query(routing, several), "size": len(several), "track_total_hits": False}
            body |= {**more, **engine.can.unaltered}
            yield retry_unavailable(partial(_search, engine, index, body), backoff)


def _search(engine: Engine, index: str, body: JSON) -> list[Hit]:
    hits: list[Hit] = check_complete(engine.search(index, body, engine.can.newest))["hits"]["hits"]
    return hits


class _PlannedUpdate(NamedTuple):
    """A fingerprint to store, and the hit from which it was computed."""

    hit: Hit
    new: JSON


@dataclass(slots=True)
class Updater:
    """Stores the fingerprints of documents and counts the outcome of each.

    ``target``: the fingerprint field. ``skipped``: documents that can't get a fingerprint.
    """

    engine: Engine
    pipeline: Pipeline
    target: str
    backoff: Backoff
    stop: Callable[[], bool]
    skipped: set[DocumentKey] = field(default_factory=set)

    def write(self, hits: Sequence[Hit], outcomes: Sequence[Outcome]) -> BackfillCounts:
        """Store the fingerprints of documents, given the pipeline's outcomes, and return the counts.

        Raises:
            EngineError: the engine failed; write the documents again.
        """
        counts = BackfillCounts(read=len(hits))
        conflicts = self._send(list(self._changes(hits, outcomes, counts)), counts)
        counts.conflicts = len(conflicts)
        self._retry_conflicts({key_of(change.hit): change.new for change in conflicts}, counts)
        return counts

    def _changes(
        self, hits: Sequence[Hit], outcomes: Sequence[Outcome], counts: BackfillCounts
    ) -> Iterator[_PlannedUpdate]:
        """Yield the fingerprints to store; count the documents that need none."""
        for hit, outcome in zip(hits, outcomes, strict=True):
            new = new_fingerprint(outcome, self.target)
            if outcome.status == "dropped":
                counts.dropped += 1
                self.skipped.add(key_of(hit))
            elif is_placeholder(hit["_source"], self.target):
                counts.unchanged += 1
            elif content := unrecognized_content(hit["_source"], self.target):
                self._fail(hit, f"{content}; the document was not changed", counts)
            elif new is None:
                self._fail(hit, str(outcome.failure or f"the pipeline wrote no [{self.target}]"), counts)
            elif stored_fingerprint(hit["_source"], self.target) == new:
                counts.empty += is_empty(new)
                counts.unchanged += 1
            elif is_empty(new) and not is_empty(stored_fingerprint(hit["_source"], self.target)):
                counts.empty += 1
                counts.textless += 1
                counts.without_text.append(hit["_id"])
                self.skipped.add(key_of(hit))
            else:
                counts.empty += is_empty(new)
                yield _PlannedUpdate(hit, new)

    def _send(self, changes: Sequence[_PlannedUpdate], counts: BackfillCounts) -> list[_PlannedUpdate]:
        """Update documents and return the changes that failed with a conflict."""
        if not changes:
            return []
        actions = [update_action(change.hit, self.target, change.new) for change in changes]
        refused = send(self.engine, actions, self.backoff, self.stop).refused
        by_key = {key_of(change.hit): change for change in changes}
        counts.updated += len(changes) - len(refused)
        conflicts = []
        for failure in refused:
            change = by_key[key_of_action(failure.action)]
            outcome = conflict_outcome(failure)
            if outcome == "conflict":
                conflicts.append(change)
            elif outcome == "gone":
                counts.gone += 1
            else:
                self._fail(change.hit, f"{failure.status}: {failure.reason}", counts)
        return conflicts

    def _retry_conflicts(self, conflicts: Mapping[DocumentKey, JSON], counts: BackfillCounts) -> None:
        """Repeat updates with the newer versions, to keep and fingerprint the edit of the other writer.

        Args:
            conflicts: the fingerprints of the older versions, by document.
        """
        for _ in range(ROUNDS):
            if not conflicts:
                return
            hits = list(reread(self.engine, conflicts, self.backoff))
            counts.gone += len(conflicts) - len(hits)
            made = process_block(self.pipeline, [document_of(hit, self.target) for hit in hits]).outcomes
            outcomes = as_stored(self.pipeline, hits, made, self.target)
            for hit, outcome in zip(hits, outcomes, strict=True):
                # After a crash, the other writer may have been this backfill: then nothing changed.
                new = conflicts[key_of(hit)]
                if (
                    not new_fingerprint(outcome, self.target)
                    == new
                    == stored_fingerprint(hit["_source"], self.target)
                ):
                    counts.changed.append(hit["_id"])
            again = self._send(list(self._changes(hits, outcomes, counts)), counts)
            conflicts = {key_of(change.hit): conflicts[key_of(change.hit)] for change in again}
        for key in conflicts:
            counts.fail(
                key.id, "other writers change it faster than it can be updated; run the backfill again"
            )
            self.skipped.add(key)

    def _fail(self, hit: Hit, reason: str, counts: BackfillCounts) -> None:
        counts.fail(hit["_id"], reason)
        self.skipped.add(key_of(hit))
