"""Parquet: row groups in, columns and fingerprints out, by pyarrow."""

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from shinglefold.durable import sync_folder
from shinglefold.errors import InputError, MissingExtra, why
from shinglefold.ingest.foreign import refusal
from shinglefold.ingest.readers.records import Record, to_document
from shinglefold.ingest.signing.journal import Journal, State
from shinglefold.ingest.signing.parts import Plain, Signer, Tally
from shinglefold.ingest.signing.tasks import RowGroup

if TYPE_CHECKING:
    from types import ModuleType

#: Rows that are Python objects at a time.
_ROWS = 1_000
_Row = dict[str, Any]


def row_counts(source: str) -> list[int]:
    """Return the number of rows of each row group.

    Raises:
        MissingExtra: pyarrow is not installed.
        InputError: it is no Parquet file.
    """
    metadata = parquet_file(source).metadata
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


def sign_rows(signer: Signer, task: RowGroup, path: str, tally: Tally, *, as_parquet: bool) -> int:
    """Write the rows of a row group with their fingerprints and return the bytes written."""
    file = parquet_file(task.source)
    batches = file.iter_batches(_ROWS, row_groups=[task.number])
    number = task.first
    with open(path, "wb") as part:
        sink = _Table(part) if as_parquet else None
        for batch in batches:
            plain = list(_documents(signer, task, batch.to_pylist(), number, tally))
            made = signer.prints([one for _, one in plain], tally)
            places = {id(one): place for place, one in plain}
            if sink is None:
                for one, fingerprint in made:
                    part.writelines(signer.written(one, fingerprint, tally))
            else:
                kept = [(places[id(one)], one, fingerprint) for one, fingerprint in made]
                sink.add(signer, batch, kept, tally)
            number += batch.num_rows
        if sink is not None:
            sink.close(signer, file.schema_arrow)
    return Path(path).stat().st_size


def _documents(
    signer: Signer, task: RowGroup, rows: Sequence[_Row], first: int, tally: Tally
) -> Iterator[tuple[int, Plain]]:
    target, id_field = signer.options.target, signer.options.reading.id_field
    for place, row in enumerate(rows):
        reason = "" if row.get(target) is None else refusal(row, target)
        tally.meter.counts["fingerprints_left_out"] += row.pop(target, None) is not None
        if reason:
            tally.refused.append(
                ("read", reason, Record(None, task.source, first + place, reason, repr(row)))
            )
            continue
        try:
            document = to_document(row, id_field)
        except InputError as error:
            record = Record(None, task.source, first + place, str(error), repr(row))
            tally.refused.append(("read", str(error), record))
            continue
        given = document if signer.options.only_ids or "_id" in row else signer.as_given(document)
        yield place, Plain(given, None, task.source, first + place)


def write_ids(pieces: Sequence[bytes | memoryview], target: str, path: str) -> int:
    """Write lines of ids and fingerprints as Parquet and return the bytes."""
    rows = msgspec.json.decode(b"[" + b",".join(piece for piece in pieces if piece != b"\n") + b"]")
    with open(path, "wb") as part:
        _written(part, _ids([row["_id"] for row in rows], [row[target] for row in rows], target))
    return Path(path).stat().st_size


class _Table:
    """A part that has the columns of its source and the fingerprints."""

    def __init__(self, part: Any) -> None:  # noqa: ANN401 - a file
        self._part = part
        self._batches: list[Any] = []

    def add(
        self,
        signer: Signer,
        batch: Any,  # noqa: ANN401 - pyarrow's
        kept: Sequence[tuple[int, Plain, bytes]],
        tally: Tally,
    ) -> None:
        """Add the rows that have a fingerprint."""
        pa = _pyarrow()
        target = signer.options.target
        if signer.options.only_ids:
            kept = [one for one in kept if signer.has_id(one[1], tally)]
            ids = [one.document["_id"] for _, one, _ in kept]
            table = _ids(ids, [msgspec.json.decode(made) for _, _, made in kept], target)
        else:
            # Of no places at all the type can't be told by themselves.
            places = pa.array([place for place, _, _ in kept], pa.int64())
            table = pa.Table.from_batches([batch]).take(places)
            if target in table.column_names:
                table = table.drop_columns([target])
            prints = pa.array([msgspec.json.decode(made) for _, _, made in kept], print_type(pa))
            table = table.append_column(target, prints)
        tally.signed += len(kept)
        self._batches.append(table)

    def close(self, signer: Signer, schema: Any) -> None:  # noqa: ANN401 - pyarrow's
        """Write the part; one without rows has the columns all the same."""
        pa = _pyarrow()
        target = signer.options.target
        if not self._batches and signer.options.only_ids:
            self._batches.append(_ids([], [], target))
        elif not self._batches:
            bare = schema.empty_table()
            bare = bare.drop_columns([target]) if target in bare.column_names else bare
            self._batches.append(bare.append_column(target, pa.array([], print_type(pa))))
        _written(self._part, pa.concat_tables(self._batches))


class ParquetSink:
    """Keeps whole parts until all are there, then makes one file of them, a row group each."""

    suffix = ".parquet"

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._parts: list[Path] = []
        self._fresh: list[Path] = []

    def resume(self, state: State | None) -> None:
        """Remove the parts beyond the last note.

        Raises:
            InputError: one before is missing.
        """
        count = state["tasks"] if state else 0
        self._parts = [self._journal.folder / f"part-{number:08}{self.suffix}" for number in range(count)]
        if missing := next((part for part in self._parts if not part.exists()), None):
            raise InputError(f"{missing} is missing, which the journal has: begin anew with --restart")
        for part in set(self._journal.folder.glob(f"part-*{self.suffix}*")) - set(self._parts):
            part.unlink()

    def take(self, part: Path, size: int) -> None:
        """Keep a part."""
        self._parts.append(part)
        self._fresh.append(part)

    def sync(self) -> int:
        """Bring the parts to the disk."""
        for part in self._fresh:
            file = os.open(part, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)
        sync_folder(self._journal.folder)
        self._fresh = []
        return 0

    def finish(self) -> None:
        """Make one file of the parts and give it its name.

        Raises:
            InputError: the parts have different columns, as their sources have.
        """
        pa = _pyarrow()
        whole = self._journal.folder / "output"
        writer = None
        try:
            for part in self._parts:
                table = parquet_file(str(part)).read()
                writer = writer or _writer(whole, table.schema)
                writer.write_table(table.cast(writer.schema))
        except (pa.ArrowInvalid, ValueError, KeyError) as error:
            raise InputError(
                f"the sources have different columns: sign them into a file each, or add --only-ids ({error})"
            ) from error
        finally:
            if writer is not None:
                writer.close()
        assert writer is not None
        file = os.open(whole, os.O_RDONLY)
        os.fsync(file)
        os.close(file)
        self._journal.name(whole)

    def discard(self) -> None:
        """Remove the parts."""
        self._journal.remove()


def _pyarrow() -> "ModuleType":
    try:
        import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtra("parquet", "reading and writing Parquet") from error
    return import_module("pyarrow")


def parquet_file(source: str) -> Any:  # noqa: ANN401 - pyarrow's
    """Return a Parquet file, opened.

    Raises:
        InputError: it is none, or can't be read.
        MissingExtra: pyarrow is not installed.
    """
    pa = _pyarrow()
    try:
        return pa.parquet.ParquetFile(source)
    except pa.ArrowInvalid as error:
        raise InputError(f"cannot read {source}: it is no Parquet file, or damaged") from error
    except FileNotFoundError as error:
        raise InputError(f"cannot read {source}: no such file; check the path") from error
    except OSError as error:
        raise InputError(f"cannot read {source}: {why(error)}; check the path") from error


def _ids(ids: Sequence[str], prints: Sequence[Any], target: str) -> Any:  # noqa: ANN401 - a table
    pa = _pyarrow()
    return pa.table({"_id": pa.array(ids, pa.string()), target: pa.array(prints, print_type(pa))})


def print_type(pa: "ModuleType") -> Any:  # noqa: ANN401 - a type
    """Return the type of the column of fingerprints."""
    text = pa.string()
    parts = {"scheme": text, "lang": text, "shingles": pa.int64(), "digest": text}
    return pa.struct([*parts.items(), ("supershingles", pa.list_(text)), ("signature", text)])


def _written(part: Any, table: Any) -> None:  # noqa: ANN401 - pyarrow's
    writer = _writer(part, table.schema)
    writer.write_table(table)
    writer.close()


def _writer(place: Any, schema: Any) -> Any:  # noqa: ANN401 - pyarrow's
    return _pyarrow().parquet.ParquetWriter(place, schema, compression="zstd")
