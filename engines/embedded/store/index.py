"""An open index: its folder, its catalog, the snapshot that searches see, and its writer if there is one."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import tantivy

from shinglefold.engines.embedded.schema.catalog import Catalog, NoColumnLeft
from shinglefold.engines.embedded.schema.requests import Action
from shinglefold.engines.embedded.schema.tantivy_schema import (
    TANTIVY,
    Analysis,
    CommitLimits,
    check_analysis,
    make_schema,
    search_top,
    translate_errors,
)
from shinglefold.engines.embedded.store.checksums import (
    TRIES,
    live_counts,
    read_meta,
    relocate,
    schema_checksum,
    sparse_files,
)
from shinglefold.engines.embedded.store.index_folders import (
    check_free,
    finish_rebuild,
    new_folder,
    rebuild_columns,
)
from shinglefold.engines.embedded.store.record_files import FOLDER, record_files, scan_file
from shinglefold.engines.embedded.store.snapshots import Reader, Snapshot, stamp
from shinglefold.engines.embedded.store.write_ahead_log import journal_age, journal_files
from shinglefold.engines.embedded.store.writer import CommittedState, IndexWriter
from shinglefold.errors import EngineError, EngineUnavailable, IndexReadOnly, UnsupportedQuery
from shinglefold.runtime.durable_files import sync_folder

#: The seconds between checks for a journal, and the age from which its writer counts as dead. A living one
#: commits sooner.
_CHECK_EVERY = 5.0


class Index:
    """An open index. ``EmbeddedEngine`` lets only one thread at a time use it.

    Methods that write raise ``EngineUnavailable`` if another process writes, or the files can't be written.

    =========  =====================  ============================================================
    state      ``_writer``            meaning
    =========  =====================  ============================================================
    reading    None                   any process may write; ``snapshot`` follows its commits
    writing    set by ``run``         only this process may write, until ``release`` or ``close``
    exclusive  set by ``acquire``     the same, until ``release``; see ``ExclusiveAccess``
    =========  =====================  ============================================================
    """

    def __init__(self, folder: Path, analysis: Analysis, limits: CommitLimits) -> None:
        self.folder = folder
        self._analysis = analysis
        self._limits = limits
        self._writer: IndexWriter | None = None
        #: How many leases are held, during which the lock is kept, and whether it is kept after them.
        self.leases, self.kept = 0, False
        #: The address after the last head that this process wrote; saves reading the file.
        self._heads_end = 0
        #: Whether the snapshot is older than a commit of this process, or than the reader after a rebuild.
        self._snapshot_is_stale = False
        self._reader = self._open()
        self._snapshot = self._make_snapshot()
        self._checked_at = time.monotonic()
        self._recover()

    @classmethod
    def create(cls, folder: Path, catalog: Catalog) -> None:
        """Create an index. A crash leaves nothing, or a hidden folder; see ``index_folders``.

        Raises:
            EngineUnavailable: the folder can't be written, or another process is creating the index.
        """
        check_free(folder)
        with (
            translate_errors(f"creating {folder.name}", _nearest_existing(folder), lost=False),
            new_folder(folder) as part,
        ):
            (part / TANTIVY).mkdir()
            tantivy.Index(make_schema(catalog), path=str(part / TANTIVY))
            replace(catalog, schema=schema_checksum(read_meta(part / TANTIVY))).save(part)
            part.rename(folder)
            sync_folder(folder.parent)

    def _open(self) -> Reader:
        """Load the catalog and open the files; again if another process changes them meanwhile."""
        tried = 0
        while True:
            tried += 1
            finish_rebuild(self.folder)
            self._stamp = stamp(self.folder)
            try:
                self._catalog = Catalog.load(self.folder)
                check_analysis(self.folder.name, self._catalog.analysis, self._analysis)
                return Reader(self.folder, self._catalog)
            except EngineUnavailable:
                if tried == TRIES or stamp(self.folder) == self._stamp:
                    raise

    def _reopen(self) -> None:
        """Open the index after a rebuild, which gave it other columns."""
        before, self._reader = self._reader, self._open()
        self._snapshot_is_stale = True
        before.close()

    @property
    def catalog(self) -> Catalog:
        """The newest catalog, with the fields of uncommitted documents."""
        return self._writer.catalog if self._writer else self.snapshot.catalog

    @property
    def snapshot(self) -> Snapshot:
        """The documents that searches see: of another process's last commit, or of our last refresh.

        Cost: ``stat`` of three files.
        """
        if self._writer is None:
            if time.monotonic() - self._checked_at > _CHECK_EVERY:
                self._checked_at = time.monotonic()
                if journal_age(self.folder) > _CHECK_EVERY:
                    self._recover()
            if self._snapshot_is_stale or self._reader.stamp() != self._stamp:
                self._refresh_snapshot()
        return self._snapshot

    @property
    def replaced(self) -> bool:
        """Whether another process rebuilt the index, or the name now belongs to another one."""
        return self._writer is None and self._reader.stamp()[0] != self._stamp[0]

    @property
    def is_writing(self) -> bool:
        """Whether this process holds the write lock."""
        return self._writer is not None

    @property
    def is_dirty(self) -> bool:
        """Whether there are uncommitted writes."""
        return self._writer is not None and self._writer.dirty

    def acquire(self) -> None:
        """Take the write lock."""
        self._open_writer()

    def release(self) -> None:
        """Commit all writes and release the write lock."""
        self._finish_commit(wait=True)
        writer, self._writer = self._writer, None
        if writer:
            self._close_writer(writer)
            self._heads_end = writer.heads_end
            self._refresh_snapshot()

    def watch(self, fields: Collection[str]) -> None:
        """Take the write lock, and let ``pending_by_value`` look up values of these fields."""
        writer = self._open_writer()
        if not writer.memtable.watched.issuperset(fields):
            self.refresh()
            writer.memtable.watched |= frozenset(fields)

    def pending_by_value(self, field: str, values: Collection[object]) -> dict[object, list[str]]:
        """Return the ids of pending documents by their value in a watched field."""
        return self._writer.memtable.ids_by_value(field, values) if self._writer else {}

    def log_changes(self) -> None:
        """Log all writes durably. A later call commits them, about a second after the first of them."""
        if (writer := self._writer) is None:
            return
        with self._release_on_error():
            writer.log_changes()
            self._finish_commit(wait=False)
            if writer.due and not writer.committing:
                writer.commit_in_background()

    def run(self, action: Action) -> bool:
        """Run one bulk action, commit when a limit is reached, and return whether it replaced a document.

        Raises:
            RefusedAction: the action is not possible.
        """
        writer = self._open_writer()
        if writer.committing:
            self._finish_commit(wait=False)
        with self._release_on_error():
            try:
                written_over = writer.run(action)
            except NoColumnLeft as error:
                writer = self._rebuild(error)
                written_over = writer.run(action)
            if writer.full:
                self._commit(writer)
        return written_over

    def put_mappings(self, mappings: Mapping[str, Any]) -> None:
        """Add fields, and replace the other options that are given.

        Raises:
            UnsupportedQuery: the mappings are not supported.
        """
        writer = self._open_writer()
        try:
            writer.adopt(writer.catalog.with_mappings(mappings))
        except NoColumnLeft as error:
            if error.too_many:
                raise UnsupportedQuery(f"{self.folder.name}: {error}") from error
            writer = self._rebuild(error)
            writer.adopt(writer.catalog.with_mappings(mappings))
        self.refresh()

    def delete_found(self, query: Callable[[], tantivy.Query]) -> int:
        """Delete the documents that match and return their number; ``query`` is called after a refresh."""
        writer = self._open_writer()
        self.refresh()
        found = query()
        count, _ = search_top(self._snapshot.searcher, found, 1)
        writer.delete(found)
        self.refresh()
        return count

    def refresh(self) -> None:
        """Commit all writes, and let searches see them and the commits of other processes."""
        with self._release_on_error():
            self._finish_commit(wait=True)
            if self._writer and self._writer.dirty:
                self._commit(self._writer)
        # Nobody else commits while this process writes.
        if self._snapshot_is_stale or self._writer is None:
            self._refresh_snapshot()

    def _refresh_snapshot(self) -> None:
        # Read first, so that the next check notices a commit made meanwhile.
        seen = self._reader.stamp()
        if self._writer is None:
            try:
                self._reader.reload()
            except EngineUnavailable:
                if not self.replaced:
                    raise
            if self.replaced:
                self._reopen()
                seen = self._stamp
        self._catalog = self._writer.catalog if self._writer else Catalog.load(self.folder)
        self._stamp = seen
        self._snapshot = self._make_snapshot()
        self._snapshot_is_stale = False

    def source(self, id_: str) -> dict[str, Any] | None:
        """Return the current version of a document, refreshed or not."""
        if self._writer:
            return self._writer.source(id_)
        return self.snapshot.source(id_)

    def sources(self, ids: Sequence[str]) -> list[dict[str, Any] | None]:
        """Return the current versions of documents, refreshed or not. Columns are opened once for all."""
        pending = self._writer.memtable.sources(ids) if self._writer else {}
        snapshot = self._make_snapshot() if self._writer else self.snapshot
        stored = snapshot.sources([id_ for id_ in ids if id_ not in pending])
        return [pending[id_] if id_ in pending else stored.get(id_) for id_ in ids]

    def close(self) -> None:
        """Commit all writes and release the folder."""
        try:
            self._finish_commit(wait=True)
            writer, self._writer = self._writer, None
            if writer:
                self._close_writer(writer)
        finally:
            self._reader.close()

    def check(self) -> None:
        """Check the contents of all files.

        Raises:
            EngineUnavailable: some are damaged; the message names them.
        """
        self._reader.check()

    def _recover(self) -> None:
        """Commit the journal of a killed writer. If that fails, searches still see what is committed."""
        if self._reader.read_only or not journal_files(self.folder):
            return
        with suppress(EngineError):
            self._open_writer()
            self.release()

    def _open_writer(self) -> IndexWriter:
        if self._writer is None:
            if self._reader.read_only:
                raise IndexReadOnly(
                    f"the index in {self.folder} is read-only: you may not write to its folder. "
                    "Ask for write access, or copy the folder"
                )
            self._writer = self._lock()
            self._reader.reload()
            self._snapshot_is_stale = True
            with self._release_on_error(always=True):
                if self._writer.recover():
                    self._reader.reload()
        return self._writer

    def _lock(self) -> IndexWriter:
        """Take the write lock; if another process has rebuilt the index, open it anew first."""
        while True:
            if self.replaced:
                self._reopen()
            committed = CommittedState(self._stored_source, self._contains, self._heads_end)
            writer = IndexWriter.open(
                self.folder, self._reader.index, self._analysis, self._limits, committed
            )
            if not self.replaced:
                return writer
            writer.abandon()

    def _close_writer(self, writer: IndexWriter) -> None:
        """Commit all writes and release the lock."""
        try:
            if writer.dirty:
                self._commit(writer)
        except EngineError:
            # This error is more useful than one of ``close``.
            with suppress(EngineError):
                writer.close()
            raise
        writer.close()

    def _rebuild(self, error: NoColumnLeft) -> IndexWriter:
        """Rebuild the index with more columns and return a new writer; the snapshot stays the same."""
        self._finish_commit(wait=True)
        watched = frozenset[str]()
        if self._writer:
            watched = self._writer.memtable.watched
            self._close_writer(self._writer)
            self._writer = None
        rebuild_columns(self.folder, self._reader, self._analysis, error.pools, self._limits.memory)
        self._reopen()
        writer = self._open_writer()
        if watched:
            # Fields stay watched across the rebuild.
            self._refresh_snapshot()
            writer.memtable.watched = watched
        return writer

    def _commit(self, writer: IndexWriter) -> None:
        self._finish_commit(wait=True)
        writer.commit()
        self._after_commit(writer)

    def _finish_commit(self, *, wait: bool) -> None:
        """Finish a background commit that has ended, or wait for it."""
        with self._release_on_error():
            if self._writer and self._writer.finish(wait=wait):
                self._after_commit(self._writer)

    def _after_commit(self, writer: IndexWriter) -> None:
        self._reader.reload()
        self._snapshot_is_stale = True
        if writer.started_file:
            if writer.dirty:
                # Compaction writes committed versions again, which must not replace newer ones.
                writer.commit()
                self._reader.reload()
            try:
                with translate_errors(f"giving space back in {self.folder.name}", self.folder, lost=False):
                    self._compact(writer)
            except EngineError as error:
                # All writes are committed.
                error.lost = 0
                raise
        if writer.memtable.watched:
            # The memtable no longer has the committed documents, so searches must see them.
            self._refresh_snapshot()

    @contextmanager
    def _release_on_error(self, *, always: bool = False) -> Iterator[None]:
        """Release the writer if writing fails; the next writer recovers from the journal.

        Args:
            always: also if this writer has no journal.
        """
        try:
            yield
        except EngineError:
            writer = self._writer
            if writer and (always or writer.journal.used):
                self._writer = None
                writer.abandon()
            raise

    def _compact(self, writer: IndexWriter) -> None:
        """Reclaim the space of the heads of replaced and deleted documents."""
        searcher, schema = self._reader.index.searcher(), self._reader.index.schema
        lives = live_counts(searcher)
        *full, _ = record_files(self.folder / FOLDER)
        records = {number: scan_file(file, contents=False).records for number, file in full}
        emptied = sparse_files(lives, records)
        for number in emptied:
            relocate(searcher, schema, self._reader.heads, number, writer.rewrite)
        if emptied:
            writer.commit()
            self._reader.reload()
        for number, file in full:
            if number not in lives or number in emptied:
                file.unlink(missing_ok=True)

    def _stored_source(self, id_: str) -> dict[str, Any] | None:
        return self._make_snapshot().source(id_)

    def _contains(self, id_: str) -> bool:
        """Return whether a document is committed, without reading its source."""
        searcher = self._reader.index.searcher()
        if not searcher.num_docs:
            return False
        query = tantivy.Query.term_query(self._reader.index.schema, "_id", id_)
        return bool(searcher.search(query, 1, count=False).hits)

    def _make_snapshot(self) -> Snapshot:
        searcher, schema = self._reader.index.searcher(), self._reader.index.schema
        return Snapshot(self.folder.name, self._catalog, searcher, schema, self._reader.heads)


def _nearest_existing(folder: Path) -> Path:
    """Return a folder, or the nearest parent that exists."""
    return next((place for place in (folder, *folder.absolute().parents) if place.exists()), folder)
