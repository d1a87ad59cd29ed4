"""Turn a processed block into bulk actions, and send them with retries."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shinglefold.contracts.engine import BulkFailure, BulkResult, Engine
from shinglefold.errors import EngineUnavailable
from shinglefold.ingest.fingerprinter import Meter
from shinglefold.ingest.pipeline.pipeline import Outcome
from shinglefold.ingest.pipeline.steps import METADATA
from shinglefold.ingest.readers.record import Record
from shinglefold.ingest.writing.worker_pool import BlockAnswer, restore_texts
from shinglefold.runtime.backoff import Backoff, Stop, never

Action = Mapping[str, Any]
_BUSY = (429, 503)


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
) -> Sent:
    """Run bulk actions until the engine has accepted or finally refused each of them.

    Args:
        stop: checked while waiting; once true, nothing is retried.

    Raises:
        EngineError: the engine can't be reached, or refuses the whole request.
    """
    refused: list[BulkFailure] = []
    retried = written_over = 0
    renamed: Counter[str] = Counter()
    delays = backoff.delays()
    while True:
        delay = next(delays, None)
        result = _attempt(engine, actions, last=delay is None or stop())
        written_over += result.written_over
        renamed.update(result.renamed)
        busy = [failure for failure in result.failures if failure.status in _BUSY]
        refused += [failure for failure in result.failures if failure.status not in _BUSY]
        if not busy:
            return Sent(refused, retried, written_over, renamed)
        if delay is None or not backoff.wait(delay, stop):
            return Sent(refused + busy, retried, written_over, renamed)
        actions = [failure.action for failure in busy]
        retried += len(actions)


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
