"""Groups by chains of pairs: slot after slot joins what is alike, and pairs are never listed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from shinglefold.ingest.linking.column import Column
from shinglefold.ingest.linking.crowds import Crowds
from shinglefold.ingest.linking.equal import Copies
from shinglefold.ingest.linking.prints import Prints
from shinglefold.ingest.linking.shelf import State
from shinglefold.ingest.linking.slots import Slots
from shinglefold.ingest.linking.stages import LEADERS, Labels, Options, Pause, Shared, Skipped, Watch, walk
from shinglefold.sketch import Forest, connect, connect_crowded

_STAGE = "connected"


class Connecting:
    """Joins the documents of a collection.

    Args:
        identity: all that decides the answer, besides the documents.

    Cost: 4 bytes a document, and what sorting a slot takes.
    """

    def __init__(self, prints: Prints, slots: Slots, options: Options, identity: Mapping[str, Any]) -> None:
        self._prints, self._slots, self._identity = prints, slots, identity
        self._shared = Shared(prints, slots.count)
        self._crowds = Crowds(prints.shelf)
        #: In turns, so that what a note tells of is whole while the next one is made.
        self._kept = [Column(prints.shelf, f"groups.{turn}", np.int32) for turn in (0, 1)]
        self._turn = 0
        decision = prints.scheme.decision
        # Where keywords decide, whoever shares one is in: a bucket of any size takes one look.
        bare = decision.verify == "keywords" and decision.min_shared == 1
        self._options = replace(options, most_shared=len(prints)) if bare else options

    def labels(self, copies: Copies, watch: Watch) -> tuple[Labels, Skipped]:
        """Return the first document of the group of each, int32 (D,), and what was not looked at."""
        state = self._prints.shelf.noted(_STAGE, self._identity)
        forest = self._begun(state, copies)
        if state is not None and state["done"]:
            return forest.labels(), Skipped(**state["skipped"])

        kept, pause = self._prints.valid() & ~copies.twin, Pause()
        begun = 0 if state is None else state["slot"]
        for step in walk(self._slots, kept, self._options, begun, "groups", watch):
            connect(step.small, forest, self._shared.in_slot(step.slot))
            self._crowds.add(step.slot, step.large)
            if step.last and pause.over():
                self._note(forest, {"slot": step.slot + 1, "done": False})
        skipped = self._crowded(forest, watch)
        forest.labels()
        self._note(forest, {"slot": self._slots.count, "done": True, "skipped": skipped.to_json()})
        return forest.parents, skipped

    def _begun(self, state: State | None, copies: Copies) -> Forest:
        self._crowds.resume(None if state is None else state["crowds"])
        if state is None:
            return Forest(len(self._prints), copies.first.copy())
        self._turn = state["turn"]
        return Forest(len(self._prints), self._kept[self._turn].read(0, len(self._prints)).copy())

    def _crowded(self, forest: Forest, watch: Watch) -> Skipped:
        skipped = Skipped()
        for slot, documents in self._crowds.all():
            watch.check()
            missed = connect_crowded(documents, forest, self._shared.in_slot(slot), LEADERS)
            skipped.pairs += missed
            skipped.crowded += missed > 0
        return skipped

    def _note(self, forest: Forest, state: State) -> None:
        shelf = self._prints.shelf
        if shelf.folder is None:
            return
        self._turn = 1 - self._turn
        kept = self._kept[self._turn]
        kept.cut(0)
        kept.append(forest.parents)
        state = {**state, "turn": self._turn, "crowds": self._crowds.state()}
        shelf.note(_STAGE, self._identity, state, kept.name, *self._crowds.files)
