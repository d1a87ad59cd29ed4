"""The buckets of documents that share a supershingle, slot by slot, and the decision on their pairs."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Int64s, Uint32s, Uint64s
from shinglefold.offline.dedupe.fingerprint_table import FingerprintTable
from shinglefold.offline.dedupe.mapped_columns import MappedColumn
from shinglefold.sketch import Buckets, PairVerdicts, PairVerifier

#: The first document of the group of each document.
Labels = NDArray[np.int32]
#: Documents of a large bucket that stand for the others.
LEADERS = 32
#: A bucket of more documents is large, unless there are only so few documents in all.
MOST_SHARED, FEW = 1_000, 20_000
#: Documents read at a time.
_ROWS = 1 << 16
_HALF = np.uint64(32)


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """Limits of the search for pairs.

    ``memory``: bytes that documents and pairs may take, mapped files aside. ``most_shared``: documents that
    may share a supershingle for all their pairs to be compared; of more, ``LEADERS`` stand for the others.
    None is ``MOST_SHARED``, and no limit for up to ``FEW`` documents.
    """

    memory: int
    most_shared: int | None = None

    def limit(self, documents: int) -> int:
        """Return ``most_shared`` for a collection of so many documents."""
        if self.most_shared is not None:
            return self.most_shared
        return MOST_SHARED if documents > FEW else documents


def _nothing() -> None:
    """Go on."""


def _silent(_stage: str, _done: int, _whole: int) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class RunMonitor:
    """Callbacks of a run: ``check`` raises to stop it, ``report`` gets stage, done and whole."""

    check: Callable[[], None] = _nothing
    report: Callable[[str, int, int], None] = _silent


@dataclass(slots=True)
class Skipped:
    """What was not compared: at most so many pairs, of so many crowded supershingles.

    ``copies``: pairs of copies of the same texts that were not listed.
    """

    pairs: int = 0
    crowded: int = 0
    copies: int = 0

    def to_json(self) -> dict[str, int]:
        """Return it as JSON."""
        return asdict(self)


def slot_count(table: FingerprintTable) -> int:
    """Return the number of slots by which candidates are found.

    All there are, where one shared supershingle nominates a pair and something else decides; else those that
    an index stores.
    """
    sketch, decision = table.scheme.sketch, table.scheme.decision
    if not table.whole or decision.min_shared > 1 or decision.verify == "keywords":
        return sketch.groups
    return sketch.values // sketch.group_size


class SlotRows:
    """32 bits of the supershingle of every document, slot by slot.

    Cost: one pass over all supershingles, and 4 bytes on disk for each.
    """

    def __init__(self, table: FingerprintTable, check: Callable[[], None]) -> None:
        self.count = slot_count(table)
        self._documents = len(table)
        self._column = MappedColumn(table.store, np.uint32)
        self._column.fill(self.count * self._documents)
        for begin in range(0, self._documents, _ROWS):
            check()
            block = table.words.read(begin, min(begin + _ROWS, self._documents))
            for slot in range(self.count):
                self._column.write(slot * self._documents + begin, _high_bits(block[:, slot]))

    def buckets(self, slot: int, kept: NDArray[np.bool_]) -> Buckets:
        """Return the buckets of a slot.

        Args:
            kept: bool (D,), the documents to look at.

        Cost: one sort, which takes some 32 bytes a document.
        """
        first = slot * self._documents
        words: Uint32s = self._column.read(first, first + self._documents)
        documents = np.flatnonzero(kept)
        keys: Uint64s = words[documents].astype(np.uint64) << _HALF
        keys |= documents.astype(np.uint64)
        return Buckets.of(keys)


def _high_bits(words: NDArray[np.unsignedinteger]) -> Uint32s:
    return (words >> _HALF).astype(np.uint32) if words.itemsize == 8 else words.astype(np.uint32)


class SlotBuckets(NamedTuple):
    """The buckets of a slot: those of which all pairs are compared, and larger ones."""

    slot: int
    small: Buckets
    large: Buckets


def iter_slots(
    slots: SlotRows, kept: NDArray[np.bool_], most_shared: int, stage: str, monitor: RunMonitor
) -> Iterator[SlotBuckets]:
    """Yield the buckets of all slots."""
    for slot in range(slots.count):
        monitor.report(stage, slot, slots.count)
        monitor.check()
        buckets = slots.buckets(slot, kept)
        large = buckets.sizes > most_shared
        yield SlotBuckets(slot, buckets.only(~large) if large.any() else buckets, buckets.only(large))


@dataclass(frozen=True, slots=True, eq=False)
class PairJudge:
    """Tells in which slots documents share supershingles, and whether they are near-duplicates."""

    table: FingerprintTable
    slots: int
    judge: PairVerifier = field(init=False)
    _words: NDArray[np.unsignedinteger] = field(init=False)

    def __post_init__(self) -> None:
        table = self.table
        signatures, shingles = table.signatures.mapped(), table.shingles.mapped()
        scheme = table.scheme
        judge = PairVerifier(signatures, shingles, scheme.sketch, scheme.decision, table.texts)
        object.__setattr__(self, "judge", judge)
        object.__setattr__(self, "_words", table.words.mapped())

    def equal(self, a: Int64s, b: Int64s, begin: int = 0, end: int | None = None) -> NDArray[np.bool_]:
        """Tell in which slots pairs are equal, bool (P, slots); of all slots, or of some."""
        end = self.slots if end is None else end
        found: NDArray[np.bool_] = self._words[a, begin:end] == self._words[b, begin:end]
        return found

    def in_slot(self, slot: int) -> Callable[[Int64s, Int64s], NDArray[np.bool_]]:
        """Return a function that tells which pairs of a bucket of a slot are near-duplicates."""

        def alike(a: Int64s, b: Int64s) -> NDArray[np.bool_]:
            kept = self._nominated(a, b, slot)
            rows = np.flatnonzero(kept)
            kept[rows] = self.verified(a[rows], b[rows]).kept
            return kept

        return alike

    def _nominated(self, a: Int64s, b: Int64s, slot: int) -> NDArray[np.bool_]:
        least = self.table.scheme.decision.min_shared
        if least > 1:
            return np.asarray(np.count_nonzero(self.equal(a, b), axis=1) >= least)
        if not self.table.whole:
            # The bucket already compares all bits that a keyword names.
            return np.ones(len(a), np.bool_)
        return np.asarray(self._words[a, slot] == self._words[b, slot])

    def verified(self, a: Int64s, b: Int64s) -> PairVerdicts:
        """Decide on pairs that share enough supershingles."""
        near = self.judge.similar_length(a, b)
        rows = np.flatnonzero(near)
        found = self.judge.verify(a[rows], b[rows])
        if len(rows) == len(a):
            return found
        whole = PairVerdicts(np.zeros(len(a), np.bool_), np.zeros(len(a)), np.full(len(a), np.nan))
        for column, values in zip(whole, found, strict=True):
            column[rows] = values
        return whole
