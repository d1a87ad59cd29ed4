"""Groups by chains of pairs: slot after slot joins near-duplicates, and no pair is listed."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shinglefold.model.values import Bytes, Int64s
from shinglefold.offline.dedupe.exact_duplicates import Duplicates
from shinglefold.offline.dedupe.fingerprint_table import FingerprintTable
from shinglefold.offline.dedupe.slots import (
    LEADERS,
    Labels,
    LinkOptions,
    PairJudge,
    RunMonitor,
    Skipped,
    SlotRows,
    iter_slots,
)
from shinglefold.sketch import Buckets, DisjointSets, connect, union_large_bucket


class LargeBuckets:
    """Buckets too large for all their pairs, kept until the others are done.

    Cost: 4 bytes for each document of each, and a bit a document and slot.
    """

    def __init__(self, documents: int, slots: int) -> None:
        self._slots = slots
        self._buckets: list[tuple[int, NDArray[np.int32]]] = []
        self._bits: Bytes = np.zeros((documents, -(-slots // 8)), np.uint8)

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
        """Tell in which slots documents are in a large bucket, bool (P, slots)."""
        return np.unpackbits(self._bits[documents], axis=1, count=self._slots).view(np.bool_)


def connected_labels(
    table: FingerprintTable, duplicates: Duplicates, options: LinkOptions, monitor: RunMonitor
) -> tuple[Labels, Skipped]:
    """Return the first document of the group of each, int32 (D,), and what was not compared.

    Cost: some bytes a document, and what sorting a slot takes.
    """
    slots = SlotRows(table, monitor.check)
    judge, forest = PairJudge(table, slots.count), DisjointSets(len(table), duplicates.first.copy())
    large_buckets = LargeBuckets(len(table), slots.count)
    decision = table.scheme.decision
    # Where keywords alone decide, all documents of a bucket are one group, however many they are.
    bare = decision.verify == "keywords" and decision.min_shared == 1
    most_shared = len(table) if bare else options.limit(len(table))
    kept = table.valid() & ~duplicates.is_duplicate
    for slot, small, large in iter_slots(slots, kept, most_shared, "groups", monitor):
        connect(small, forest, judge.in_slot(slot))
        large_buckets.add(slot, large)
    skipped = Skipped()
    for slot, documents in large_buckets:
        monitor.check()
        missed = union_large_bucket(documents, forest, judge.in_slot(slot), LEADERS)
        skipped.pairs += missed
        skipped.crowded += missed > 0
    return forest.labels(), skipped
