"""The dead-letter file: every document that was not indexed, and why, to be read again once mended."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shinglefold.contracts import Document
from shinglefold.errors import InputError
from shinglefold.ingest.jsonl import parse_line
from shinglefold.ingest.lines import Line, lines
from shinglefold.ingest.records import ReadOptions, Record

#: Different reasons a summary tells; a file of garbage must not fill the memory with them.
_REASONS = 1_000
_LONGEST_REASON = 500


class DeadLetters:
    """Append failed documents to a file, one JSON object a line, and count the reasons.

    Without a path the reasons are only counted. The file is made at the first failure.
    """

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path)
        self.reasons: Counter[str] = Counter()
        self.count = 0
        self._file: int | None = None

    def write(self, stage: str, reason: str, record: Record) -> None:
        """Keep one document (or what stood in its place).

        Raises:
            InputError: the file can't be written.
        """
        self.count += 1
        known = reason if reason in self.reasons or len(self.reasons) < _REASONS else "(other reasons)"
        self.reasons[known[:_LONGEST_REASON]] += 1
        if self.path is not None:
            self._append(_letter(stage, reason, record))

    def _append(self, letter: Mapping[str, Any]) -> None:
        # All ASCII: lone surrogates and undecodable bytes survive as escapes. One write a line: two writers
        # of one file do not mix their lines.
        data = memoryview(json.dumps(letter, default=str).encode("ascii") + b"\n")
        try:
            file = self._opened()
            while data:
                data = data[os.write(file, data) :]
        except OSError as error:
            raise InputError(f"cannot write the dead-letter file {self.path}: {error.strerror}") from error

    def _opened(self) -> int:
        if self._file is None:
            assert self.path is not None
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            size = os.lseek(self._file, 0, os.SEEK_END)
            os.lseek(self._file, max(0, size - 1), os.SEEK_SET)
            # After a crash the last line may be half written: start a new one.
            if os.read(self._file, 1) not in (b"", b"\n"):
                os.write(self._file, b"\n")
        return self._file

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _letter(stage: str, reason: str, record: Record) -> dict[str, Any]:
    letter = {"reason": reason, "stage": stage, "line": record.line, "source": record.source}
    return letter | ({"raw": record.raw} if record.document is None else {"document": record.document})


def replay(path: str | Path, options: ReadOptions | None = None) -> Iterator[Record]:
    """Yield the documents of a dead-letter file again, with the source and line they first came from.

    Raises:
        InputError: the file can't be opened.
    """
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error
    with file:
        for line in lines(file, (options or ReadOptions()).max_bytes):
            yield _replayed(line, str(path), options or ReadOptions())


def _replayed(line: Line, path: str, options: ReadOptions) -> Record:
    try:
        letter = json.loads(line.raw)
        source, number = str(letter["source"]), int(letter["line"])
        document: Document | None = letter.get("document")
        raw = letter.get("raw", "")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        text = line.raw.decode("utf-8", "surrogateescape")
        return Record(None, path, line.number, line.reason or "not a line of a dead-letter file", text)
    if isinstance(document, dict):
        return Record(document, source, number)
    if not isinstance(raw, str) or not raw:
        return Record(None, source, number, f"nothing to read again: {letter.get('reason', '')}")
    return parse_line(Line(number, raw.encode("utf-8", "surrogateescape"), ""), source, options)
