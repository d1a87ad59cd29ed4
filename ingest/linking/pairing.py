"""All pairs into a file: every pair once, at the first slot in which its documents meet."""

from collections.abc import Mapping
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shinglefold.ingest.linking.column import Column
from shinglefold.ingest.linking.crowds import CrowdedSlots, Crowds
from shinglefold.ingest.linking.equal import Copies
from shinglefold.ingest.linking.prints import Prints
from shinglefold.ingest.linking.shelf import State
from shinglefold.ingest.linking.slots import Slots
from shinglefold.ingest.linking.stages import LEADERS, Options, Pause, Shared, Skipped, Watch, walk
from shinglefold.model import Int64s
from shinglefold.sketch import Pairs

#: A pair in the file: a < b.
PAIR = np.dtype([("a", np.uint32), ("b", np.uint32), ("resemblance", np.float64), ("similarity", np.float64)])
Rows = NDArray[np.void]
_STAGE = "pairs"


def as_rows(found: Pairs) -> Rows:
    """Return pairs as they are in the file."""
    rows = np.empty(len(found), PAIR)
    for name in PAIR.fields or ():
        rows[name] = getattr(found, name)
    return rows


class Pairing:
    """Finds the pairs of a collection whose documents are no copies of others, to the sketch.

    Args:
        identity: all that decides the answer, besides the documents.
    """

    def __init__(self, prints: Prints, slots: Slots, options: Options, identity: Mapping[str, Any]) -> None:
        self._prints, self._slots, self._options, self._identity = prints, slots, options, identity
        self._shared = Shared(prints, slots.count)
        self._crowds = Crowds(prints.shelf)
        self._file = Column(prints.shelf, "pairs", PAIR)

    def pairs(self, copies: Copies, watch: Watch) -> tuple[Column, Skipped]:
        """Return the file of all pairs by candidates, and what was not looked at."""
        state = self._prints.shelf.noted(_STAGE, self._identity)
        self._crowds.resume(None if state is None else state["crowds"])
        self._file.cut(0 if state is None else state["pairs"])
        if state is not None and state["done"]:
            return self._file, Skipped(**state["skipped"])
        crowded = CrowdedSlots(len(self._prints), self._slots.count, self._crowds)

        kept, pause = self._prints.valid() & ~copies.twin, Pause()
        begun = 0 if state is None else state["slot"]
        for step in walk(self._slots, kept, self._options, begun, "pairs", watch):
            self._crowds.add(step.slot, step.large)
            crowded.add(step.slot, step.large.documents)
            for a, b in step.small.pairs():
                watch.check()
                self._decide(step.slot, a, b, copies, crowded)
            if step.last and pause.over():
                self._note({"slot": step.slot + 1, "done": False})
        skipped = self._of_crowds(copies, crowded, watch)
        self._note({"slot": self._slots.count, "done": True, "skipped": skipped.to_json()})
        return self._file, skipped

    def _decide(self, slot: int, a: Int64s, b: Int64s, copies: Copies, crowded: CrowdedSlots) -> None:
        equal = self._shared.equal(a, b)
        met = (equal[:, :slot] & ~crowded.of(a)[:, :slot]).any(axis=1)
        kept = equal[:, slot] & ~met & (copies.first[a] != copies.first[b])
        kept &= np.count_nonzero(equal, axis=1) >= self._prints.scheme.decision.min_shared
        self._write(a[kept], b[kept])

    def _write(self, a: Int64s, b: Int64s) -> None:
        told = self._shared.verified(a, b)
        kept = told.kept
        self._file.append(as_rows(Pairs(a[kept], b[kept], told.resemblance[kept], told.similarity[kept])))

    def _of_crowds(self, copies: Copies, crowded: CrowdedSlots, watch: Watch) -> Skipped:
        """Find pairs of large buckets: those of a few documents with all that none of them spoke for."""
        skipped, found = Skipped(), [np.zeros((0, 2), np.int64)]
        for slot, documents in self._crowds.all():
            left, looked = documents, 0
            for _ in range(LEADERS):
                watch.check()
                if len(left) < 2:
                    break
                first, left = int(left[0]), left[1:]
                looked += len(left)
                ones = np.full(len(left), first)
                alike = self._shared.in_slot(slot)(ones, left)
                found.append(np.column_stack((ones[alike], left[alike])))
                left = left[~alike]
            skipped.pairs += comb(len(documents), 2) - looked
            skipped.crowded += 1
        # A pair may have been found in several of them, and before.
        a, b = np.unique(np.concatenate(found), axis=0).T
        for begin in range(0, len(a), 1 << 16):
            one, other = a[begin : begin + (1 << 16)], b[begin : begin + (1 << 16)]
            fresh = ~(self._shared.equal(one, other) & ~crowded.of(one)).any(axis=1)
            fresh &= copies.first[one] != copies.first[other]
            self._write(one[fresh], other[fresh])
        return skipped

    def _note(self, state: State) -> None:
        state = {**state, "pairs": len(self._file), "crowds": self._crowds.state()}
        self._prints.shelf.note(_STAGE, self._identity, state, self._file.name, *self._crowds.files)
