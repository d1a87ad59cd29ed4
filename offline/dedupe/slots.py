"""Buckets of documents that share a supershingle, slot by slot, and the verification of their pairs."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.values import Bytes, Int64s
from shinglefold.offline.dedupe.fingerprint_table import FingerprintTable
from shinglefold.sketch.candidates import Buckets
from shinglefold.sketch.verification import PairVerdicts, PairVerifier

#: The first document of the group of each document.
Labels = NDArray[np.int32]
#: The number of documents of a large bucket with which all others are compared.
LEADERS = 32
#: A bucket of more documents is large, unless the collection has at most ``FEW`` documents.
MOST_SHARED, FEW = 1_000, 20_000
_HALF = np.uint64(32)


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """Limits of the search for pairs.

    ``memory``: bytes that documents and pairs may take, without mapped files. ``most_shared``: if
    at most this many documents have a supershingle, all pairs are compared; else only ``LEADERS`` of them
    are compared with the others. None means ``MOST_SHARED``, or no limit for at most ``FEW`` documents.
    """

    memory: int
    most_shared: int | None = None

    def limit(self, documents: int) -> int:
        """Return ``most_shared`` for a collection of this many documents."""
        if self.most_shared is not None:
            return self.most_shared
        return MOST_SHARED if documents > FEW else documents


@dataclass(frozen=True, slots=True)
class RunMonitor:
    """Callbacks of a run: ``check`` may raise to stop it, ``report`` gets stage, steps done, all steps."""

    check: Callable[[], None] = lambda: None
    report: Callable[[str, int, int], None] = lambda *_: None


@dataclass(slots=True)
class Skipped:
    """Counts of what was not compared.

    ``pairs``: candidate pairs, at most, of ``crowded`` supershingles. ``copies``: pairs of exact duplicates
    that were not listed.
    """

    pairs: int = 0
    crowded: int = 0
    copies: int = 0

    def to_json(self) -> dict[str, int]:
        """Return the counts as JSON."""
        return asdict(self)


def slot_count(table: FingerprintTable) -> int:
    """Return the number of slots in which candidates are looked for.

    If one shared supershingle makes a pair a candidate, and something else decides, these are all slots.
    Otherwise they are the slots that an index stores.
    """
    sketch, decision = table.scheme.sketch, table.scheme.decision
    if not table.whole or decision.min_shared > 1 or decision.verify == "keywords":
        return sketch.groups
    return sketch.values // sketch.group_size


class RowBuckets:
    """The buckets of some documents in all slots, for the later documents of each bucket of one.

    Args:
        rows: int64 (R,), ascending.
        first: int32 (D,), the first document with the same text.
        memory: bytes that it may take.

    Raises:
        ConfigError: they take more.

    Cost: a sort for each slot, and 12 bytes for each document and slot.
    """

    def __init__(self, table: FingerprintTable, rows: Int64s, first: NDArray[np.int32], memory: int) -> None:
        self.slots = slot_count(table)
        self._least = table.scheme.decision.min_shared
        if 12 * len(rows) * self.slots > memory:
            raise ConfigError(
                f"{len(rows):,} documents have near-duplicates, and --memory holds "
                f"{memory // (12 * self.slots):,}: give more memory, take --linkage connected, or group "
                "files with Spark: python -m shinglefold.cli.spark groups"
            )
        self._signed = np.flatnonzero(table.valid()[rows])
        self._order = np.empty((self.slots, len(self._signed)), np.int32)
        # A document without a signature begins after the end of its bucket.
        self._places, self._ends = np.zeros((2, self.slots, len(rows)), np.int32)
        words = table.words.mapped()
        for slot in range(self.slots):
            self._fill(slot, words[rows[self._signed], slot])
        self._equal = _later_of_equal(first[rows])

    def _fill(self, slot: int, words: NDArray[np.unsignedinteger]) -> None:
        # The sort is stable, so later documents of a bucket come last.
        order = np.argsort(words, kind="stable")
        ranked, places = words[order], self._signed[order]
        self._order[slot] = places
        self._places[slot, places] = np.arange(len(order))
        self._ends[slot, places] = np.searchsorted(ranked, ranked, "right")

    def candidates(self, place: int) -> Int64s:
        """Return the places of the later documents that share enough supershingles with one."""
        begins, ends = self._places[:, place] + 1, self._ends[:, place]
        slots = np.flatnonzero(ends > begins).tolist()
        if len(slots) < self._least:
            return np.zeros(0, np.int64)
        met = np.concatenate([self._order[slot, begins[slot] : ends[slot]] for slot in slots])
        found, counts = np.unique(met, return_counts=True)
        return found[counts >= self._least].astype(np.int64)

    def equal(self, place: int) -> Int64s:
        """Return the places of the later documents with the same text."""
        places = self._equal.get(place)
        return np.zeros(0, np.int64) if places is None else places


def _later_of_equal(first: NDArray[np.int32]) -> dict[int, Int64s]:
    """Return for each place the later places with the same first document, if there are any."""
    order = np.argsort(first, kind="stable").astype(np.int64)
    begins = np.flatnonzero(np.diff(first[order], prepend=-1))
    return {
        place: members[number + 1 :]
        for members in np.split(order, begins[1:])
        for number, place in enumerate(members[:-1].tolist())
    }


class SlotBuckets(NamedTuple):
    """The buckets of a slot: ``small`` ones, of which all pairs are compared, and ``large`` ones."""

    slot: int
    small: Buckets
    large: Buckets


def iter_slots(
    table: FingerprintTable, kept: NDArray[np.bool_], most_shared: int, stage: str, monitor: RunMonitor
) -> Iterator[SlotBuckets]:
    """Yield the buckets of all slots, by 32 bits of the supershingles.

    Args:
        kept: bool (D,), the documents that take part.

    Cost: one sort for each slot, which takes some 32 bytes a document.
    """
    words, documents, slots = table.words.mapped(), np.flatnonzero(kept), slot_count(table)
    for slot in range(slots):
        monitor.report(stage, slot, slots)
        monitor.check()
        keys = words[documents, slot].astype(np.uint64)
        # The high half of 64 bits, or the 32 bits that there are.
        keys = ((keys >> _HALF) if table.whole else keys) << _HALF
        buckets = Buckets.of(keys | documents.astype(np.uint64))
        large = buckets.sizes > most_shared
        yield SlotBuckets(slot, buckets.only(~large) if large.any() else buckets, buckets.only(large))


class LargeBuckets:
    """Buckets that are too large for all their pairs, kept until the small ones are done.

    Cost: 4 bytes for each document in each bucket, and a bit for each document and slot.
    """

    def __init__(self, table: FingerprintTable) -> None:
        self._slots = slot_count(table)
        self._buckets: list[tuple[int, NDArray[np.int32]]] = []
        self._bits: Bytes = np.zeros((len(table), -(-self._slots // 8)), np.uint8)

    def add(self, slot: int, buckets: Buckets) -> None:
        """Keep the large buckets of a slot."""
        documents = buckets.documents.astype(np.int32)
        self._bits[documents, slot // 8] |= np.uint8(128 >> slot % 8)
        if len(buckets):
            self._buckets += [(slot, bucket) for bucket in np.split(documents, buckets.starts[1:])]

    def __len__(self) -> int:
        return len(self._buckets)

    def __iter__(self) -> Iterator[tuple[int, Int64s]]:
        """Yield the slot and the documents of each bucket."""
        for slot, documents in self._buckets:
            yield slot, documents.astype(np.int64)

    def slots_of(self, documents: Int64s) -> NDArray[np.bool_]:
        """Return in which slots documents are in a large bucket, bool (P, slots)."""
        return np.unpackbits(self._bits[documents], axis=1, count=self._slots).view(np.bool_)


class PairJudge:
    """Decides in which slots two documents share supershingles, and whether they are near-duplicates."""

    def __init__(self, table: FingerprintTable) -> None:
        signatures, shingles, scheme = table.signatures.mapped(), table.shingles.mapped(), table.scheme
        self._verifier = PairVerifier(
            signatures, shingles, scheme.sketch, scheme.decision, table.texts, table.facts
        )
        self._table, self._slots = table, slot_count(table)
        self._words: NDArray[np.unsignedinteger] = table.words.mapped()

    def equal(self, a: Int64s, b: Int64s, begin: int = 0, end: int | None = None) -> NDArray[np.bool_]:
        """Return in which slots from ``begin`` to ``end`` pairs are equal, bool (P, slots)."""
        end = self._slots if end is None else end
        found: NDArray[np.bool_] = self._words[a, begin:end] == self._words[b, begin:end]
        return found

    def in_slot(self, slot: int) -> Callable[[Int64s, Int64s], NDArray[np.bool_]]:
        """Return a function that returns which pairs of a bucket of this slot are near-duplicates."""

        def alike(a: Int64s, b: Int64s) -> NDArray[np.bool_]:
            kept = self._nomination_mask(a, b, slot)
            rows = np.flatnonzero(kept)
            kept[rows] = self.verify(a[rows], b[rows]).kept
            return kept

        return alike

    def _nomination_mask(self, a: Int64s, b: Int64s, slot: int) -> NDArray[np.bool_]:
        least = self._table.scheme.decision.min_shared
        if least > 1:
            return np.asarray(np.count_nonzero(self.equal(a, b), axis=1) >= least)
        if not self._table.whole:
            # A bucket already compares all bits that a keyword has.
            return np.ones(len(a), np.bool_)
        return np.asarray(self._words[a, slot] == self._words[b, slot])

    def verify(self, a: Int64s, b: Int64s) -> PairVerdicts:
        """Return the verdicts on pairs that share enough supershingles."""
        near = self._verifier.similar_length(a, b)
        rows = np.flatnonzero(near)
        found = self._verifier.verify(a[rows], b[rows])
        if len(rows) == len(a):
            return found
        whole = PairVerdicts(np.zeros(len(a), np.bool_), np.zeros(len(a)), np.full(len(a), np.nan))
        for column, values in zip(whole, found, strict=True):
            column[rows] = values
        return whole
