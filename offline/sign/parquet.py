"""Signs row groups of Parquet files, and writes Parquet: columns and fingerprints, by pyarrow."""

from collections import Counter
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from shinglefold.documents import MISSING, get, split_path
from shinglefold.errors import ConfigError, InputError
from shinglefold.ingest.readers.record import Record, to_document
from shinglefold.model.stored_fingerprint import overwrite_refusal, without_fingerprint
from shinglefold.offline.sign.parquet_file import check_types, parquet_file, pyarrow_module, rows_of
from shinglefold.offline.sign.signer import ParsedLine, Signer, SignOptions, SignTally
from shinglefold.offline.sign.tasks import RowGroup, is_parquet

if TYPE_CHECKING:
    from types import ModuleType

#: How many rows are converted to Python objects at a time.
_ROWS = 1_000
_Row = dict[str, Any]


def sign_rows(signer: Signer, task: RowGroup, path: str, tally: SignTally, *, as_parquet: bool) -> int:
    """Write the rows of a row group with their fingerprints and return the bytes written."""
    file, pa = parquet_file(task.source), pyarrow_module()
    read = _read(file.schema_arrow, signer, as_parquet=as_parquet)
    batches = file.iter_batches(_ROWS, row_groups=[task.number])
    number = task.first
    with open(path, "wb") as part:
        tables: list[Any] = []
        for batch in batches:
            rows = rows_of(batch.select(read))
            plain = list(_documents(signer, task, rows, number, tally))
            made = signer.sign_documents([one for _, one in plain], tally)
            places = {id(one): place for place, one in plain}
            if as_parquet:
                kept = [(places[id(one)], one, fingerprint) for one, fingerprint in made]
                tables.append(_table(signer, pa.Table.from_batches([batch]), kept, tally))
            else:
                for one, fingerprint in made:
                    part.writelines(signer.line_of(one, fingerprint, tally))
            number += batch.num_rows
        if as_parquet:
            # A part without rows has the columns, too.
            tables = tables or [_table(signer, file.schema_arrow.empty_table(), (), tally)]
            _write_table(part, pa.concat_tables(tables))
    return Path(path).stat().st_size


def _read(schema: Any, signer: Signer, *, as_parquet: bool) -> list[int]:  # noqa: ANN401 - pyarrow's
    """Return the numbers of the columns to convert to Python rows.

    The other columns are copied as they are, because they may hold values that JSON can't. All text columns
    are converted, because warnings name those that are not signed.
    """
    pa = pyarrow_module()
    options = signer.options
    if not (as_parquet or options.only_ids):
        return list(range(len(schema)))
    used = (
        *options.fields, *options.never_differ.fields, options.language_field, options.target,
        options.reading.id_field,
    )  # fmt: skip
    heads = {"_id", "id", "format", *(name.partition(".")[0] for name in used)}
    return [
        number
        for number, field in enumerate(schema)
        if field.name in heads or pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    ]


def _documents(
    signer: Signer, task: RowGroup, rows: Sequence[_Row | str], first: int, tally: SignTally
) -> Iterator[tuple[int, ParsedLine]]:
    target, id_field = signer.options.target, signer.options.reading.id_field
    for place, row in enumerate(rows):
        if isinstance(row, str):
            tally.refused.append(("read", row, Record(None, task.source, first + place, row)))
            continue
        if get(row, target) not in (MISSING, None):
            if reason := overwrite_refusal(row, target):
                record = Record(None, task.source, first + place, reason, repr(row))
                tally.refused.append(("read", reason, record))
                continue
            tally.meter.counts["fingerprints_left_out"] += 1
        try:
            document = to_document(without_fingerprint(row, target), id_field)
        except InputError as error:
            record = Record(None, task.source, first + place, str(error), repr(row))
            tally.refused.append(("read", str(error), record))
            continue
        given = document if signer.options.only_ids or "_id" in row else signer.as_given(document)
        yield place, ParsedLine(given, None, task.source, first + place)


def write_ids(pieces: Sequence[bytes | memoryview], target: str, path: str) -> int:
    """Write lines of ids and fingerprints as Parquet, and return the bytes written."""
    rows = msgspec.json.decode(b"[" + b",".join(piece for piece in pieces if piece != b"\n") + b"]")
    with open(path, "wb") as part:
        _write_table(part, _ids([row["_id"] for row in rows], [get(row, target) for row in rows], target))
    return Path(path).stat().st_size


def join(made: Sequence[bytes], target: str, path: str) -> None:
    """Join parts that ``write_ids`` wrote to one."""
    pa = pyarrow_module()
    tables = [pa.parquet.read_table(BytesIO(one)) for one in made]
    with open(path, "wb") as part:
        _write_table(part, pa.concat_tables([_ids([], [], target), *tables]))


def check_tables(sources: Sequence[str], options: SignOptions, *, as_parquet: bool) -> None:
    """Check that the columns of Parquet sources can be signed, and written as one table.

    Raises:
        InputError: a source has two columns of one name, or can't be read.
        ConfigError: one table can't hold the columns of all sources, or their fingerprints.
    """
    pa = pyarrow_module()
    schemas = {source: parquet_file(source).schema_arrow for source in sources if is_parquet(source)}
    for source, schema in schemas.items():
        twice = next((name for name, count in Counter(schema.names).items() if count > 1), None)
        if twice is not None:
            raise InputError(f"{source}: two columns are called [{twice}]: give each a name of its own")
    if not as_parquet or options.only_ids:
        return
    head, *rest = split_path(options.target)
    for source, schema in schemas.items():
        if rest and head in schema.names:
            raise ConfigError(
                f"{source} has a column [{head}], in which [{options.target}] can't be put: write JSONL, add "
                '--only-ids, or keep fingerprints in another field (the setting "field")'
            )
    check_types(
        {source: pa.schema([one for one in schema if one.name != head]) for source, schema in schemas.items()}
    )


def _table(
    signer: Signer,
    rows: Any,  # noqa: ANN401 - a table
    kept: Sequence[tuple[int, ParsedLine, bytes]],
    tally: SignTally,
) -> Any:  # noqa: ANN401 - a table
    """Return the rows that have a fingerprint, with all columns or only the id, and the fingerprint."""
    pa = pyarrow_module()
    target = signer.options.target
    if signer.options.only_ids:
        kept = [one for one in kept if signer.has_id(one[1], tally)]
        rows = pa.table({"_id": pa.array([one.document["_id"] for _, one, _ in kept], pa.string())})
    else:
        places = np.array([place for place, _, _ in kept], np.int64)
        try:
            rows = rows.take(places)
        except pa.ArrowNotImplementedError:
            # Arrow takes no rows by number out of views of texts: cut runs of rows out, which is slower.
            runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
            rows = pa.concat_tables([rows.slice(run[0] if len(run) else 0, len(run)) for run in runs])
    tally.signed += len(kept)
    return _with(rows, [msgspec.json.decode(made) for _, _, made in kept], target)


def _ids(ids: Sequence[str], prints: Sequence[Any], target: str) -> Any:  # noqa: ANN401 - a table
    pa = pyarrow_module()
    return _with(pa.table({"_id": pa.array(ids, pa.string())}), prints, target)


def _with(table: Any, prints: Sequence[Any], target: str) -> Any:  # noqa: ANN401 - tables
    """Return a table with the column of fingerprints; a dotted path becomes nested columns."""
    pa = pyarrow_module()
    head, *rest = split_path(target)
    column = pa.array(prints, print_type(pa))
    for name in reversed(rest):
        column = pa.StructArray.from_arrays([column], [name])
    bare = table.drop_columns([head]) if head in table.column_names else table
    return bare.append_column(head, column)


def print_type(pa: "ModuleType") -> Any:  # noqa: ANN401 - a type
    """Return the type of the column of fingerprints."""
    text = pa.string()
    parts = {"scheme": text, "lang": text, "shingles": pa.int64(), "digest": text}
    return pa.struct([*parts.items(), ("supershingles", pa.list_(text)), ("signature", text)])


def _write_table(part: Any, table: Any) -> None:  # noqa: ANN401 - pyarrow's
    writer = parquet_writer(part, table.schema)
    writer.write_table(table)
    writer.close()


def parquet_writer(place: Any, schema: Any) -> Any:  # noqa: ANN401 - pyarrow's
    """Return a writer of tables with the compression of all our Parquet files."""
    return pyarrow_module().parquet.ParquetWriter(place, schema, compression="zstd")
