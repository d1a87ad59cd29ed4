"""Find candidate pairs, which share supershingles, by sorting, and verify them.

Exact duplicates are left out. Signatures verify a pair, or its texts if the column ``beside`` has these.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shinglefold.model.scheme import Decision, Scheme
from shinglefold.model.values import Int64s
from shinglefold.offline.spark.fingerprint_rows import Column, compute, matrix, numbers, run_starts
from shinglefold.offline.spark.session import Batch, Frame, StageStore, totals
from shinglefold.options.validation import check_int
from shinglefold.sketch.b_bit_minhash import least_estimate, length_ratio, packed_size
from shinglefold.sketch.candidates import CHUNK, iter_ragged
from shinglefold.sketch.verification import PairVerifier, Texts, Words

_SCHEMA = "a long, b long, held long"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits for crowded supershingles, which many documents share.

    If at most ``most`` documents have a supershingle, all their pairs are candidates. If more have it, each
    document is paired with the first ``centres`` of them only. So boilerplate adds ``centres`` pairs a
    document, and thousands of copies of one page are still connected.
    """

    most: int = 1_000
    centres: int = 16

    def __post_init__(self) -> None:
        check_int("most", self.most, 2, 100_000)
        check_int("centres", self.centres, 1, self.most)


def nominations(originals: Frame, scheme: Scheme, bounds: Bounds) -> Frame:
    """Return the pairs (a, b) of documents that share a supershingle and are near in length.

    A pair is repeated for each shared supershingle; its ``held`` is null. Each crowded supershingle has a row
    of its own, in which ``held`` is the number of its documents.

    Cost: a shuffle of all supershingles.
    """
    leading = originals.where("leads AND signature IS NOT NULL")
    rows = leading.selectExpr("explode(keys) AS key", "number", "shingles")
    nominate = _Nominate(scheme.decision, bounds)
    return rows.repartition("key").sortWithinPartitions("key", "number").mapInArrow(nominate, _SCHEMA)


def candidates(nominations: Frame, scheme: Scheme) -> Frame:
    """Return the pairs (a, b) that share ``min_shared`` supershingles, each once.

    Cost: a shuffle of what ``nominations`` returned.
    """
    pairs = nominations.where("held IS NULL").select("a", "b")
    if scheme.decision.min_shared == 1:
        return pairs.distinct()
    shared = pairs.groupBy("a", "b").count().where(f"count >= {scheme.decision.min_shared}")
    return shared.select("a", "b")


def crowd_counts(nominations: Frame, bounds: Bounds) -> dict[str, int]:
    """Return counts of the pairs and crowded supershingles that ``nominations`` returned.

    Returns:
        ``nominated``: pairs, repeated for each shared supershingle. ``crowded``: supershingles that more than
        ``bounds.most`` documents have. ``held``: how many documents these have in all. ``skipped``: pairs of
        these documents that are not candidates.
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
    """Rows sorted by key, with the document and its number of shingles."""

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
    """Pairs rows of equal keys, given rows sorted by key; buffers at most ``most`` rows of a key."""

    decision: Decision
    bounds: Bounds

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        left, centres, held = _NOTHING, _NOTHING, 0
        for batch in batches:
            rows = left.then(_Bucket(*(numbers(column) for column in batch.columns)))
            starts = run_starts(rows.keys)
            if held and len(rows.keys):
                # This batch may begin with more rows of the crowded key.
                same = int(starts[1] if len(starts) > 1 else len(rows.keys))
                same = same if rows.keys[0] == centres.keys[0] else 0
                yield from self._against(centres, rows.part(0, same))
                held += same
                rows, starts = rows.part(same), starts[1:] - same if same else starts
                if len(rows.keys):
                    yield _crowd_row(held)
                    held = 0
            last = int(starts[-1]) if len(starts) else 0
            yield from self._pairs_of_keys(rows.part(0, last), starts)
            left = rows.part(last)
            if len(left.keys) > self.bounds.most:
                yield from self._crowd(left)
                centres, held, left = left.part(0, self.bounds.centres), len(left.keys), _NOTHING
        yield from self._pairs_of_keys(left, run_starts(left.keys))
        if held:
            yield _crowd_row(held)

    def _pairs_of_keys(self, rows: _Bucket, starts: Int64s) -> Iterator[Batch]:
        """Yield the pairs of keys, all of whose rows are given; ignore a start beyond the last row."""
        starts = starts[starts < len(rows.keys)]
        sizes = np.diff(starts, append=len(rows.keys))
        for place in np.flatnonzero(sizes > self.bounds.most).tolist():
            begin, size = int(starts[place]), int(sizes[place])
            yield from self._crowd(rows.part(begin, begin + size))
            yield _crowd_row(size)
        ends = np.repeat(np.where(sizes > self.bounds.most, 0, starts + sizes), sizes)
        followers = np.maximum(0, ends - np.arange(len(ends)) - 1)
        for owner, number in iter_ragged(followers, CHUNK):
            yield self._pairs(rows, owner, rows, owner + 1 + number)

    def _crowd(self, rows: _Bucket) -> Iterator[Batch]:
        """Yield the pairs of a crowded key: two centres, or a centre and another row."""
        centres = rows.part(0, self.bounds.centres)
        followers = np.arange(len(centres.keys), dtype=np.int64)[::-1]
        for owner, number in iter_ragged(followers, CHUNK):
            yield self._pairs(centres, owner, centres, owner + 1 + number)
        yield from self._against(centres, rows.part(self.bounds.centres))

    def _against(self, centres: _Bucket, rows: _Bucket) -> Iterator[Batch]:
        counts = np.full(len(rows.keys), len(centres.keys), np.int64)
        for owner, number in iter_ragged(counts, CHUNK):
            yield self._pairs(centres, number, rows, owner)

    def _pairs(self, ones: _Bucket, one: Int64s, others: _Bucket, other: Int64s) -> Batch:
        """Return pairs of rows that are near in length, the lesser number first."""
        near = np.ones(len(one), np.bool_)
        if self.decision.verify != "keywords":
            ratio = length_ratio(ones.shingles[one], others.shingles[other])
            near = ratio >= self.decision.min_length_ratio
        a, b = ones.documents[one[near]], others.documents[other[near]]
        return _batch(np.minimum(a, b), np.maximum(a, b), pa.nulls(len(a), pa.int64()))


def _crowd_row(held: int) -> Batch:
    """Return the row of a crowded key, with the number of its documents."""
    none = np.zeros(1, np.int64)
    return _batch(none, none, pa.array([held], pa.int64()))


def _batch(a: Int64s, b: Int64s, held: pa.Array) -> Batch:
    return pa.RecordBatch.from_arrays([pa.array(a), pa.array(b), held], ["a", "b", "held"])


#: Columns that are read only for documents that lead, because only these can be candidates.
_LOOKED_UP = ("keys", "signature")
#: Columns that are left out of the shuffle, because most documents are in no pair.
_LEFT = ("written", "canonical")


def originals(prints: Frame) -> Frame:
    """Return the rows of ``prints`` that have a digest, without words, with ``first`` and ``leads``.

    ``first`` is the number of the first document with the same digest. ``leads`` marks the first document
    with the same digest and sketch. The others have equal keys and signatures, which are set to null.

    Cost: one shuffle of all rows, without words.
    """
    narrow = prints.drop(*_LEFT)
    schema = f"{_ddl(narrow)}, first long, leads boolean"
    sorted_rows = (
        narrow.where("digest != ''").repartition("digest").sortWithinPartitions("digest", "sketch", "number")
    )
    return sorted_rows.mapInArrow(_firsts, schema)


def _ddl(frame: Frame) -> str:
    return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in frame.schema.fields)


def _firsts(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Add ``first`` and ``leads`` to rows sorted by digest, sketch and number."""
    digest, sketch, first = None, None, 0
    for batch in batches:
        if not batch.num_rows:
            continue
        digests, sketches = batch.column("digest"), numbers(batch.column("sketch"))
        other = np.concatenate(([digests[0].as_py() != digest], _changes(digests)))
        own = numbers(batch.column("number"))
        begins = np.flatnonzero(other)
        # Rows before the first change belong to the last text of the batch before.
        run = np.cumsum(other) - 1
        firsts = np.where(run >= 0, own[begins][run] if len(begins) else first, first)
        leads = other | np.concatenate(([sketches[0] != sketch], sketches[1:] != sketches[:-1]))
        digest, sketch, first = digests[-1].as_py(), sketches[-1], int(firsts[-1])
        yield _blank_repeats(batch, firsts, leads)


def _changes(texts: Column) -> NDArray[np.bool_]:
    """Return for each text but the first whether it differs from the one before."""
    found = compute.not_equal(texts.slice(1), texts.slice(0, len(texts) - 1))
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def _blank_repeats(batch: Batch, firsts: NDArray[np.int64], leads: NDArray[np.bool_]) -> Batch:
    kept = pa.array(leads)
    columns = {
        name: compute.if_else(kept, batch.column(name), pa.scalar(None, batch.column(name).type))
        if name in _LOOKED_UP
        else batch.column(name)
        for name in batch.schema.names
    }
    return pa.RecordBatch.from_pydict({**columns, "first": pa.array(firsts), "leads": kept})


#: The most document numbers that are broadcast to all machines; each takes 16 bytes of memory there.
_SENT = 2_000_000
_SIGNED = ("shingles", "signature", "facts")
_TEXTS = ("written", "canonical")
_VERIFIED = "a long, b long, resemblance double, similarity double"


def verify_candidates(
    pairs: Frame, originals: Frame, prints: Frame, scheme: Scheme, work: StageStore
) -> Frame:
    """Return the candidates that are near-duplicates: (a, b, resemblance, similarity).

    Texts decide if the scheme says so and ``prints`` has their words. Signatures then drop only pairs that
    can't be near-duplicates whatever the texts are. Otherwise signatures decide, and ``similarity`` is null.

    Cost: two shuffles of the pairs, with one signature and with both. If texts decide, two more shuffles of
    the words of documents in the remaining pairs. With more than two million such documents, also a shuffle
    of all words.
    """
    decision, leading = scheme.decision, originals.where("leads")
    if not set(_TEXTS) <= set(prints.columns):
        decision = replace(decision, verify="signature") if decision.verify == "text" else decision
        return _decide(pairs, leading, scheme, decision, _SIGNED)
    possible = work.keep(
        _decide(pairs, leading, scheme, _lenient_decision(scheme), _SIGNED).select("a", "b"), "possible"
    )
    return _decide(possible, _rows_of_pairs(possible, prints), scheme, decision, (*_SIGNED, *_TEXTS))


def _rows_of_pairs(pairs: Frame, prints: Frame) -> Frame:
    """Return the fingerprint rows of the documents that occur in pairs."""
    numbers_ = pairs.selectExpr("explode(array(a, b)) AS number").distinct()
    if totals(numbers_, count="count(1)")["count"] <= _SENT:
        numbers_ = numbers_.hint("broadcast")
    return prints.join(numbers_, "number", "left_semi")


def _lenient_decision(scheme: Scheme) -> Decision:
    """Return a decision by signatures that keeps every pair whose texts may be similar enough."""
    sketch, decision = scheme.sketch, scheme.decision
    width = max(sketch.word_width, sketch.char_width)
    least = min(decision.min_resemblance, least_estimate(decision.min_similarity, width, sketch))
    return replace(decision, verify="signature", min_resemblance=least)


def _decide(pairs: Frame, prints: Frame, scheme: Scheme, decision: Decision, columns: Sequence[str]) -> Frame:
    joined = pairs
    for side in "ab":
        named = (f"{name} AS {name}_{side}" for name in columns)
        joined = joined.join(prints.selectExpr(f"number AS {side}", *named), side)
    return joined.mapInArrow(_Decide(replace(scheme, decision=decision)), _VERIFIED)


@dataclass(frozen=True, slots=True)
class _Decide:
    """Drops the pairs that are not near-duplicates from batches with the columns of both documents."""

    scheme: Scheme

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        sketch, decision = self.scheme.sketch, self.scheme.decision
        size = packed_size(sketch.values, sketch.bits)
        for batch in batches:
            pairs = batch.num_rows
            signatures = np.concatenate([matrix(batch.column(f"signature_{side}"), size) for side in "ab"])
            shingles = np.concatenate([numbers(batch.column(f"shingles_{side}")) for side in "ab"])
            texts = _texts(batch) if "written_a" in batch.schema.names else None
            facts = np.concatenate([numbers(batch.column(f"facts_{side}")) for side in "ab"])
            judge = PairVerifier(signatures, shingles, sketch, decision, texts, facts)
            ones = np.arange(pairs, dtype=np.int64)
            told = judge.verify(ones, ones + pairs)
            kept = pa.array(told.kept)
            resemblance = pa.array(told.resemblance).filter(kept)
            similarity = pa.array(told.similarity, from_pandas=True).filter(kept)
            both = [batch.column(side).filter(kept) for side in "ab"]
            yield pa.RecordBatch.from_arrays(
                [*both, resemblance, similarity], ["a", "b", "resemblance", "similarity"]
            )


def _texts(batch: Batch) -> Texts:
    written, canonical = (
        _words([batch.column(f"{name}_{side}") for side in "ab"]) for name in ("written", "canonical")
    )
    return Texts(written, canonical)


def _words(columns: Sequence[Column]) -> Words:
    return Words.packed([document for column in columns for document in column.to_pylist()])
