"""Bulk runs: documents of a source through a gate, with a verdict on each even if the run ends early."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from shinglefold.contracts.engine import JSON
from shinglefold.grouping.gate.gate import BATCH, Gate
from shinglefold.grouping.gate.protocol.member import Verdict
from shinglefold.ingest import Record
from shinglefold.runtime.signals import Interrupts


@dataclass(slots=True)
class BulkRun:
    """The state of a run: ``read == accepted + refused + failed + unknown``.

    Attributes:
        verdicts: the verdict on each document, in order, as JSON with its line.
        unknown: documents that are being decided; where the run ends then, some may have been stored.
        stopped: why the run ended early; "" where it did not.
    """

    verdicts: list[JSON] = field(default_factory=list)
    unknown: int = 0
    stopped: str = ""

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
            EngineError: the engine failed; likewise.
            InputError: the source could not be read any further; likewise.
        """
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
        more = {"stopped": self.stopped, "unknown": self.unknown} if self.stopped else {}
        return {"read": self.read, **counts, **more, "documents": self.verdicts}

    def _record(self, gate: Gate, batch: list[Record], verdicts: Iterator[Verdict], passages: bool) -> None:
        self.unknown = 0
        begin = len(self.verdicts)
        for record in batch:
            position: JSON = {"line": record.line, "source": record.source}
            if record.document is None:
                self.verdicts.append({"status": "failed", "reason": record.reason, **position})
            else:
                self.verdicts.append({**next(verdicts).to_json(), **position})
        if not passages:
            return
        # After the verdicts, so that all are counted even where these requests fail.
        for record, verdict in zip(batch, self.verdicts[begin:], strict=True):
            if record.document is not None and "like" in verdict:
                verdict["passages"] = gate.passages(record.document, verdict["like"]["_id"])
