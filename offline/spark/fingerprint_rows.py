"""Convert fingerprints to rows of numbers that are as small as grouping allows, by Arrow's columns."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from shinglefold.errors import ConfigError, InputError
from shinglefold.model.recipe import FIELD
from shinglefold.model.scheme import Scheme
from shinglefold.model.values import FACTS_MARK, Bytes, Fingerprint, Int64s, Uint64s, facts_number
from shinglefold.offline.dedupe.decode import SignatureLayout
from shinglefold.offline.sign.parquet_file import text_buffers
from shinglefold.offline.spark.session import Batch, Frame, columns_of, partition
from shinglefold.sketch.shingles import mix64, stream

#: An Arrow array.
Column = Any
#: Arrow's functions. They are made when pyarrow is imported, so type checkers don't know them.
compute: Any = pyarrow.compute
#: The states of a document: its fingerprint has a signature; has none, or is missing; is damaged or sealed;
#: is of another scheme.
SIGNED, UNSIGNED, UNREADABLE, FOREIGN = 0, 1, 2, 3
#: The low bits of a document's number: its position in the partition, whose number is in the high bits.
_ROWS = 33
_SCHEMA = (
    "number long, id string, state byte, digest string, keys array<long>, shingles long, signature binary, "
    "sketch long, facts long"
)
_TEXTS = ", written binary, canonical binary"
#: Parts that are read in addition to the fingerprint, and their columns.
_BESIDE = {"supershingles": "every", "written": "written", "canonical": "canonical"}


def numbers(column: Column) -> Int64s:
    """Return a column of integers without nulls, int64."""
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def matrix(column: Column, width: int) -> Bytes:
    """Return texts or bytes as uint8 (D, width); raise ``ValueError`` if a row has another length."""
    data, sizes = text_buffers(column)
    if (sizes != width).any():
        raise ValueError(f"not all rows are of {width} bytes")
    return data.reshape(len(column), width)


def binary(rows: Bytes, valid: NDArray[np.bool_]) -> Column:
    """Return rows of bytes as a column, with null for rows that are not valid.

    Args:
        rows: uint8 (D, B), of all rows or of the valid ones.
        valid: bool (D,).
    """
    kept = rows if len(rows) == int(valid.sum()) else rows[valid]
    bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(valid) * rows.shape[1])).astype(np.int32)
    mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [mask, pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(kept))]
    return pa.Array.from_buffers(pa.binary(), len(valid), buffers, int((~valid).sum()))


def lists(values: Int64s, sizes: Int64s) -> Column:
    """Return a column of lists of this many values each."""
    bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), pa.array(values))


def run_starts(keys: Int64s) -> Int64s:
    """Return where each run of equal keys begins, int64; empty if there are no keys."""
    if not len(keys):
        return np.zeros(0, np.int64)
    return np.concatenate((np.zeros(1, np.int64), np.flatnonzero(keys[1:] != keys[:-1]) + 1))


def prints(signed: Frame, scheme: Scheme, *, target: str = FIELD, id_field: str = "") -> Frame:
    """Return the fingerprints of signed documents as rows of numbers, one a document.

    Columns:

    - ``number``: identifies the document in all later stages; made of the partition and the position in it.
      A second computation may number otherwise: store the frame before it is used twice.
    - ``id``, ``state``, ``shingles``, ``signature``.
    - ``digest``: empty if the fingerprint has none, or has another state than ``SIGNED`` or ``UNSIGNED``.
    - ``keys``: the supershingles.
    - ``sketch``: one hash of keys, shingles and signature.
    - ``written``, ``canonical``: only if texts decide and ``signed`` has the column ``beside``.
    - ``facts``: those that must not differ, as a number; 0 for none.

    Args:
        signed: what ``sign`` returned, or a Parquet file of it.
        target: the column of fingerprints.
        id_field: the column of ids; by default ``_id``, or else ``id``.

    Raises:
        ConfigError: a column is missing.
    """
    name = id_field or ("_id" if "_id" in signed.columns else "id")
    columns_of(signed, (name, target))
    parts = [f"`{target}`.{part} AS {part}" for part in ("digest", "supershingles", "signature")]
    beside = "beside" in signed.columns
    texts = beside and scheme.decision.verify == "text"
    if beside:
        parts += [f"beside.{part} AS {place}" for part, place in _BESIDE.items()]
    rows = signed.selectExpr(f"CAST(`{name}` AS string) AS id", *parts)
    schema = _SCHEMA + (_TEXTS if texts else "")
    return rows.mapInArrow(_Reader(scheme, beside, texts), schema)


class _Rows(NamedTuple):
    """D rows, S of them with a signature: states int8 (D,), digests, shingles int64 (D,), and of the S rows
    their keys, uint64 (S, M), and signatures, uint8 (S, B)."""

    states: NDArray[np.int8]
    digests: Column
    shingles: Int64s
    keys: Uint64s
    signatures: Bytes


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads batches of stored fingerprints.

    ``beside``: the column ``beside`` has all supershingles. ``texts``: it also has the words of the texts,
    which are copied.
    """

    scheme: Scheme
    beside: bool
    texts: bool

    @property
    def _layout(self) -> SignatureLayout:
        return SignatureLayout.of(self.scheme)

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        number = partition() << _ROWS
        for batch in batches:
            yield self._read(batch, number)
            number += batch.num_rows

    def _read(self, batch: Batch, first: int) -> Batch:
        if batch.column("id").null_count:
            raise ConfigError("a document has no id: give each one, or name the column that has it")
        try:
            rows = self._at_once(batch)
        except (ValueError, InputError):
            # The batch has an unusual row. pyarrow's errors are kinds of ValueError, too.
            rows = self._one_by_one(batch)
        signed = rows.states == SIGNED
        keys = self._every(batch, signed) if self.beside else rows.keys
        sizes = np.where(signed, keys.shape[1], 0)
        sketches = np.zeros(len(signed), np.int64)
        sketches[signed] = _sketches(keys, rows.signatures, rows.shingles[signed])
        columns = {
            "number": pa.array(first + np.arange(len(signed), dtype=np.int64)),
            "id": batch.column("id"),
            "state": pa.array(rows.states),
            "digest": rows.digests,
            "keys": lists(keys.reshape(-1).view(np.int64), sizes),
            "shingles": pa.array(rows.shingles),
            "signature": binary(rows.signatures, signed),
            "sketch": pa.array(sketches),
            "facts": pa.array(_facts(rows.digests)),
        }
        if self.texts:
            words = [name for name in ("written", "canonical") if name in batch.schema.names]
            columns |= {name: batch.column(name) for name in words}
        return pa.RecordBatch.from_pydict(columns)

    def _every(self, batch: Batch, signed: NDArray[np.bool_]) -> Uint64s:
        """Return the supershingles that find candidates: all, or only those that an index stores."""
        sketch, decision = self.scheme.sketch, self.scheme.decision
        column = batch.column("every").filter(pa.array(signed))
        if column.null_count:
            raise ConfigError(
                "some fingerprints lack what others have beside them: sign all with --beside, or none"
            )
        every = matrix(column, sketch.values // sketch.group_size * 8).view(np.uint64)
        stored = decision.min_shared > 1 or decision.verify == "keywords"
        return np.ascontiguousarray(every[:, : sketch.groups] if stored else every)

    def _at_once(self, batch: Batch) -> _Rows:
        """Read undamaged fingerprints of this scheme without seals by columns; raise for any other row."""
        pieces = compute.split_pattern(batch.column("digest"), ".")
        if (
            pieces.null_count
            or not compute.all(compute.equal(compute.list_value_length(pieces), 4), min_count=0).as_py()
        ):
            raise ValueError("not all digests are of four parts")
        flat, every = pieces.flatten(), np.arange(batch.num_rows) * 4
        if set(compute.unique(flat.take(every)).to_pylist()) - {self.scheme.id}:
            raise ValueError("there are other schemes")
        signature = batch.column("signature")
        signed = np.asarray(signature.is_valid().to_numpy(zero_copy_only=False), np.bool_)
        keys = self._keys(batch.column("supershingles"), signed)
        signatures = self._layout.signatures(
            matrix(signature.filter(pa.array(signed)), self._layout.encoded).tobytes()
        )
        shingles = numbers(flat.take(every + 2).cast(pa.int64()))
        states = np.where(signed, SIGNED, UNSIGNED).astype(np.int8)
        return _Rows(states, flat.take(every + 3), shingles, keys, signatures)

    def _keys(self, words: Column, signed: NDArray[np.bool_]) -> Uint64s:
        sizes = compute.fill_null(compute.list_value_length(words), 0).to_numpy(zero_copy_only=False)
        if (sizes != np.where(signed, self._layout.slots, 0)).any():
            raise ValueError("not all have as many supershingles as the scheme")
        return self._as_keys(words.flatten())

    def _one_by_one(self, batch: Batch) -> _Rows:
        states, digests, shingles, signatures = [], [], [], []
        words: list[str] = []
        parts = ("digest", "supershingles", "signature")
        for row in batch.select(parts).to_pylist():
            state, made = self._state_and_fingerprint(row)
            states.append(state)
            digests.append(made.digest if made else "")
            shingles.append(made.shingles if made else 0)
            if made is not None and state == SIGNED:
                words += made.supershingles
                signatures.append(made.signature)
        packed = np.frombuffer(b"".join(signatures), np.uint8)
        return _Rows(
            np.array(states, np.int8),
            pa.array(digests, pa.string()),
            np.array(shingles, np.int64),
            self._as_keys(pa.array(words, pa.string())),
            packed.reshape(len(signatures), self._layout.size),
        )

    def _state_and_fingerprint(self, row: dict[str, Any]) -> tuple[int, Fingerprint | None]:
        """Return the state of a row, and its fingerprint if it is ``SIGNED`` or ``UNSIGNED``."""
        if row["digest"] is None and not row["supershingles"] and not row["signature"]:
            return UNSIGNED, None
        with suppress(InputError):
            made = Fingerprint.from_field(row)
            if made.scheme != self.scheme.id:
                return FOREIGN, None
            # Without the key nobody can check a seal, so anybody may have forged it.
            if not made.seal:
                self._layout.check(made)
                if not made.signature or "".join(made.supershingles).isascii():
                    return (SIGNED if made.signature else UNSIGNED), made
        return UNREADABLE, None

    def _as_keys(self, words: Column) -> Uint64s:
        """Return keywords as numbers, uint64 (S, M): equal numbers for equal keywords."""
        letters = np.zeros((len(words), 8), np.uint8)
        letters[:, : self._layout.letters] = matrix(words, self._layout.letters)
        return letters.view(np.uint64).reshape(-1, self._layout.slots)


def _facts(digests: Column) -> Int64s:
    """Return the facts of each digest as a number, 0 for none: int64 (D,)."""
    if not compute.any(compute.match_substring(digests, FACTS_MARK), min_count=0).as_py():
        return np.zeros(len(digests), np.int64)
    found = [facts_number(one or "") for one in digests.to_pylist()]
    return np.array(found, np.uint64).view(np.int64)


def _sketches(keys: Uint64s, signatures: Bytes, shingles: Int64s) -> Int64s:
    """Return a 64-bit hash of keys, signature and shingles of each row, int64 (S,)."""
    words = -(-signatures.shape[1] // 8)
    padded = np.zeros((len(signatures), words * 8), np.uint8)
    padded[:, : signatures.shape[1]] = signatures
    whole = np.hstack((keys, padded.view(np.uint64), shingles.astype(np.uint64)[:, None]))
    mixed = mix64(np.ascontiguousarray(whole ^ stream(7, whole.shape[1])))
    found: Int64s = np.bitwise_xor.reduce(mixed, axis=1).view(np.int64)
    return found
