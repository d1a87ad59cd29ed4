"""Signs documents on Spark, with fingerprints that equal those of ``shinglefold sign`` byte for byte."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import msgspec
import numpy as np
import pyarrow as pa

from shinglefold.errors import ConfigError
from shinglefold.ingest.fingerprinter import UnstoredFingerprint
from shinglefold.model.scheme import Scheme
from shinglefold.offline.sign.parquet import print_type
from shinglefold.offline.sign.signer import ParsedLine, Signer, SignOptions, SignTally
from shinglefold.offline.spark.session import Batch, Frame, columns_of, sql
from shinglefold.sketch.minhash import to_keywords

#: The names of the added columns, and the types of the fingerprint and of ``beside``.
BESIDE, PROBLEM = "beside", "sign_problem"
PRINT = (
    "struct<scheme: string, lang: string, shingles: bigint, digest: string, supershingles: array<string>, "
    "signature: string>"
)
_BESIDE = "struct<supershingles: binary, written: binary, canonical: binary>"
#: How many rows are converted to Python objects at a time.
_ROWS = 1_000


def sign(documents: Frame, scheme: Scheme, options: SignOptions, *, beside: bool = False) -> Frame:
    """Add a column with the fingerprint of each document, in the form of ``sign``'s Parquet files.

    The column ``sign_problem`` says why a document has no fingerprint; otherwise it is null.

    Args:
        options: which columns hold text; ``reading`` and ``only_ids`` have no effect.
        beside: add the column ``beside``, so that ``groups`` finds what ``shinglefold groups`` finds in the
            texts. It has all supershingles, not only those that an index stores. If texts decide, it also
            has their words as numbers: some 8 bytes a word.

    Raises:
        ConfigError: no column holds text, or a column of another type has the name of an added one.
    """
    heads = [name.partition(".")[0] for name in options.fields]
    present = [name for name in dict.fromkeys(heads) if name in documents.columns]
    if not present:
        columns_of(documents, heads)
    bare = _bare(documents, options.target)
    types = {options.target: PRINT, **({BESIDE: _BESIDE} if beside else {}), PROBLEM: "string"}
    struct = sql().types.StructType
    added = struct.fromDDL(", ".join(f"`{name}` {kind}" for name, kind in types.items()))
    schema = struct([*bare.schema.fields, *added.fields])
    # Spark reads a dot in a column's name as the path of a nested field.
    numbered = bare.toDF(*map(str, range(len(bare.columns))))
    return numbered.mapInArrow(_Sign(scheme, options, beside, tuple(bare.columns)), schema)


def _bare(documents: Frame, target: str) -> Frame:
    """Return documents without the columns that an earlier run added."""
    added = {
        # Spark orders the fields of an object by name if it read them from JSON.
        target: ("struct<scheme:", "struct<digest:", "void"),
        BESIDE: ("struct<supershingles:", "void"),
        PROBLEM: ("string", "void"),
    }
    for field in documents.schema.fields:
        kinds = added.get(field.name, "")
        if kinds and not field.dataType.simpleString().startswith(kinds):
            raise ConfigError(
                f"the column {field.name} would be lost, as sign adds one of that name: rename it before"
            )
    return documents.drop(*(name for name in added if name in documents.columns))


@lru_cache(maxsize=2)  # cached, because a process works on many partitions, which share its lexicon
def _signer(scheme: Scheme, options: SignOptions) -> Signer:
    return Signer(scheme, options)


@dataclass(frozen=True, slots=True)
class _Sign:
    scheme: Scheme
    options: SignOptions
    beside: bool
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        signer = _signer(self.scheme, self.options)
        for numbered in batches:
            whole = numbered.rename_columns(self.columns)
            for begin in range(0, whole.num_rows, _ROWS):
                yield self._sign_batch(signer, whole.slice(begin, _ROWS))

    def _sign_batch(self, signer: Signer, batch: Batch) -> Batch:
        names = [
            name.partition(".")[0]
            for name in (
                *self.options.fields, *self.options.never_differ.fields, self.options.language_field, "format"
            )
        ]  # fmt: skip
        read = batch.select([name for name in dict.fromkeys(names) if name in batch.schema.names])
        documents = read.to_pylist() or [{} for _ in range(batch.num_rows)]
        tally = SignTally()
        plain = [ParsedLine(_without_nulls(one), None, "", place) for place, one in enumerate(documents)]
        kept, texts, languages = signer.texts(plain, tally)
        facts = signer.facts(texts, kept)
        made: dict[int, object] = {}
        others: dict[int, UnstoredFingerprint] = {}
        if self.beside:
            found = signer.tools.fingerprinter.fingerprint_unstored(texts, languages, facts)
            others = {one.line: two for one, two in zip(kept, found, strict=True)}
            made = dict(zip(others, _fields(self.scheme, found), strict=True))
        else:
            for one, print_ in zip(kept, signer.fingerprint_json(texts, languages, facts), strict=True):
                made[one.line] = msgspec.json.decode(print_)
        problems = {record.line: why for _, why, record in tally.refused}
        rows = range(batch.num_rows)
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns[self.options.target] = pa.array([made.get(row) for row in rows], print_type(pa))
        if self.beside:
            columns[BESIDE] = _unstored_column([others.get(row) for row in rows])
        columns[PROBLEM] = pa.array([problems.get(row) for row in rows], pa.string())
        return pa.RecordBatch.from_pydict(columns)


def _without_nulls(document: dict[str, object]) -> dict[str, object]:
    """Return the fields that a document has; in Parquet the columns that it lacks are null."""
    return {name: value for name, value in document.items() if value is not None}


def _fields(scheme: Scheme, found: Sequence[UnstoredFingerprint]) -> list[dict[str, object]]:
    """Return fingerprints as they are stored, with their keywords."""
    sketch = scheme.sketch
    every = np.frombuffer(b"".join(one.supershingles for one in found), np.uint64)
    stored = every.reshape(len(found), -1)[:, : sketch.groups] if found else np.zeros((0, 1), np.uint64)
    valid = np.array([bool(one.fingerprint.signature) for one in found], np.bool_)
    words = to_keywords(np.ascontiguousarray(stored), valid)
    return [
        replace(one.fingerprint, supershingles=own).to_field() for one, own in zip(found, words, strict=True)
    ]


def _unstored_column(found: Sequence[UnstoredFingerprint | None]) -> pa.StructArray:
    kinds = dict.fromkeys(("supershingles", "written", "canonical"), pa.binary())
    rows = [None if one is None else {name: getattr(one, name) for name in kinds} for one in found]
    return pa.array(rows, pa.struct(list(kinds.items())))
