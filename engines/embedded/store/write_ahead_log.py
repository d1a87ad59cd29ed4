"""Write-ahead log and memtable of one index.

A tantivy commit costs more than a decision of the gate, so decisions are logged at once and committed in
batches. A batch has a checksum, a length, and the newest version or the deletion of each changed document.
Replaying the log is idempotent, also over a commit that has part of it. A commit rotates to a new file, and
removes the earlier files when it is done.

A killed process may leave a truncated batch at the end, and a power cut one with zeros in it. No caller
relies on such a batch, because none of its writes was confirmed. Any other change of a file is damage.

The memtable holds the documents that are accepted but not yet committed. ``Memtable.freeze`` separates what a
running background commit writes from what arrives meanwhile.
"""

import json
import os
import re
import shlex
import struct
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from shinglefold.documents import values_at
from shinglefold.engines.embedded.store.document_encoder import StoredSource
from shinglefold.engines.embedded.store.record_files import read_head
from shinglefold.errors import EngineUnavailable
from shinglefold.runtime.durable_files import sync_folder

#: The name of the folder with the log, inside the folder of an index.
FOLDER = "journal"
_NAME = re.compile(r"\d{8}\.batches")
#: Magic bytes, checksum of the rest, length of the batch.
_HEADER, _LENGTH = struct.Struct("<4sII"), struct.Struct("<I")
_MAGIC = b"sfj1"
#: JSON has no zero bytes. After a power cut they fill the parts of a file that were not written yet.
_UNWRITTEN = bytes(16)
_TRIES = 5


class JournalDamage(ValueError):
    """A journal has changed since it was written."""


class Change(NamedTuple):
    """The new version of a document, None if it is deleted."""

    id: str
    source: StoredSource | None


class WriteAheadLog:
    """The log of the single writer of an index; ``size`` is in bytes.

    Before a writer starts its log, it commits the log of the writer before it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._number = max((int(file.stem) for file in journal_files(folder)), default=0)
        self._file: IO[bytes] | None = None
        #: Files to remove when the running commit is done.
        self._before: list[Path] = []
        self._begun = 0.0
        self._torn = False
        self.size = 0

    @property
    def used(self) -> bool:
        """Whether the log holds changes that may not be committed."""
        return self._file is not None or bool(self._before)

    @property
    def age(self) -> float:
        """Seconds since the first change after the last rotation; 0 if there is none."""
        return time.monotonic() - self._begun if self._file else 0.0

    def write(self, changes: Iterable[Change]) -> None:
        """Make changes durable.

        Raises:
            OSError: the file can't be written.
        """
        if self._file is None:
            self._file = self._next()
            self._begun, self.size, self._torn = time.monotonic(), 0, False
        batch = b"".join(map(_encode_change, changes))
        length = _LENGTH.pack(len(batch))
        whole = memoryview(_HEADER.pack(_MAGIC, _checksum(length, batch), len(batch)) + batch)
        if self._torn:
            # An interrupted write left part of a batch.
            self._file.seek(self.size)
            self._file.truncate()
        self._torn = True
        written = 0
        while written < len(whole):
            written += self._file.write(whole[written:])
        os.fsync(self._file.fileno())
        self._torn = False
        self.size += len(whole)

    def rotate(self) -> None:
        """Start a new file with the next change; the earlier ones are about to be committed."""
        if self._file is not None:
            self._before.append(Path(self._file.name))
            self.close()

    def truncate(self) -> None:
        """Remove the files from before the last rotation."""
        if self._before:
            remove_journal_files(self._folder.parent, self._before)
            self._before = []

    def close(self) -> None:
        """Close the file and keep it."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _next(self) -> IO[bytes]:
        if not self._folder.is_dir():
            self._folder.mkdir()
            sync_folder(self._folder.parent)
        number = self._number + 1
        # An interrupt here leaves an empty file; a missing number would count as damage.
        opened = open(self._folder / f"{number:08d}.batches", "wb", buffering=0)  # noqa: SIM115
        sync_folder(self._folder)
        self._number = number
        return opened


def journal_files(folder: Path) -> list[Path]:
    """Return the files of an index's journal, oldest first."""
    try:
        names = sorted(name for name in os.listdir(folder / FOLDER) if _NAME.fullmatch(name))
    except FileNotFoundError:
        return []
    return [folder / FOLDER / name for name in names]


def read_journal(folder: Path) -> list[Change]:
    """Return the changes in an index's journal, in order.

    Raises:
        JournalDamage: a file has changed since it was written; the message names it.
        OSError: it can't be read.
    """
    there = journal_files(folder)
    found: list[Change] = []
    for place, file in enumerate(there):
        last = place == len(there) - 1
        if not last and int(there[place + 1].stem) != int(file.stem) + 1:
            raise JournalDamage(f"the file of {FOLDER} that follows {file.name} is missing")
        batches, rest = _split(file.read_bytes())
        if rest and not (last and _is_torn(rest)):
            raise JournalDamage(f"{FOLDER}/{file.name} has changed since it was written")
        for batch in batches:
            found += _decode_changes(batch)
    return found


def journal_age(folder: Path) -> float:
    """Return the seconds since a journal file was last created or removed; 0 if there is no journal."""
    if not journal_files(folder):
        return 0.0
    with suppress(FileNotFoundError):
        return time.time() - (folder / FOLDER).stat().st_mtime
    return 0.0


def check_journal(folder: Path) -> None:
    """Check an index's journal.

    Raises:
        EngineUnavailable: it is damaged.
    """
    found = ""
    # A writer creates and removes files meanwhile.
    for _ in range(_TRIES):
        try:
            read_journal(folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            found = f"{FOLDER} can't be read ({error.strerror})"
        except JournalDamage as error:
            found = str(error)
        else:
            return
    if found:
        raise journal_damage_error(folder, found)


def journal_damage_error(folder: Path, problem: str) -> EngineUnavailable:
    """Return the error for an index with a damaged journal."""
    return EngineUnavailable(
        f"the journal of the index in {folder} is damaged: {problem}. Restore the folder from a copy; or "
        "give up what gates accepted during the last seconds of a killed writer, and index that again: "
        f"rm -r {shlex.quote(str(folder / FOLDER))}"
    )


def remove_journal_files(folder: Path, needless: Iterable[Path]) -> None:
    """Remove files of an index's journal durably, oldest first: a power cut does not bring them back.

    Raises:
        OSError: they can't be removed.
    """
    for file in needless:
        file.unlink(missing_ok=True)
    sync_folder(folder / FOLDER)


def _encode_change(change: Change) -> bytes:
    """Return a change as two lines of JSON, which contains no line breaks."""
    if change.source is None:
        return json.dumps([change.id]).encode() + b"\n\n"
    return change.source.head + b"\n" + change.source.json() + b"\n"


def _decode_changes(batch: bytes) -> Iterator[Change]:
    lines = batch.split(b"\n")
    for head, main in zip(lines[::2], lines[1::2], strict=False):
        if main:
            yield Change(read_head(head).id, StoredSource(main, head))
        else:
            (gone,) = json.loads(head)
            yield Change(gone, None)


def _split(content: bytes) -> tuple[list[bytes], bytes]:
    """Return the complete batches at the start of a file, and the rest."""
    found: list[bytes] = []
    at = 0
    while (batch := _batch(content, at)) is not None:
        found.append(batch)
        at += _HEADER.size + len(batch)
    return found, content[at:]


def _batch(content: bytes, at: int) -> bytes | None:
    """Return the complete batch at an offset of a file, None if there is none."""
    if len(content) - at < _HEADER.size:
        return None
    magic, checksum, length = _HEADER.unpack_from(content, at)
    batch = content[at + _HEADER.size : at + _HEADER.size + length]
    whole = magic == _MAGIC and len(batch) == length and _checksum(_LENGTH.pack(length), batch) == checksum
    return batch if whole else None


def _is_torn(rest: bytes) -> bool:
    """Return whether the end of a file looks like a batch whose write was cut short."""
    if len(rest) < _HEADER.size or _UNWRITTEN in rest:
        return True
    magic, checksum, length = _HEADER.unpack_from(rest)
    there = rest[_HEADER.size :]
    if magic != _MAGIC or len(there) >= length:
        return False
    # With only the length damaged, the whole batch is there.
    if _checksum(_LENGTH.pack(len(there)), there) == checksum:
        return False
    return not any(_batch(rest, found.start()) is not None for found in re.finditer(_MAGIC, rest))


def _checksum(length: bytes, batch: bytes) -> int:
    return zlib.crc32(batch, zlib.crc32(length))


#: The ids of documents that have a value or had it, by field and value.
_Ids = dict[str, dict[object, list[str]]]


@dataclass(slots=True)
class Memtable:
    """Pending writes by id; None means delete. ``watched`` are the fields whose values can be looked up."""

    watched: frozenset[str] = frozenset()
    _active: dict[str, StoredSource | None] = field(default_factory=dict)
    _frozen: dict[str, StoredSource | None] = field(default_factory=dict)
    _unlogged: dict[str, None] = field(default_factory=dict)
    _ids: _Ids = field(default_factory=dict)
    _frozen_ids: _Ids = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._active)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._active or id_ in self._frozen

    def __getitem__(self, id_: str) -> StoredSource | None:
        return self._active[id_] if id_ in self._active else self._frozen[id_]

    @property
    def unlogged(self) -> int:
        """The number of changes that are not in the log."""
        return len(self._unlogged)

    def put(self, id_: str, source: StoredSource | None, values: Mapping[str, Any]) -> None:
        """Add a pending write.

        Args:
            values: the original document; empty for a delete.
        """
        self._active[id_] = source
        self._unlogged[id_] = None
        for path in self.watched:
            known = self._ids.setdefault(path, {})
            for value in values_at(values, path):
                if isinstance(value, str | int | float):
                    known.setdefault(value, []).append(id_)

    def ids_by_value(self, path: str, values: Collection[object]) -> dict[object, list[str]]:
        """Return the ids of pending documents by their value in a watched field.

        Earlier versions of a document count too, until they are committed.
        """
        found: dict[object, dict[str, None]] = {}
        wanted = set(values)
        for ids in (self._frozen_ids, self._ids):
            # Callers look up thousands of values, and few of them are pending.
            for value in (there := ids.get(path, {})).keys() & wanted:
                found.setdefault(value, {}).update(dict.fromkeys(there[value]))
        return {value: list(several) for value, several in found.items()}

    def unlogged_changes(self) -> Iterator[Change]:
        """Yield the changes that are not in the log."""
        for id_ in self._unlogged:
            yield Change(id_, self._active[id_])

    def mark_logged(self) -> None:
        """Mark all changes as logged."""
        self._unlogged = {}

    def freeze(self) -> None:
        """Separate all pending writes for a commit that begins now."""
        # The frozen writes of an interrupted commit belong to the next one.
        self._frozen, self._active, self._unlogged = {**self._frozen, **self._active}, {}, {}
        for path, ids in self._ids.items():
            if before := self._frozen_ids.get(path):
                for value, several in ids.items():
                    before.setdefault(value, []).extend(several)
            else:
                self._frozen_ids[path] = ids
        self._ids = {}

    def discard_frozen(self) -> None:
        """Forget the frozen writes: they are committed."""
        self._frozen, self._frozen_ids = {}, {}

    def clear(self) -> None:
        """Forget everything."""
        self.freeze()
        self.discard_frozen()

    def sources(self, ids: Iterable[str]) -> dict[str, dict[str, Any] | None]:
        """Return the pending documents among these ids; None means deleted."""
        found = {id_: self[id_] for id_ in ids if id_ in self}
        return {id_: source.load() if source else None for id_, source in found.items()}
