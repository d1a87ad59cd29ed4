"""Links the documents of a table: their pairs, and the groups that pairs make."""

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.linkage import Linkage
from shinglefold.model.values import Int64s
from shinglefold.offline.dedupe.fingerprint_table import Duplicates, FingerprintTable
from shinglefold.offline.dedupe.list_pairs import Rows, all_pairs
from shinglefold.offline.dedupe.slots import (
    LEADERS,
    Labels,
    LargeBuckets,
    LinkOptions,
    PairJudge,
    RowBuckets,
    RunMonitor,
    Skipped,
    iter_slots,
)
from shinglefold.sketch import DisjointSets, connect, union_large_bucket


def connected_labels(
    table: FingerprintTable, duplicates: Duplicates, options: LinkOptions, monitor: RunMonitor
) -> tuple[Labels, Skipped]:
    """Return the first document of the group of each document, int32 (D,), and what was not compared.

    Documents in a chain of pairs are one group. Near-duplicates are joined slot by slot; no pair is stored.
    """
    judge, forest = PairJudge(table), DisjointSets(len(table), duplicates.first.copy())
    large_buckets = LargeBuckets(table)
    decision = table.scheme.decision
    # If keywords alone decide, a bucket of any size is one group.
    bare = decision.verify == "keywords" and decision.min_shared == 1
    most_shared = len(table) if bare else options.limit(len(table))
    kept = table.valid() & ~duplicates.is_duplicate
    for slot, small, large in iter_slots(table, kept, most_shared, "groups", monitor):
        connect(small, forest, judge.in_slot(slot))
        large_buckets.add(slot, large)
    skipped = Skipped()
    for slot, documents in large_buckets:
        monitor.check()
        missed = union_large_bucket(documents, forest, judge.in_slot(slot), LEADERS)
        skipped.pairs += missed
        skipped.crowded += missed > 0
    return forest.labels(), skipped


def leader_labels(
    table: FingerprintTable, duplicates: Duplicates, options: LinkOptions, monitor: RunMonitor
) -> tuple[Labels, Skipped]:
    """Return the first document of the group of each document, int32 (D,), and what was not compared.

    In order, a document in no group begins one, and later documents in no group that match it join.
    Documents are compared within their connected component. So a crowd of n near-copies costs some n
    verifications, and no pair is stored.

    Raises:
        ConfigError: more documents have near-duplicates than memory holds.
    """
    components, skipped = connected_labels(table, duplicates, options, monitor)
    own = np.flatnonzero(~duplicates.is_duplicate)
    rows = own[np.bincount(components[own], minlength=len(table))[components[own]] > 1]
    buckets = RowBuckets(table, rows, duplicates.first, options.memory)
    judge = PairJudge(table)
    free, leaders = np.ones(len(rows), np.bool_), np.arange(len(table), dtype=np.int32)
    for place, row in enumerate(rows.tolist()):
        if not free[place]:
            continue
        monitor.check()
        for others, alike in ((buckets.equal(place), True), (buckets.candidates(place), False)):
            near = others[free[others]]
            if len(near) and not alike:
                near = near[judge.verified(np.full(len(near), row), rows[near]).kept]
            free[near] = False
            leaders[rows[near]] = row
    copies = np.flatnonzero(duplicates.is_duplicate)
    leaders[copies] = leaders[duplicates.first[copies]]
    return leaders, skipped


Sort = Literal["document", "resemblance", "similarity"]
#: How many pairs are yielded at a time.
_TOGETHER = 1 << 16
#: Resemblances are sorted by four digits, as many as are printed.
_STEPS = 10_000
#: The peak memory in bytes for each document; it is needed while digests are sorted.
_A_DOCUMENT = 64


class Linking:
    """Finds the pairs and groups of a collection.

    Args:
        table: the fingerprints of all documents.
        monitor: receives the progress, and may stop the run.

    Attributes:
        skipped: what was not compared.

    Raises:
        ConfigError: there are more documents than memory holds.
    """

    def __init__(
        self, table: FingerprintTable, options: LinkOptions, monitor: RunMonitor | None = None
    ) -> None:
        self.skipped = Skipped()
        self._table, self._options, self._monitor = table, options, monitor or RunMonitor()
        most = options.memory // _A_DOCUMENT
        if len(table) > most:
            raise ConfigError(
                f"there are {len(table):,} documents, and --memory holds {most:,}: give more memory, or "
                "group files with Spark (python -m shinglefold.cli.spark groups)"
            )

    @cached_property
    def _duplicates(self) -> Duplicates:
        return Duplicates(self._table)

    def labels(self, linkage: Linkage) -> Labels:
        """Return the first document of the group of each document, int32 (D,).

        Args:
            linkage: ``leader``: each member matches the first; ``connected``: chains of pairs are one group.

        Raises:
            ConfigError: the linkage is ``leader``, and more documents have near-duplicates than memory holds.
        """
        label = connected_labels if linkage == "connected" else leader_labels
        labels, self.skipped = label(self._table, self._duplicates, self._options, self._monitor)
        return labels

    def pairs(self, sort: Sort = "document") -> Iterator[Rows]:
        """Yield all pairs in blocks, in the order of their documents or the most alike first.

        Raises:
            ConfigError: there are more than memory holds.
        """
        rows, self.skipped = all_pairs(self._table, self._duplicates, self._options, self._monitor)
        order = _order(rows, sort)
        # Without pairs there is one empty block.
        for begin in range(0, max(1, len(rows)), _TOGETHER):
            yield rows[order[begin : begin + _TOGETHER]]


def _order(rows: Rows, sort: Sort) -> Int64s:
    """Return the row numbers of pairs in order; pairs whose printed shares are equal keep document order."""
    if sort == "document":
        keys = rows["a"].astype(np.uint64) << np.uint64(32) | rows["b"].astype(np.uint64)
        return np.argsort(keys).astype(np.int64)
    share = rows["resemblance"]
    if sort == "similarity":
        share = np.where(np.isnan(rows["similarity"]), share, rows["similarity"])
    rank = _STEPS - np.rint(share.round(4) * _STEPS).astype(np.int16)
    return np.lexsort((rows["b"], rows["a"], rank)).astype(np.int64)


def groups_of(labels: Labels, least: int, by_size: bool) -> Iterator[Int64s]:
    """Yield the documents of each group of ``least`` or more, in document order.

    Args:
        by_size: yield the largest group first; else order groups by their first documents.

    Cost: some 40 bytes a document.
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
