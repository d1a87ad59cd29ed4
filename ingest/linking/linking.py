"""From fingerprints to pairs and groups: in memory where they fit, else slot by slot in files."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shinglefold.ingest.linking.column import Column
from shinglefold.ingest.linking.connecting import Connecting
from shinglefold.ingest.linking.equal import Copies
from shinglefold.ingest.linking.expansion import Expansion
from shinglefold.ingest.linking.in_memory import all_pairs
from shinglefold.ingest.linking.leading import leader_labels
from shinglefold.ingest.linking.pairing import PAIR, Pairing, Rows, as_rows
from shinglefold.ingest.linking.prints import Prints
from shinglefold.ingest.linking.slots import NAME, Slots, looked_at
from shinglefold.ingest.linking.sorting import Order, in_order
from shinglefold.ingest.linking.stages import Labels, Options, Skipped, Watch
from shinglefold.model import Int64s
from shinglefold.sketch import connected, led

Sort = Literal["document", "resemblance", "similarity"]
Linkage = Literal["connected", "leader"]
#: Documents that are always taken into memory, if they fit; candidates that more of them may have there.
_FEW, _CANDIDATES = 20_000, 200_000_000
#: Bytes in memory a document and a slot, of what else stands beside it, and a pair that is found.
_A_SLOT, _BESIDE, _A_PAIR = 40, 600, 128


class Linking:
    """Finds the pairs and groups of a collection.

    Args:
        prints: of all documents.
        watch: asked whether to go on, and told how far it is.

    Attributes:
        skipped: what was not looked at.
    """

    def __init__(self, prints: Prints, options: Options, watch: Watch | None = None) -> None:
        self.skipped = Skipped()
        self._prints, self._options, self._watch = prints, options, watch or Watch()
        decision = prints.scheme.decision
        self._slots = Slots(prints, looked_at(prints.scheme, decision, prints.whole))
        self._identity: Mapping[str, Any] = {
            "documents": prints.state(),
            "decision": asdict(decision),
            "most shared": options.most_shared,
        }
        self._copies: Copies | None = None

    def in_memory(self) -> bool:
        """Tell whether all pairs can be found at once, as ``find_pairs`` does."""
        documents = len(self._prints)
        left = self._options.memory - documents * (self._slots.count * _A_SLOT + _BESIDE)
        if left < 0 or max(self._copied().pairs(), self._alike()) * _A_PAIR > left:
            return False
        return documents <= _FEW or self._candidates() <= _CANDIDATES

    def labels(self, linkage: Linkage) -> Labels:
        """Return the first document of the group of each document, int32 (D,).

        Args:
            linkage: ``connected``: chains of pairs are one group; ``leader``: each member matches the first.
        """
        if self.in_memory():
            found = all_pairs(self._prints, self._prints.scheme)
            link = led if linkage == "leader" else connected
            return link(found.a, found.b, len(self._prints)).astype(np.int32)
        self._make_slots()
        if linkage == "connected":
            made = Connecting(self._prints, self._slots, self._options, self._identity)
            labels, self.skipped = made.labels(self._copied(), self._watch)
            return labels
        pairs, expansion = self._pairs()
        rows = Column(self._prints.shelf, "pairs.leading", PAIR)
        rows.cut(0)
        for begin in range(0, len(pairs), _ROWS):
            rows.append(pairs.read(begin, min(begin + _ROWS, len(pairs))))
        for some in expansion.equal_texts(~self._copied().twin):
            rows.append(some)
        self.skipped.copies = expansion.left_out
        check = self._watch.check
        return leader_labels(self._prints.shelf, rows, self._copied(), self._options.memory, check)

    def pairs(self, sort: Sort = "document") -> Iterator[Rows]:
        """Yield all pairs, some at a time, as their documents were read or the most alike first."""
        if self.in_memory():
            rows = as_rows(all_pairs(self._prints, self._prints.scheme))
            yield rows[_order(rows, sort).sorted()]
            return
        self._make_slots()
        pairs, expansion = self._pairs()
        listed = Column(self._prints.shelf, "pairs.listed", PAIR)
        listed.cut(0)
        for some in expansion.equal_texts():
            listed.append(some)
        for begin in range(0, len(pairs), _ROWS):
            self._watch.check()
            for some in expansion.of(pairs.read(begin, min(begin + _ROWS, len(pairs)))):
                listed.append(some)
        self.skipped.copies = expansion.left_out
        shelf, options = self._prints.shelf, self._options
        yield from in_order(shelf, listed, lambda rows: _order(rows, sort), options.memory, self._watch.check)

    def _pairs(self) -> tuple[Column, Expansion]:
        made = Pairing(self._prints, self._slots, self._options, self._identity)
        pairs, self.skipped = made.pairs(self._copied(), self._watch)
        return pairs, Expansion(self._copied(), self._options.most_shared)

    def _copied(self) -> Copies:
        if self._copies is None:
            self._copies = Copies(self._prints, self._options.memory)
        return self._copies

    def _make_slots(self) -> None:
        identity = {"documents": self._prints.state(), "slots": self._slots.count}
        if self._prints.shelf.noted(NAME, identity) is None:
            self._slots.make(self._prints, self._watch.check)
            self._prints.shelf.note(NAME, identity, {}, NAME)

    def _candidates(self) -> int:
        """Count the candidates of all slots, each as often as it comes; no further than it matters."""
        found = 0
        for in_slot in self._pairs_by_slot(self._prints.valid() & ~self._copied().twin):
            found += in_slot
            if found > _CANDIDATES:
                break
        return found

    def _alike(self) -> int:
        """Return how many pairs a slot has on average, copies among them.

        Near-copies meet in most slots, so it is not much less than what will be found; documents with some
        boilerplate in common meet in one or two, and are not found.
        """
        return sum(self._pairs_by_slot(self._prints.valid())) // self._slots.count

    def _pairs_by_slot(self, kept: NDArray[np.bool_]) -> Iterator[int]:
        words = self._prints.words.mapped()
        for slot in range(self._slots.count):
            self._watch.check()
            column = np.sort(words[kept, slot])
            sizes = np.diff(np.flatnonzero(np.diff(column, prepend=~column[:1])), append=len(column))
            yield int((sizes * (sizes - 1) // 2).sum())


_ROWS = 1 << 16
_STEPS = 10_000


def _order(rows: Rows, sort: Sort) -> Order:
    """Return what pairs are sorted by: as alike as they are told to be, equal ones in the order read."""
    a, b = rows["a"].astype(np.int64), rows["b"].astype(np.int64)
    if sort == "document":
        return Order(np.zeros(len(rows), np.int64), a, b)
    alike = rows["resemblance"]
    if sort == "similarity":
        alike = np.where(np.isnan(rows["similarity"]), alike, rows["similarity"])
    return Order(_STEPS - np.rint(alike.round(4) * _STEPS).astype(np.int64), a, b)


def groups_of(labels: Labels, least: int, by_size: bool) -> Iterator[Int64s]:
    """Yield the documents of each group of ``least`` or more, in the order read.

    Args:
        by_size: the largest first; else as their first documents were read.

    Cost: some 40 bytes a document while it begins.
    """
    sizes = np.bincount(labels, minlength=len(labels)).astype(np.int32)
    kept = sizes[labels] >= least
    keys = labels[kept].astype(np.uint64) << np.uint64(32) | np.flatnonzero(kept).astype(np.uint64)
    keys.sort()
    documents = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
    starts = np.flatnonzero(np.diff((keys >> np.uint64(32)).astype(np.int64), prepend=-1))
    ends = np.append(starts[1:], len(keys))[: len(starts)]
    order: NDArray[np.integer] = np.arange(len(starts))
    if by_size:
        order = np.argsort(starts - ends, kind="stable")
    for begin, end in zip(starts[order].tolist(), ends[order].tolist(), strict=True):
        yield documents[begin:end]
