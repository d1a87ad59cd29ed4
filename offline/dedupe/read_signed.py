"""Reads signed JSONL into columns, without parsing the texts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from shinglefold.errors import InputError
from shinglefold.ingest.readers.jsonl import parse_line
from shinglefold.ingest.readers.read import format_of
from shinglefold.ingest.readers.record import ReadOptions
from shinglefold.ingest.readers.streams import Line
from shinglefold.model.stored_fingerprint import stored_parts
from shinglefold.model.values import Fingerprint
from shinglefold.offline.dedupe.decode import (
    DOTS,
    OtherScheme,
    Row,
    SignatureLayout,
    TaskAnswer,
    check_scheme,
    row_of,
    sound_blocks,
)
from shinglefold.offline.sign.tasks import ByteRange, LineRange, RowGroup, Task, is_parquet, read_lines, tasks
from shinglefold.sketch.sketcher import LENGTH


class _Print(msgspec.Struct):
    """The parts of a stored fingerprint; its keywords as they stand there."""

    scheme: str
    shingles: int
    digest: str
    supershingles: msgspec.Raw = msgspec.Raw()
    signature: str = ""


class SignedReader:
    """Reads tasks of signed files.

    Args:
        field: of the fingerprints.
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
        # Between quotes, with or without a space behind each comma: what writers of JSON make of a list.
        width = layout.slots * (layout.letters + 3)
        self._lists = {width + 1: layout.letters + 3, width + layout.slots: layout.letters + 4}

    def __call__(self, task: Task) -> TaskAnswer:
        """Return what a task holds."""
        try:
            if isinstance(task, RowGroup):
                from shinglefold.offline.dedupe.read_signed_parquet import read_rows

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
        """Return a document as ``sign`` writes it; None where anything is out of the ordinary."""
        try:
            found: Any = self._decode(line.raw)
        except (ValueError, msgspec.MsgspecError, RecursionError):
            return None
        made: _Print = found.made
        check_scheme(made.scheme, self.layout, source, line.number)
        letters = self._letters(bytes(made.supershingles))
        _, _, digest = made.digest.rpartition(".")
        simple = made.digest.count(".") == DOTS and len(digest) in (0, LENGTH) and made.digest.isascii()
        signed = len(made.signature) in (0, self.layout.encoded) and made.signature.isascii()
        if letters is None or not simple or not signed or bool(letters) != bool(made.signature):
            return None
        name = found.own if self.options.id_field == "" and found.own is not None else found.given
        if (name is None and self.options.id_field) or name == "":
            return None
        return Row(
            None if name is None else str(name), source, line.number, made.shingles, digest.encode("ascii"),
            letters, made.signature.encode("ascii"),
        )  # fmt: skip

    def _letters(self, raw: bytes) -> bytes | None:
        """Return the letters of a list of keywords, one after another."""
        if not raw:
            return b""
        step = self._lists.get(len(raw))
        if step is None:
            return None
        cells = np.frombuffer(raw + b" " * (self.layout.slots * step - len(raw) + 1), np.uint8)[1:]
        return cells[: self.layout.slots * step].reshape(-1, step)[:, 1 : self.layout.letters + 1].tobytes()

    def _anew(self, line: Line, source: str, encoding: str) -> Row | None:
        """Return a document of any form that readers know; None for a blank line."""
        if not line.raw.strip() and not line.reason:
            return None
        record = parse_line(line, source, replace(self.options, encoding=encoding))
        if record.document is None:
            raise InputError(record.reason)
        parts = stored_parts(record.document, self.field)
        if not parts:
            raise InputError(f"no fingerprint in its field [{self.field}]: sign it, too")
        made = Fingerprint.from_field(parts)
        check_scheme(made.scheme, self.layout, source, line.number)
        return row_of(made, self.layout, record.document.get("_id"), source, line.number)


def is_signed(source: str, field: str, options: ReadOptions) -> bool | None:
    """Tell whether the first document of a file has a fingerprint; None where there is no document."""
    if is_parquet(source):
        from shinglefold.offline.dedupe.read_signed_parquet import holds_fingerprints

        return holds_fingerprints(source, field)
    if not Path(source).is_file() or format_of(source, options) != "jsonl":
        return False
    told: bool | None = None
    for task in tasks([source], options, {}):
        assert not isinstance(task, RowGroup)
        read = read_lines(task, options.max_bytes)
        for line in read.lines:
            record = parse_line(line, source, replace(options, encoding=read.encoding))
            if record.document is not None:
                return "scheme" in stored_parts(record.document, field)
            # It has something, if no document.
            told = False if line.raw.strip() or line.reason else told
    return told
