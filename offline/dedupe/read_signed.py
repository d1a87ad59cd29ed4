"""Reads the fingerprints of signed JSON lines and Parquet into columns, without parsing the texts."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from shinglefold.documents import split_path
from shinglefold.errors import InputError
from shinglefold.ingest.readers.read import format_of
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.ingest.readers.streams import Line
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.offline.dedupe.decode import (
    DOTS,
    OtherScheme,
    Row,
    SignatureLayout,
    TaskAnswer,
    check_scheme,
    decoded_block,
    row_of,
    sound_blocks,
    split_facts,
)
from shinglefold.offline.dedupe.fingerprint_table import FingerprintBlock
from shinglefold.offline.sign.parquet_file import parquet_file, text_buffers
from shinglefold.offline.sign.tasks import (
    ByteRange,
    LineRange,
    RowGroup,
    Task,
    is_parquet,
    read_lines,
    record_of,
    tasks,
)
from shinglefold.sketch.sketcher import LENGTH

#: The keys of a fingerprint that are read.
_PARTS = (b'"scheme"', b'"shingles"', b'"digest"', b'"supershingles"', b'"signature"')


class _Print(msgspec.Struct):
    """The parts of a stored fingerprint, with the list of keywords not decoded."""

    scheme: str
    shingles: int
    digest: str
    supershingles: msgspec.Raw = msgspec.Raw()
    signature: str = ""


class SignedReader:
    """Reads tasks of signed files.

    Args:
        field: the field of the fingerprints.
    """

    def __init__(self, layout: SignatureLayout, field: str, options: ReadOptions) -> None:
        self.layout, self.field, self.options = layout, field, options
        shape = msgspec.defstruct(
            "Signed",
            [
                ("own", str | int | None, msgspec.field(name="_id", default=None)),
                ("given", str | int | None, msgspec.field(name=options.id_field or "id", default=None)),
                ("made", _Print, msgspec.field(name=field)),
            ],
            kw_only=True,
        )
        self._decode = msgspec.json.Decoder(shape).decode
        self._field = b'"' + field.encode()
        self._ids = (b'"_id"', b'"' + (options.id_field or "id").encode() + b'"')
        # The distance between two keywords, by the length of the list in JSON: with ", " or "," between them.
        width = layout.slots * (layout.letters + 3)
        self._lists = {width + 1: layout.letters + 3, width + layout.slots: layout.letters + 4}

    def __call__(self, task: Task) -> TaskAnswer:
        """Return the fingerprints of a task."""
        try:
            if isinstance(task, RowGroup):
                return read_rows(self.layout, self.field, self.options.id_field, task)
            return self._lines(task)
        except OtherScheme as error:
            return TaskAnswer(other_scheme=error.place)
        except InputError as error:
            return TaskAnswer(problem=str(error))

    def _lines(self, task: ByteRange | LineRange) -> TaskAnswer:
        read = read_lines(task, self.options.max_bytes)
        rows: list[Row] = []
        left_out = [(record.source, record.line, record.reason) for record in read.refused]
        for line in read.lines:
            source = line.file or read.source
            try:
                row = self._plain(line, source) or self._anew(line, source, read.encoding)
            except InputError as error:
                left_out.append((source, line.number, str(error)))
                continue
            if row is not None:
                rows.append(row)
        blocks = sound_blocks(self.layout, rows, left_out)
        return TaskAnswer(blocks, read.count, left_out)

    def _plain(self, line: Line, source: str) -> Row | None:
        """Return the row of a line that is written as ``sign`` writes it; None for any other line."""
        if self._may_have_twice(line.raw):
            return None
        try:
            found: Any = self._decode(line.raw)
        except (ValueError, msgspec.MsgspecError, RecursionError):
            return None
        made: _Print = found.made
        check_scheme(made.scheme, self.layout, source, line.number)
        letters = self._letters(bytes(made.supershingles))
        digest, facts = split_facts(made.digest.rpartition(".")[2])
        simple = made.digest.count(".") == DOTS and len(digest) in (0, LENGTH) and made.digest.isascii()
        signed = len(made.signature) in (0, self.layout.encoded) and made.signature.isascii()
        if letters is None or not simple or not signed or bool(letters) != bool(made.signature):
            return None
        name = found.own if self.options.id_field == "" and found.own is not None else found.given
        if (name is None and self.options.id_field) or name == "":
            return None
        return Row(
            None if name is None else str(name), source, line.number, made.shingles, digest.encode("ascii"),
            letters, made.signature.encode("ascii"), facts,
        )  # fmt: skip

    def _may_have_twice(self, raw: bytes) -> bool:
        """Return whether a line may have two values for a key that is read; decoding keeps the last."""
        at = raw.find(self._field)
        twice = raw.find(self._field, at + 1) >= 0 or any(raw.count(key) > 1 for key in self._ids)
        return twice or any(raw.count(key, at) > 1 for key in _PARTS)

    def _letters(self, raw: bytes) -> bytes | None:
        """Return the keywords of a JSON list without separators; None for a list of another size."""
        if not raw:
            return b""
        step = self._lists.get(len(raw))
        if step is None:
            return None
        cells = np.frombuffer(raw + b" " * (self.layout.slots * step - len(raw) + 1), np.uint8)[1:]
        return cells[: self.layout.slots * step].reshape(-1, step)[:, 1 : self.layout.letters + 1].tobytes()

    def _anew(self, line: Line, source: str, encoding: str) -> Row | None:
        """Parse a line of any form that readers accept, and return its row; None for a blank line."""
        record = record_of(line, source, replace(self.options, encoding=encoding))
        if record is None:
            return None
        if record.document is None:
            raise InputError(record.reason)
        parts, name = stored_parts(record.document, self.field), record.document.get("_id")
        return row_of(self.layout, parts, name, source, line.number, f"field [{self.field}]")


def is_signed(source: str, field: str, options: ReadOptions) -> bool | None:
    """Return whether the first document of a file has a fingerprint; None for a file without documents."""
    if is_parquet(source):
        return holds_fingerprints(source, field)
    if not Path(source).is_file() or format_of(source, options) != "jsonl":
        return False
    signed: bool | None = None
    for task in tasks([source], options, {}):
        assert not isinstance(task, RowGroup)
        read = read_lines(task, options.max_bytes)
        for line in read.lines:
            record = record_of(line, source, replace(options, encoding=read.encoding))
            if record is not None and record.document is not None:
                return "scheme" in stored_parts(record.document, field)
            # A line that is not a document makes the file an unsigned one.
            signed = signed if record is None else False
    return signed


_IDS = ("_id", "id")
#: How many rows of an Arrow table are read at a time.
_ROWS = 1 << 16
_DOT = ord(".")


def holds_fingerprints(source: str, field: str) -> bool | None:
    """Return whether a file has a column of fingerprints; None if it has no rows.

    A struct type decides by its fields, because the first row may be null: Spark writes null for a
    document that failed. For other types the first row decides.
    """
    file = parquet_file(source)
    import pyarrow as pa

    head, *rest = split_path(field)
    if not file.metadata.num_rows:
        return None
    if head not in file.schema_arrow.names:
        return False
    kind = file.schema_arrow.field(head).type
    for name in (*rest, "scheme"):
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            break
        kind = kind.field(name).type
    else:
        return True
    batch = next(file.iter_batches(1, columns=[head]), None)
    rows: list[dict[str, Any]] = [] if batch is None else batch.to_pylist()
    return bool(rows) and "scheme" in stored_parts(rows[0], field)


def read_rows(layout: SignatureLayout, field: str, id_field: str, task: RowGroup) -> TaskAnswer:
    """Return the fingerprints of a row group.

    Raises:
        OtherScheme: one is of another scheme.
        InputError: the file has no such columns.
    """
    file = parquet_file(task.source)
    names = file.schema_arrow.names
    wanted = [name for name in ((id_field,) if id_field else _IDS) if name in names][:1]
    if id_field and not wanted:
        raise InputError(f"{task.source}: no column [{id_field}], which the id is to come from")
    head = field.partition(".")[0]
    if head not in names:
        raise InputError(f"{task.source}: no column [{head}] with fingerprints: sign it first")
    blocks: list[FingerprintBlock] = []
    left_out: list[tuple[str, int, str]] = []
    number = task.first
    for batch in file.iter_batches(_ROWS, row_groups=[task.number], columns=[*wanted, head]):
        block = None
        if "." not in field:
            # A batch with a damaged part, or of other types, is read row by row.
            with suppress(InputError, ValueError, NotImplementedError):
                block = _whole(layout, batch, wanted, head, task.source, number)
        if block is None:
            blocks += _row_by_row(layout, field, batch, wanted, task.source, number, left_out)
        else:
            blocks.append(block)
        number += batch.num_rows
    return TaskAnswer(blocks, 0, left_out)


def _row_by_row(  # noqa: PLR0917
    layout: SignatureLayout, field: str, batch: Any, wanted: list[str], source: str, first: int,  # noqa: ANN401 - Arrow's
    left_out: list[tuple[str, int, str]],
) -> list[FingerprintBlock]:  # fmt: skip
    rows: list[Row] = []
    for number, row in enumerate(batch.to_pylist(), first):
        given = row.get(wanted[0]) if wanted else None
        name = None if given is None else str(given)
        try:
            if isinstance(given, bytes | list | dict):
                raise InputError(f"the id in [{wanted[0]}] must be text or a whole number, not {given!r:.80}")
            rows.append(row_of(layout, stored_parts(row, field), name, source, number, f"column [{field}]"))
        except InputError as error:
            left_out.append((source, number, str(error)))
    return sound_blocks(layout, rows, left_out)


def _whole(  # noqa: PLR0917
    layout: SignatureLayout, batch: Any, wanted: list[str], head: str, source: str, first: int  # noqa: ANN401 - Arrow's
) -> FingerprintBlock | None:  # fmt: skip
    """Return a batch decoded from its Arrow buffers; None if these are not in the usual form."""
    import pyarrow as pa

    column = batch.column(head)
    if not pa.types.is_struct(column.type) or column.null_count or not wanted:
        return None
    parts = {field.name: column.field(number) for number, field in enumerate(column.type)}
    if not {"scheme", "shingles", "digest", "supershingles", "signature"} <= parts.keys():
        return None
    listed = pa.types.is_list(parts["supershingles"].type) or pa.types.is_large_list(
        parts["supershingles"].type
    )
    if not listed or any(parts[name].null_count for name in ("scheme", "shingles", "digest")):
        return None
    for found in parts["scheme"].unique().to_pylist():
        check_scheme(found, layout, source, first)
    signed = parts["signature"].is_valid().to_numpy(zero_copy_only=False)
    letters, sizes = text_buffers(parts["supershingles"].flatten())
    counts = parts["supershingles"].value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    signatures, lengths = text_buffers(parts["signature"])
    regular = (
        (sizes == layout.letters).all()
        and (counts == signed * layout.slots).all()
        and (lengths == signed * layout.encoded).all()
        and layout.size % 3 == 0
    )
    digests = _digests(parts["digest"])
    ids = batch.column(wanted[0]).cast(pa.string())
    if not regular or digests is None or ids.null_count:
        return None
    shingles = parts["shingles"].cast(pa.int64()).to_numpy(zero_copy_only=False)
    raw, id_sizes = text_buffers(ids)
    data = raw.tobytes()
    ends = np.cumsum(id_sizes).tolist()
    hashes = [xxhash.xxh3_64_intdigest(data[e - s : e]) for e, s in zip(ends, id_sizes.tolist(), strict=True)]
    lines = np.arange(first, first + batch.num_rows, dtype=np.int64)
    columns = data, id_sizes, np.array(hashes, np.uint64)
    return decoded_block(
        layout, shingles, *digests, signed, letters.tobytes(), signatures.tobytes(), columns,
        [source] * batch.num_rows, lines,
    )  # fmt: skip


def _digests(array: Any) -> tuple[NDArray[np.bool_], bytes] | None:  # noqa: ANN401 - Arrow's
    """Return which rows have a digest, and the digests; None if some are sealed or of another form."""
    data, sizes = text_buffers(array)
    ends = np.cumsum(sizes)
    dots = np.flatnonzero(data == _DOT)
    if len(dots) != DOTS * len(sizes) or (sizes <= LENGTH).any():
        return None
    # The total is right; check that each digest has its own dots.
    firsts, lasts = dots[::DOTS], dots[DOTS - 1 :: DOTS]
    if not ((firsts >= ends - sizes) & (lasts < ends)).all():
        return None
    digested = data[ends - LENGTH - 1] == _DOT
    if not (data[ends[~digested] - 1] == _DOT).all():
        return None
    return digested, data[(ends[digested] - LENGTH)[:, None] + np.arange(LENGTH)].tobytes()
