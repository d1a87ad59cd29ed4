"""Exact copies: the documents of one canonical text, of which one stands for all from here on."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shinglefold.offline.spark.arrow_arrays import Column, compute, numbers
from shinglefold.offline.spark.session import Batch, Frame

#: What is looked up by the keys of candidates, and only of documents that can be any.
_LOOKED_UP = ("keys", "signature")
#: What stays where it is, as most documents are in no pair.
_LEFT = ("written", "canonical", "facts")


def originals(prints: Frame) -> Frame:
    """Return the rows of ``prints`` that have a digest, without words, with ``first`` and ``leads``.

    ``first`` is the number of one document of the same digest, the same one for all: these are
    near-duplicates, whatever else they are. ``leads`` tells the first of those of the same sketch, too; the
    others are to everybody what it is, so that their keys and signatures are left out.

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
        # Rows before the first change are of the text that was open.
        run = np.cumsum(other) - 1
        firsts = np.where(run >= 0, own[begins][run] if len(begins) else first, first)
        leads = other | np.concatenate(([sketches[0] != sketch], sketches[1:] != sketches[:-1]))
        digest, sketch, first = digests[-1].as_py(), sketches[-1], int(firsts[-1])
        yield _marked(batch, firsts, leads)


def _changes(texts: Column) -> NDArray[np.bool_]:
    """Tell of each text but the first whether it differs from the one before."""
    found = compute.not_equal(texts.slice(1), texts.slice(0, len(texts) - 1))
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def _marked(batch: Batch, firsts: NDArray[np.int64], leads: NDArray[np.bool_]) -> Batch:
    kept = pa.array(leads)
    columns = {
        name: compute.if_else(kept, batch.column(name), pa.scalar(None, batch.column(name).type))
        if name in _LOOKED_UP
        else batch.column(name)
        for name in batch.schema.names
    }
    return pa.RecordBatch.from_pydict({**columns, "first": pa.array(firsts), "leads": kept})
