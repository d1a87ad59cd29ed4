"""Verify candidate pairs by their signatures, and by their texts if the column ``beside`` has these."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from shinglefold.model.scheme import Decision, Scheme
from shinglefold.offline.spark.arrow_arrays import Column, matrix, numbers
from shinglefold.offline.spark.session import Batch, Frame, totals
from shinglefold.offline.spark.stage_store import StageStore
from shinglefold.sketch import Texts, Words, packed_size
from shinglefold.sketch.verification import PairVerifier, least_estimate

#: The most document numbers that are broadcast to all machines; each takes 16 bytes of memory there.
_SENT = 2_000_000
_SIGNED = ("shingles", "signature", "facts")
_TEXTS = ("written", "canonical")
_SCHEMA = "a long, b long, resemblance double, similarity double"


def verified(pairs: Frame, originals: Frame, prints: Frame, scheme: Scheme, work: StageStore) -> Frame:
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
        return _decided(pairs, leading, scheme, decision, _SIGNED)
    hopeful = work.keep(
        _decided(pairs, leading, scheme, _hopeful(scheme), _SIGNED).select("a", "b"), "hopeful"
    )
    return _decided(hopeful, _needed(hopeful, prints), scheme, decision, (*_SIGNED, *_TEXTS))


def _needed(pairs: Frame, prints: Frame) -> Frame:
    """Return the fingerprint rows of the documents that occur in pairs."""
    numbers_ = pairs.selectExpr("explode(array(a, b)) AS number").distinct()
    if totals(numbers_, count="count(1)")["count"] <= _SENT:
        numbers_ = numbers_.hint("broadcast")
    return prints.join(numbers_, "number", "left_semi")


def _hopeful(scheme: Scheme) -> Decision:
    """Return a decision by signatures that keeps every pair whose texts may be similar enough."""
    sketch, decision = scheme.sketch, scheme.decision
    width = max(sketch.word_width, sketch.char_width)
    least = min(decision.min_resemblance, least_estimate(decision.min_similarity, width, sketch))
    return replace(decision, verify="signature", min_resemblance=least)


def _decided(
    pairs: Frame, prints: Frame, scheme: Scheme, decision: Decision, columns: Sequence[str]
) -> Frame:
    joined = pairs
    for side in "ab":
        named = (f"{name} AS {name}_{side}" for name in columns)
        joined = joined.join(prints.selectExpr(f"number AS {side}", *named), side)
    return joined.mapInArrow(_Decide(replace(scheme, decision=decision)), _SCHEMA)


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
