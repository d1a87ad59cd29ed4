"""Turn a processed block into bulk actions, send them with retries, and read documents back.

A pipeline of the server may change documents after they were signed, so they are read back and compared.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple

from msgspec.json import decode

from shinglefold.contracts.engine import (
    BUSY,
    JSON,
    AsyncEngine,
    BulkFailure,
    BulkResult,
    Engine,
    GuardedWrites,
)
from shinglefold.documents import values_at
from shinglefold.errors import EngineError, EngineUnavailable, counted, suggest
from shinglefold.ingest.fingerprinter import Meter
from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.ingest.pipeline.steps import METADATA
from shinglefold.ingest.readers.record import Record
from shinglefold.ingest.writing.worker_pool import BlockAnswer, restore_texts
from shinglefold.model.recipe import Recipe
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.runtime.backoff import Backoff, Stop, never

Action = Mapping[str, Any]
_CONFLICT = 409
#: Seconds after which the settings are read again: a pipeline may be added during a run.
_INTERVAL = 2.0


class Sent(NamedTuple):
    """The result of bulk actions: the refused ones, and the number of retries. All others succeeded.

    ``written_over``: number of documents that replaced one with the same id. ``renamed``: number of documents
    that went into an index of another name, by name.
    """

    refused: list[BulkFailure]
    retried: int
    written_over: int = 0
    renamed: Mapping[str, int] = {}


def send(
    engine: Engine,
    actions: Sequence[Action],
    backoff: Backoff,
    stop: Stop = never,
    made_ids: Set[str] = frozenset(),
) -> Sent:
    """Run bulk actions until the engine has accepted or finally refused each of them.

    Args:
        stop: checked while waiting; once true, nothing is retried.
        made_ids: ids that nobody else has. If one exists already, a request whose answer was lost stored it.

    Raises:
        EngineError: the engine can't be reached, or refuses the whole request.
    """
    refused: list[BulkFailure] = []
    retry = retried = written_over = 0
    renamed: Counter[str] = Counter()
    while True:
        last = retry >= backoff.retries
        result = _attempt(engine, actions, last=last or stop())
        written_over += result.written_over
        renamed.update(result.renamed)
        busy = [failure for failure in result.failures if failure.status in BUSY]
        failed = [failure for failure in result.failures if failure.status not in BUSY]
        refused += [one for one in failed if one.status != _CONFLICT or one.action.get("_id") not in made_ids]
        if not busy:
            return Sent(refused, retried, written_over, renamed)
        if last or not backoff.wait(backoff.delay(retry), stop):
            return Sent(refused + busy, retried, written_over, renamed)
        actions = [failure.action for failure in busy]
        retry, retried = retry + 1, retried + len(actions)


def _attempt(engine: Engine, actions: Sequence[Action], last: bool) -> BulkResult:
    """Return the engine's result. An unavailable engine counts as busy, except in the last attempt."""
    try:
        return engine.bulk(actions)
    except EngineUnavailable as error:
        if last:
            raise
        return BulkResult(0, tuple(BulkFailure(action, 503, str(error)) for action in actions))


@dataclass(frozen=True, slots=True)
class RefusedDocument:
    """A record for the dead letters: at which stage it failed, and why."""

    stage: str
    reason: str
    record: Record


@dataclass(slots=True)
class Batch:
    """A block as bulk actions, each with its record, and the records that are not sent."""

    actions: list[Action] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    refused: list[RefusedDocument] = field(default_factory=list)
    dropped: int = 0
    #: Ids and routings of the documents; batches with a common id must not be in flight together.
    ids: set[str] = field(default_factory=set)
    #: The ids of documents that had none.
    made_ids: set[str] = field(default_factory=set)
    #: The counters of the pipeline for this block.
    meter: Meter = field(default_factory=Meter)
    fraction: float = 0.0


def make_batch(index: str, block: Sequence[Record], answer: BlockAnswer, verb: str = "index") -> Batch:
    """Return the batch for a block, given the pipeline's outcomes for those records that are documents.

    Args:
        verb: the bulk operation, ``index`` or ``create``.
    """
    batch = Batch(meter=answer.meter, fraction=block[-1].fraction)
    outcomes = iter(answer.outcomes)
    batch.meter.counts["replaced"] += sum([record.replaced for record in block])
    for record in block:
        if record.document is None or record.reason:
            batch.refused.append(RefusedDocument("read", record.reason, record))
        else:
            _sort(batch, index, record, restore_texts(next(outcomes), record.document), verb)
    return batch


def _sort(batch: Batch, index: str, record: Record, outcome: Outcome, verb: str) -> None:
    if outcome.status == "dropped":
        batch.dropped += 1
    elif outcome.document is None:
        batch.refused.append(RefusedDocument("pipeline", str(outcome.failure), record))
    elif outcome.document.get("_index", index) != index:
        reason = "the pipeline changed _index; run it for each index separately"
        batch.refused.append(RefusedDocument("pipeline", reason, record))
    else:
        action = _action(index, outcome.document, outcome.json, verb)
        if outcome.prepared is not None:
            action["_ready"] = outcome.prepared
        if "_id" in action:
            batch.ids.add(name_of(action))
        batch.actions.append(action)
        batch.records.append(record)


def _action(index: str, document: Mapping[str, Any], json: bytes | None, verb: str) -> dict[str, Any]:
    source: Any = json
    if json is None:
        source = {key: value for key, value in document.items() if key not in METADATA}
    action: dict[str, Any] = {"_op_type": verb, "_index": index, "_source": source}
    if document.get("_id") is not None:
        action["_id"] = str(document["_id"])
    if document.get("_routing") is not None:
        action["routing"] = str(document["_routing"])
    return action


def name_of(action: Action) -> str:
    """Return the id and the routing of an action's document: documents of other routing may have its id."""
    return f"{action['_id']}\0{action['routing']}" if "routing" in action else str(action["_id"])


@dataclass(slots=True)
class ReadBack:
    """Counts documents that are not stored as they were signed, if the index has ingest pipelines.

    Every document is compared, because a pipeline may change only some. ``lost``: documents without the
    fingerprint that was sent. ``changed``: documents with other texts than the signed ones. ``unread``:
    stored documents that could not be read to be compared, and ``reason``: why.

    Cost: nothing without a pipeline; else one request a batch.
    """

    engine: Engine | AsyncEngine
    index: str
    recipe: Recipe
    lost: int = 0
    changed: int = 0
    unread: int = 0
    reason: str = ""
    #: The first document that is not stored as it was signed.
    first: str = ""
    pipelines: tuple[str, ...] = ()
    _looked: float = field(default=float("-inf"))

    def find_pipelines(self) -> None:
        """Read which ingest pipelines the index has, at most every two seconds."""
        if isinstance(self.engine, GuardedWrites) and monotonic() - self._looked >= _INTERVAL:
            self._looked = monotonic()
            self.add_pipelines(self.engine.ingest_pipelines(self.index))

    def compare(self, batch: Batch, refused: Sequence[BulkFailure]) -> None:
        """Compare the documents of a batch with what is stored."""
        if not self.pipelines or not isinstance(self.engine, GuardedWrites):
            return
        failed = {id(one.action) for one in refused}
        sent = [one for one in batch.actions if id(one) not in failed]
        source = [self.recipe.field, *self.recipe.fields]
        ids, routings = [one["_id"] for one in sent], [one.get("routing") for one in sent]
        try:
            stored = self.engine.read(self.index, ids, source, routings)
        except EngineError as error:
            self.miss(len(sent), error)
            return
        for action, found in zip(sent, stored, strict=True):
            # The server says itself which documents it drops, or sends to another index.
            if found is not None:
                given = action["_source"]
                signed = decode(given) if isinstance(given, bytes | str) else given
                self.add(action["_id"], signed, found.source)

    def add(self, id_: str, signed: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
        """Compare a document as it was signed with what is stored of it."""
        path = self.recipe.field
        kept = stored_parts(stored, path)
        # A gate stores the number of a group besides.
        lost = any(kept.get(name) != value for name, value in stored_parts(signed, path).items())
        changed = any(values_at(signed, name) != values_at(stored, name) for name in self.recipe.fields)
        self.lost += lost
        self.changed += changed and not lost
        if (lost or changed) and not self.first:
            self.first = id_

    def miss(self, count: int, error: EngineError) -> None:
        """Count documents that were stored, and could not be read to be compared."""
        self.unread += count
        self.reason = self.reason or str(error)

    @property
    def otherwise(self) -> int:
        """The number of documents that are not, or possibly not, stored as they were signed."""
        return self.lost + self.changed + self.unread

    def to_json(self) -> JSON:
        """Return the counts; {} if all documents are stored as they were signed."""
        counts = {"fingerprints_lost": self.lost, "texts_changed": self.changed}
        return (counts if self.lost + self.changed else {}) | (
            {"not_read_back": self.unread} if self.unread else {}
        )

    def notes(self) -> list[str]:
        """Return remarks on documents that are not stored as they were signed, with the remedy."""
        return [*self._differences(), *self._misses()]

    def _differences(self) -> Iterator[str]:
        found = []
        if self.lost:
            found.append(f"{_documents(self.lost)} stored without the fingerprint that was sent")
        if self.changed:
            found.append(f"{_documents(self.changed)} stored with another text than was signed")
        if found:
            yield (
                f"{' and '.join(found)}, by the ingest pipeline {', '.join(self.pipelines)} of "
                f"{self.index!r}; the first is {self.first!r:.80}. Let the pipeline keep "
                f"[{self.recipe.field}] and the texts; to sign what is stored: "
                f"{suggest('backfill', self.index)}"
            )

    def _misses(self) -> Iterator[str]:
        if self.unread:
            yield (
                f"{_documents(self.unread)} stored and could not be read again ({self.reason}), so that it "
                f"is unknown what the ingest pipeline {', '.join(self.pipelines)} of {self.index!r} changed; "
                f"to sign what is stored: {suggest('backfill', self.index)}"
            )

    def add_pipelines(self, pipelines: Sequence[str]) -> None:
        """Add pipelines of the index; documents in flight may still go through one that was taken away."""
        self.pipelines = tuple(sorted({*self.pipelines, *pipelines}))


def _documents(count: int) -> str:
    return counted(count, "document is", "documents are")
