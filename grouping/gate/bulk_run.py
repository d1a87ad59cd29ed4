"""A run that adds many documents by a gate."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from shinglefold.contracts.engine import JSON
from shinglefold.grouping.gate.gate import BATCH, Gate, given_id
from shinglefold.grouping.gate.protocol.pending_document import Verdict
from shinglefold.ingest.readers.record import Record
from shinglefold.ingest.writing.batch import ReadBack
from shinglefold.runtime.signals import Interrupts


@dataclass(slots=True)
class BulkRun:
    """The state of a run: ``read == accepted + refused + failed + unknown``.

    Attributes:
        verdicts: the verdict on each document, in order, as JSON with its line.
        unknown: documents that are being decided; if the run ends now, some may have been stored.
        stopped: why the run ended early; "" if it did not.
        stale: stored documents whose fingerprint was made of another text, and so decided nothing.
        read_back: counts documents that the server did not store as they were signed, and those that could
            not be read back.
    """

    verdicts: list[JSON] = field(default_factory=list)
    unknown: int = 0
    stopped: str = ""
    stale: set[str] = field(default_factory=set)
    read_back: ReadBack | None = None

    @property
    def read(self) -> int:
        """The number of documents that were read."""
        return len(self.verdicts) + self.unknown

    def count(self, status: str) -> int:
        """Return how many documents have a status: ``accepted``, ``refused`` or ``failed``."""
        return sum(verdict["status"] == status for verdict in self.verdicts)

    def add_all(self, gate: Gate, records: Iterator[Record], passages: bool = False) -> None:
        """Add all documents. Ctrl-C and SIGTERM end the run between batches.

        A second signal stops waiting for the batch that is being decided.

        Args:
            passages: add the passages that a refused document has in common with the stored one.

        Raises:
            Interrupted: a signal came; documents that were stored stay, and are counted.
            EngineError: the engine failed; the same holds for stored documents.
            InputError: the source could not be read any further; the same holds for stored documents.
        """
        self.read_back = gate.read_back
        with Interrupts() as interrupts:
            while True:
                with interrupts.breakable():
                    batch = list(islice(records, BATCH))
                interrupts.check()
                if not batch:
                    return
                self.unknown = len(batch)
                with interrupts.breakable(at_once=False):
                    verdicts = gate.add_all([one.document for one in batch if one.document is not None])
                self._record(gate, batch, iter(verdicts), passages)

    def to_json(self) -> JSON:
        """Return the counts, and the verdict on each document."""
        counts = {name: self.count(name) for name in ("accepted", "refused", "failed")}
        more: JSON = {"stopped": self.stopped, "unknown": self.unknown} if self.stopped else {}
        if self.stale:
            more["stale"] = len(self.stale)
        if self.read_back is not None:
            more |= self.read_back.to_json()
        return {"read": self.read, **counts, **more, "documents": self.verdicts}

    def _record(self, gate: Gate, batch: list[Record], verdicts: Iterator[Verdict], passages: bool) -> None:
        self.unknown = 0
        begin = len(self.verdicts)
        for record in batch:
            position: JSON = {"line": record.line, "source": record.source}
            if record.document is None:
                self.verdicts.append({"status": "failed", "reason": record.reason, **position})
            else:
                verdict = next(verdicts)
                self.stale |= verdict.stale
                told = {**verdict.to_json(), **position}
                if verdict.status != "accepted" and given_id(record.document) is None:
                    # The gate made this id, and stored nothing under it.
                    told.pop("_id", None)
                self.verdicts.append(told)
        if not passages:
            return
        # These requests may fail, so the verdicts are counted before.
        for record, told in zip(batch, self.verdicts[begin:], strict=True):
            if record.document is not None and "like" in told:
                told["passages"] = gate.passages(record.document, told["like"]["_id"])
