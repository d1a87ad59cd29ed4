"""The dead-letter file: documents that were not indexed, each with the reason, to be indexed again later."""

import errno
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from shinglefold.contracts.engine import Document
from shinglefold.errors import ConfigError, InputError, OutputError
from shinglefold.ingest.readers.encodings import detect_encoding
from shinglefold.ingest.readers.jsonl import parse_line
from shinglefold.ingest.readers.record import ReadOptions, Record, as_html, to_document
from shinglefold.ingest.readers.streams import Line, lines
from shinglefold.options.validation import check_options, check_path
from shinglefold.runtime.durable_files import is_same_file

#: How many different reasons are counted, so that a file of garbage does not fill the memory.
_REASONS = 1_000
_LONGEST_REASON = 500
#: Keys that each dead letter has, optional keys, and keys that hold the document.
_PARTS = frozenset({"reason", "stage", "line", "source"})
_BESIDES, _CONTENT = frozenset({"id_field"}), frozenset({"document", "raw"})
#: The beginning of each line, and the most bytes read to recognize a line.
_BEGINNING, _MOST_READ = b'{"reason": "', 1 << 24
#: The remedy for a dead letter whose document was not JSON.
_REMEDY = '; to correct it, replace "raw" by "document": {…} with its fields'


def is_letter(value: object) -> bool:
    """Return whether a JSON value is a dead letter."""
    return isinstance(value, Mapping) and value.keys() >= _PARTS and bool(_CONTENT & value.keys())


def is_letter_line(line: bytes) -> bool:
    """Return whether a line is a dead letter."""
    try:
        return is_letter(json.loads(line))
    except (ValueError, RecursionError):
        return False


def is_truncated_letter(line: bytes) -> bool:
    """Return whether a line is the beginning of a dead letter, as a killed run may leave."""
    return line.startswith(_BEGINNING) or _BEGINNING.startswith(line.strip())


def is_bare_letter(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a dead letter without further fields."""
    return is_letter(document) and document.keys() <= _PARTS | _BESIDES | _CONTENT


class DeadLetters:
    """Appends failed documents to a file, one JSON object per line, and counts the reasons.

    Without a path the reasons are only counted. The file is created at the first failure.
    """

    def __init__(self, path: str | Path | None) -> None:
        # Rejects an empty path, which an unset shell variable gives.
        self.path = None if path is None else check_path("dead_letters", path)
        self.reasons: Counter[str] = Counter()
        #: The first document for each reason: source, line and stage.
        self.first: dict[str, tuple[str, int, str]] = {}
        #: Number of dead letters written to the file.
        self.kept = 0
        self._file: int | None = None

    def check(self) -> None:
        """Check that the file can be written, without creating it.

        Raises:
            OutputError: it can't be written.
            ConfigError: it holds something other than dead letters.
        """
        if self.path is None:
            return
        try:
            if self.path.is_file() and not _begins_with_letter(self.path):
                raise ConfigError(f"{self.path} holds something else than dead letters: name another file")
            if self.path.exists():
                self._open_file()
            elif not os.access(self.path.parent, os.W_OK | os.X_OK):
                raise FileNotFoundError(errno.ENOENT, f"no folder {self.path.parent} that can be written to")
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError.of(f"the dead-letter file {self.path}", error)

    def write(self, stage: str, reason: str, record: Record) -> None:
        """Write one failed document, or the raw text if there is no document."""
        known = reason if reason in self.reasons or len(self.reasons) < _REASONS else "(other reasons)"
        self.reasons[known[:_LONGEST_REASON]] += 1
        self.first.setdefault(known[:_LONGEST_REASON], (record.source, record.line, stage))
        if self.path is not None:
            self._append(_line(stage, reason, record))
            self.kept += 1

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Reset the counts if the block fails; dead letters already written stay in the file.

        Raises:
            OutputError: the file can't be written; the message says how many dead letters are not counted.
        """
        reasons, first, kept = self.reasons.copy(), dict(self.first), self.kept
        try:
            yield
        except BaseException as error:
            uncounted = self.kept - kept
            self.reasons, self.first, self.kept = reasons, first, kept
            if not uncounted or not isinstance(error, OutputError):
                raise
            raise type(error)(
                f"{error} (dead letters of documents that are not counted, as they are read again: "
                f"{uncounted:,})"
            ) from error

    def _append(self, line: bytes) -> None:
        # One write per line, so that two writers of one file do not mix their lines.
        data = memoryview(line)
        try:
            file = self._open_file()
            while data:
                data = data[os.write(file, data) :]
        except OSError as error:
            raise self._unwritable(error) from error

    def _open_file(self) -> int:
        assert self.path is not None
        if self._file is not None and not is_same_file(self._file, self.path):
            # Another process retried the dead letters, and replaced the file.
            self.close()
        if self._file is None:
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


def _begins_with_letter(path: Path) -> bool:
    """Return whether a file is empty or its first line is a dead letter, complete or truncated."""
    with path.open("rb") as file:
        first = next(filter(bytes.strip, iter(partial(file.readline, _MOST_READ), b"")), b"").lstrip()
    # A dead letter that a user corrected may have its keys in another order.
    return first.startswith(_BEGINNING) or _BEGINNING.startswith(first) or is_letter_line(first)


def _line(stage: str, reason: str, record: Record) -> bytes:
    letter = {"reason": reason, "stage": stage, "line": record.line, "source": record.source}
    if record.id_field:
        letter["id_field"] = record.id_field
    if record.document is None:
        return _ascii({**letter, "raw": record.raw})
    try:
        return _ascii({**letter, "document": record.document})
    except (TypeError, ValueError, RecursionError):
        # The document is not JSON, for instance has infinity: keep it as text.
        return _ascii({**letter, "raw": _as_text(record.document)})


def _ascii(letter: Mapping[str, Any]) -> bytes:
    # ASCII keeps lone surrogates and undecodable bytes as escapes.
    return json.dumps(letter, default=str, allow_nan=False).encode("ascii") + b"\n"


def _as_text(document: Document) -> str:
    try:
        return json.dumps(document, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(document)


def replay(path: str | Path, options: ReadOptions | None = None) -> Iterator[Record]:
    """Yield the documents of a dead-letter file as records with their original source and line.

    Raises:
        InputError: the file can't be opened, or was saved in UTF-16.
    """
    path = check_path("path", path)
    check_options(options, ReadOptions)
    options = replace(options or ReadOptions(), encoding="utf-8")
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path") from error
    with file:
        if (encoding := detect_encoding(file.peek(4))) != "utf-8":
            raise InputError(f"the dead-letter file {path} is in {encoding}; save it as UTF-8")
        for line in lines(file, options.max_bytes):
            if line.raw.strip() or line.reason:
                record = _read_letter(line, str(path), options)
                yield as_html(record) if options.html else record


def _read_letter(line: Line, path: str, options: ReadOptions) -> Record:
    try:
        letter = json.loads(line.raw)
        source, number = str(letter["source"]), int(letter["line"])
        document, raw = letter.get("document"), letter.get("raw", "")
        written = raw.encode("utf-8", "surrogateescape") if isinstance(raw, str) else b""
        options = replace(options, id_field=options.id_field or str(letter.get("id_field", "")))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        text = line.raw.decode("utf-8", "surrogateescape")
        return Record(None, path, line.number, line.reason or "not a line of a dead-letter file", text)
    if isinstance(document, dict):
        return _document(document, source, number, options)
    if not written:
        return Record(None, source, number, f"nothing to read again: {letter.get('reason', '')}")
    record = parse_line(Line(number, written, ""), source, options)
    if record.document is None and not written.lstrip().startswith(b"{"):
        # A row of CSV, or undecodable bytes: the original reason says more than "no JSON".
        reason = str(letter.get("reason") or record.reason).removesuffix(_REMEDY)
        return replace(record, reason=reason + _REMEDY)
    return record


def _document(document: Document, source: str, number: int, options: ReadOptions) -> Record:
    id_field = "" if "_id" in document else options.id_field
    try:
        return Record(to_document(document, id_field), source, number)
    except InputError as error:
        raw = _as_text(document)
        return Record(None, source, number, str(error), raw, id_field=id_field)


class DeadLettersLost(Exception):
    """The dead-letter file can't be written any more, so that further failures would be lost."""
