"""The books of one run: every record ends as indexed, dropped or failed, and is counted once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from shinglefold.contracts import BulkFailure, Document, Engine
from shinglefold.errors import EngineError
from shinglefold.ingest.bulk import Action, Backoff, send
from shinglefold.ingest.dead_letters import DeadLetters
from shinglefold.ingest.interrupts import Interrupts
from shinglefold.ingest.meter import Meter
from shinglefold.ingest.pipeline import Outcome
from shinglefold.ingest.records import Record
from shinglefold.ingest.summary import Progress, Summary
from shinglefold.ingest.workers import Answer

#: Known to a document on its way, no part of what is stored.
_METADATA = ("_id", "_index")


@dataclass(slots=True)
class Ledger:
    """Sends what became of the blocks to the engine and accounts for it."""

    engine: Engine
    index: str
    letters: DeadLetters
    interrupts: Interrupts
    backoff: Backoff
    meter: Meter = field(default_factory=Meter)
    indexed: int = 0
    dropped: int = 0
    failed: int = 0

    def settle(self, block: Sequence[Record], answer: Answer) -> None:
        """Account for every record of a block, given the outcomes of those that are documents.

        Raises:
            EngineError: the engine can't go on; the block is accounted for all the same.
        """
        self.meter.add(answer.meter)
        outcomes = iter(answer.outcomes)
        sent: list[tuple[Action, Record]] = []
        for record in block:
            self.meter.counts["replaced"] += record.replaced
            if record.document is None:
                self._fail("read", record.reason, record)
            else:
                self._sort(record, next(outcomes), sent)
        if sent:
            self._send(sent)

    def _sort(self, record: Record, outcome: Outcome, sent: list[tuple[Action, Record]]) -> None:
        if outcome.status == "dropped":
            self.dropped += 1
        elif outcome.document is None:
            self._fail("pipeline", str(outcome.failure), record)
        elif outcome.document.get("_index", self.index) != self.index:
            self._fail("pipeline", "the pipeline changed _index; run it for each index apart", record)
        else:
            sent.append((self._action(outcome.document), record))

    def _action(self, document: Document) -> Action:
        source = {key: value for key, value in document.items() if key not in _METADATA}
        action: dict[str, Any] = {"_op_type": "index", "_index": self.index, "_source": source}
        return action if document.get("_id") is None else {**action, "_id": str(document["_id"])}

    def _send(self, sent: Sequence[tuple[Action, Record]]) -> None:
        actions = [action for action, _ in sent]
        try:
            with self.meter.stage("index"):
                refused, again = send(self.engine, actions, self.backoff, lambda: self.interrupts.pending)
        except EngineError as error:
            # How much the engine took is unknown; indexing again does no harm where ids are given.
            for _, record in sent:
                self._fail("index", str(error), record)
            raise
        self.meter.counts["sent_again"] += again
        self.indexed += len(sent) - len(refused)
        for failure, record in zip(refused, _records_of(refused, sent), strict=True):
            self._fail("index", f"{failure.status}: {failure.reason}", record)

    def _fail(self, stage: str, reason: str, record: Record) -> None:
        self.failed += 1
        self.letters.write(stage, reason, record)

    def progress(self, fraction: float) -> Progress:
        """Return how far the run is."""
        read = self.indexed + self.dropped + self.failed
        return Progress(read, self.indexed, self.dropped, self.failed, fraction)

    def summary(self, scheme: str, stopped: str, total: float) -> Summary:
        """Return the end of the books."""
        return Summary(
            index=self.index,
            scheme=scheme,
            read=self.indexed + self.dropped + self.failed,
            indexed=self.indexed,
            dropped=self.dropped,
            failed=self.failed,
            seconds={**self.meter.seconds, "total": total},
            languages=dict(self.meter.languages.most_common()),
            counts={name: count for name, count in sorted(self.meter.counts.items()) if count},
            reasons=dict(self.letters.reasons.most_common()),
            dead_letters=str(self.letters.path) if self.letters.count and self.letters.path else "",
            stopped=stopped,
        )


def _records_of(refused: Sequence[BulkFailure], sent: Sequence[tuple[Action, Record]]) -> Iterator[Record]:
    """Yield the record of each refused action: the engine gives the action back, or one with the same id."""
    by_identity = {id(action): record for action, record in sent}
    by_id = {action["_id"]: record for action, record in sent if "_id" in action}
    for failure in refused:
        fallback = Record(dict(failure.action.get("_source", {})), "bulk", 0)
        found = by_identity.get(id(failure.action))
        yield found or by_id.get(str(failure.action.get("_id")), fallback)
