"""Links the documents of a table: their pairs, and the groups that pairs make.

A pair is listed once: in the first slot in which its two documents share a supershingle.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shinglefold.errors import ConfigError
from shinglefold.model.linkage import Linkage
from shinglefold.model.values import Int64s
from shinglefold.offline.dedupe.fingerprint_table import Duplicates, FingerprintTable
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
    slot_count,
)
from shinglefold.sketch.candidates import Buckets, iter_ragged
from shinglefold.sketch.clustering import DisjointSets, connect, union_large_bucket
from shinglefold.sketch.verification import PairVerdicts

#: A pair of documents: a < b.
PAIR = np.dtype([("a", np.uint32), ("b", np.uint32), ("resemblance", np.float64), ("similarity", np.float64)])
Rows = NDArray[np.void]
#: The number of pairs verified or yielded at a time, and of slots compared at a time.
_TOGETHER, _SLOTS = 1 << 16, 8
#: The most bytes that a pair takes, while it is sorted.
_A_PAIR = 72


def all_pairs(
    table: FingerprintTable,
    duplicates: Duplicates,
    options: LinkOptions,
    monitor: RunMonitor,
) -> tuple[Rows, Skipped]:
    """Return all pairs, unsorted, and what was not compared; raise ``ConfigError`` beyond the memory."""
    copies = _PairCopies(duplicates, options.limit(len(table)))
    blocks, count, most = [np.zeros(0, PAIR)], 0, options.memory // _A_PAIR

    def keep(found: Iterable[Rows]) -> None:
        nonlocal count
        for rows in found:
            count += len(rows)
            if count > most:
                raise ConfigError(
                    f"there are more than {most:,} pairs, which is what --memory holds: give more memory, "
                    "or a smaller --most-shared, or group files with Spark: "
                    "python -m shinglefold.cli.spark groups"
                )
            blocks.append(rows)

    keep(copies.of_equal_texts())
    skipped = _Search(table, duplicates, options, monitor, lambda rows: keep(copies.of_pairs(rows))).run()
    skipped.copies = copies.left_out
    return np.concatenate(blocks), skipped


class _Search:
    """Finds the pairs of documents that are not exact duplicates, and passes them to ``add``."""

    def __init__(
        self,
        table: FingerprintTable,
        duplicates: Duplicates,
        options: LinkOptions,
        monitor: RunMonitor,
        add: Callable[[Rows], None],
    ) -> None:
        self._table = table
        self._judge = PairJudge(table)
        self._large = LargeBuckets(table)
        self._kept = table.valid() & ~duplicates.is_duplicate
        self._first = duplicates.first
        self._min_shared = table.scheme.decision.min_shared
        self._most_shared = options.limit(len(table))
        self._monitor = monitor
        self._add = add

    def run(self) -> Skipped:
        """Find all pairs; return what was not compared."""
        for slot, small, large in iter_slots(
            self._table, self._kept, self._most_shared, "pairs", self._monitor
        ):
            self._large.add(slot, large)
            for a, b in small.pairs():
                self._monitor.check()
                self._decide(slot, a, b)
        return self._of_large_buckets()

    def _decide(self, slot: int, a: Int64s, b: Int64s) -> None:
        kept = self._first[a] != self._first[b]
        # Near-duplicates share many slots, so the first slots already drop most pairs found before.
        for begin in range(0, slot, _SLOTS):
            a, b = a[kept], b[kept]
            kept = ~self._share_bucket(a, b, range(begin, min(begin + _SLOTS, slot)))
        a, b = a[kept], b[kept]
        equal = self._judge.equal(a, b)
        kept = equal[:, slot] & (np.count_nonzero(equal, axis=1) >= self._min_shared)
        self._verify(a[kept], b[kept])

    def _share_bucket(self, a: Int64s, b: Int64s, slots: range) -> NDArray[np.bool_]:
        """Return which pairs share a supershingle of these slots in a bucket that is not large."""
        equal = self._judge.equal(a, b, slots.start, slots.stop)
        if self._large:
            equal &= ~self._large.slots_of(a)[:, slots.start : slots.stop]
        return np.asarray(equal.any(axis=1))

    def _verify(self, a: Int64s, b: Int64s) -> None:
        found: PairVerdicts = self._judge.verify(a, b)
        kept = found.kept
        self._add(_rows(a[kept], b[kept], found.resemblance[kept], found.similarity[kept]))

    def _of_large_buckets(self) -> Skipped:
        """Compare ``LEADERS`` documents of each large bucket with the others.

        A document that matched one of these leaders is not compared with further ones.
        """
        skipped, found = Skipped(), [np.zeros((0, 2), np.int64)]
        for slot, documents in self._large:
            left, looked = documents, 0
            for _ in range(LEADERS):
                self._monitor.check()
                if len(left) < 2:
                    break
                first, left = int(left[0]), left[1:]
                looked += len(left)
                ones = np.full(len(left), first)
                alike = self._judge.in_slot(slot)(ones, left)
                found.append(np.column_stack((ones[alike], left[alike])))
                left = left[~alike]
            skipped.pairs += comb(len(documents), 2) - looked
            skipped.crowded += 1
        # A pair may be in several large buckets, and in small ones.
        a, b = np.unique(np.concatenate(found), axis=0).T
        for begin in range(0, len(a), _TOGETHER):
            one, other = a[begin : begin + _TOGETHER], b[begin : begin + _TOGETHER]
            fresh = ~self._share_bucket(one, other, range(slot_count(self._table)))
            fresh &= self._first[one] != self._first[other]
            self._verify(one[fresh], other[fresh])
        return skipped


class _PairCopies:
    """Lists the pairs of exact duplicates, which match whatever the first document of their text matches.

    Args:
        most: if a text has at most this many duplicates, all their pairs are listed; else only those with the
            first document.

    Attributes:
        left_out: pairs that were not listed.
    """

    def __init__(self, duplicates: Duplicates, most: int) -> None:
        self.left_out = 0
        self._most = most
        self._first = duplicates.first
        rows = np.flatnonzero(duplicates.is_duplicate)
        order = np.argsort(duplicates.first[rows], kind="stable")
        self._duplicates = rows[order]
        self._owners = duplicates.first[self._duplicates].astype(np.int64)

    def of_equal_texts(self) -> Iterator[Rows]:
        """Yield the pairs of documents with equal texts; if there are many, only those with the first."""
        others = np.flatnonzero(self._first != np.arange(len(self._first)))
        firsts = self._first[others].astype(np.int64)
        members = np.concatenate((np.unique(firsts), others))
        owners = np.concatenate((np.unique(firsts), firsts))
        order = np.lexsort((members, owners))
        starts = np.flatnonzero(np.diff(owners[order], prepend=-1))
        buckets = Buckets(members[order], starts, np.diff(starts, append=len(order)))
        large = buckets.sizes > self._most
        for a, b in buckets.only(~large).pairs():
            yield _rows(a, b, 1.0, 1.0)
        crowded = buckets.only(large)
        yield _rows(*crowded.stars(), 1.0, 1.0)
        self.left_out += sum(comb(size - 1, 2) for size in crowded.sizes.tolist())

    def of_pairs(self, rows: Rows) -> Iterator[Rows]:
        """Yield all pairs of a duplicate of a and a duplicate of b, for each pair (a, b)."""
        a, b = rows["a"].astype(np.int64), rows["b"].astype(np.int64)
        (of_a, all_a), (of_b, all_b) = self._sizes(a), self._sizes(b)
        self.left_out += int((all_a * all_b - of_a * of_b).sum())
        for owner, number in iter_ragged(of_a * of_b):
            place_a, place_b = np.divmod(number, of_b[owner])
            one, other = self._copy(a[owner], place_a), self._copy(b[owner], place_b)
            found = rows[owner]
            found["a"], found["b"] = np.minimum(one, other), np.maximum(one, other)
            yield found

    def _sizes(self, documents: Int64s) -> tuple[Int64s, Int64s]:
        """Return how many duplicates of each document are listed and exist, itself included."""
        counts = 1 + np.searchsorted(self._owners, documents, "right")
        counts -= np.searchsorted(self._owners, documents, "left")
        return np.where(counts > self._most, 1, counts), counts

    def _copy(self, documents: Int64s, place: Int64s) -> Int64s:
        """Return the duplicate of a document with this number; number 0 is the document itself."""
        if not len(self._duplicates):
            return documents
        behind = np.searchsorted(self._owners, documents, "left") + place - 1
        return np.where(
            place == 0, documents, self._duplicates[np.minimum(behind, len(self._duplicates) - 1)]
        )


def _rows(
    a: Int64s, b: Int64s, resemblance: NDArray[np.float64] | float, similarity: NDArray[np.float64] | float
) -> Rows:
    rows = np.empty(len(a), PAIR)
    rows["a"], rows["b"], rows["resemblance"], rows["similarity"] = a, b, resemblance, similarity
    return rows


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
                near = near[judge.verify(np.full(len(near), row), rows[near]).kept]
            free[near] = False
            leaders[rows[near]] = row
    copies = np.flatnonzero(duplicates.is_duplicate)
    leaders[copies] = leaders[duplicates.first[copies]]
    return leaders, skipped


Sort = Literal["document", "resemblance", "similarity"]
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
