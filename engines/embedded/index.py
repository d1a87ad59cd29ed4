"""One index: its folder, its catalog, the snapshot searches see, and its writer while there is one."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import tantivy

from shinglefold.durable import sync_folder
from shinglefold.engines.embedded.actions import Action
from shinglefold.engines.embedded.analysis import Analysis, check_analysis
from shinglefold.engines.embedded.catalog import Catalog, NoColumnLeft
from shinglefold.engines.embedded.folders import check_free, made_apart
from shinglefold.engines.embedded.integrity import read_meta, schema_checksum
from shinglefold.engines.embedded.journal import age, files
from shinglefold.engines.embedded.reading import Reading, stamp
from shinglefold.engines.embedded.reclaiming import empty, living, sparse
from shinglefold.engines.embedded.schema import TANTIVY, Portion, find, make_schema, translated
from shinglefold.engines.embedded.snapshot import Snapshot
from shinglefold.engines.embedded.volumes import FOLDER, volumes, walk
from shinglefold.engines.embedded.widening import finish_widening, widen
from shinglefold.engines.embedded.writer import Committed, Writer
from shinglefold.errors import EngineError, IndexReadOnly, UnsupportedQuery

#: Seconds between two looks at a journal, and after which its writer is taken for dead: it commits each one.
_LOOKED = 5.0


class Index:
    """An open index. Not safe for several threads writing; ``EmbeddedEngine`` sees to that."""

    def __init__(self, folder: Path, analysis: Analysis, portion: Portion) -> None:
        self.folder = folder
        self._analysis = analysis
        self._portion = portion
        self._catalog = Catalog.load(folder)
        check_analysis(folder.name, self._catalog.analysis, analysis)
        self._writer: Writer | None = None
        finish_widening(folder)
        self._seen = stamp(folder)
        #: Behind the last head this process wrote, so that it need not read the file through.
        self._heads_end = 0
        #: Whether more is committed than the snapshot shows, of what this process can know.
        self._behind = False
        self._reading = Reading(folder, self._catalog)
        self._tantivy = self._reading.index
        self._snapshot = self._make_snapshot()
        self._looked = time.monotonic()
        self._take_over()

    @classmethod
    def create(cls, folder: Path, catalog: Catalog) -> None:
        """Make an index; a crash leaves nothing or a folder out of sight, see ``folders``.

        Raises:
            EngineUnavailable: the folder can't be written, or another process is making the index.
        """
        check_free(folder)
        with translated(f"creating {folder.name}", _there(folder), lost=False), made_apart(folder) as part:
            (part / TANTIVY).mkdir()
            tantivy.Index(make_schema(catalog), path=str(part / TANTIVY))
            replace(catalog, schema=schema_checksum(read_meta(part / TANTIVY))).save(part)
            part.rename(folder)
            sync_folder(folder.parent)

    @property
    def catalog(self) -> Catalog:
        """The newest catalog, with what uncommitted documents added."""
        return self._writer.catalog if self._writer else self.snapshot.catalog

    @property
    def snapshot(self) -> Snapshot:
        """What searches see: all that other processes committed, or as of the last refresh of our own writer.

        Cost: a look at three files.
        """
        if self._writer is None:
            if time.monotonic() - self._looked > _LOOKED:
                self._looked = time.monotonic()
                if age(self.folder) > _LOOKED:
                    self._take_over()
            if self._reading.stamp() != self._seen:
                self._read_again()
        return self._snapshot

    @property
    def replaced(self) -> bool:
        """Whether another index stands in its place."""
        return self._writer is None and self._reading.stamp()[0] != self._seen[0]

    @property
    def writes(self) -> bool:
        """Whether this process has the index to itself for writing."""
        return self._writer is not None

    def begin(self) -> None:
        """Take the index for writing.

        Raises:
            EngineUnavailable: another process writes.
        """
        self._open_writer()

    def end(self) -> None:
        """Commit what was written and let other processes write."""
        self._settle(wait=True)
        writer, self._writer = self._writer, None
        if writer:
            self._close_writer(writer)
            self._heads_end = writer.heads_end
            self._read_again()

    def watch(self, fields: Collection[str]) -> None:
        """Keep track of the values that documents have in some fields until searches see them.

        Raises:
            EngineUnavailable: another process writes, or the files can't be written.
        """
        writer = self._open_writer()
        if not writer.uncommitted.watched.issuperset(fields):
            self.refresh()
            writer.uncommitted.watched |= frozenset(fields)

    def unsearched(self, field: str, values: Collection[object]) -> dict[object, list[str]]:
        """Return by value the documents with one of some values in a watched field, where searches need not
        see them yet, or had until lately.
        """
        return self._writer.uncommitted.having(field, values) if self._writer else {}

    def note(self) -> None:
        """Make durable what was written; searches see it within about a second, as long as this goes on.

        Raises:
            EngineUnavailable: the files can't be written.
        """
        if (writer := self._writer) is None:
            return
        with self._kept():
            writer.note()
            self._settle(wait=False)
            if writer.due and not writer.committing:
                writer.commit_beside()

    def run(self, action: Action) -> bool:
        """Do one bulk action, committing when a portion is full, and tell whether it wrote over a document.

        Raises:
            Refused: the action can't be done.
            EngineUnavailable: another process writes, or the files can't be written.
        """
        writer = self._open_writer()
        if writer.committing:
            self._settle(wait=False)
        with self._kept():
            try:
                written_over = writer.run(action)
            except NoColumnLeft as error:
                writer = self._widened(error)
                written_over = writer.run(action)
            if writer.full:
                self._commit(writer)
        return written_over

    def put_mappings(self, mappings: Mapping[str, Any]) -> None:
        """Add fields, and replace ``_meta`` where one is given.

        Raises:
            UnsupportedQuery: the mappings can't be had.
            EngineUnavailable: another process writes, or the files can't be written.
        """
        writer = self._open_writer()
        try:
            writer.adopt(writer.catalog.with_mappings(mappings))
        except NoColumnLeft as error:
            if error.too_many:
                raise UnsupportedQuery(f"{self.folder.name}: {error}") from error
            writer = self._widened(error)
            writer.adopt(writer.catalog.with_mappings(mappings))
        self.refresh()

    def delete_found(self, query: Callable[[], tantivy.Query]) -> int:
        """Delete what a query finds and return how many that was; ``query`` is asked for once all is visible.

        Raises:
            EngineUnavailable: another process writes, or the files can't be written.
        """
        writer = self._open_writer()
        self.refresh()
        found = query()
        count, _ = find(self._snapshot.searcher, found, 1)
        writer.delete(found)
        self.refresh()
        return count

    def refresh(self) -> None:
        """Commit what was written, and let searches see it and what other processes committed."""
        with self._kept():
            self._settle(wait=True)
            if self._writer and self._writer.dirty:
                self._commit(self._writer)
        # Nobody else commits while this process writes.
        if self._behind or self._writer is None:
            self._read_again()

    def _read_again(self) -> None:
        # Read before the rest: what is committed meanwhile is seen with the next look.
        seen = self._reading.stamp()
        if self._writer is None:
            self._reading.reload()
        self._catalog = self._writer.catalog if self._writer else Catalog.load(self.folder)
        self._seen = seen
        self._snapshot = self._make_snapshot()
        self._behind = False

    def source(self, id: str) -> dict[str, Any] | None:  # noqa: A002
        """Return a document as it is now, refreshed or not."""
        if self._writer:
            return self._writer.source(id)
        return self.snapshot.source(id)

    def sources(self, ids: Sequence[str]) -> list[dict[str, Any] | None]:
        """Return documents as they are now, refreshed or not. Columns are opened once for all of them."""
        pending = self._writer.uncommitted.sources(ids) if self._writer else {}
        snapshot = self._make_snapshot() if self._writer else self.snapshot
        stored = snapshot.sources([id_ for id_ in ids if id_ not in pending])
        return [pending[id_] if id_ in pending else stored.get(id_) for id_ in ids]

    def close(self) -> None:
        """Commit what was written and give the folder back."""
        try:
            self._settle(wait=True)
            writer, self._writer = self._writer, None
            if writer:
                self._close_writer(writer)
        finally:
            self._reading.close()

    def check(self) -> None:
        """Check the contents of all files.

        Raises:
            EngineUnavailable: some are damaged; the message names them.
        """
        self._reading.check()

    def _take_over(self) -> None:
        """Commit what a writer has noted that was killed; another one that lives does that itself.

        Where that can't be, searches go on with what is committed.
        """
        if self._reading.read_only or not files(self.folder):
            return
        with suppress(EngineError):
            self._open_writer()
            self.end()

    def _open_writer(self) -> Writer:
        if self._writer is None:
            if self._reading.read_only:
                raise IndexReadOnly(
                    f"the index in {self.folder} can be read only: its folder is not yours to write to. Ask "
                    "for the right, or copy the folder"
                )
            committed = Committed(self._stored, self._holds, self._heads_end)
            self._writer = Writer.open(self.folder, self._tantivy, self._analysis, self._portion, committed)
            self._reading.reload()
            self._behind = True
            with self._kept(always=True):
                if self._writer.recover():
                    self._reading.reload()
        return self._writer

    def _close_writer(self, writer: Writer) -> None:
        """Commit what was written and give the lock back."""
        try:
            if writer.dirty:
                self._commit(writer)
        except EngineError:
            # Which says more, and what is lost.
            with suppress(EngineError):
                writer.close()
            raise
        writer.close()

    def _widened(self, error: NoColumnLeft) -> Writer:
        """Write the index anew, with more columns, and return a writer; searches see what they saw before."""
        self._settle(wait=True)
        watched = frozenset[str]()
        if self._writer:
            watched = self._writer.uncommitted.watched
            self._close_writer(self._writer)
            self._writer = None
        widen(self.folder, self._reading, self._analysis, error.pools, self._portion.memory)
        self._reading.close()
        self._catalog = Catalog.load(self.folder)
        self._reading = Reading(self.folder, self._catalog)
        self._tantivy = self._reading.index
        self._seen = self._reading.stamp()
        writer = self._open_writer()
        if watched:
            # Whoever watches goes on being told of what searches don't see.
            self._read_again()
            writer.uncommitted.watched = watched
        return writer

    def _commit(self, writer: Writer) -> None:
        self._settle(wait=True)
        writer.commit()
        self._committed(writer)

    def _settle(self, *, wait: bool) -> None:
        """End a commit that goes on beside, if it is done or is to be waited for."""
        with self._kept():
            if self._writer and self._writer.finish(wait=wait):
                self._committed(self._writer)

    def _committed(self, writer: Writer) -> None:
        self._reading.reload()
        self._behind = True
        if writer.filled:
            if writer.dirty:
                # What came since would be written over by what is committed.
                writer.commit()
                self._reading.reload()
            try:
                with translated(f"giving space back in {self.folder.name}", self.folder, lost=False):
                    self._reclaim(writer)
            except EngineError as error:
                # All that was asked for is committed.
                error.lost = 0
                raise
        if writer.uncommitted.watched:
            # Whoever was told what searches did not see is not told of that any more.
            self._read_again()

    @contextmanager
    def _kept(self, *, always: bool = False) -> Iterator[None]:
        """Where writing fails, let go of everything but the journal, from which the next writer goes on.

        Args:
            always: also where this writer has no journal of its own.
        """
        try:
            yield
        except EngineError:
            writer = self._writer
            if writer and (always or writer.journal.used):
                self._writer = None
                writer.abandon()
            raise

    def _reclaim(self, writer: Writer) -> None:
        """Remove what heads took of documents that are written over or gone, now and then."""
        searcher, schema = self._tantivy.searcher(), self._tantivy.schema
        lives = living(searcher)
        *full, _ = volumes(self.folder / FOLDER)
        records = {number: walk(file, contents=False).records for number, file in full}
        emptied = sparse(lives, records)
        for number in emptied:
            empty(searcher, schema, self._reading.heads, number, writer.put_again)
        if emptied:
            writer.commit()
            self._reading.reload()
        for number, file in full:
            if number not in lives or number in emptied:
                file.unlink(missing_ok=True)

    def _stored(self, id: str) -> dict[str, Any] | None:  # noqa: A002
        return self._make_snapshot().source(id)

    def _holds(self, id: str) -> bool:  # noqa: A002
        """Tell whether a document is committed; its source is left alone, as this is asked for each one."""
        searcher = self._tantivy.searcher()
        if not searcher.num_docs:
            return False
        query = tantivy.Query.term_query(self._tantivy.schema, "_id", id)
        return bool(searcher.search(query, 1, count=False).hits)

    def _make_snapshot(self) -> Snapshot:
        searcher, schema = self._tantivy.searcher(), self._tantivy.schema
        return Snapshot(self.folder.name, self._catalog, searcher, schema, self._reading.heads)


def _there(folder: Path) -> Path:
    """Return a folder, or the nearest above it that is there."""
    return next((place for place in (folder, *folder.absolute().parents) if place.exists()), folder)
