"""A bulk run: the documents of a source through a gate, with a verdict on each, also where it ends early."""

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
        told: the verdict on each document, in order, as JSON with its line.
        unknown: documents that are being decided; where the run ends then, some may have been stored.
        stopped: why the run ended early; "" where it did not.
    """

    told: list[JSON] = field(default_factory=list)
    unknown: int = 0
    stopped: str = ""

    @property
    def read(self) -> int:
        """How many documents were read."""
        return len(self.told) + self.unknown

    def count(self, status: str) -> int:
        """Return how many documents have a status: ``accepted``, ``refused`` or ``failed``."""
        return sum(one["status"] == status for one in self.told)

    def take(self, gate: Gate, records: Iterator[Record], passages: bool = False) -> None:
        """Add all documents. Ctrl-C and SIGTERM end the run between batches.

        A second signal stops waiting for the batch that is being decided.

        Args:
            passages: add the passages that a refused document has in common with the stored one.

        Raises:
            Interrupted: by a signal; documents that were stored stay, and are counted.
            EngineError: the engine can't go on; likewise.
            InputError: the source can't be read any further; likewise.
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
                self._book(gate, batch, iter(verdicts), passages)

    def to_json(self) -> JSON:
        """Return the counts, and the verdict on each document."""
        counts = {name: self.count(name) for name in ("accepted", "refused", "failed")}
        more = {"stopped": self.stopped, "unknown": self.unknown} if self.stopped else {}
        return {"read": self.read, **counts, **more, "documents": self.told}

    def _book(self, gate: Gate, batch: list[Record], verdicts: Iterator[Verdict], passages: bool) -> None:
        self.unknown = 0
        begin = len(self.told)
        for record in batch:
            place: JSON = {"line": record.line, "source": record.source}
            if record.document is None:
                self.told.append({"status": "failed", "reason": record.reason, **place})
            else:
                self.told.append({**next(verdicts).to_json(), **place})
        if not passages:
            return
        # Only now, so that all verdicts are counted even where these requests fail.
        for record, one in zip(batch, self.told[begin:], strict=True):
            if record.document is not None and "like" in one:
                one["passages"] = gate.passages(record.document, one["like"]["_id"])
