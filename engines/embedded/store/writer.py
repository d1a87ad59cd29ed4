"""The single writer of an index.

An action is validated, added to the memtable and queued. A flush analyses the queue and gives it to tantivy.
A commit makes everything durable, in the background while a gate decides. The write-ahead log makes a gate's
decisions durable before they are committed.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import tantivy

from shinglefold.contracts.exclusive_writes import PreparedDocument
from shinglefold.documents import merge_update
from shinglefold.engines.embedded.schema.catalog import Catalog, NoColumnLeft
from shinglefold.engines.embedded.schema.requests import Action, RefusedAction
from shinglefold.engines.embedded.schema.tantivy_schema import (
    ADDRESS,
    TANTIVY,
    Analysis,
    CommitLimits,
    translate_errors,
)
from shinglefold.engines.embedded.store.checksums import read_meta
from shinglefold.engines.embedded.store.document_encoder import ParsedDocument, analyse, prepare
from shinglefold.engines.embedded.store.record_files import FOLDER, RecordAppender
from shinglefold.engines.embedded.store.write_ahead_log import (
    JournalDamage,
    Memtable,
    WriteAheadLog,
    journal_damage_error,
    journal_files,
    read_journal,
    remove_journal_files,
)
from shinglefold.errors import EngineError

#: One indexing thread keeps the order of documents. Most of the time goes into the canonicalizer anyway.
_THREADS = 1
#: The number of changes and of characters at which the queue is flushed.
_QUEUED, _CHARACTERS = 256, 1 << 18
#: The age in seconds, bytes and documents at which the journal is committed.
_AGE, _JOURNAL, _DOCUMENTS = 1.0, 8_000_000, 2_000


class _PendingChange(NamedTuple):
    """A document to write, or None to delete it; ``replaces`` if there may be an earlier version."""

    id: str
    parsed: ParsedDocument | None
    replaces: bool


class CommittedState(NamedTuple):
    """Access to committed documents: ``source`` returns one or None, ``contains`` is faster.

    ``heads_end`` is the address after the last head, if this process wrote it; see ``RecordAppender``.
    """

    source: Callable[[str], dict[str, Any] | None]
    contains: Callable[[str], bool]
    heads_end: int = 0


@dataclass(slots=True)
class IndexWriter:
    """Writes to an index, and holds its write lock until closed."""

    folder: Path
    analysis: Analysis
    limits: CommitLimits
    catalog: Catalog
    committed: CommittedState
    journal: WriteAheadLog
    _tantivy: tantivy.IndexWriter
    _heads: RecordAppender
    #: Uncommitted writes, and those that tantivy does not have yet, in order.
    memtable: Memtable = field(default_factory=Memtable)
    _queue: deque[_PendingChange] = field(default_factory=deque)
    _characters: int = 0
    #: Actions since the last commit, and actions of a running commit.
    _actions: int = 0
    _committing_actions: int = 0
    _size: int = 0
    #: Whether the catalog differs from the saved one; the catalog that a running commit saves.
    _grown: bool = False
    _frozen_catalog: Catalog | None = None
    _begun: int = 0
    #: After a failed commit: whether tantivy may have committed it, and whether ``_repair`` must run.
    _uncertain: bool = False
    _broken: bool = False
    #: A running background commit.
    _background: Future[None] | None = None

    @classmethod
    def open(
        cls,
        folder: Path,
        index: tantivy.Index,
        analysis: Analysis,
        limits: CommitLimits,
        committed: CommittedState,
    ) -> "IndexWriter":
        """Take the index's write lock, then read the catalog, which another process may have changed.

        Raises:
            EngineUnavailable: another process holds the lock.
        """
        with translate_errors(f"writing to {folder.name}"):
            lock = index.writer(limits.memory, _THREADS)
            names = [field["name"] for field in read_meta(folder / TANTIVY)["schema"]]
            catalog = Catalog.load(folder).with_columns_of(names)
            heads = RecordAppender(folder / FOLDER, committed.heads_end)
        return cls(folder, analysis, limits, catalog, committed, WriteAheadLog(folder), lock, heads)

    @property
    def dirty(self) -> bool:
        """Whether there is anything to commit."""
        return self._actions + self._committing_actions > 0 or self._grown

    @property
    def full(self) -> bool:
        """Whether a limit is reached at which a bulk commits."""
        return self._actions >= self.limits.actions or self._size >= self.limits.size

    @property
    def due(self) -> bool:
        """Whether the journal should be committed."""
        journal = self.journal
        return journal.age > _AGE or journal.size > _JOURNAL or len(self.memtable) > _DOCUMENTS

    @property
    def committing(self) -> bool:
        """Whether a background commit is running."""
        return self._background is not None

    @property
    def heads_end(self) -> int:
        """The address after the last head; see ``RecordAppender``."""
        return self._heads.end

    @property
    def started_file(self) -> bool:
        """Whether a new record file was started since the last call."""
        begun, self._begun = self._begun, self._heads.begun
        return begun < self._begun

    def source(self, id_: str) -> dict[str, Any] | None:
        """Return the current version of a document, committed or not."""
        if id_ in self.memtable:
            written = self.memtable[id_]
            return written.load() if written else None
        return self.committed.source(id_)

    def run(self, action: Action) -> bool:
        """Run one action and return whether it replaced a document.

        Raises:
            RefusedAction: the action is not possible; nothing was changed.
            NoColumnLeft: the index needs more columns first; nothing was changed.
        """
        if action.verb == "delete":
            if self.source(action.id) is None:
                raise RefusedAction(404, f"[{action.id}]: document missing")
            self._enqueue(action.id, None, {}, replaces=True)
        elif action.verb == "update":
            if (old := self.source(action.id)) is None and action.upsert is None:
                raise RefusedAction(404, f"[{action.id}]: document missing")
            source = action.upsert or {} if old is None else merge_update(old, action.source)
            self._validate(action.id, source, replaces=old is not None)
        else:
            there = (
                self.memtable[action.id] is not None
                if action.id in self.memtable
                else self.committed.contains(action.id)
            )
            if action.verb == "create" and there:
                raise RefusedAction(409, f"[{action.id}]: version conflict, document already exists")
            self._validate(action.id, action.source, action.prepared, replaces=there)
            return there
        return False

    def rewrite(self, id_: str, source: Mapping[str, Any]) -> None:
        """Write a committed document again, unchanged."""
        self._validate(id_, source, replaces=True)

    def delete(self, query: tantivy.Query) -> None:
        """Delete the committed documents that match a query."""
        self._flush()
        self._repair()
        with translate_errors(f"writing to {self.folder.name}"):
            self._tantivy.delete_documents_by_query(query)
        self._actions += 1

    def adopt(self, catalog: Catalog) -> None:
        """Use a catalog with more fields; the next commit saves it."""
        self.catalog = catalog
        self._grown = True

    def recover(self) -> bool:
        """Commit the journal of a killed writer and return whether there was one.

        Raises:
            EngineUnavailable: the journal is damaged.
        """
        if not (journal := journal_files(self.folder)):
            return False
        try:
            changes = read_journal(self.folder)
        except JournalDamage as error:
            raise journal_damage_error(self.folder, str(error)) from error
        except OSError as error:
            raise journal_damage_error(self.folder, f"it can't be read ({error.strerror})") from error
        try:
            for change in changes:
                if change.source is None:
                    self._enqueue(change.id, None, {}, replaces=True)
                else:
                    self._validate(change.id, change.source.load(), replaces=True)
        except (RefusedAction, NoColumnLeft) as error:
            # The killed writer accepted the document with the same mappings.
            raise journal_damage_error(self.folder, f"a document in it does not fit ({error})") from error
        if self.dirty:
            self.commit()
        with self._translate_write_errors():
            remove_journal_files(self.folder, journal)
        return True

    def log_changes(self) -> None:
        """Log all pending changes durably in the journal."""
        if self.memtable.unlogged:
            with self._translate_write_errors():
                self.journal.write(self.memtable.unlogged_changes())
            self.memtable.mark_logged()
        if not self.committing:
            self._flush()

    def commit(self) -> None:
        """Commit all writes durably."""
        self._freeze()
        with self._translate_write_errors():
            self._commit_frozen(self._frozen_catalog, self._heads)
            self._forget_frozen()

    def commit_in_background(self) -> None:
        """Start to commit all writes in a thread; see ``finish``."""
        self._freeze()
        thread = ThreadPoolExecutor(1, thread_name_prefix="shinglefold-commit")
        self._background = thread.submit(self._commit_frozen, self._frozen_catalog, self._heads)
        thread.shutdown(wait=False)

    def finish(self, *, wait: bool) -> bool:
        """Finish a background commit and return whether there was one; searches can see its documents then.

        Args:
            wait: wait for a running commit; otherwise only an ended one is finished.
        """
        if self._background is None or not (wait or self._background.done()):
            return False
        commit = self._background
        commit.exception()
        self._background = None
        with self._translate_write_errors():
            commit.result()
            self._forget_frozen()
        return True

    def abandon(self) -> None:
        """Discard everything that is not in the journal, and release the lock."""
        if self._background is not None:
            self._background.exception()
        with suppress(EngineError):
            self.close()

    def close(self) -> None:
        """Wait for merges and release the lock; writes that are neither committed nor logged are lost."""
        self.journal.close()
        self._heads.close()
        with translate_errors(f"closing {self.folder.name}", self.folder):
            self._tantivy.wait_merging_threads()

    def _freeze(self) -> None:
        """Give all writes to tantivy, and separate them from those that arrive during the commit."""
        if self.journal.used:
            # Otherwise a recovery after the commit would replace newer versions by older ones.
            self.log_changes()
        self._flush()
        self.journal.rotate()
        self.memtable.freeze()
        self._committing_actions, self._actions, self._size = self._committing_actions + self._actions, 0, 0
        self._frozen_catalog = self.catalog if self._grown else None

    def _commit_frozen(self, catalog: Catalog | None, heads: RecordAppender) -> None:
        """Commit what tantivy has. Save the catalog first, because unused fields in it do no harm."""
        if catalog is not None:
            catalog.save(self.folder)
        heads.flush()
        self._tantivy.commit()

    def _forget_frozen(self) -> None:
        """Forget the writes that are committed now."""
        self.journal.truncate()
        self.memtable.discard_frozen()
        self._uncertain, self._committing_actions = False, 0
        if self._frozen_catalog is self.catalog:
            self._grown = False

    def _validate(
        self, id_: str, source: Mapping[str, Any], prepared: PreparedDocument | None = None, *, replaces: bool
    ) -> None:
        try:
            parsed = prepare(self.catalog, id_, source, prepared)
        except NoColumnLeft as error:
            if not error.too_many:
                raise
            raise RefusedAction(400, f"illegal_argument_exception: {error}") from error
        except ValueError as error:
            raise RefusedAction(400, f"mapper_parsing_exception: {error}") from error
        self._grown = self._grown or parsed.catalog is not self.catalog
        self.catalog = parsed.catalog
        self._enqueue(id_, parsed, source, replaces=replaces)

    def _enqueue(
        self, id_: str, parsed: ParsedDocument | None, source: Mapping[str, Any], *, replaces: bool
    ) -> None:
        """Add a valid change to the memtable and the queue."""
        # A new id needs no delete, for which tantivy would search every segment.
        self._queue.append(_PendingChange(id_, parsed, replaces or self._uncertain))
        self.memtable.put(id_, parsed.source if parsed else None, source)
        self._actions += 1
        if parsed:
            self._size += parsed.source.size
            self._characters += parsed.characters
        if (len(self._queue) >= _QUEUED or self._characters >= _CHARACTERS) and not self.committing:
            self._flush()

    def _flush(self) -> None:
        """Analyse the queue and give it to tantivy."""
        # Most of the time is spent here. After an interrupt the queue contains what tantivy does not have.
        analyse([change.parsed for change in self._queue if change.parsed], self.analysis)
        with self._translate_write_errors():
            self._repair()
            try:
                while self._queue:
                    self._index_one(self._queue[0])
                    # Frees the document, which may be long; tantivy has a copy.
                    self._queue.popleft()
            except (KeyboardInterrupt, SystemExit):
                if self._queue:
                    # tantivy may have this one already.
                    self._queue[0] = self._queue[0]._replace(replaces=True)
                raise
        self._characters = 0

    def _index_one(self, change: _PendingChange) -> None:
        if change.replaces:
            self._tantivy.delete_documents_by_term("_id", change.id)
        if change.parsed:
            self._add_source(change.parsed)
            self._tantivy.add_document(change.parsed.document)

    def _add_source(self, parsed: ParsedDocument) -> None:
        source = parsed.source
        address = self._heads.add(source.head, source.main if source.is_external else None)
        parsed.document.add_unsigned(ADDRESS, address)
        source.add_to(parsed.document)

    @contextmanager
    def _translate_write_errors(self) -> Iterator[None]:
        """Translate errors of the block and add the number of changes that are lost."""
        lost = self._actions + self._committing_actions > 0
        try:
            with translate_errors(f"writing to {self.folder.name}", self.folder, lost=lost):
                yield
        except EngineError as error:
            error.lost = (
                self.memtable.unlogged if self.journal.used else self._actions + self._committing_actions
            )
            self._actions = self._size = self._committing_actions = self._characters = 0
            self._queue.clear()
            self.memtable.clear()
            self._uncertain = self._broken = self._grown = True
            raise

    def _repair(self) -> None:
        """Roll tantivy back to the last commit after a failed one, because heads may be missing."""
        if not self._broken:
            return
        with translate_errors(f"writing to {self.folder.name}", self.folder):
            self._tantivy.rollback()
            self._heads.close()
            self._heads = RecordAppender(self.folder / FOLDER)
        self._broken = False
