"""Signed Parquet: the buffers of Arrow taken as they are, a row group at a time."""

from contextlib import suppress
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from shinglefold.errors import InputError
from shinglefold.ingest.field_paths import split_path
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.model.values import Bytes, Fingerprint, Int64s
from shinglefold.offline.dedupe.decode import (
    DOTS,
    Row,
    SignatureLayout,
    TaskAnswer,
    check_scheme,
    decoded,
    row_of,
    sound_blocks,
)
from shinglefold.offline.dedupe.fingerprint_table import FingerprintBlock
from shinglefold.offline.sign.parquet_file import parquet_file
from shinglefold.offline.sign.tasks import RowGroup
from shinglefold.sketch.sketcher import LENGTH

_IDS = ("_id", "id")
#: Rows that are Arrow's at a time.
_ROWS = 1 << 16
_DOT = ord(".")


def holds_fingerprints(source: str, field: str) -> bool | None:
    """Tell whether a file has a column of fingerprints; None where it has no rows.

    By its type, else by its first row, which may have none: Spark's is null where a document failed.
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
            # A damaged part is looked for row by row.
            with suppress(InputError):
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
        name = row.get(wanted[0]) if wanted else None
        try:
            parts = stored_parts(row, field)
            if not parts:
                raise InputError(f"no fingerprint in its column [{field}]: sign it, too")
            made = Fingerprint.from_field(parts)
            check_scheme(made.scheme, layout, source, number)
            rows.append(row_of(made, layout, None if name is None else str(name), source, number))
        except InputError as error:
            left_out.append((source, number, str(error)))
    return sound_blocks(layout, rows, left_out)


def _whole(  # noqa: PLR0917
    layout: SignatureLayout, batch: Any, wanted: list[str], head: str, source: str, first: int  # noqa: ANN401 - Arrow's
) -> FingerprintBlock | None:  # fmt: skip
    """Return a batch by its buffers, None where anything is out of the ordinary."""
    import pyarrow as pa

    column = batch.column(head)
    if not pa.types.is_struct(column.type) or column.null_count or not wanted:
        return None
    parts = {field.name: column.field(number) for number, field in enumerate(column.type)}
    if not {"scheme", "shingles", "digest", "supershingles", "signature"} <= parts.keys():
        return None
    if any(parts[name].null_count for name in ("scheme", "shingles", "digest")):
        return None
    for found in parts["scheme"].unique().to_pylist():
        check_scheme(found, layout, source, first)
    signed = parts["signature"].is_valid().to_numpy(zero_copy_only=False)
    letters, sizes = _strings(parts["supershingles"].flatten())
    counts = parts["supershingles"].value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    signatures, lengths = _strings(parts["signature"])
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
    made = decoded(layout, shingles, *digests, signed, letters.tobytes(), signatures.tobytes())
    raw, id_sizes = _strings(ids)
    data = raw.tobytes()
    ends = np.cumsum(id_sizes).tolist()
    hashes = [xxhash.xxh3_64_intdigest(data[e - s : e]) for e, s in zip(ends, id_sizes.tolist(), strict=True)]
    lines = np.arange(first, first + batch.num_rows, dtype=np.int64)
    return FingerprintBlock(
        made.words, made.signatures, made.shingles, made.digests, made.flags,
        data, id_sizes, np.array(hashes, np.uint64), [source] * batch.num_rows, lines,
    )  # fmt: skip


def _strings(array: Any) -> tuple[Bytes, Int64s]:  # noqa: ANN401 - Arrow's
    """Return the bytes of all strings one after another, and how many each has; none where it is null."""
    import pyarrow as pa

    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    _, ends, data = array.buffers()
    bounds = np.frombuffer(ends, width)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    whole = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return whole[bounds[0] : bounds[-1]], np.diff(bounds)


def _digests(array: Any) -> tuple[NDArray[np.bool_], bytes] | None:  # noqa: ANN401 - Arrow's
    """Return who has a digest, and these one after another; None where some are sealed or of another form."""
    data, sizes = _strings(array)
    ends = np.cumsum(sizes)
    dots = np.flatnonzero(data == _DOT)
    if len(dots) != DOTS * len(sizes) or (sizes <= LENGTH).any():
        return None
    # As many in each as there are on average.
    firsts, lasts = dots[::DOTS], dots[DOTS - 1 :: DOTS]
    if not ((firsts >= ends - sizes) & (lasts < ends)).all():
        return None
    told = data[ends - LENGTH - 1] == _DOT
    if not (data[ends[~told] - 1] == _DOT).all():
        return None
    return told, data[(ends[told] - LENGTH)[:, None] + np.arange(LENGTH)].tobytes()
