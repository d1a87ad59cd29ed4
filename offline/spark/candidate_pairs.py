"""Candidates: the documents that share supershingles, found by sorting; crowded ones are bounded."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from shinglefold.model.scheme import Decision, Scheme
from shinglefold.model.values import Int64s
from shinglefold.offline.spark.arrow_arrays import numbers, run_starts
from shinglefold.offline.spark.session import Batch, Frame, totals
from shinglefold.options.validation import check_int
from shinglefold.sketch.b_bit_minhash import length_ratio
from shinglefold.sketch.candidates import CHUNK, ragged

_SCHEMA = "a long, b long, held long"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a supershingle that many documents have may cost.

    ``most``: documents of one supershingle up to which all pairs of them are looked at. Of more, each is
    compared with the ``centres`` first ones only: boilerplate then costs so many pairs a document, and
    thousands of copies of one page, which share all their supershingles, still meet.
    """

    most: int = 1_000
    centres: int = 16

    def __post_init__(self) -> None:
        check_int("most", self.most, 2, 100_000)
        check_int("centres", self.centres, 1, self.most)


_USUAL = Bounds()


def nominations(originals: Frame, scheme: Scheme, bounds: Bounds = _USUAL) -> Frame:
    """Return the pairs (a, b) of documents that share a supershingle and are near in length.

    A pair comes as often as it shares supershingles. ``held`` is null in it; a row where it is not says that
    a supershingle is crowded, and of how many documents.

    Cost: a shuffle of all supershingles.
    """
    leading = originals.where("leads AND signature IS NOT NULL")
    rows = leading.selectExpr("explode(keys) AS key", "number", "shingles")
    nominate = _Nominate(scheme.decision, bounds)
    return rows.repartition("key").sortWithinPartitions("key", "number").mapInArrow(nominate, _SCHEMA)


def candidates(nominations: Frame, scheme: Scheme) -> Frame:
    """Return the pairs (a, b) that are nominated by ``min_shared`` supershingles, each once.

    Cost: a shuffle of the nominations.
    """
    pairs = nominations.where("held IS NULL").select("a", "b")
    if scheme.decision.min_shared == 1:
        return pairs.distinct()
    shared = pairs.groupBy("a", "b").count().where(f"count >= {scheme.decision.min_shared}")
    return shared.select("a", "b")


def crowding(nominations: Frame, bounds: Bounds = _USUAL) -> dict[str, int]:
    """Return what was counted of nominations that are kept.

    Returns:
        ``nominated``: pairs of one supershingle. ``crowded``: supershingles of more documents than
        ``bounds.most``. ``held``: how many these are of, in all. ``skipped``: their pairs that were not
        looked at.
    """
    centres = bounds.centres
    skipped = f"sum(held * (held - 1) / 2 - {centres} * held + {centres * (centres + 1) // 2})"
    return totals(
        nominations,
        nominated="count_if(held IS NULL)",
        crowded="count(held)",
        held="sum(held)",
        skipped=skipped,
    )


class _Bucket(NamedTuple):
    """Rows in order of their keys: documents, and how many shingles they have."""

    keys: Int64s
    documents: Int64s
    shingles: Int64s

    def part(self, begin: int, end: int | None = None) -> "_Bucket":
        return _Bucket(*(column[begin:end] for column in self))

    def then(self, other: "_Bucket") -> "_Bucket":
        return _Bucket(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


_NOTHING = _Bucket(*(np.zeros(0, np.int64) for _ in range(3)))


@dataclass(frozen=True, slots=True)
class _Nominate:
    """Pairs rows that come sorted by key; at most ``most`` rows of one key are held at a time."""

    decision: Decision
    bounds: Bounds

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        left, centres, held = _NOTHING, _NOTHING, 0
        for batch in batches:
            rows = left.then(_Bucket(*(numbers(column) for column in batch.columns)))
            starts = run_starts(rows.keys)
            if held and len(rows.keys):
                # The crowded key goes on, or is at its end.
                same = int(starts[1] if len(starts) > 1 else len(rows.keys))
                same = same if rows.keys[0] == centres.keys[0] else 0
                yield from self._against(centres, rows.part(0, same))
                held += same
                rows, starts = rows.part(same), starts[1:] - same if same else starts
                if len(rows.keys):
                    yield _told(held)
                    held = 0
            last = int(starts[-1]) if len(starts) else 0
            yield from self._closed(rows.part(0, last), starts)
            left = rows.part(last)
            if len(left.keys) > self.bounds.most:
                yield from self._crowd(left)
                centres, held, left = left.part(0, self.bounds.centres), len(left.keys), _NOTHING
        yield from self._closed(left, run_starts(left.keys))
        if held:
            yield _told(held)

    def _closed(self, rows: _Bucket, starts: Int64s) -> Iterator[Batch]:
        """Yield the pairs of keys whose rows are all there; the last start may be of what follows."""
        starts = starts[starts < len(rows.keys)]
        sizes = np.diff(starts, append=len(rows.keys))
        for place in np.flatnonzero(sizes > self.bounds.most).tolist():
            begin, size = int(starts[place]), int(sizes[place])
            yield from self._crowd(rows.part(begin, begin + size))
            yield _told(size)
        ends = np.repeat(np.where(sizes > self.bounds.most, 0, starts + sizes), sizes)
        behind = np.maximum(0, ends - np.arange(len(ends)) - 1)
        for owner, number in ragged(behind, CHUNK):
            yield self._pairs(rows, owner, rows, owner + 1 + number)

    def _crowd(self, rows: _Bucket) -> Iterator[Batch]:
        """Yield the first pairs of a crowded key: of its centres, and of each with those that follow."""
        centres = rows.part(0, self.bounds.centres)
        behind = np.arange(len(centres.keys), dtype=np.int64)[::-1]
        for owner, number in ragged(behind, CHUNK):
            yield self._pairs(centres, owner, centres, owner + 1 + number)
        yield from self._against(centres, rows.part(self.bounds.centres))

    def _against(self, centres: _Bucket, rows: _Bucket) -> Iterator[Batch]:
        counts = np.full(len(rows.keys), len(centres.keys), np.int64)
        for owner, number in ragged(counts, CHUNK):
            yield self._pairs(centres, number, rows, owner)

    def _pairs(self, ones: _Bucket, one: Int64s, others: _Bucket, other: Int64s) -> Batch:
        """Return pairs of rows that are near in length, the lesser number first."""
        near = np.ones(len(one), np.bool_)
        if self.decision.verify != "keywords":
            ratio = length_ratio(ones.shingles[one], others.shingles[other])
            near = ratio >= self.decision.min_length_ratio
        a, b = ones.documents[one[near]], others.documents[other[near]]
        return _batch(np.minimum(a, b), np.maximum(a, b), pa.nulls(len(a), pa.int64()))


def _told(held: int) -> Batch:
    """Return the row that says of a crowded key how many documents have it."""
    none = np.zeros(1, np.int64)
    return _batch(none, none, pa.array([held], pa.int64()))


def _batch(a: Int64s, b: Int64s, held: pa.Array) -> Batch:
    return pa.RecordBatch.from_arrays([pa.array(a), pa.array(b), held], ["a", "b", "held"])
